import sys
from pathlib import Path

import pytest

from dynamics import Population, Problem

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items):
    """Mark the benchmarks as slow: untimed, they only show that they run."""
    for item in items:
        if item.path.parent == HERE:
            item.add_marker("slow")


@pytest.fixture(autouse=True)
def double_precision_ends_with_the_test():
    """Take back what peers in JAX switch on for the whole process."""
    yield
    if "jax" in sys.modules:
        sys.modules["jax"].config.update("jax_enable_x64", False)


@pytest.fixture(scope="session")
def timed(request):
    """Whether anything is timed; where not, a small problem shows that all compute the same."""
    return request.config.getoption("benchmark_enable")


@pytest.fixture(scope="session")
def named():
    """The problem of the goals: D = 64, C = 4, qD = 2 at tolerance 1e-7."""
    return Population(Problem(D=64, C=4, q=2 / 64), method="enumeration", tolerance=1e-7)
