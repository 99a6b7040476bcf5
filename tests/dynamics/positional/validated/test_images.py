"""The images of a truncation: exact weights, and a proof that none is missing."""

import math

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from dynamics import Problem
from dynamics.positional.population.states import enumerate_states, select_states
from dynamics.positional.validated import images as module
from dynamics.positional.validated.images import IncompleteError, images
from tests.dynamics.core.balls.reference import number, precise


class TestWeights:
    @settings(max_examples=30)
    @given(
        shape=st.sampled_from([(6, 2), (9, 3), (12, 4), (20, 2)]), K=st.integers(0, 6),
        q=st.floats(1e-6, 1.0) | st.just(1.0),
    )  # fmt: skip
    def test_they_add_up_to_the_binomial_law(self, shape, K, q):
        problem = Problem(D=shape[0], C=shape[1], q=q)
        N = problem.D - problem.C
        K = min(K, N)
        found = images(problem, K)
        with precise():
            chance, first = number(q), 0
            for k, last in enumerate(found.upto.tolist()):
                law = arb(math.comb(N, k))
                law = law * chance**k * (1 - chance) ** (N - k)
                total = sum((number(w) for w in found.weight[first:last]), arb(0))
                error = sum((number(r) for r in found.error[first:last]), arb(0))
                assert abs(total - law) <= error
                first = last
        assert np.all(found.error <= 2.0**-52 * found.weight + 1e-300)

    def test_most_likely_image(self):
        found = images(Problem(D=6, C=2, q=0.5), 4)
        assert found.weight[0] == 0.5**4
        assert found.error[0] < 1e-16


class TestCompleteness:
    problem = Problem(D=12, C=3, q=0.2)

    def test_holds(self):
        assert images(self.problem, 5).K == 5

    @pytest.mark.parametrize("state", [0, 7, 40])
    def test_a_missing_state_is_seen(self, state, monkeypatch):
        def without(problem, K):
            table = enumerate_states(problem, K)
            return select_states(table, np.arange(table.weight.size) != state)

        monkeypatch.setattr(module, "enumerate_states", without)
        with pytest.raises(IncompleteError):
            images.__wrapped__(self.problem, 5)

    def test_a_state_put_in_the_place_of_another_is_seen(self, monkeypatch):
        def twice(problem, K):
            table = enumerate_states(problem, K)
            single = table.start[:-1][(np.diff(table.start) == 1)]
            one, other = single[table.copies[single] == 1.0][:2]
            kind = table.kind.copy()
            kind[one] = kind[other]
            return table._replace(kind=kind)

        monkeypatch.setattr(module, "enumerate_states", twice)
        with pytest.raises(IncompleteError):
            images.__wrapped__(self.problem, 5)
