import contextlib
import functools
import gc
import os
import sys

import hypothesis
import pytest

from simulations.workers import one_thread

os.environ.setdefault("MPLBACKEND", "Agg")

# the same draws in every run, so that no test is red at random; FRESH=1 hunts with new ones
hypothesis.settings.register_profile("fresh", deadline=None)
hypothesis.settings.register_profile("same", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.load_profile("fresh" if os.environ.get("FRESH") else "same")

#: What takes long in other packages, longer where it is traced, and calls nothing that is covered.
_UNTRACED = (
    ("matplotlib.figure", "Figure", "draw"),
    ("xarray", "Dataset", "load"),
    ("xarray", "Dataset", "to_netcdf"),
    ("xarray", "open_dataset"),
)


def pytest_addoption(parser):
    """Add the size and the seed of the fuzzers (tests/fuzz)."""
    parser.addoption("--fuzz-cases", type=int, default=40, help="cases of each fuzzer")
    parser.addoption("--fuzz-seed", default="0", help="an integer, or 'random'")
    parser.addoption("--fuzz-kills", type=int, default=2, help="kills of a running process")
    parser.addoption(
        "--fuzz-claims", default="figure-3,huang-lemma-5.2", help="claims of the run that is killed"
    )


def pytest_configure(config):
    """Let the workers of xdist, as many as cores, start with one thread each."""
    if config.getoption("numprocesses", None):
        alone = contextlib.ExitStack()
        alone.enter_context(one_thread())
        config.add_cleanup(alone.close)


@pytest.fixture
def compiled_before(monkeypatch):
    """Let sweeps start no process that compiles; return the theories they were told."""
    told = []
    monkeypatch.setattr("simulations.sweep.engines.compile_kernels", told.append)
    return told


def pytest_collection_finish():
    """Look for garbage among what tests make, not among the million objects that are there.

    And ten times less often among what has been there for long: both took a tenth of the time.
    """
    gc.collect()
    gc.freeze()
    young, middle, old = gc.get_threshold()
    gc.set_threshold(young, middle, 10 * old)
    for module, *owner, name in filter(lambda place: place[0] in sys.modules, _UNTRACED):
        of = functools.reduce(getattr, owner, sys.modules[module])
        setattr(of, name, _untraced(getattr(of, name)))


def _untraced(function):
    """Return a function that runs untraced."""

    @functools.wraps(function)
    def alone(*args, **kwargs):
        tracer = sys.gettrace()
        sys.settrace(None)
        try:
            return function(*args, **kwargs)
        finally:
            sys.settrace(tracer)

    return alone


@pytest.hookimpl(trylast=True)  # Hypothesis marks its own
def pytest_collection_modifyitems(items):
    """Put files with slow tests first, and trace only what can add to the coverage.

    Slow ones first: at the end no process works alone on a long one.

    Tracing makes Python twice as slow, SymPy 2.4 times. So three kinds of tests are not traced:
    slow ones, those with drawn cases, and all cases of a test but its first. What they run is run
    by others, too; where it is not, since each case is a claim of its own, they are marked
    ``traced``. What is reported is thereby a lower bound.
    """
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)
    seen = set()
    for item in items:
        test = item.nodeid.partition("[")[0]
        again = test in seen or any(map(item.get_closest_marker, ("slow", "hypothesis")))
        if again and not item.get_closest_marker("traced"):
            item.add_marker("no_cover")
        seen.add(test)
