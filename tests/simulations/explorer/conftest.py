"""A sweep, computed once for all test files, and the explorer, served in a thread."""

import asyncio
import contextlib
import threading
import time
from http.client import HTTPConnection

import pytest

from simulations import theories
from simulations.explorer.server import Explorer
from simulations.sweep.cells import measure_cells
from simulations.sweep.config import parse
from simulations.sweep.storage import labelled, write_result

SWEEP = """\
system = "positional"
[fixed]
D = 16
tolerance = 1e-6
[grid]
beta = [0.5, 1.0]
"qD/C^2" = { from = 0.05, to = 0.5, number = 3, scale = "log" }
nu = [0.01, 0.1]
[run]
horizon = 1e4
rtol = 1e-6
"""


@pytest.fixture(scope="session")
def sweep_folder(tmp_path_factory):
    folder, config = tmp_path_factory.mktemp("sweep"), parse(SWEEP)
    rows = measure_cells(theories.load("positional"), list(config))
    write_result(folder, labelled(config, rows, {"code": "0"}))
    return folder


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
