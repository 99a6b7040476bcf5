"""The compile cache: used by the next process, never stale."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import dynamics

PROGRAM = """
import numba
from dynamics._emitted import power
power(2.0, 3)
print(sum(power.stats.cache_hits.values()), sum(power.stats.cache_misses.values()))
"""


def run(cache, folder):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment, cwd=folder, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout.split()


@pytest.mark.slow
def test_the_next_process_compiles_nothing_until_any_kernel_changes(tmp_path):
    """A caller must not keep a stale copy of a callee from another file."""
    copy, cache = tmp_path / "copy", tmp_path / "cache"
    shutil.copytree(Path(dynamics.__file__).parent, copy / "dynamics")
    assert run(cache, copy) == ["0", "1"]
    assert run(cache, copy) == ["1", "0"]
    with (copy / "dynamics" / "descent.py").open("a") as source:
        source.write("# another kernel changed\n")
    assert run(cache, copy) == ["0", "1"]
