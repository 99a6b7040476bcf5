"""Images of a truncation: certified weights, and the verification of completeness."""

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
        shape=st.sampled_from([(6, 2), (9, 3), (12, 4), (20, 2)]),
        K=st.integers(0, 6),
        q=st.floats(1e-6, 1.0) | st.just(1.0),
    )
    def test_weights_add_up_to_binomial_probabilities(self, shape, K, q):
        problem = Problem(D=shape[0], C=shape[1], q=q)
        N = problem.D - problem.C
        K = min(K, N)
        result = images(problem, K)
        with precise():
            exact_q, first = number(q), 0
            for k, last in enumerate(result.upto.tolist()):
                law = arb(math.comb(N, k))
                law = law * exact_q**k * (1 - exact_q) ** (N - k)
                total = sum((number(w) for w in result.weight[first:last]), arb(0))
                error = sum((number(r) for r in result.error[first:last]), arb(0))
                assert abs(total - law) <= error
                first = last
        assert np.all(result.error <= 2.0**-52 * result.weight + 1e-300)

    def test_weight_of_the_image_without_features(self):
        result = images(Problem(D=6, C=2, q=0.5), 4)
        assert result.weight[0] == 0.5**4
        assert result.error[0] < 1e-16


class TestCompleteness:
    problem = Problem(D=12, C=3, q=0.2)

    def test_complete_enumeration_is_accepted(self):
        assert images(self.problem, 5).K == 5

    @pytest.mark.parametrize("state", [0, 7, 40])
    def test_missing_state_raises(self, state, monkeypatch):
        def without(problem, K):
            table = enumerate_states(problem, K)
            return select_states(table, np.arange(table.weight.size) != state)

        monkeypatch.setattr(module, "enumerate_states", without)
        with pytest.raises(IncompleteError):
            images.__wrapped__(self.problem, 5)

    def test_repeated_state_raises(self, monkeypatch):
        def twice(problem, K):
            table = enumerate_states(problem, K)
            single = table.start[:-1][(np.diff(table.start) == 1)]
            first, second = single[table.copies[single] == 1.0][:2]
            types = table.type_index.copy()
            types[first] = types[second]
            return table._replace(type_index=types)

        monkeypatch.setattr(module, "enumerate_states", twice)
        with pytest.raises(IncompleteError):
            images.__wrapped__(self.problem, 5)
