"""The examples in docstrings give the output that they show."""

import doctest
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("dynamics", "patchdyn", "simulations", "symbolic")


def modules_with_examples() -> list[str]:
    paths = [x for package in PACKAGES for x in sorted((ROOT / package).rglob("*.py"))]
    with_examples = [x for x in paths if ">>> " in x.read_text("utf-8")]
    parts = [x.relative_to(ROOT).with_suffix("").parts for x in with_examples]
    return [".".join(x[:-1] if x[-1] == "__init__" else x) for x in parts]


@pytest.mark.parametrize("module", modules_with_examples())
def test_examples_in_docstrings(module):
    result = doctest.testmod(import_module(module), globs={})  # each imports what it uses
    assert result.attempted > 0
    assert result.failed == 0
