"""Properties of the model that hold for every valid problem, checked on drawn ones.

The oracle for symmetry, equivariance and span is `dynamics.positional.oracle.descent`, which
assumes none of them.
"""

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from dynamics import (
    ParameterError,
    Population,
    Problem,
    SlowManifold,
    State,
    attention,
    gradient_flow,
)
from dynamics.positional.oracle.descent import embed, population_gradient, project
from simulations.positional.symmetric_line import critical_alpha, line_drift
from simulations.strategies import invalid_problem_arguments, problems, reals, states
from tests.closeness import close, within

TOLERANCE = 1e-9  # of the population expectation
ROUNDING = 1e-12  # sums of up to 1e5 terms of order 1

#: gamma < rho from flow time 0.16 to 3.2e4 although alpha starts below its quasi-steady value.
COUNTEREXAMPLE = Problem(D=16, C=2, q=0.5, nu=1e-3, beta=0.5)
#: gamma < rho for good.
LASTING_COUNTEREXAMPLE = Problem(D=8, C=2, q=0.5, nu=1e-3, beta=0.5)
#: Outputs of 3e6 that cancel in F: the oracle's gradient is symmetric to 8e-5.
CANCELLING = Problem(D=4, C=2, q=1.0, p=7, nu=1.0, beta=0.0, output_scale=17.0)
#: gamma < rho from flow time 0.04 to 0.3, though no alpha is critical at gamma = rho = 0.
WITHOUT_CRITICAL_ALPHA = Problem(D=9, C=3, q=0.45652461775439285, nu=1.0, beta=1.630859375)


def small_problems(**fixed):
    """Problems that the full-matrix oracle enumerates in a millisecond or two."""
    return problems(max_D=8, **fixed)


def random_matrix(problem, seed):
    """Scores that respect no symmetry, (D, D)."""
    return np.random.default_rng(seed).normal(size=(problem.D, problem.D))


def feature(problem):
    """A feature that is not a unit vector of the standard basis, (d,)."""
    vector = np.arange(1.0, problem.dimension + 1.0)
    return vector / np.linalg.norm(vector)


def gradient_rounding(problem, alpha):
    """Rounding of sums whose terms reach kappa act'(kappa alpha): they cancel in a gradient.

    Where large outputs cancel in F = sum_i act(.), its rounding moves the sigmoid by a quarter.
    """
    largest = max(1.0, problem.kappa * abs(alpha))
    slope = problem.kappa * (problem.p * largest ** (problem.p - 1) + problem.nu)
    cancelled = 1e-16 * problem.D * largest**problem.p
    return slope * (1e-13 + cancelled / 4.0)


seeds = st.integers(0, 2**32 - 1)


class TestPopulation:
    @settings(max_examples=60)
    @given(problems(), states())
    def test_any_valid_problem_evaluates_finite_within_its_tolerance(self, problem, state):
        value = Population(problem, tolerance=TOLERANCE).evaluate(state)
        numbers = (value.loss, *value.gradient)
        assert all(math.isfinite(number) for number in numbers)
        assert value.loss > 0.0
        assert 0.0 <= value.ties <= value.test_error <= 1.0 + ROUNDING
        assert 0.0 < value.mean_sigmoid < 1.0
        scale = max(1.0, *map(abs, numbers))
        # the request is per number; the bound covers all of them, hence the factor 4
        assert 0.0 <= value.bound <= 4.0 * TOLERANCE * scale

    @given(invalid_problem_arguments())
    def test_any_invalid_problem_raises_one_clear_sentence(self, drawn):
        name, arguments = drawn
        with pytest.raises(ParameterError) as caught:
            Problem(**arguments)
        sentence = str(caught.value)
        assert sentence.startswith(f"{name} = ")
        assert f"{name} must be " in sentence
        assert "\n" not in sentence

    @given(problems(), states(max_logit=50.0))
    def test_attention_is_on_the_simplex(self, problem, state):
        Lambda, Gamma, Xi, G = attention(problem, state)
        C, D = problem.C, problem.D
        assert min(Lambda, Gamma, Xi) >= 0.0
        assert Lambda + (C - 1) * Gamma + (D - C) * Xi == pytest.approx(1.0, abs=ROUNDING)
        assert 0.0 <= G <= D * (1.0 + ROUNDING)


class TestFullModel:
    @settings(max_examples=20)
    @given(small_problems(D=4, C=2), reals(-0.5, 0.5), seeds)
    def test_loss_is_the_same_for_both_labels(self, problem, alpha, seed):
        """F is odd and the features outside the signal set symmetric, so y = +1 is enough."""
        A = random_matrix(problem, seed)
        losses = [brute_force_loss(problem, A, alpha, y) for y in (1, -1)]
        w_star = feature(problem)
        loss, _, _ = population_gradient(problem, A, alpha * w_star, w_star)
        close(losses[0], losses[1], rel=1e-13)
        close(loss, losses[0], rel=1e-12)

    @settings(max_examples=20)
    @given(small_problems(), reals(-0.5, 0.5), seeds)
    def test_gradient_commutes_with_permutations_of_the_patches(self, problem, alpha, seed):
        A, w_star = random_matrix(problem, seed), feature(problem)
        order = np.random.default_rng(seed + 1).permutation(problem.D)
        inverse = np.argsort(order)
        sets = np.arange(problem.D).reshape(problem.L, problem.C)
        loss, dA, dv = population_gradient(problem, A, alpha * w_star, w_star, sets)
        moved = population_gradient(
            problem, A[np.ix_(order, order)], alpha * w_star, w_star, inverse[sets]
        )
        atol = gradient_rounding(problem, alpha)
        close(moved[0], loss, rel=ROUNDING)
        within(moved[1], dA[np.ix_(order, order)], atol)
        within(moved[2], dv, atol)

    @settings(max_examples=20)
    @given(small_problems(), states(max_alpha=0.5))
    @example(
        Problem(D=4, C=2, q=1.0, p=7, nu=1.0, beta=0.0, output_scale=17.0), State(0.5, 0.0, 2.0)
    )
    def test_gradient_preserves_the_symmetry_of_A_and_its_three_values(self, problem, state):
        w_star = feature(problem)
        A, v = embed(problem, state, w_star)
        _, dA, _ = population_gradient(problem, A, v, w_star)
        atol = gradient_rounding(problem, state.alpha)
        within(dA, dA.T, atol)
        gamma, rho = project(problem, dA, v, w_star)[1:]
        same = np.kron(np.eye(problem.L), np.ones((problem.C, problem.C))) > 0
        expected = np.where(same, gamma, rho)
        np.fill_diagonal(expected, 0.0)
        within(dA, expected, atol)

    @settings(max_examples=20)
    @given(small_problems(), reals(-0.5, 0.5), seeds)
    def test_v_stays_in_the_span_of_w_star_for_any_A(self, problem, alpha, seed):
        w_star = feature(problem)
        _, _, dv = population_gradient(
            problem, random_matrix(problem, seed), alpha * w_star, w_star
        )
        orthogonal = dv - (dv @ w_star) * w_star
        assert np.linalg.norm(orthogonal) <= gradient_rounding(problem, alpha)


def brute_force_loss(problem, A, alpha, y):
    """Risk given the label, by loops over signal sets and patterns; no code shared with others."""
    S = np.exp(A / problem.tau)
    S /= S.sum(axis=1, keepdims=True)
    sets = np.arange(problem.D).reshape(problem.L, problem.C)
    total = 0.0
    for signal_set in sets:
        others = [j for j in range(problem.D) if j not in signal_set]
        for pattern in itertools.product((-1, 0, 1), repeat=len(others)):
            s = np.full(problem.D, float(y))
            s[others] = pattern
            odds = [problem.q / 2 if sign else 1 - problem.q for sign in pattern]
            O = problem.kappa * alpha * (S @ s)  # noqa: E741
            F = np.sum(O**problem.p + problem.nu * O)
            total += math.prod(odds) / problem.L * np.logaddexp(0.0, -y * F)
    return total


def line_rounding(problem, alpha):
    """Equal powers of O_1 and O_-1 = -O_1 cancel up to rounding where T = 0."""
    return ROUNDING * max(1.0, problem.kappa * alpha) ** problem.p


class TestGammaGeRho:
    """gamma >= rho is not unconditional: what matters is the drift on the line gamma = rho."""

    @settings(max_examples=40)
    @given(problems(), reals(1e-3, 0.5), reals(-2.0, 2.0))
    @example(COUNTEREXAMPLE, 0.1287, 0.0)
    def test_drift_on_the_line_is_that_of_the_population_gradient(self, problem, alpha, x):
        gradient = Population(problem, tolerance=TOLERANCE).gradient(State(alpha, x, x))
        drift = line_drift(problem, alpha, x)
        expected = gradient.rho - gradient.gamma
        scale = max(1.0, abs(gradient.gamma), abs(gradient.rho))
        assert drift.total == pytest.approx(expected, abs=2.0 * TOLERANCE * scale)

    @given(problems(), reals(1e-3, 1.0), reals(-2.0, 2.0))
    def test_only_outvoted_images_pull_gamma_below_rho(self, problem, alpha, x):
        assume(problem.beta >= x)
        assert line_drift(problem, alpha, x).signal_wins >= -line_rounding(problem, alpha)

    @given(problems(), reals(1e-3, 1.0), reals(-2.0, 2.0))
    def test_with_two_sets_the_flow_never_crosses_the_line_downwards(self, problem, alpha, x):
        assume(problem.beta >= x)
        two_sets = problem.replace(D=2 * problem.C)
        drift = line_drift(two_sets, alpha, x)
        assert drift.outvoted == 0.0
        assert drift.total >= -line_rounding(two_sets, alpha)

    @pytest.mark.slow
    @settings(max_examples=15)
    @given(problems(max_D=12, p=3, temperature=1.0, output_scale=None), reals(0.1, 2.0))
    @example(COUNTEREXAMPLE, 0.5)
    @example(WITHOUT_CRITICAL_ALPHA, WITHOUT_CRITICAL_ALPHA.beta)
    @example(Problem(D=16, C=4, q=0.125), 1.0)
    def test_gamma_falls_below_rho_only_where_the_line_drives_it(self, problem, beta):
        """Alpha is above the critical one of the logits where the flow crosses the line."""
        problem = problem.replace(beta=beta)
        flow = gradient_flow(Population(problem, tolerance=TOLERANCE), horizon=1e3)
        gap = flow.column("gamma") - flow.column("rho")
        below = np.flatnonzero(gap < -np.maximum(flow.resolution, TOLERANCE))
        if not below.size:
            return
        last = np.flatnonzero(gap[: below[0]] >= 0.0)[-1]
        times = np.linspace(flow.time[last], flow.time[below[0]], 20)
        drifts = [
            line_drift(problem, at.alpha, at.rho).total - line_rounding(problem, at.alpha)
            for at in map(flow.at, times)
        ]
        assert min(drifts) < 0.0

    def test_the_critical_alpha_at_the_start_does_not_decide(self):
        """Where the line hardly drives anything at 0, it does so at logits of 1e-3."""
        problem = WITHOUT_CRITICAL_ALPHA
        assert critical_alpha(problem) == math.inf
        assert critical_alpha(problem, 1e-3) < 0.5 < problem.initial_state.alpha
        flow = gradient_flow(Population(problem, tolerance=TOLERANCE), horizon=10.0)
        within(flow.violations()["gamma >= rho"], 5.57e-6, absolute=1e-8)

    @pytest.mark.parametrize(
        ("problem", "horizon", "least"),
        [(COUNTEREXAMPLE, 1e5, 1.3), (LASTING_COUNTEREXAMPLE, 1e6, 8.0)],
    )
    def test_known_counterexamples_lie_outside_the_condition_and_fail(
        self, problem, horizon, least
    ):
        population = Population(problem, tolerance=TOLERANCE)
        settled = SlowManifold(population).alpha(0.0, 0.0)
        assert problem.initial_state.alpha < critical_alpha(problem) < settled
        flow = gradient_flow(population, horizon=horizon)
        assert flow.violations()["gamma >= rho"] > least

    def test_counterexample_recovers_and_the_lasting_one_does_not(self):
        for problem, recovers in ((COUNTEREXAMPLE, True), (LASTING_COUNTEREXAMPLE, False)):
            final = gradient_flow(Population(problem, tolerance=TOLERANCE), horizon=1e6).final
            assert (final.gamma > final.rho) is recovers


class TestScalingLaws:
    """Differences are judged by the certified bounds of both sides, scaled like the numbers."""

    @settings(max_examples=40)
    @given(problems(), states(max_alpha=0.5, max_logit=2.0), reals(0.25, 4.0))
    def test_temperature_and_logits_scale_together(self, problem, state, k):
        scaled = problem.replace(temperature=k * problem.tau, beta=k * problem.beta)
        here = Population(problem, tolerance=TOLERANCE).evaluate(state)
        there = Population(scaled, tolerance=TOLERANCE).evaluate(
            State(state.alpha, k * state.gamma, k * state.rho)
        )
        factors = (1.0, 1.0, k, k)
        assert_equal_within_bounds(here, there, factors)

    @settings(max_examples=40)
    @given(problems(), states(max_alpha=0.5, max_logit=2.0), reals(0.25, 4.0))
    def test_output_scale_and_alpha_scale_inversely(self, problem, state, k):
        scaled = problem.replace(output_scale=k * problem.kappa)
        here = Population(problem, tolerance=TOLERANCE).evaluate(state)
        there = Population(scaled, tolerance=TOLERANCE).evaluate(
            State(state.alpha / k, state.gamma, state.rho)
        )
        factors = (1.0, 1.0 / k, 1.0, 1.0)
        assert_equal_within_bounds(here, there, factors)


def assert_equal_within_bounds(here, there, factors):
    """Loss and gradient entries of ``there`` times ``factors`` are those of ``here``."""
    pairs = zip((here.loss, *here.gradient), (there.loss, *there.gradient), factors)
    for expected, actual, factor in pairs:
        assert abs(factor * actual - expected) <= here.bound + factor * there.bound
