"""Smallest error of a rule that knows some of the sets: enumeration, sampling, and limits."""

import itertools
import math

import numpy as np
import pytest

from dynamics import Problem
from dynamics.core.errors import ParameterError
from dynamics.positional.baselines.linear_models import uniform_error
from dynamics.positional.baselines.set_knowledge import (
    bayes_error,
    coupon_collector,
    known_sets_law,
    least_error,
    least_samples,
)
from tests.closeness import close

MIDDLE = Problem(D=32, C=4, q=0.25)


def partitions(patches):
    """Yield all partitions of a tuple of patches into pairs."""
    if not patches:
        yield ()
        return
    first, *rest = patches
    for other in rest:
        left = tuple(patch for patch in rest if patch != other)
        for others in partitions(left):
            yield ((first, other), *others)


def enumerated(problem, known):
    """Return the Bayes error at C = 2 from all patterns and partitions with the known pairs."""
    D, L, q = problem.D, problem.L, problem.q
    fixed = tuple((2 * k, 2 * k + 1) for k in range(known))
    possible = [fixed + rest for rest in partitions(tuple(range(2 * known, D)))]
    error = 0.0
    for s in itertools.product((-1, 0, 1), repeat=D):
        nonzero = sum(map(abs, s))
        likelihood = {}
        for y in (1, -1):
            whole = sum(s[i] == s[j] == y for partition in possible for i, j in partition) / len(
                possible
            )
            empty = (1.0 - q) ** (D - nonzero)
            likelihood[y] = whole / L * (q / 2) ** (nonzero - 2) * empty if nonzero >= 2 else 0.0
        error += 0.5 * min(likelihood.values())
    return error


class TestBayesError:
    @pytest.mark.parametrize("q", [0.3, 1.0])
    @pytest.mark.parametrize("known", [0, 1, 2, 3])
    def test_error_equals_enumeration_for_six_patches(self, known, q):
        problem = Problem(D=6, C=2, q=q)
        close(bayes_error(problem, known).coin, enumerated(problem, known), rel=1e-12)

    @pytest.mark.parametrize("known", [0, 1, 2, 4])
    def test_error_equals_enumeration_for_eight_patches(self, known):
        problem = Problem(D=8, C=2, q=0.6)
        close(bayes_error(problem, known).coin, enumerated(problem, known), rel=1e-12)

    @pytest.mark.parametrize("D", [16, 64, 256])
    def test_without_known_sets_uniform_weights_are_optimal(self, D):
        problem = Problem(D=D, C=4, q=8 / D)
        exact = uniform_error(problem)
        error = bayes_error(problem, 0)
        close(error.wrong, exact.wrong, rel=1e-11)
        close(error.ties, exact.ties, rel=1e-11)

    def test_error_decreases_with_each_known_set(self):
        errors = [bayes_error(MIDDLE, known).coin for known in range(8)]
        assert np.all(np.diff(errors) < 0.0)
        # a single unknown set is determined by the others
        close(bayes_error(MIDDLE, 7).coin, bayes_error(MIDDLE, 8).coin, rel=1e-12)

    def test_invalid_arguments_raise(self):
        with pytest.raises(ParameterError, match="known = 9"):
            bayes_error(MIDDLE, 9)
        with pytest.raises(ParameterError, match="binomial"):
            bayes_error(Problem(D=4096, C=16, q=0.01), 0)


class TestSamples:
    @pytest.mark.slow
    def test_number_of_known_sets_follows_the_coupon_collector(self):
        L = 8
        for N in (0, 1, 5, 30):
            law = known_sets_law(L, N)
            assert law.sum() == pytest.approx(1.0, abs=1e-14)
            mean = L * (1.0 - (1.0 - 1.0 / L) ** N)
            assert law @ np.arange(L + 1) == pytest.approx(mean, abs=1e-13)
        until = sum(1.0 - known_sets_law(L, N)[L] for N in range(400))  # the rest is 1e-21
        close(coupon_collector(L), until, rel=1e-12)

    @pytest.mark.slow
    def test_least_error_equals_the_error_on_random_patterns(self):
        """Random known sets and random patterns: C = 4, eight sets, six samples."""
        L, C, N, draws = 8, 4, 6, 8_000
        rng = np.random.default_rng(0)
        wrong = 0.0
        for _ in range(draws):
            met = np.zeros(L, bool)
            met[rng.integers(L, size=N)] = True
            s = rng.choice([-1, 0, 1], p=[0.125, 0.75, 0.125], size=(L, C))
            s[rng.integers(L)] = 1
            unknown = C * int((~met).sum())
            side = {}
            for sign in (1, -1):
                hit = s == sign
                features = int(hit[~met].sum())
                probability = math.comb(features, C) / math.comb(unknown, C)
                side[sign] = hit[met].all(axis=1).sum() + unknown / C * probability
            wrong += float(side[1] < side[-1]) + 0.5 * float(side[1] == side[-1])
        exact = least_error(MIDDLE, N)
        assert wrong / draws == pytest.approx(exact, abs=4 * math.sqrt(exact / draws))

    def test_least_samples_inverts_the_least_error(self):
        for threshold in (0.05, 0.025, 0.01):
            N = least_samples(MIDDLE, threshold)
            assert least_error(MIDDLE, N) <= threshold < least_error(MIDDLE, N - 1)
        assert least_samples(MIDDLE, 0.07) == 0  # above the linear rule's error
        with pytest.raises(ParameterError, match="threshold"):
            least_samples(MIDDLE, 1e-5)

    def test_least_samples_is_proportional_to_the_number_of_sets(self):
        needed = [least_samples(Problem(D=D, C=4, q=8 / D), 0.025) for D in (64, 128, 256)]
        assert np.polyfit(np.log([64, 128, 256]), np.log(needed), 1)[0] == pytest.approx(
            1.0, abs=0.05
        )
