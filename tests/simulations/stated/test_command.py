"""The command `patchdyn theory`: a new file, its report, and rejected input."""

import json
from pathlib import Path

import numpy as np
import pytest

import symbolic
from dynamics import Problem
from dynamics.full import population_gradient
from dynamics.theory.dense import DenseModel
from simulations.cli import main
from simulations.stated import findings, manifold
from tests.closeness import close
from tests.symbolic.theory.statements import FLIPS, POSITIONAL

POSITIONAL_FILE = Path(symbolic.__file__).parent / "positional" / "stated.py"


def result(capsys, *arguments):
    assert main(["theory", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.slow
@pytest.mark.traced
def test_new_theory(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["theory", "--new", "mine"]) == 0
    assert "patchdyn theory mine.py" in capsys.readouterr().out
    report = result(capsys, "mine.py")
    assert [x["entries"] for x in report["order_parameters"]] == ["n*(n - 1)", "1"]
    assert report["agrees"]
    written = (tmp_path / "mine.py").read_text()
    assert main(["theory", "--new", "mine"]) == 2
    assert "mine.py exists" in capsys.readouterr().err
    assert (tmp_path / "mine.py").read_text() == written


@pytest.mark.slow
def test_positional_theory_at_given_sizes(capsys):
    given = {"D": 6, "C": 2, "q": 0.3, "nu": 0.01, "beta": 1, "kappa": 6, "tau": 1}
    report = result(capsys, str(POSITIONAL_FILE), "--at", *(f"{k}={x}" for k, x in given.items()))
    orders = {x["name"]: (x["orbit"], x["start"]) for x in report["order_parameters"]}
    assert orders == {
        "alpha": ("v", "nu**(1/(p - 1))"),
        "gamma": ("A[same set]", "0"),
        "rho": ("A[other set]", "0"),
    }
    check = report["check"]
    assert check["at"] == given | {"p": 3}
    assert (check["entries"], check["configurations"], check["data_orbits"]) == (37, 243, 21)
    assert check["difference"] <= findings.AGREES
    assert report["conserved"] == []
    assert report["manifold"]["growth"] is not None
    assert (report["manifold"]["discovered"], report["dimension"]) == (3, 3)


def test_digits_are_proved_at_the_start_and_late(capsys):
    """The digits are in the JSON output and in the text."""
    report = result(capsys, str(POSITIONAL_FILE))
    assert [digits["time"] for digits in report["digits"]] == [0.0, 1000.0]
    for digits in report["digits"]:
        assert list(digits["proved"]) == ["risk", "alpha", "gamma", "rho"] == list(digits["bound"])
        assert min(digits["proved"].values()) >= 13
        assert digits["failure"] == ""
    assert main(["theory", str(POSITIONAL_FILE)]) == 0
    text = capsys.readouterr().out
    assert text.count("  digits proved at time ") == 2


@pytest.mark.slow
def test_sums_over_rows_of_attention_are_conserved(capsys):
    """Masked theory: for global and local queries, the sum of Upsilon over all keys."""
    path = POSITIONAL_FILE.parents[1] / "masked" / "stated.py"
    report = result(capsys, str(path), "--at", "G=3", "C=2", "N=2", "M=3", "z=1")
    assert sorted(report["conserved"]) == [
        "Upsilon[global to global, diagonal] + 2 Upsilon[global to global] + "
        "4 Upsilon[global to local]",
        "Upsilon[local to global] + 0.333333 Upsilon[local to local, diagonal] + "
        "0.333333 Upsilon[local to local, same local area] + "
        "0.666667 Upsilon[local to local, other local area]",
    ]


def test_reduction_that_does_not_agree_fails(tmp_path, monkeypatch, capsys):
    path = tmp_path / "mine.py"
    path.write_text(POSITIONAL)
    mean = findings.mean

    def altered(*arguments):
        loss, gradient = mean(*arguments)
        return loss, gradient * np.array([1.0, 1.0 + 1e-6, 1.0])

    monkeypatch.setattr(findings, "mean", altered)
    assert main(["theory", str(path)]) == 1
    assert "DOES NOT AGREE with the full one" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "give either FILE.py, or --new NAME"),
        (["mine.py", "--new", "mine"], "give either FILE.py, or --new NAME"),
        (["--new", "two words"], "--new two words is not allowed"),
        (["mine.py", "--at", "D"], "--at D is not allowed: it must be NAME=VALUE"),
        (["mine.py", "--at", "D=many"], "--at D=many: 'many' is not allowed"),
        (["mine.py", "--at", "q=2"], "mine.py, line 2: q = 2 is not allowed: q must be in (0, 1]"),
        (["mine.py", "--at", "E=2"], "E = 2 is not allowed: there are D, C, beta, nu, q"),
        (["mine.py", "--at", "D=40", "C=2"], "entries are too many to check against the full"),
        (["wrong.py"], "wrong.py, line 1: NameError: name 'nothing' is not defined"),
    ],
)
def test_rejected_arguments(tmp_path, monkeypatch, capsys, arguments, sentence):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(POSITIONAL)
    (tmp_path / "wrong.py").write_text("nothing\n")
    assert main(["theory", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith("patchdyn: ")
    assert sentence in error


def test_missing_file(capsys):
    for command in (["theory"], ["run", "--theory"], ["explore"], ["map", "folder", "--theory"]):
        assert main([*command, "not_there.py"]) == 2
        assert capsys.readouterr().err == (
            "patchdyn: not_there.py, line 1: the file cannot be read: No such file or directory\n"
        )


def test_growth_in_trained_entries(capsys):
    """Compare with the Hessian of the positional model in v and 12 off-diagonal entries of A."""
    given = {"D": 4, "C": 2, "q": 0.4, "nu": 0.3, "beta": 1, "p": 3, "kappa": 4, "tau": 1}
    report = result(capsys, str(POSITIONAL_FILE), "--at", *(f"{k}={x}" for k, x in given.items()))
    problem = Problem(D=4, C=2, q=0.4, nu=0.3, beta=1.0)
    w, off = np.eye(4)[0], ~np.eye(4, dtype=bool)

    def gradient(x):
        A = np.eye(4)
        A[off] = x[:12]
        _, dA, dv = population_gradient(problem, A, x[12] * w, w)
        return np.append(dA[off], dv[0])

    start = np.append(np.zeros(12), 0.3**0.5)
    hessian = np.array(
        [(gradient(start + 1e-5 * e) - gradient(start - 1e-5 * e)) / 2e-5 for e in np.eye(13)]
    )
    same = np.kron(np.eye(2), np.ones((2, 2)))[off]
    manifold = np.array([np.append(same, 0.0), np.append(1.0 - same, 0.0), np.eye(13)[12]])
    across = np.linalg.svd(manifold)[2][3:]
    rate = np.linalg.eigvalsh(-across @ (hessian + hessian.T) @ across.T / 2).max()
    assert abs(rate) > 1e-4
    close(report["manifold"]["growth"], rate, rel=1e-4)


@pytest.mark.slow
@pytest.mark.traced
def test_remark_about_a_larger_group(tmp_path, capsys):
    """Both layers have the same start, and only two values move."""
    path = tmp_path / "flips.py"
    path.write_text(FLIPS)
    assert main(["theory", str(path), "--at", "d=3", "t=0.7"]) == 0
    text = capsys.readouterr().out
    assert "the group is smaller than it could be: 6 orbits, but 2 suffice" in text
    assert "the smallest space that the flow stays in has 2 dimensions" in text


def test_orbit_that_splits_fails(tmp_path, monkeypatch, capsys):
    path = tmp_path / "mine.py"
    path.write_text(POSITIONAL)
    numbered = manifold._Entries._numbered
    monkeypatch.setattr(manifold._Entries, "_numbered", lambda self: numbered(self) // 2)
    assert main(["theory", str(path)]) == 1
    assert "AN ORBIT HAS MORE THAN ONE VALUE" in capsys.readouterr().out


def test_full_model_without_the_symmetry_is_rejected(tmp_path, monkeypatch, capsys):
    """The full model multiplies one entry by 1.5."""
    path = tmp_path / "mine.py"
    path.write_text(POSITIONAL)
    evaluate = DenseModel.evaluate

    def skewed(self, tensors):
        A = np.array(tensors["A"])
        A[0, 1] *= 1.5
        return evaluate(self, tensors | {"A": A})

    monkeypatch.setattr(DenseModel, "evaluate", skewed)
    assert main(["theory", str(path)]) == 2
    assert "the loss is not invariant under exchange 0: " in capsys.readouterr().err
