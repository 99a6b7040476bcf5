"""Fixtures of the tests of the tools."""

import sys

import pytest

from tests.browser import browser as browser
from tests.simulations.fakes import claim, fake_registry, figure


@pytest.fixture
def registry(monkeypatch):
    """Three fake claims in place of those of the papers."""
    claims = (claim("one", figures=[figure()]), claim("two"), claim("three"))
    monkeypatch.setitem(sys.modules, "simulations.reproduction.registry", fake_registry(*claims))
    return claims
