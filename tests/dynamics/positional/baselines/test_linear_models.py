"""Linear models of Theorem 3.1 compared with enumeration of every image and with each other."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from dynamics import Problem
from dynamics.core.errors import ParameterError
from dynamics.positional.baselines import linear_models as models
from dynamics.positional.baselines import set_sums
from dynamics.positional.baselines.set_sums import joint_law
from dynamics.positional.labelling import label_error, threshold
from dynamics.positional.random_sets import law_of_set, sum_of_signs
from tests.closeness import close, within

SMALL = Problem(D=8, C=2, q=0.4)
TRIPLES = Problem(D=9, C=3, q=0.6)


def images(problem):
    """Return all patterns for y = +1: coefficients (n, D) and probabilities (n,)."""
    D, C, L, q = problem.D, problem.C, problem.L, problem.q
    signs = np.array(list(itertools.product((-1, 0, 1), repeat=D - C)))
    features = np.abs(signs).sum(axis=1)
    weight = (q / 2) ** features * (1 - q) ** (D - C - features) / L
    blocks = [np.insert(signs, [l * C] * C, 1, axis=1) for l in range(L)]  # noqa: E741
    return np.vstack(blocks), np.tile(weight, L)


def labelling(problem, s):
    sums = s.reshape(len(s), problem.L, problem.C).sum(axis=2)
    return np.where(np.abs(sums) > threshold(problem.C), sums, 0).sum(axis=1)


def brute_error(problem, weights, theta):
    """Return ``P[y g < 0]`` and ``P[y g = 0]`` over both labels."""
    s, p = images(problem)
    score = s @ np.asarray(weights, dtype=float)
    wrong = p[score < theta].sum() + p[-score > theta].sum()
    ties = p[score == theta].sum() + p[-score == theta].sum()
    return 0.5 * wrong, 0.5 * ties


class TestUniformWeights:
    @pytest.mark.parametrize("problem", [SMALL, TRIPLES, SMALL.replace(q=1.0)])
    def test_error_equals_enumeration(self, problem):
        error = models.uniform_error(problem)
        brute = brute_error(problem, np.ones(problem.D), 0)
        assert (error.wrong, error.ties) == pytest.approx(brute, abs=1e-14)

    @pytest.mark.parametrize("problem", [SMALL, TRIPLES])
    def test_disagreement_equals_enumeration(self, problem):
        s, p = images(problem)
        product = labelling(problem, s) * s.sum(axis=1)
        error = models.uniform_disagreement(problem)
        assert error.wrong == pytest.approx(p[product < 0].sum(), abs=1e-14)
        assert error.ties == pytest.approx(p[product == 0].sum(), abs=1e-14)

    def test_sum_of_signs_is_a_difference_of_binomials(self):
        law, dropped = sum_of_signs(300, 0.1)
        reach = law.size // 2
        nonzero = np.arange(301)
        for t in (0, 7, 40, reach - 1):
            even = nonzero[(nonzero >= t) & ((nonzero + t) % 2 == 0)]
            exact = stats.binom.pmf(even, 300, 0.1) @ stats.binom.pmf((even + t) // 2, even, 0.5)
            within(law[reach + t], exact, dropped + 1e-12 * exact)
        assert dropped < 1e-17
        assert law.sum() == pytest.approx(1.0, abs=1e-13)

    def test_error_is_an_eighth_at_the_critical_ratio(self):
        ratio = models.critical_ratio(256, 4)
        close(models.uniform_error(Problem(D=256, C=4, q=ratio / 16)).coin, 0.125, rel=1e-12)
        literal = models.critical_ratio(256, 4, literal=True)
        assert literal < ratio
        close(models.uniform_error(Problem(D=256, C=4, q=literal / 16)).literal, 0.125, rel=1e-12)

    def test_critical_ratio_approaches_the_normal_one(self):
        assert models.gaussian_critical_ratio(10**6, 2) == pytest.approx(0.7557, abs=1e-4)
        gaps = [
            abs(models.critical_ratio(D, C) / models.gaussian_critical_ratio(D, C) - 1)
            for D, C in ((64, 2), (1024, 4), (65536, 16))
        ]
        assert gaps == sorted(gaps, reverse=True)
        assert gaps[-1] < 2e-3

    def test_critical_ratio_is_nan_if_not_reached(self):
        assert math.isnan(models.critical_ratio(32, 8))

    def test_zero_label_probability_equals_ties_of_the_labelling_function(self):
        close(models.zero_label_probability(TRIPLES), label_error(TRIPLES).ties, rel=1e-12)


class TestOtherWeights:
    @given(st.lists(st.integers(0, 5), min_size=8, max_size=8).filter(any), st.integers(0, 6))
    @example([1] * 8, 0)
    @example([0, 0, 3, 1, 1, 1, 0, 5], 1)
    @settings(max_examples=25)
    def test_error_equals_enumeration(self, weights, theta):
        error, _ = models.weights_error(SMALL, weights, theta)
        assert (error.wrong, error.ties) == pytest.approx(
            brute_error(SMALL, weights, theta), abs=1e-13
        )

    def test_default_threshold_is_optimal(self):
        weights = [5, 1, 3, 1, 1, 1, 2, 2]
        error, theta = models.weights_error(SMALL, weights)
        every = [models.weights_error(SMALL, weights, t)[0].coin for t in range(17)]
        assert error.coin == min(every) == every[theta]

    @given(st.lists(st.floats(0.0, 1.0), min_size=12, max_size=12).filter(any), st.floats(0, 2))
    @settings(max_examples=50)
    def test_uniform_weights_are_optimal_for_normal_coefficients(self, weights, theta):
        problem = Problem(D=12, C=3, q=0.5)
        a = np.array(weights).reshape(problem.L, problem.C)
        A = a.sum(axis=1)
        spread = np.sqrt(problem.q * ((a**2).sum() - (a**2).sum(axis=1))) + 1e-300
        inside = stats.norm.cdf((theta + A) / spread) - stats.norm.cdf((theta - A) / spread)
        assert 0.5 - 0.5 * inside.mean() >= models.gaussian_error(problem) - 1e-12

    @pytest.mark.parametrize("q", [0.3, 0.9])
    def test_certified_optimum_is_attained_and_not_exceeded_by_small_weights(self, q):
        problem = Problem(D=4, C=2, q=q)
        best = models.best_linear_classifier(problem)
        assert best.lower_bound == pytest.approx(best.error, abs=1e-9)
        # upper side: score >= theta; lower side: score <= theta - 1; separate between them
        cut = brute_error(problem, best.weights, best.theta - 0.5)
        assert cut == (pytest.approx(best.error, abs=1e-9), 0.0)
        every = [
            sum(np.array(brute_error(problem, a, theta)) * (1.0, 0.5))
            for a in itertools.combinations_with_replacement(range(4), 4)
            if any(a)
            for theta in np.arange(0.0, 4.0, 0.5)
        ]
        assert best.error <= min(every) + 1e-9

    def test_search_reaches_the_certified_optimum(self):
        problem = Problem(D=6, C=3, q=0.7)
        error, weights, theta = models.search_weights(problem, np.random.default_rng(1), starts=6)
        assert error.coin == pytest.approx(models.best_linear_classifier(problem).error, abs=1e-9)
        close(models.weights_error(problem, weights, theta)[0].coin, error.coin, rel=1e-12)

    def test_decoder_returns_every_digit(self):
        rng = np.random.default_rng(0)
        s = rng.integers(-1, 2, size=(33, 500))
        assert np.array_equal(models.decode_base_3(3.0 ** np.arange(33) @ s, 33), s)


def test_dropped_atoms_and_the_others_have_probability_1(monkeypatch):
    complete = joint_law([1e-7, 0.5, 0.5 - 1e-7], [[-1, 0], [0, 1], [1, 2]], 12)
    monkeypatch.setattr(set_sums, "TRIM", 1e-4)
    law = joint_law([1e-7, 0.5, 0.5 - 1e-7], [[-1, 0], [0, 1], [1, 2]], 12)
    assert len(law.values) < len(complete.values)
    assert 1e-6 < law.dropped < 24e-4
    close(law.probability.sum() + law.dropped, 1.0, rel=1e-12)
    expected = dict(zip(map(tuple, complete.values), complete.probability))
    for value, probability in zip(map(tuple, law.values), law.probability):
        assert expected[value] - law.dropped <= probability <= expected[value] * (1.0 + 1e-12)


def test_invalid_arguments_raise():
    with pytest.raises(ParameterError, match="D = 8"):
        models.best_linear_classifier(SMALL)
    with pytest.raises(ParameterError, match="weights"):
        models.weights_error(SMALL, np.full(8, -1))
    with pytest.raises(ParameterError, match="D = 40"):
        models.decode_base_3(0.0, 40)
    with pytest.raises(ParameterError, match="overflow"):
        joint_law(law_of_set(2, 0.1), [[10**15, 10**15]] * 5, 10**4)
