"""The explicit transformer of Theorem 3.2: enumeration, convolution, sampling, Gram matrices."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynamics import Problem
from dynamics.core.errors import ParameterError
from dynamics.positional.baselines import explicit_transformer as explicit
from dynamics.positional.oracle.expectation import FullPopulation
from dynamics.positional.samples.partitions import contiguous
from tests.closeness import within

PAIRS = Problem(D=8, C=2, q=0.3)
TRIPLES = Problem(D=9, C=3, q=0.5)
QUADS = Problem(D=12, C=4, q=0.4, p=5, nu=0.2)


@pytest.mark.parametrize("problem", [PAIRS, TRIPLES, QUADS])
class TestDerangement:
    def test_top_entries_avoid_the_own_set(self, problem):
        sets = contiguous(problem)
        A = explicit.derangement_scores(problem)
        assert explicit.own_set_margin(A, sets).min() > 0.0
        assert explicit.own_set_margin(explicit.block_scores(problem), sets).max() < 0.0
        for row, top in enumerate(np.argsort(-A, axis=1)[:, : problem.C]):
            assert row // problem.C not in top // problem.C

    def test_error_equals_the_error_of_attention_to_the_own_set(self, problem):
        limit = explicit.block_error(problem, 1.0).error
        for scores in (explicit.derangement_scores, explicit.block_scores):
            error = explicit.exact_error(problem, scores(problem), 1.0).error
            assert error == pytest.approx(limit, abs=1e-13)


class TestExactError:
    @pytest.mark.parametrize("strength", [0.7, 3.0])
    def test_error_equals_the_full_matrix_oracle(self, strength):
        A = explicit.derangement_scores(PAIRS, strength)
        w = np.eye(8)[0]
        expected = FullPopulation(PAIRS, w).evaluate(A, 0.4 * w).test_error
        assert explicit.exact_error(PAIRS, A, 0.4).label_error == pytest.approx(expected, abs=1e-14)

    def test_error_agrees_with_samples(self):
        A = explicit.derangement_scores(QUADS, 2.0)
        exact = explicit.exact_error(QUADS, A, 0.5)
        sampled = explicit.sampled_error(QUADS, A, 0.5, 40_000, np.random.default_rng(0))
        assert abs(sampled.error - exact.error) < sampled.bound
        assert abs(sampled.label_error - exact.label_error) < sampled.bound
        assert sampled.bound < 0.01

    def test_block_error_agrees_with_samples_at_large_D(self):
        problem = Problem(D=64, C=4, q=0.25)
        exact = explicit.block_error(problem, 1.0)
        A = explicit.derangement_scores(problem)
        sampled = explicit.sampled_error(problem, A, 1.0, 100_000, np.random.default_rng(1))
        assert abs(sampled.error - exact.error) < sampled.bound

    def test_too_many_images_raise(self):
        with pytest.raises(ParameterError, match="D = 64"):
            explicit.exact_error(Problem(D=64, C=4, q=0.1), np.zeros((64, 64)), 1.0)


class TestGram:
    @given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.booleans())
    @settings(max_examples=40)
    def test_row_of_largest_norm_meets_its_set(self, seed, dimension, heavy_tails):
        rng = np.random.default_rng(seed)
        P = rng.standard_cauchy((dimension, 8)) if heavy_tails else rng.normal(size=(dimension, 8))
        A = P.T @ P
        row = int(np.argmax(A.diagonal()))
        margin = explicit.own_set_margin(A, contiguous(PAIRS))[row]
        assert margin <= 1e-12 * A.diagonal().max()

    def test_optimized_margin_is_positive_only_without_the_diagonal(self):
        with_diagonal, P = explicit.best_gram_margin(PAIRS, np.random.default_rng(0), diagonal=True)
        assert -1e-3 < with_diagonal <= 1e-9
        assert np.linalg.norm(P, axis=0).max() <= 1.0 + 1e-9
        without, P = explicit.best_gram_margin(PAIRS, np.random.default_rng(0), diagonal=False)
        margin = explicit.own_set_margin(P.T @ P, contiguous(PAIRS), diagonal=False)
        assert without == margin.min() > 0.5

    def test_paired_gram_avoids_the_own_set_without_the_diagonal(self):
        sets = contiguous(PAIRS)
        A, P = explicit.paired_gram(PAIRS, within=0.6, scale=3.0)
        within(P.T @ P, A, 1e-12)
        assert np.linalg.eigvalsh(A).min() > -1e-12
        assert explicit.own_set_margin(A, sets).max() < 0.0
        assert explicit.own_set_margin(A, sets, diagonal=False).min() > 0.0
        tied, _ = explicit.paired_gram(PAIRS, within=1.0, scale=40.0)
        assert np.all(explicit.own_set_margin(tied, sets) == 0.0)
        assert explicit.exact_error(PAIRS, tied, 1.0).error == pytest.approx(
            explicit.paired_error(PAIRS, 1.0).error, abs=1e-13
        )

    def test_odd_number_of_sets_raises(self):
        with pytest.raises(ParameterError, match="L = 3"):
            explicit.paired_gram(TRIPLES, within=0.5, scale=1.0)
