"""Processes killed at random moments, again and again: nothing finished is lost or changed.

``--fuzz-kills 50`` (default 2) is the number of kills; ``--fuzz-claims`` names the claims of the
quick reproduction that is killed (default: two fast ones; ``all`` for the whole).
"""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from simulations import maps
from simulations.theory import VOLATILE

CONFIG = """
[fixed]
D = 16
C = 4
[grid]
"qD/C^2" = { from = 0.05, to = 0.3, number = 8, scale = "log" }
nu = { from = 0.001, to = 0.1, number = 8, scale = "log" }
[run]
horizon = 1e4
rtol = 1e-6
tolerance = 1e-7
"""
_OWN_TIME = ("seconds", "date")


def patchdyn(*arguments):
    return [sys.executable, "-m", "simulations.cli", *map(str, arguments)]


def finish(command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=3600, check=False)
    assert done.returncode == 0, done.stderr


def kill_again_and_again(command, rng, kills):
    """Run a command, kill it with all its children at random moments, and let it end at last."""
    longest, survived = 4.0, 0
    while survived < kills:
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
        )
        time.sleep(rng.uniform(0.0, longest))
        if process.poll() is not None:
            assert process.returncode == 0, process.stderr.read()
            longest *= 0.7  # it had nothing left to do
            if longest < 0.5:
                break
            continue
        os.killpg(process.pid, rng.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM)))
        process.wait()
        process.stderr.close()
        survived += 1
    finish(command)


@pytest.fixture
def kills(request):
    return request.config.getoption("--fuzz-kills")


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="sessions are killed as a whole")
def test_sweep(cases, kills, tmp_path):
    (tmp_path / "c.toml").write_text(CONFIG)
    finish(patchdyn("sweep", tmp_path / "c.toml", "--out", tmp_path / "whole"))
    command = patchdyn("sweep", tmp_path / "c.toml", "--out", tmp_path / "killed")
    kill_again_and_again(command, next(cases()), kills)
    whole, killed = (
        maps.read(tmp_path / name).data.drop_vars(VOLATILE) for name in ("whole", "killed")
    )
    assert killed.drop_attrs().identical(whole.drop_attrs())
    assert not list((tmp_path / "killed").rglob(".*.partial"))


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="sessions are killed as a whole")
def test_quick_reproduction(cases, kills, tmp_path, request):
    claims = request.config.getoption("--fuzz-claims")
    only = [] if claims == "all" else ["--only", *claims.split(",")]
    finish(patchdyn("reproduce", "--quick", *only, "--out", tmp_path / "whole"))
    command = patchdyn("reproduce", "--quick", *only, "--out", tmp_path / "killed")
    kill_again_and_again(command, next(cases()), kills)

    def report(name):
        entries = json.loads((tmp_path / name / "report.json").read_text())
        for entry in entries:
            for own in _OWN_TIME:
                del entry[own]
            for figure in entry["figures"]:
                del figure["data sha256"]  # NetCDF keeps the time of its making
        return entries

    assert report("killed") == report("whole")
    assert not list((tmp_path / "killed").rglob(".*.partial"))
