"""The door of the explorer: open to this machine alone, and the command that opens it."""

import contextlib
import os
import queue
import re
import signal
import socket
import subprocess
import sys
from http.client import HTTPConnection

import pytest

from simulations import theories
from simulations.cli import main
from simulations.commands import explore
from simulations.explorer.state import View
from simulations.sweep.cells import empty_row
from simulations.sweep.config import parse
from simulations.sweep.storage import labelled, write_result

pytest.importorskip("bokeh", reason="the extra explore is not installed")
from bokeh.client import pull_session

from tests.simulations.explorer.conftest import SWEEP, ask, serving

SOCKET = {
    "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "x3JJHMbDL1EzLkh9GBhXDw==",
}  # fmt: skip


@pytest.fixture(scope="module")
def explorer():
    with serving(View("masked")) as served:
        yield served


class TestDoor:
    def test_it_listens_to_this_machine_alone(self, explorer):
        assert {socket.getsockname()[0] for socket in explorer._sockets} == {"127.0.0.1"}

    def test_page_and_what_it_needs(self, explorer):
        assert ask(explorer, "/") == 200
        assert ask(explorer, "/?system=shallow&M=4", Host=f"localhost:{explorer.port}") == 200
        assert ask(explorer, "/static/js/bokeh.min.js") == 200

    @pytest.mark.parametrize("host", [
        "evil.example", "evil.example:{port}", "localhost", "localhost.evil.example:{port}",
        "0.0.0.0:{port}",
    ])  # fmt: skip
    def test_another_host_is_rejected(self, explorer, host):
        """A name of another site that leads to this machine."""
        for path in ("/", "/static/js/bokeh.min.js"):
            assert ask(explorer, path, Host=host.format(port=explorer.port)) == 403

    @pytest.mark.parametrize("path", ["/", "/ws", "/static/js/bokeh.min.js"])
    @pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://localhost:{port}"])
    def test_another_origin_is_rejected(self, explorer, path, origin):
        assert ask(explorer, path, Origin=origin.format(port=explorer.port), **SOCKET) == 403

    def test_our_own_origin_may_open_a_socket(self, explorer):
        """A request for the token of a page then."""
        own = f"http://localhost:{explorer.port}"
        assert ask(explorer, "/ws", Origin=own, **SOCKET) not in (200, 404)

    @pytest.mark.parametrize("path", ["/autoload.js", "/metadata", "/../pyproject.toml", "/x"])
    def test_unknown_paths_return_404(self, explorer, path):
        assert ask(explorer, path) == 404

    @pytest.mark.parametrize("path", ["/", "/ws", "/static/js/bokeh.min.js"])
    def test_another_site_is_rejected(self, explorer, path):
        """A picture or a frame in a page of another site: such a request has no origin."""
        assert ask(explorer, path, **SOCKET, **{"Sec-Fetch-Site": "cross-site"}) == 403

    @pytest.mark.parametrize("site", [pytest.param("none", marks=pytest.mark.slow), "same-origin"])
    def test_an_address_that_is_typed_or_our_own_is_served(self, explorer, site):
        assert ask(explorer, "/", **{"Sec-Fetch-Site": site}) == 200

    @pytest.mark.parametrize(
        ("query", "sentence"),
        [
            ("P=" + "1" * 300, "P is not allowed: it must have at most 200 characters"),
            ("x" * 300 + "=1", "x" * 40 + " is not allowed: it must have at most 200 characters"),
            ("&".join(f"a{i}=1" for i in range(101)),
             "this address is not allowed: it must have at most 100 parameters"),
            ("&".join(["P=1"] * 500),
             "this address is not allowed: it must have at most 100 parameters"),
        ],
    )  # fmt: skip
    def test_an_address_that_is_too_long_is_one_sentence(self, explorer, query, sentence):
        connection = HTTPConnection("127.0.0.1", explorer.port, timeout=60.0)
        with contextlib.closing(connection):
            connection.request("GET", f"/?{query}")
            answer = connection.getresponse()
            assert (answer.status, answer.read().decode()) == (400, f"{sentence}\n")

    @pytest.mark.parametrize(
        "value",
        [
            "9" * 199,
            "1e400",
            "%00",
            *(pytest.param(x, marks=pytest.mark.slow) for x in ("%ff", "%F0%9F%98%80", "1/0")),
        ],
    )
    def test_a_value_that_is_not_allowed_is_first_line_on_the_page(self, explorer, value):
        assert ask(explorer, f"/?P={value}") == 200


@pytest.mark.slow
def test_a_run_starts_when_the_web_socket_is_open(monkeypatch):
    """A request without a web socket, such as a prefetch, starts no run."""
    with serving(View("masked")) as explorer:
        started = queue.SimpleQueue()
        submit = explorer.workers.submit

        def counted(task, on_event):
            started.put(task)
            return submit(task, on_event)

        monkeypatch.setattr(explorer.workers, "submit", counted)
        assert ask(explorer, "/?P=64&horizon=1") == 200
        with pytest.raises(queue.Empty):
            started.get(timeout=0.5)
        session = pull_session(url=f"http://localhost:{explorer.port}/", arguments={"P": "64"})
        try:
            task = started.get(timeout=60.0)
        finally:
            session.close()
        assert task.case.values["P"] == 64
        assert started.empty()


def test_stopping_closes_all_connections():
    """A browser keeps its connections open until the server closes them."""
    with serving(View("masked")) as explorer:
        idle = HTTPConnection("127.0.0.1", explorer.port, timeout=20.0)
        idle.request("GET", "/nothing")
        idle.getresponse().read()
        raw = socket.create_connection(("127.0.0.1", explorer.port), timeout=20.0)
    with contextlib.closing(idle), raw:
        assert idle.sock.recv(1) == b""
        assert raw.recv(1) == b""


class TestCommand:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--port", "70000"], "--port 70000 is not allowed: it must be an integer from 0 to"),
            (["--port", "1.5"], "--port 1.5 is not allowed"),
            (["--port", "many"], "'many' is not allowed: it must be a number"),
            (["--at", "nu"], "--at nu is not allowed: it must be NAME=VALUE"),
            (["--at", "nu=-1"], "nu = -1.0 is not allowed: nu must be greater than 0"),
            (["--at", "mu=1"], "mu is not a parameter of this system"),
            (["--system", "nothing"], "invalid choice: 'nothing'"),
            (["none.py"], "none.py, line 1: the file cannot be read: No such file or directory"),
            (["a.py", "--theory", "b.py"], "--theory b.py is not allowed with a.py: give one file"),
            (["--system", "masked", "--theory", "b.py"], "not allowed with argument --system"),
            (["nowhere"], "nowhere contains no sweep: compute one with `patchdyn sweep`"),
        ],
    )
    def test_bad_input(self, arguments, message, capsys, monkeypatch, tmp_path):
        monkeypatch.chdir(tmp_path)
        assert main(["explore", *arguments]) == 2
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1

    def test_system_of_another_sweep_is_rejected(self, tmp_path, capsys):
        config = parse(SWEEP)
        rows = [empty_row(theories.load("positional"), "failed", "")] * config.size
        write_result(tmp_path, labelled(config, rows, {"code": "0"}))
        assert main(["explore", str(tmp_path), "--system", "masked"]) == 2
        assert "is positional" in capsys.readouterr().err

    def test_without_the_extra(self, monkeypatch, capsys):
        monkeypatch.setattr(explore, "find_spec", lambda name: None)
        assert main(["explore"]) == 2
        error = capsys.readouterr().err
        assert "explore needs bokeh, which is not installed: pip install '.[explore]'\n" in error

    def test_a_port_in_use(self, explorer, capsys):
        assert main(["explore", "--port", str(explorer.port)]) == 2
        error = capsys.readouterr().err
        assert f"--port {explorer.port} is not allowed: Address already in use" in error

    @pytest.mark.slow
    @pytest.mark.skipif(sys.platform == "win32", reason="Windows sends Ctrl-C in another way")
    def test_it_prints_its_address_and_ends_with_ctrl_c(self):
        words = [
            sys.executable,
            "-m",
            "simulations.cli",
            "explore",
            "--port",
            "0",
            "--at",
            "nu=0.1",
        ]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True,
                              env=os.environ | {"PYTHONUNBUFFERED": "1"}) as process:  # fmt: skip
            first_line = process.stdout.readline()
            assert re.search(
                r"http://localhost:\d+/\?system=positional&nu=0.1$", first_line.strip()
            )
            assert "stop it with Ctrl-C" in process.stdout.readline()
            process.send_signal(signal.SIGINT)
            assert process.wait(60.0) == 0
