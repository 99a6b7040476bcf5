"""Fixtures for theories in files."""

import pytest

from simulations import theories
from symbolic.theory import load_theory


@pytest.fixture(autouse=True)
def restored_theories():
    """Restore the loaded theories after each test."""
    before = dict(theories._LOADED)
    yield
    theories._LOADED.clear()
    theories._LOADED.update(before)


@pytest.fixture
def theory_of(tmp_path):
    """Return a function that loads a theory from a text with replacements."""

    def load(text, **replacements):
        for placeholder, replacement in replacements.items():
            text = text.replace(placeholder, replacement)
        path = tmp_path / "mine.py"
        path.write_text(text)
        return load_theory(path)

    return load
