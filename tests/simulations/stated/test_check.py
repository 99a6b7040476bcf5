"""Every command and function rejects a theory whose reduction differs from the full model."""

from pathlib import Path

import pytest

from dynamics import gradient_flow
from simulations.cli import main
from simulations.stated import check, runs
from simulations.stated.system import UserTheorySystem
from symbolic.theory import TheoryError, load_theory
from symbolic.theory.patterns import New

#: Number of groups other than those in use enters loss and gradient.
SMALL = """\
n, m = Size("n"), Size("m"); b, = constants(b="> 0")
group = Exchangeable("group", n); member = Exchangeable("member", m, inside=group)
s = Colouring("s", member, {1: 0.25, -1: 0.75}); A = Tensor("A", (group,), start=b)
THEORY = Theory("small", "none", sizes=(n, m), parameters=(A,), data=Data(s), claims=["A <= 9"],
                loss=lambda A, s: LOSS)
"""
RIGHT = '((A["i"] * A["j"]).sum("i").sum("j") - s["k"].sum("k"))**2'
GRID = """\
system = "stated:small"
[parameters]
n = [2, 3]
"""
MODES = {
    "theory --run": ["theory", "FILE", "--run", "n=3"],
    "theory --sweep": ["theory", "FILE", "--sweep", "GRID", "--out", "OUT"],
    "theory --falsify": ["theory", "FILE", "--falsify", "A <= 1"],
    "theory --report": ["theory", "FILE", "--report", "OUT"],
    "run": ["run", "--theory", "FILE", "--n", "3"],
    "sweep": ["sweep", "GRID", "--out", "OUT", "--theory", "FILE"],
    "map": ["map", "OUT", "--theory", "FILE"],
    "falsify": ["falsify", "A <= 1", "--theory", "FILE"],
    "explore": ["explore", "--theory", "FILE"],
}


@pytest.fixture
def file(tmp_path, monkeypatch):
    """Return a theory file; passed checks are recorded in a temporary folder."""
    cache = tmp_path / "cache"
    cache.mkdir()
    monkeypatch.setattr(check, "cache_folder", lambda _: cache)
    path = tmp_path / "small.py"
    path.write_text(SMALL.replace("LOSS", RIGHT))
    return path


@pytest.fixture
def broken(monkeypatch):
    """Let the derivation count one larger element too many."""
    number = New.number.fget
    monkeypatch.setattr(New, "number", property(lambda self: number(self) + 1))


@pytest.mark.parametrize("mode", MODES)
def test_every_command_rejects_a_wrong_reduction(file, broken, tmp_path, capsys, mode):
    (tmp_path / "grid.toml").write_text(GRID)
    paths = {"FILE": file, "GRID": tmp_path / "grid.toml", "OUT": tmp_path / "out"}
    assert main([str(paths.get(word, word)) for word in MODES[mode]]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("patchdyn: small.py, line 4: the derived reduction is wrong, so")
    assert printed.err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_report_of_a_wrong_reduction_fails(file, broken, capsys):
    assert main(["theory", str(file)]) == 1
    text = capsys.readouterr().out
    assert "DOES NOT AGREE with the full one" in text
    assert "digits proved" not in text


def test_functions_reject_a_wrong_reduction(file, broken):
    for load in (UserTheorySystem, lambda path: runs.risk(load_theory(path), n=3, m=2, b=0.5)):
        with pytest.raises(TheoryError, match="the derived reduction is wrong"):
            load(file)


@pytest.fixture
def checked(monkeypatch):
    """Return a list to which every check of a theory appends the theory."""
    agreement, theories = check.agreement, []
    monkeypatch.setattr(check, "agreement", lambda x: theories.append(x) or agreement(x))
    return theories


@pytest.mark.slow
@pytest.mark.traced
def test_passed_check_is_recorded_by_file_and_code(file, monkeypatch, checked):
    for _ in range(2):
        risk = runs.risk(load_theory(file), n=3, m=2, b=0.5)
        assert gradient_flow(risk, horizon=1.0).time[-1] == 1.0
    assert len(checked) == 1
    file.write_text(file.read_text() + "# another file\n")
    runs.risk(load_theory(file), n=3, m=2, b=0.5)
    assert len(checked) == 2
    monkeypatch.setattr(check, "_digest", lambda: "changed code")
    runs.risk(load_theory(file), n=3, m=2, b=0.5)
    assert len(checked) == 3


@pytest.mark.parametrize("folder", [None, Path("/not/there")])
def test_each_theory_is_checked_without_a_cache(file, monkeypatch, checked, folder):
    monkeypatch.setattr(check, "cache_folder", lambda _: folder)
    theory = load_theory(file)
    for n in (2, 3):
        runs.risk(theory, n=n, m=2, b=0.5)
    assert len(checked) == 1
    runs.risk(load_theory(file), n=2, m=2, b=0.5)
    assert len(checked) == 2


@pytest.mark.parametrize(
    "loss",
    [
        '(A["i"].log()).sum("i")**2',  # finite only near the start
        '(A["i"] * (A["j"] - b)).sum("i").sum("j") * (3 * s["k"]**2 - 3).sum("k")',  # starts at 0
        '(A["i"] * s["k"] * (1 + 2 * s["k"])).sum("i").sum("k") - (A["i"] / 2).sum("i") * n * m',
    ],
)
def test_rounding_passes_the_check(file, loss):
    """Values that cancel are compared on the scale of their terms."""
    file.write_text(SMALL.replace("LOSS", loss).replace("start=b", "start=0.01"))
    assert check.agreement(load_theory(file)).agrees


def test_theory_too_large_for_the_full_model_is_rejected(file):
    file.write_text(SMALL.replace("LOSS", RIGHT).replace('Size("m")', 'Size("m", least=30)'))
    with pytest.raises(TheoryError, match=r"line 4: no check against the full model: 10\^"):
        runs.risk(load_theory(file), n=1, m=30, b=0.5)
