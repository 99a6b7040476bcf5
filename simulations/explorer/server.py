"""The door of the explorer: a web server for pages of this machine alone."""

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
from simulations.explorer.look import Task, look
from simulations.explorer.page import Page
from simulations.maps import Sweep
from simulations.workers import WorkerPool

HOST = "127.0.0.1"
#: Largest request that is read: an address is the longest thing a page sends, but for the socket.
_LARGEST = 10**6


class _Guarded(BokehTornado):
    """Pages for this machine: other hosts, other origins and what no page asks for is refused."""

    hosts: frozenset[str] = frozenset()
    opened: Callable[[Document], None]

    def find_handler(self, request: Any, **options: Any) -> Any:
        """Return what answers a request, a refusal where it is not for us."""
        origin = request.headers.get("Origin")
        ours = request.host in self.hosts and (
            origin is None or origin.removeprefix("http://") in self.hosts
        )
        ours = ours and request.headers.get("Sec-Fetch-Site") != "cross-site"
        asked = request.path in ("/", "/ws") or request.path.startswith("/static/")
        if not (ours and asked):
            code = {"status_code": 404 if ours else 403}
            return self.get_handler_delegate(request, ErrorHandler, code)
        try:
            state.read(state.query_of(request.arguments))
        except ParameterError as refusal:
            sentence = {"sentence": str(refusal)}
            return self.get_handler_delegate(request, _BadAddress, sentence)
        return super().find_handler(request, **options)

    def new_connection(self, *arguments: Any) -> Any:
        """Return the connection of a web socket that was opened; its page may begin to compute."""
        connection = super().new_connection(*arguments)
        self.opened(connection.session.document)
        return connection


class _BadAddress(RequestHandler):
    """Answers an address that is not allowed with one sentence."""

    def initialize(self, sentence: str) -> None:
        """Keep the sentence."""
        self._sentence = sentence

    def prepare(self) -> None:
        """Answer."""
        self.set_status(400)
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(f"{self._sentence}\n")


class _Closing(HTTPServer):
    """A server that can close its connections, those that became web sockets too."""

    def initialize(self, *args: Any, **options: Any) -> None:
        """Begin without connections."""
        super().initialize(*args, **options)
        self._streams: WeakSet[IOStream] = WeakSet()

    def handle_stream(self, stream: IOStream, address: tuple[Any, ...]) -> None:
        """Serve one more connection."""
        self._streams.add(stream)
        super().handle_stream(stream, address)

    def close(self) -> None:
        """Close what is open."""
        for stream in list(self._streams):
            stream.close()


class Explorer:
    """A server that is bound; :meth:`run` serves until it is interrupted.

    Parameters
    ----------
    view
        What a page shows whose address says nothing.
    port
        Where it listens; 0: any that is free.
    workers
        How many processes compute.
    sweep
        The sweep whose map is drawn, if there is one.

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
        self.workers = WorkerPool(workers, look)
        self._end: Callable[[], Any] = lambda: None
        self._pages: WeakKeyDictionary[Document, Page] = WeakKeyDictionary()

    @property
    def address(self) -> str:
        """Where a browser finds it."""
        return f"http://localhost:{self.port}/{state.address(self.view)}"

    def page(self, document: Document) -> None:
        """Fill the document of one tab; its run begins when its web socket is open."""
        view = self.view
        context: Any = document.session_context
        if context is not None and context.request is not None and context.request.arguments:
            with contextlib.suppress(ParameterError):  # of a socket without a page before it
                view = asked(context.request.arguments, self.view, fixed=self.sweep is not None)
        page = Page(document, view, self.workers, self.sweep, waits=True)
        self._pages[document] = page
        document.on_session_destroyed(_goodbye(page))

    def _opened(self, document: Document) -> None:
        page = self._pages.get(document)
        if page is not None:
            document.add_next_tick_callback(page.begin)

    async def serve(self) -> None:
        """Serve until :meth:`stop`, or until this is cancelled."""
        settings.log_level = "error"  # what a browser's console is told of
        hosts = frozenset(f"{name}:{self.port}" for name in (HOST, "localhost"))
        application = Application(FunctionHandler(self.page))
        tornado = _Guarded({"/": application}, extra_websocket_origins=sorted(hosts))
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
        """Let a process load its kernels while the browser opens."""
        theory = theories.load(self.view.system)
        self.workers.submit(Task(theory, state.case(theory, self.view.texts)), lambda event: None)

    def stop(self) -> None:
        """Stop serving; from any thread."""
        self._end()


def asked(arguments: Any, default: state.View, *, fixed: bool) -> state.View:
    """Return the view that an address asks for; with a sweep the theory is that of the sweep."""
    view = state.read(state.query_of(arguments), default.system)
    return state.View(default.system, view.texts, view.drawn) if fixed else view


def _goodbye(page: Page) -> Callable[[Any], None]:
    def leave(_: Any) -> None:
        page.cancel_run()

    return leave
