"""The fourth order parameter: proved, and the same proof failing where the formula is broken."""

import pytest

from symbolic.catalogue import CATALOGUE
from symbolic.core.proof import decide_all
from symbolic.positional import diagonal
from symbolic.positional.lemma_4_1 import CASES
from symbolic.positional.symbols import C, D

#: The larger ones take seconds to differentiate.
SOME = [pytest.param(*case, marks=pytest.mark.slow if case[0] == 6 else ()) for case in CASES]


class TestProof:
    def test_for_all_sizes(self):
        proof = decide_all(diagonal.CLAIM, diagonal.identities())
        assert proof.all_zero, proof.failures
        assert proof.count == 7

    @pytest.mark.parametrize(("D", "C", "p"), SOME)
    def test_from_the_full_model(self, D, C, p):
        proof = diagonal.prove(D, C, p)
        assert proof.all_zero, proof.failures
        assert proof.facts["patterns"] == D // C * 3 ** (D - C)

    def test_the_printed_velocity_is_the_one_proved(self):
        (printed,) = (x for x in CATALOGUE["diagonal"].equations if x.name == "dbeta_dt")
        assert decide_all(diagonal.CLAIM, diagonal.identities(printed.right)).all_zero


class TestBroken:
    @pytest.mark.parametrize("factor", [-1, 2, C - 1, D / C], ids=str)
    def test_a_factor_breaks_the_constant_of_motion(self, factor):
        proof = decide_all(diagonal.CLAIM, diagonal.identities(factor * diagonal.BETA_VELOCITY))
        assert proof.failed == 1
        assert "constant of motion" in proof.failures[0]

    @pytest.mark.parametrize("entries", [-4, 2, 12])
    def test_a_wrong_multiplicity_is_caught_by_the_full_model(self, entries):
        proof = diagonal.prove(4, 2, entries=entries)
        assert proof.failed == 8
        assert all("dL/dA_ii" in failure for failure in proof.failures)
