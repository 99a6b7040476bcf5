import pytest

from simulations import theories


@pytest.fixture(autouse=True)
def no_theory_stays_loaded():
    """Restore the loaded theories after each test."""
    before = dict(theories._LOADED)
    yield
    theories._LOADED.clear()
    theories._LOADED.update(before)
