"""Processes killed at random times: no finished result is lost or changed.

``--fuzz-kills 50`` sets the number of kills (default 2). ``--fuzz-claims`` sets the claims of the
quick reproduction (default: two fast ones; ``all`` for all claims).
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

from simulations import maps
from simulations.cli import main

CONFIG = """
[fixed]
D = 16
C = 4
[grid]
"qD/C^2" = { from = 0.05, to = 0.3, number = 5, scale = "log" }
nu = { from = 0.001, to = 0.1, number = 5, scale = "log" }
[run]
horizon = 1e4
rtol = 1e-6
tolerance = 1e-7
"""
#: Approximate seconds that a process needs to start.
START = 2.0
_OWN_TIME = ("seconds", "date")


def finish(*arguments):
    """Run a command in this process, and return the seconds that it took."""
    start = time.monotonic()
    assert main([*map(str, arguments), "--workers", "1"]) == 0
    return time.monotonic() - start


def kill_again_and_again(arguments, rng, kills, seconds, finished, check):
    """Kill a command and its children at random times, and resume it after each kill.

    Parameters
    ----------
    arguments, rng
        Arguments of the command, and random generator.
    kills
        Number of kills. Every second run is killed while it starts. Each other run is killed within
        ``seconds / 4`` after a new result.
    seconds
        Duration of the whole command.
    finished
        Function that returns the number of finished results.
    check
        Function that checks the results of a complete run and removes them, so that the next run
        starts from the beginning.
    """
    command = [sys.executable, "-m", "simulations.cli", *map(str, arguments)]
    killed = 0
    while killed < kills:
        before = finished()
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
        )
        if killed % 2:
            time.sleep(rng.uniform(0.0, START))
        else:
            while process.poll() is None and finished() == before:
                time.sleep(0.01)
            time.sleep(rng.uniform(0.0, seconds / 4))
        if process.poll() is not None:
            assert process.returncode == 0, process.stderr.read()
            check()
            continue
        os.killpg(process.pid, rng.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM)))
        process.wait()
        process.stderr.close()
        killed += 1
    finish(*arguments)
    check()


def comparable(entries):
    """Return the entries of a report without run times and dates."""
    for entry in entries:
        for own in _OWN_TIME:
            del entry[own]
        for figure in entry["figures"]:
            del figure["data sha256"]  # NetCDF contains the time of its creation
        reproducible = [number for number in entry["measured"] if number["unit"] != "s"]
        if len(reproducible) < len(entry["measured"]):  # summary and figures show times, too
            entry["measured"] = reproducible
            del entry["summary"], entry["figures"]
    return entries


@pytest.fixture
def kills(request):
    return request.config.getoption("--fuzz-kills")


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="it kills process groups")
def test_sweep(cases, kills, tmp_path, compiled_before):
    """Killed processes compile kernels; the complete run uses compiled ones."""
    (tmp_path / "c.toml").write_text(CONFIG)
    sweep = ("sweep", tmp_path / "c.toml", "--out")
    seconds = finish(*sweep, tmp_path / "whole")

    def finished():
        return len(list((tmp_path / "killed" / "blocks").glob("*.json")))

    def data(name):
        return maps.read(tmp_path / name).data.drop_vars("seconds").drop_attrs()

    def check():
        assert data("killed").identical(data("whole"))
        assert not list((tmp_path / "killed").rglob(".*.partial"))
        shutil.rmtree(tmp_path / "killed")

    kill_again_and_again(
        (*sweep, tmp_path / "killed"), next(cases()), kills, seconds, finished, check
    )


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="it kills process groups")
def test_quick_reproduction(cases, kills, tmp_path, request):
    claims = request.config.getoption("--fuzz-claims")
    only = [] if claims == "all" else ["--only", *claims.split(",")]
    reproduce = ("reproduce", "--quick", *only, "--out")
    seconds = finish(*reproduce, tmp_path / "whole")

    def finished():
        return len(list((tmp_path / "killed" / "claims").glob("*.json")))

    def report(name):
        return comparable(json.loads((tmp_path / name / "report.json").read_text()))

    def check():
        assert report("killed") == report("whole")
        assert not list((tmp_path / "killed").rglob(".*.partial"))
        shutil.rmtree(tmp_path / "killed")

    kill_again_and_again(
        (*reproduce, tmp_path / "killed"), next(cases()), kills, seconds, finished, check
    )
