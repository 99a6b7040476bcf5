"""What a stored result depends on is told apart: a changed line of the source too."""

import shutil

import pytest

from dynamics.core import provenance
from simulations.files import stamp
from simulations.sweep.cells import sweep_stamp


@pytest.fixture
def copy(tmp_path, monkeypatch):
    """The source in a folder of its own, which a test may change."""
    for package in ("symbolic", "dynamics", "simulations"):
        shutil.copytree(
            provenance.ROOT / package,
            tmp_path / package,
            ignore=shutil.ignore_patterns("__pycache__"),
        )
    monkeypatch.setattr(stamp, "ROOT", tmp_path)
    stamp.code_fingerprint.cache_clear()
    yield tmp_path
    stamp.code_fingerprint.cache_clear()


def changed(file, of):
    """Tell whether a line added to a file changes the digest that ``of`` returns."""
    before = of()
    file.write_text(file.read_text() + "# changed\n")
    stamp.code_fingerprint.cache_clear()
    return of() != before


@pytest.mark.parametrize(
    "file", ["symbolic/emit.py", "dynamics/core/flow.py", "simulations/masked/system.py"]
)
def test_every_line_of_the_source_counts_for_a_report(copy, file):
    assert changed(copy / file, stamp.code_fingerprint)


@pytest.mark.parametrize(
    ("file", "counts"),
    [
        ("dynamics/core/flow.py", True),
        ("dynamics/masked/problem.py", True),
        ("simulations/case.py", True),
        ("simulations/solver_options.py", True),
        ("simulations/system.py", True),
        ("simulations/positional/system.py", True),
        ("simulations/reproduction/report.py", False),
        ("symbolic/emit.py", False),
    ],
)
def test_what_computes_counts_for_a_sweep(copy, file, counts):
    assert changed(copy / file, lambda: sweep_stamp()["code"]) is counts


def test_a_part_that_is_not_there_is_no_empty_digest():
    with pytest.raises(FileNotFoundError, match="dynamics/elsewhere is not part"):
        stamp.code_fingerprint(("dynamics/elsewhere",))


def test_commit_of_a_checkout():
    if not (provenance.ROOT / ".git").exists():
        pytest.skip("not a checkout")
    assert len(provenance.provenance()["commit"].removesuffix("-dirty")) == 12
