"""Machines without a cache, a wide terminal or free disk space."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import dynamics
from simulations.cli import main

CLI = [sys.executable, "-m", "simulations.cli"]
ROOT = Path(dynamics.__file__).parents[1]


def patchdyn(*arguments, folder=None, **options):
    environment = {**os.environ, "PYTHONPATH": str(folder or ROOT), **options.pop("env", {})}
    return subprocess.run(
        [*CLI, *map(str, arguments)],
        env=environment,
        text=True,
        check=False,
        timeout=600,
        stderr=subprocess.PIPE,
        cwd=folder,
        **{"stdout": subprocess.PIPE, **options},
    )


@pytest.fixture(scope="module")
def read_only(tmp_path_factory):
    """An installation and a home directory that are read-only."""
    copy = tmp_path_factory.mktemp("installation")
    for package in ("dynamics", "simulations", "symbolic"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / package, copy / package, ignore=ignored)
    for folder in [path for path in copy.rglob("*") if path.is_dir()]:
        (folder / "__pycache__").write_text("a file, so that root cannot write here either")
    nowhere = str(copy / "dynamics" / "__pycache__" / "home")
    return copy, {
        "HOME": nowhere,
        "XDG_CACHE_HOME": nowhere,
        "NUMBA_CACHE_DIR": "",
        "PYTHONDONTWRITEBYTECODE": "1",
        "NUMBA_OPT": "0",  # the test is about the cache, not about speed
    }


@pytest.mark.skipif(os.name != "posix", reason="HOME is the home directory on POSIX only")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--D", "8", "--C", "3"], "C = 3 is not allowed"),
        # the system with the least to compile
        pytest.param(
            ["--system", "masked", "--P", "64", "--solver", "gd", "--steps", "2"],
            "",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_missing_cache_is_reported_once(read_only, arguments, message):
    folder, environment = read_only
    done = patchdyn("run", *arguments, folder=folder, env=environment)
    lines = done.stderr.splitlines()
    notes = [line for line in lines if "compiled code cannot be cached" in line]
    assert len(notes) == 1
    assert notes[0].startswith("patchdyn: note: ")
    assert "Traceback" not in done.stderr
    if message:
        assert done.returncode == 2
        assert lines[-1].startswith(f"patchdyn: {message}")
    else:
        assert done.returncode == 0
        assert "completed" in done.stdout


@pytest.mark.parametrize("columns", ["1", "0", "-5", "x", "100000"])
@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["derive"]])
def test_terminals_of_any_width(arguments, columns, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", columns)
    with contextlib.suppress(SystemExit):
        assert main(arguments) == 0
    output = capsys.readouterr()
    assert output.err == ""
    assert output.out


@pytest.mark.slow
def test_a_terminal_of_no_width_from_the_start():
    done = patchdyn("run", "--help", env={"COLUMNS": "x"})
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no device that is full")
@pytest.mark.parametrize("arguments", [["derive"], ["claims", "--json"], ["--help"], ["--version"]])
def test_full_device_on_standard_output(arguments):
    with open("/dev/full", "w") as full:
        done = patchdyn(*arguments, stdout=full)
    assert done.returncode == 1
    assert done.stderr == "patchdyn: cannot write the output: No space left on device\n"


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="sizes of files are limited by setrlimit")
def test_disk_full_below_hdf5(tmp_path):
    """HDF5 alone would print a long stack of errors."""
    import resource

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))

    done = patchdyn(
        "run",
        "--D",
        "8",
        "--C",
        "2",
        "--horizon",
        "1",
        "--out",
        tmp_path / "x.nc",
        preexec_fn=limit,
        env={"NUMBA_CACHE_DIR": os.environ.get("NUMBA_CACHE_DIR", "")},
    )
    assert done.returncode == 1
    lines = [line for line in done.stderr.splitlines() if ": note: " not in line]
    assert len(lines) == 1
    assert len(lines[0]) < 300
    assert "cannot write" in lines[0]
    assert "File too large" in lines[0]
    assert not any(tmp_path.iterdir())
