"""The drift on gamma = rho: its proof, and failing variants of the formula."""

import pytest
import sympy as sp

from symbolic.catalogue import CATALOGUE
from symbolic.core.proof import decide_all
from symbolic.positional import symmetric_line as line
from symbolic.positional.lemma_4_1 import CASES
from symbolic.positional.symbols import C, D, Gamma, nu, p

BROKEN = {
    "a factor": 2 * line.DRIFT,
    "a sign": line.SCALE * (1 - D * Gamma) * (line.factor(0) - line.factor(-1)),
    "one patch too many": line.DRIFT * line.N / (line.N - 1),
    "the wrong power": line.DRIFT.subs(p, p + 2),
    "a set of another size": line.DRIFT * (C - 1) / C,
    "the linear part": line.DRIFT + nu,
}

#: Cases with D = 6 take seconds, but for the one of C = 3 and p = 3.
SOME = [
    pytest.param(*case, marks=pytest.mark.slow if case[0] == 6 and case != (6, 3, 3) else ())
    for case in CASES
]


class TestProof:
    def test_identities_for_all_sizes(self):
        proof = decide_all(line.CLAIM, line.identities())
        assert proof.all_zero, proof.failures
        assert proof.count == 6

    @pytest.mark.parametrize(("D", "C", "p"), SOME)
    def test_comparison_with_the_full_model(self, D, C, p):
        proof = line.prove(D, C, p)
        assert proof.all_zero, proof.failures
        assert proof.facts["patterns"] == D // C * 3 ** (D - C)

    def test_displayed_drift_is_proved(self):
        (printed,) = (x for x in CATALOGUE["symmetric-line"].equations if x.name == "drift")
        proof = decide_all(line.CLAIM, line.identities(printed.right))
        assert proof.all_zero
        assert printed.right is line.DRIFT


class TestWrongFormulasFail:
    @pytest.mark.parametrize("drift", BROKEN.values(), ids=BROKEN)
    def test_wrong_drift_fails_in_both_proofs(self, drift: sp.Expr):
        proof = decide_all(line.CLAIM, line.identities(drift))
        assert proof.failed == 1
        assert "all patches" in proof.failures[0]
        full = line.prove(4, 2, drift=drift)
        assert not full.all_zero
        assert all("d(gamma - rho)/dt" in failure for failure in full.failures)

    @pytest.mark.slow
    def test_off_the_line_F_depends_on_more_than_counts(self, monkeypatch):
        unequal = lambda self: line.RationalPoint.__post_init__(self)  # noqa: E731
        monkeypatch.setattr(line.LinePoint, "__post_init__", unequal)
        assert not line.prove(6, 2).all_zero

    def test_wrong_mean_fails(self, monkeypatch):
        monkeypatch.setattr(line, "MEAN_N", line.MEAN_N * C / (C - 1))
        assert any("mean of n" in failure for failure in line.prove(4, 2).failures)
