"""Ctrl-C of real processes: answered at once, wherever they are."""

import os
import signal
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pytest

from simulations import interrupts
from simulations.sweep import cells

LONG = """
import math, sys, threading
from dynamics.core.jit import kernel

@kernel
def spin(steps):
    total = 0.0
    for i in range(steps):
        total += math.sin(total + i)
    return total

def execute(args):
    spin(10)
    threading.Timer(2.0, print, ["in the kernel"], {"flush": True}).start()
    spin(10**12)

from simulations import cli
from simulations.commands import claims
claims.execute = execute
sys.exit(cli.main(["claims"]))
"""
SWEEP = "[fixed]\nD = 8\nC = 2\n[grid]\nnu = { from = 0.01, to = 0.1, number = 20 }\n"

#: Seconds after which Ctrl-C counts as not answered: one or two on a quiet machine, hours where a
#: computation is not interrupted.
LATE = 60.0

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals to processes")


def start(arguments, **environment):
    """Start Python as a terminal does: in a session of its own, where Ctrl-C is not ignored."""
    return subprocess.Popen(
        [sys.executable, *map(str, arguments)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        env={**os.environ, **environment},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip


def interrupted(process):
    """Press Ctrl-C; return the exit code, standard error, and the seconds it took."""
    began = time.monotonic()
    os.killpg(process.pid, signal.SIGINT)
    try:
        _, error = process.communicate(timeout=300)
    finally:
        process.kill()
    return process.returncode, error, time.monotonic() - began


def left_of(mark):
    """Return the processes whose environment holds a text."""
    pids = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if mark.encode() in file.read():
                    pids.append(int(pid))
        except OSError:
            continue
    return pids


@pytest.mark.slow
def test_inside_one_long_kernel(tmp_path):
    script = tmp_path / "long.py"
    script.write_text(LONG)
    process = start([script], PYTHONPATH=os.pathsep.join(sys.path))
    assert process.stdout.readline() == "in the kernel\n"
    code, error, seconds = interrupted(process)
    assert code == 130
    assert error == (
        "patchdyn: interrupted during a long computation; results stored before are intact\n"
    )
    assert seconds < LATE


@pytest.mark.slow
@pytest.mark.skipif(not os.path.isdir("/proc"), reason="processes are looked for in /proc")
@pytest.mark.parametrize(
    ("sign", "delay"), [("*.json", 0.0), ("*.json", 0.3), ("*.json", 1.5), ("blocks/*.json", 0.0)]
)
def test_in_the_first_seconds_of_a_sweep(tmp_path, sign, delay):
    """While it compiles, starts its workers, or computes: one sentence, and no process is left."""
    (tmp_path / "c.toml").write_text(SWEEP)
    out, mark = tmp_path / "out", f"{tmp_path}/cache"
    process = start(
        ["-m", "simulations.cli", "sweep", tmp_path / "c.toml", "--out", out],
        MARK_OF_THIS_TEST=mark,
    )
    deadline = time.monotonic() + 300
    while not list(out.glob(sign)) and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(delay)
    if process.poll() is not None:
        assert process.communicate()[0]
        assert process.returncode == 0  # it was fast
        return
    code, error, seconds = interrupted(process)
    assert code == 130, error
    assert "Traceback" not in error
    assert error.strip().splitlines()[-1].startswith("patchdyn: interrupted")
    assert seconds < LATE
    deadline = time.monotonic() + LATE
    while left_of(mark) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not left_of(mark)


def test_as_the_compilation_has_just_ended(monkeypatch):
    """Its processes are gone before they can be ended."""
    calls, wait = [], subprocess.Popen.wait

    def pressed(process, timeout=None):
        calls.append(wait(process, timeout))
        if len(calls) == 1:
            raise KeyboardInterrupt
        return calls[0]

    monkeypatch.setattr(subprocess.Popen, "wait", pressed)
    with pytest.raises(KeyboardInterrupt):
        cells.compile_kernels(SimpleNamespace(precompile=("-c", "")))
    assert calls == [0, 0]


def press_inside(threads):
    with interrupts.interruptible():
        assert threading.active_count() == threads
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)


class Closing:
    """Ctrl-C comes while it is finalized, from where no exception gets out."""

    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000):
            time.sleep(0)


def press_inside_a_finalizer():
    with interrupts.interruptible():
        closing = Closing()
        del closing
        time.sleep(5)


@pytest.mark.slow
def test_in_a_finalizer():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            press_inside_a_finalizer()
    finally:
        signal.signal(signal.SIGINT, before)


def test_everything_is_given_back():
    before, threads = signal.getsignal(signal.SIGINT), threading.active_count()
    hook = sys.unraisablehook
    woken = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(woken)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            press_inside(threads + 1)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        assert threading.active_count() == threads
        assert sys.unraisablehook is hook
    finally:
        signal.signal(signal.SIGINT, before)
    assert signal.set_wakeup_fd(woken) == woken


def test_a_handler_of_somebody_else_stays():
    """In a library call, a thread, or where Ctrl-C is ignored, nothing is changed."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with interrupts.interruptible():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
