"""Ctrl-C while a kernel returns its results raises KeyboardInterrupt and does not crash."""

import signal
import subprocess
import sys

import pytest

#: Interrupts calls of a kernel that returns named tuples of arrays, at random times.
PROGRAM = """
import random, signal, sys
from typing import NamedTuple
import numpy as np
from dynamics.core.jit import kernel

class Inner(NamedTuple):
    array: np.ndarray
    sum: float

class Outer(NamedTuple):
    first: Inner
    second: Inner
    pair: tuple

@kernel
def work(n):
    total = 0.0
    for k in range(n):
        total += np.sin(k)
    first = Inner(np.full(3, total), total)
    return Outer(first, Inner(np.full(2, total), 2 * total), (total, first))

def interrupt(*_):
    raise KeyboardInterrupt

work(3)
signal.signal(signal.SIGALRM, interrupt)
rng, interrupted, calls = random.Random(0), 0, 0
while interrupted < COUNT:
    try:
        signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-5, 1e-3))
        for _ in range(50):
            result = work(rng.randrange(3000))
            assert type(result) is Outer and type(result.second) is Inner
            assert result.pair[1].sum == result.first.sum
            calls += 1
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        interrupted += 1
print(interrupted, calls > 0)
"""


@pytest.mark.parametrize("count", [50, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no interval timer on this system")
def test_interrupts_during_boxing_raise(count, tmp_path):
    file = tmp_path / "program.py"
    file.write_text(PROGRAM.replace("COUNT", str(count)))
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split() == [str(count), "True"]
