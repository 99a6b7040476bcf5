"""Input and surroundings that once ended in a traceback, an empty file or no answer."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from simulations.cli import main
from simulations.commands.run_summary import as_text
from simulations.theories import load


def test_a_learning_rate_that_overflows_the_attention_diverges(capsys):
    """A ReLU replaced the nan by 0: the run reported a loss of 1 and "completed"."""
    arguments = ["--system", "shallow", "--spread=.35", "--learning-rate=1e240"]
    assert main(["run", *arguments]) == 1
    assert "status       diverged" in capsys.readouterr().out


def test_a_bound_that_is_not_finite_is_unknown():
    theory = load("shallow")
    values = dict.fromkeys([quantity.name for quantity in theory.observables])
    summary = {
        "constants": {},
        "stats": {},
        "reason": "",
        "solver": "",
        "time": 0.0,
        "status": "",
        "message": "",
        "method": "",
        "outcomes": None,
        "violations": None,
        "initial": values,
        "final": values,
    }
    assert "+- unknown" in as_text(theory, summary)


@pytest.mark.parametrize(
    ("arguments", "code", "closed"),
    [
        (["claims"], 0, [1]),
        (["claims", "--json"], 0, [1, 2]),
        (["--version"], 0, [1]),
        pytest.param(["run", "--help"], 0, [1, 2], marks=pytest.mark.slow),
        pytest.param(["derive", "lemma-4.1"], 0, [2], marks=pytest.mark.slow),
        pytest.param(["run", "--D", "5"], 2, [2], marks=pytest.mark.slow),
        (["sing"], 2, [1, 2]),
    ],
)
def test_closed_output_is_no_traceback(arguments, code, closed):
    """As of ``patchdyn claims >&-``; what is written to the other stream stays there."""
    closing = " ".join(f"{stream}>&-" for stream in closed)
    words = " ".join(arguments)
    done = subprocess.run(
        ["sh", "-c", f"exec {sys.executable} -m simulations.cli {words} {closing}"],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    assert bool(done.stdout) == (code == 0 and 1 not in closed)


def test_a_run_on_samples_that_takes_minutes_is_rejected_beforehand(capsys, monkeypatch):
    def solve(*_, **__):
        pytest.fail("the run was started")

    monkeypatch.setattr(type(load("positional")), "solve", solve)
    assert main(["run", "--D", "1000000000", "--C", "4", "--q", ".27"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("patchdyn: D = 1000000000 is not allowed with q = 0.27: no certified")
    assert len(error.splitlines()) == 1


@pytest.mark.parametrize(
    "arguments",
    [["--D", "16384", "--q", ".27"], ["--D", "1000000000", "--q", ".27", "--method", "sampling"]],
)
def test_a_run_on_samples_that_is_affordable_or_requested_is_started(monkeypatch, arguments):
    class Started(Exception):
        pass

    def solve(*_, **__):
        raise Started

    monkeypatch.setattr(type(load("positional")), "solve", solve)
    with pytest.raises(Started):
        main(["run", *arguments])


def test_a_certificate_that_is_not_there_is_bad_input(capsys, tmp_path):
    for path in (tmp_path / "none.json", tmp_path):
        assert main(["prove", "--check", str(path)]) == 2
        assert capsys.readouterr().err == (
            f"patchdyn: --check {path} is not allowed: this file does not exist\n"
        )


def test_a_new_theory_on_a_full_disk_leaves_nothing(capsys, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.chdir(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        assert main(["theory", "--new", "mine"]) == 1
    assert "cannot write mine.py: No space left on device" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        assert main(["theory", "--new", "mine"]) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_new_theory_leaves_a_link_alone(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").symlink_to("nowhere")
    assert main(["theory", "--new", "mine"]) == 2
    assert "mine.py exists" in capsys.readouterr().err
    assert (tmp_path / "mine.py").is_symlink()
