"""The least error of a rule that knows some of the sets: enumerated, sampled, and its limits."""

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
    least_error,
    least_samples,
    met_sets,
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
        left = tuple(one for one in rest if one != other)
        for others in partitions(left):
            yield ((first, other), *others)


def enumerated(problem, known):
    """Bayes error at C = 2 from all patterns and all partitions that hold the known pairs."""
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
    def test_against_all_patterns_and_partitions(self, known, q):
        problem = Problem(D=6, C=2, q=q)
        close(bayes_error(problem, known).coin, enumerated(problem, known), rel=1e-12)

    @pytest.mark.parametrize("known", [0, 1, 2, 4])
    def test_against_all_patterns_and_partitions_of_eight(self, known):
        problem = Problem(D=8, C=2, q=0.6)
        close(bayes_error(problem, known).coin, enumerated(problem, known), rel=1e-12)

    @pytest.mark.parametrize("D", [16, 64, 256])
    def test_without_any_set_nothing_beats_uniform_weights(self, D):
        problem = Problem(D=D, C=4, q=8 / D)
        exact = uniform_error(problem)
        found = bayes_error(problem, 0)
        close(found.wrong, exact.wrong, rel=1e-11)
        close(found.ties, exact.ties, rel=1e-11)

    def test_falls_with_every_set_known(self):
        errors = [bayes_error(MIDDLE, known).coin for known in range(8)]
        assert np.all(np.diff(errors) < 0.0)
        # one unknown set is known
        close(bayes_error(MIDDLE, 7).coin, bayes_error(MIDDLE, 8).coin, rel=1e-12)

    def test_refuses_sets_that_there_are_not(self):
        with pytest.raises(ParameterError, match="known = 9"):
            bayes_error(MIDDLE, 9)
        with pytest.raises(ParameterError, match="binomial"):
            bayes_error(Problem(D=4096, C=16, q=0.01), 0)


class TestSamples:
    def test_sets_met_are_those_of_the_coupon_collector(self):
        L = 8
        for N in (0, 1, 5, 30):
            law = met_sets(L, N)
            assert law.sum() == pytest.approx(1.0, abs=1e-14)
            mean = L * (1.0 - (1.0 - 1.0 / L) ** N)
            assert law @ np.arange(L + 1) == pytest.approx(mean, abs=1e-13)
        until = sum(1.0 - met_sets(L, N)[L] for N in range(400))  # then 1e-21
        close(coupon_collector(L), until, rel=1e-12)

    def test_least_error_is_that_of_the_rule_on_drawn_data(self):
        """The rule with its knowledge drawn, on patterns drawn: C = 4, eight sets, six samples."""
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
                chance = math.comb(features, C) / math.comb(unknown, C)
                side[sign] = hit[met].all(axis=1).sum() + unknown / C * chance
            wrong += float(side[1] < side[-1]) + 0.5 * float(side[1] == side[-1])
        exact = least_error(MIDDLE, N)
        assert wrong / draws == pytest.approx(exact, abs=4 * math.sqrt(exact / draws))

    def test_least_samples_is_where_the_least_error_gets_below(self):
        for threshold in (0.05, 0.025, 0.01):
            N = least_samples(MIDDLE, threshold)
            assert least_error(MIDDLE, N) <= threshold < least_error(MIDDLE, N - 1)
        assert least_samples(MIDDLE, 0.07) == 0  # above the linear rule's error
        with pytest.raises(ParameterError, match="threshold"):
            least_samples(MIDDLE, 1e-5)

    def test_a_fixed_error_needs_samples_in_proportion_to_the_sets(self):
        needed = [least_samples(Problem(D=D, C=4, q=8 / D), 0.025) for D in (64, 128, 256)]
        assert np.polyfit(np.log([64, 128, 256]), np.log(needed), 1)[0] == pytest.approx(
            1.0, abs=0.05
        )
