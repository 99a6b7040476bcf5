"""Lemmas 4.1 and 4.2 from the gradient of the full model, and failing variants.

Relies only on SymPy's differentiation and exact rational arithmetic.
"""

from fractions import Fraction
from math import factorial

import pytest

from symbolic.positional import lemma_4_1, lemma_4_2, symmetry
from symbolic.positional.reduction import first_and_last, layouts

SMALL = (4, 2)
#: Larger cases take seconds.
CASES = [
    pytest.param(*case, marks=pytest.mark.slow if case[0] == 6 else ()) for case in lemma_4_1.CASES
]


class TestLayouts:
    @pytest.mark.parametrize(("D", "C", "number"), [(4, 2, 3), (6, 2, 15), (6, 3, 10)])
    def test_partitions_are_complete_and_distinct(self, D: int, C: int, number: int) -> None:
        partitions = layouts(D, C)
        assert len(partitions) == len(set(partitions)) == number
        assert number == factorial(D) // (factorial(C) ** (D // C) * factorial(D // C))
        for partition in partitions:
            assert sorted(j for patches in partition for j in patches) == list(range(D))

    def test_first_is_contiguous_and_last_is_not(self) -> None:
        first, last = first_and_last(6, 2)
        assert first == ((0, 1), (2, 3), (4, 5))
        assert all(j - i > 1 for i, j in last if (i, j) != (2, 3))


class TestSymmetry:
    @pytest.mark.parametrize(("D", "p"), [(4, 3), (6, 3), (4, 5)])
    def test_holds(self, D: int, p: int) -> None:
        proof = symmetry.prove(D, p)
        assert proof.all_zero, proof.failures
        assert proof.count > 100

    def test_even_degree_is_not_odd_in_the_data(self) -> None:
        proof = symmetry.prove(4, 4)
        assert not proof.all_zero
        assert all("odd in X" in failure for failure in proof.failures)


class TestLemma41:
    @pytest.mark.parametrize(("D", "C", "p"), CASES)
    def test_holds(self, D: int, C: int, p: int) -> None:
        """Use all partitions of (4, 2, 3) and (6, 3, 3), and two of the other sizes."""
        partitions = None if (D, C, p) in lemma_4_1.CROSS_CHECKS else first_and_last(D, C)
        proof = lemma_4_1.prove(D, C, p, partitions=partitions)
        assert proof.all_zero, proof.failures
        assert proof.points == (2 if partitions else len(layouts(D, C)))
        assert proof.facts["patterns"] == D // C * 3 ** (D - C)

    @pytest.mark.slow
    def test_expectation_over_the_signal_set_is_needed(self) -> None:
        """Given the signal set there are more values; after averaging there is one per orbit."""
        facts = lemma_4_1.prove(6, 2, 3, partitions=first_and_last(6, 2)).facts
        assert facts["distinct dL/dA_ij, same set, signal set given"] == 2
        assert facts["distinct dL/dA_ij, different sets, signal set given"] == 3
        assert facts["distinct dL/dA_ij, same set, signal set averaged"] == 1
        assert facts["distinct dL/dA_ij, different sets, signal set averaged"] == 1

    @pytest.mark.parametrize("wrong", [(8, 8), (4, 4), (4, 9)])
    def test_fails_with_wrong_multiplicities(self, wrong: tuple[int, int]) -> None:
        proof = lemma_4_1.prove(*SMALL, multiplicities=wrong)
        assert not proof.all_zero
        assert all("dL/dA_ij" in failure for failure in proof.failures)

    @pytest.mark.parametrize("entry", [(0, 1), (1, 2)])
    def test_fails_off_the_manifold(self, entry: tuple[int, int]) -> None:
        proof = lemma_4_1.prove(*SMALL, perturbed_entry=entry)
        assert not proof.all_zero
        assert any("types of the sets" in failure for failure in proof.failures)

    def test_fails_for_even_degree(self) -> None:
        assert not lemma_4_1.prove(*SMALL, 4).all_zero

    def test_another_seed_gives_other_points_and_the_same_answer(self) -> None:
        assert lemma_4_1.prove(*SMALL, seed=7).all_zero

    @pytest.mark.slow
    @pytest.mark.traced
    def test_all_is_the_proof_for_all_sizes_and_the_cross_checks(self) -> None:
        general, shown, *proofs = lemma_4_1.prove_all(quick=True)
        assert shown.all_sizes
        cases = [tuple(proof.parameters.values()) for proof in proofs]
        assert cases == list(lemma_4_1.CROSS_CHECKS)
        assert general.all_sizes
        assert all(proof.all_zero and not proof.all_sizes for proof in proofs)
        errors = [proof.facts["Schwartz-Zippel error of one comparison"] for proof in proofs]
        assert errors == ["2.0e-03"] * 2


class TestLemma42:
    @pytest.mark.parametrize(("D", "C", "p"), CASES)
    def test_holds(self, D: int, C: int, p: int) -> None:
        proof = lemma_4_2.prove(D, C, p)
        assert proof.all_zero, proof.failures
        assert proof.identities["noise moves dF/dv orthogonal to w*"] == 2 * proof.points

    def test_fails_when_v_leaves_the_span(self) -> None:
        proof = lemma_4_2.prove(*SMALL, off_span=Fraction(1, 3))
        assert not proof.all_zero
        assert any("do not contain the noise" in failure for failure in proof.failures)
