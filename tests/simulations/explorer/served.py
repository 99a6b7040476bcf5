"""The explorer, served in a thread."""

import asyncio
import contextlib
import threading
import time
from http.client import HTTPConnection

from simulations.explorer.server import Explorer


@contextlib.contextmanager
def serving(view, sweep=None):
    """Serve pages during a ``with`` block, and yield the Explorer."""
    explorer = Explorer(view, 0, 1, sweep)
    thread = threading.Thread(target=lambda: asyncio.run(explorer.serve()), daemon=True)
    thread.start()
    try:
        for _ in range(600):  # a minute
            with contextlib.suppress(OSError):
                if ask(explorer, "/nothing") == 404:
                    break
            time.sleep(0.1)
        yield explorer
    finally:
        explorer.stop()
        thread.join(60.0)


def ask(explorer, path, **headers):
    """Return the status of the response to a request."""
    connection = HTTPConnection("127.0.0.1", explorer.port, timeout=60.0)
    try:
        connection.request("GET", path, headers=headers)
        return connection.getresponse().status
    finally:
        connection.close()
