import pytest

from dynamics import Population, Problem


@pytest.fixture(scope="session")
def named():
    """The problem of the goals: D = 64, C = 4, qD = 2 at tolerance 1e-7."""
    return Population(Problem(D=64, C=4, q=2 / 64), method="enumeration", tolerance=1e-7)
