"""The trained diagonal: its proof, and failing variants of the formula."""

import pytest

from symbolic.catalogue import CATALOGUE
from symbolic.core.proof import decide_all
from symbolic.positional import diagonal
from symbolic.positional.lemma_4_1 import CASES
from symbolic.positional.symbols import C, D

#: Larger cases take seconds.
SOME = [pytest.param(*case, marks=pytest.mark.slow if case[0] == 6 else ()) for case in CASES]


class TestProof:
    def test_identities_for_all_sizes(self):
        proof = decide_all(diagonal.CLAIM, diagonal.identities())
        assert proof.all_zero, proof.failures
        assert proof.count == 7

    @pytest.mark.parametrize(("D", "C", "p"), SOME)
    def test_comparison_with_the_full_model(self, D, C, p):
        proof = diagonal.prove(D, C, p)
        assert proof.all_zero, proof.failures
        assert proof.facts["patterns"] == D // C * 3 ** (D - C)

    def test_displayed_velocity_is_proved(self):
        (printed,) = (x for x in CATALOGUE["diagonal"].equations if x.name == "dbeta_dt")
        assert decide_all(diagonal.CLAIM, diagonal.identities(printed.right)).all_zero


class TestWrongFormulasFail:
    @pytest.mark.parametrize("factor", [-1, 2, C - 1, D / C], ids=str)
    def test_wrong_factor_violates_the_constant_of_motion(self, factor):
        proof = decide_all(diagonal.CLAIM, diagonal.identities(factor * diagonal.BETA_VELOCITY))
        assert proof.failed == 1
        assert "constant of motion" in proof.failures[0]

    @pytest.mark.parametrize("entries", [-4, 2, 12])
    def test_wrong_multiplicity_fails_in_the_full_model(self, entries):
        proof = diagonal.prove(4, 2, entries=entries)
        assert proof.failed == 8
        assert all("dL/dA_ii" in failure for failure in proof.failures)
