import contextlib
import functools
import gc
import os
import sys

import hypothesis
import pytest

from simulations.workers import one_thread

os.environ.setdefault("MPLBACKEND", "Agg")

# the same samples in every run, so that no test fails at random; FRESH=1 samples new ones
hypothesis.settings.register_profile("fresh", deadline=None)
hypothesis.settings.register_profile("same", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.load_profile("fresh" if os.environ.get("FRESH") else "same")

#: Slow functions of other packages that tracing slows down further and that call no covered code.
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
    """Start the workers of xdist, one per core, with one thread each."""
    if config.getoption("numprocesses", None):
        alone = contextlib.ExitStack()
        alone.enter_context(one_thread())
        config.add_cleanup(alone.close)


@pytest.fixture
def compiled_before(monkeypatch):
    """Replace the compilation of a sweep; return a list that collects its theories."""
    compiled = []
    monkeypatch.setattr("simulations.sweep.engines.compile_kernels", compiled.append)
    return compiled


def pytest_collection_finish():
    """Exclude existing objects from garbage collection, and collect old ones less often.

    The collection of a million objects that are never freed took a tenth of the time.
    """
    gc.collect()
    gc.freeze()
    young, middle, old = gc.get_threshold()
    gc.set_threshold(young, middle, 10 * old)
    for module, *owner, name in (entry for entry in _UNTRACED if entry[0] in sys.modules):
        of = functools.reduce(getattr, owner, sys.modules[module])
        setattr(of, name, _untraced(getattr(of, name)))


def _untraced(function):
    """Return a function that runs without tracing."""

    @functools.wraps(function)
    def alone(*args, **kwargs):
        tracer = sys.gettrace()
        sys.settrace(None)
        try:
            return function(*args, **kwargs)
        finally:
            sys.settrace(tracer)

    return alone


@pytest.hookimpl(trylast=True)  # after Hypothesis has marked its tests
def pytest_collection_modifyitems(items):
    """Run files with slow tests first, and trace only tests that add to the coverage.

    With slow files first, no process runs a long test alone at the end. Files that use JAX are
    last: its threads forbid the forks of other tests in the same process.

    Tracing slows Python down by a factor of 2, SymPy by 2.4. Therefore slow tests, tests of
    Hypothesis, and all but the first case of a parametrized test are not traced, unless they are
    marked ``traced``. The reported coverage is a lower bound.
    """
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    uses_jax = {path: "jax" in path.read_text("utf-8") for path in {x.path for x in items}}
    items.sort(key=lambda item: (uses_jax[item.path], item.path not in slow))
    seen = set()
    for item in items:
        test = item.nodeid.partition("[")[0]
        again = test in seen or any(map(item.get_closest_marker, ("slow", "hypothesis")))
        if again and not item.get_closest_marker("traced"):
            item.add_marker("no_cover")
        seen.add(test)
