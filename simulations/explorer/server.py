"""Web server of the explorer, for this machine only."""

import asyncio
import contextlib
import socket
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from bokeh.application import Application
from bokeh.application.handlers import FunctionHandler
from bokeh.document import Document
from bokeh.server.server import BaseServer
from bokeh.server.tornado import BokehTornado
from bokeh.settings import settings
from tornado.httpserver import HTTPServer
from tornado.ioloop import IOLoop
from tornado.iostream import IOStream
from tornado.web import ErrorHandler, RequestHandler

from dynamics.core.errors import ParameterError
from simulations import theories
from simulations.explorer import state
from simulations.explorer.page import Page
from simulations.explorer.run_job import Task, compute
from simulations.maps import Sweep
from simulations.workers import WorkerPool

HOST = "127.0.0.1"
#: Largest request in bytes, without web sockets; the longest part of a request is its address.
_LARGEST = 10**6


class _LocalTornado(BokehTornado):
    """Application that rejects other hosts, other origins and unknown paths."""

    hosts: frozenset[str] = frozenset()
    opened: Callable[[Document], None]

    def find_handler(self, request: Any, **options: Any) -> Any:
        """Return the handler of a request, or one that rejects it."""
        origin = request.headers.get("Origin")
        is_local = request.host in self.hosts and (
            origin is None or origin.removeprefix("http://") in self.hosts
        )
        is_local = is_local and request.headers.get("Sec-Fetch-Site") != "cross-site"
        is_known = request.path in ("/", "/ws") or request.path.startswith("/static/")
        if not (is_local and is_known):
            code = {"status_code": 404 if is_local else 403}
            return self.get_handler_delegate(request, ErrorHandler, code)
        try:
            state.read(state.query_of(request.arguments))
        except ParameterError as error:
            sentence = {"sentence": str(error)}
            return self.get_handler_delegate(request, _BadAddress, sentence)
        return super().find_handler(request, **options)

    def new_connection(self, *arguments: Any) -> Any:
        """Return the connection of a new web socket, and start the run of its page."""
        connection = super().new_connection(*arguments)
        self.opened(connection.session.document)
        return connection


class _BadAddress(RequestHandler):
    """Handler of addresses that are not allowed; it responds with one sentence."""

    def initialize(self, sentence: str) -> None:
        """Store the sentence."""
        self._sentence = sentence

    def prepare(self) -> None:
        """Send the sentence with status 400."""
        self.set_status(400)
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(f"{self._sentence}\n")


class _Closing(HTTPServer):
    """Server that can close all its connections, including web sockets."""

    def initialize(self, *args: Any, **options: Any) -> None:
        """Initialize without connections."""
        super().initialize(*args, **options)
        self._streams: WeakSet[IOStream] = WeakSet()

    def handle_stream(self, stream: IOStream, address: tuple[Any, ...]) -> None:
        """Serve a new connection."""
        self._streams.add(stream)
        super().handle_stream(stream, address)

    def close(self) -> None:
        """Close all connections."""
        for stream in list(self._streams):
            stream.close()


class Explorer:
    """Web server on a port; :meth:`serve` serves until it is stopped.

    Parameters
    ----------
    view
        State of a page without a query in its address.
    port
        Port; 0: any free port.
    workers
        Number of worker processes.
    sweep
        Sweep whose maps are shown.

    Raises
    ------
    OSError
        If the port is in use.
    """

    def __init__(
        self, view: state.View, port: int = 0, workers: int = 2, sweep: Sweep | None = None
    ) -> None:
        self.view, self.sweep = view, sweep
        self._sockets = [socket.create_server((HOST, port))]
        self._sockets[0].setblocking(False)
        self.port = int(self._sockets[0].getsockname()[1])
        self.workers = WorkerPool(workers, compute)
        self._end: Callable[[], Any] = lambda: None
        self._pages: WeakKeyDictionary[Document, Page] = WeakKeyDictionary()

    @property
    def address(self) -> str:
        """Address of the page."""
        return f"http://localhost:{self.port}/{state.address(self.view)}"

    def page(self, document: Document) -> None:
        """Fill the document of a tab; its run starts when its web socket is open."""
        view = self.view
        context: Any = document.session_context
        if context is not None and context.request is not None and context.request.arguments:
            with contextlib.suppress(ParameterError):  # of a web socket without a page
                view = requested_view(
                    context.request.arguments, self.view, fixed=self.sweep is not None
                )
        page = Page(document, view, self.workers, self.sweep, start=False)
        self._pages[document] = page
        document.on_session_destroyed(lambda _: page.cancel_run())

    def _opened(self, document: Document) -> None:
        page = self._pages.get(document)
        if page is not None:
            document.add_next_tick_callback(page.begin)

    async def serve(self) -> None:
        """Serve until :meth:`stop`, or until this is cancelled."""
        settings.log_level = "error"  # in the console of the browser
        hosts = frozenset(f"{name}:{self.port}" for name in (HOST, "localhost"))
        application = Application(FunctionHandler(self.page))
        tornado = _LocalTornado({"/": application}, extra_websocket_origins=sorted(hosts))
        tornado.hosts, tornado.opened = hosts, self._opened
        http = _Closing(tornado, max_body_size=_LARGEST)
        http.add_sockets(self._sockets)
        server = BaseServer(IOLoop.current(), tornado, http)
        ended, loop = asyncio.Event(), asyncio.get_running_loop()
        self._end = lambda: loop.call_soon_threadsafe(ended.set)
        server.start()
        self._warm()
        try:
            await ended.wait()
        finally:
            server.stop(wait=False)
            http.close()
            self.workers.close()

    def _warm(self) -> None:
        """Load the kernels in a worker process while the browser starts."""
        theory = theories.load(self.view.system)
        self.workers.submit(Task(theory, state.case(theory, self.view.texts)), lambda event: None)

    def stop(self) -> None:
        """Stop serving; may be called from any thread."""
        self._end()


def requested_view(arguments: Any, default: state.View, *, fixed: bool) -> state.View:
    """Return the view of an address; ``fixed``: always with the theory of ``default``."""
    view = state.read(state.query_of(arguments), default.system)
    return state.View(default.system, view.texts, view.choices) if fixed else view
