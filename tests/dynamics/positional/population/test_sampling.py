"""Error bars of the sampling, each part in a case where it is necessary.

References: enumeration (tested against exact balls), SciPy's binomial law, NumPy's variance.
"""

import numpy as np
import pytest
from scipy import stats

from dynamics import Population, Problem, State
from dynamics.positional.population.expectation import Constants, _add_deviation, risk_sums
from dynamics.positional.population.importance import proposal_laws, unsampled
from dynamics.positional.population.states import select_states, set_types
from dynamics.positional.population.truncation import group_bounds
from tests.closeness import close, within


def sampled(problem, state, samples, seed):
    return Population(problem, "sampling", samples=samples, seed=seed).evaluate(state)


def enumerated(problem, state):
    return Population(problem, "enumeration", 1e-4).evaluate(state)


@pytest.mark.parametrize("scale", [1e-300, 1e-170, 1.0, 1e170, 1e300])
def test_standard_deviation_of_terms_of_any_size(scale):
    rng = np.random.default_rng(0)
    terms = scale * (rng.standard_normal(500) * 10.0 ** rng.uniform(-3, 1, 500) + 2.0)
    spread = np.zeros((1, 3))
    for i, term in enumerate(terms):
        _add_deviation(spread, 0, i + 1.0, term)
    close(
        spread[0, 1] * np.sqrt(spread[0, 2]) / scale,
        np.sqrt(500) * np.std(terms / scale),
        rel=1e-12,
    )


@pytest.mark.parametrize("alpha", [1e-60, 1e-80, 1e-98])
def test_relative_errors_of_slopes_whose_squares_underflow(alpha):
    """Slopes in A and their errors are proportional to alpha^3."""
    problem = Problem(D=8, C=2, q=0.3)
    small, tiny = (sampled(problem, State(a, 0.2, -0.03), 2000, 0) for a in (1e-10, alpha))
    exact = enumerated(problem, State(alpha, 0.2, -0.03))
    for name in ("gamma", "rho"):
        ratios = [
            getattr(value.gradient_bound, name) / abs(getattr(value.gradient, name))
            for value in (small, tiny)
        ]
        close(ratios[1], ratios[0], rel=1e-6)
        gap = abs(getattr(tiny.gradient, name) - getattr(exact.gradient, name))
        assert 0.0 < gap <= getattr(tiny.gradient_bound, name)


def test_bounds_are_three_standard_errors_plus_unsampled_images():
    """The standard errors are computed from the terms of single images; rounding is negligible."""
    problem, state, samples = Problem(D=12, C=3, q=0.2), State(0.3, 0.5, -0.2), 100
    population = Population(problem, "sampling", samples=samples, seed=3)
    states, constants = population.expectation.states, Constants.of(problem)
    terms = np.array(
        [
            risk_sums(select_states(states, np.arange(samples) == i), constants, *state)[0][0]
            for i in range(samples)
        ]
    )
    errors = 3.0 * samples * np.std(terms, axis=0, ddof=1) / np.sqrt(samples)
    groups = population.expectation._unsampled
    assert 0.0 < groups.mass.sum() < 0.01
    missed = group_bounds(groups, constants, *state).sum(axis=0)
    errors[[0, 2, 3, 4]] /= np.array([1.0, *problem.multiplicity])
    value = population.evaluate(state)
    bounds = [value.loss_bound, value.mean_sigmoid_bound, *value.gradient_bound]
    close(bounds, errors + np.insert(missed, 1, groups.mass.sum()), rel=1e-9)


def test_test_error_is_within_its_bound_in_nearly_all_samples():
    problem, state = Problem(D=8, C=2, q=0.6), State(0.3, 0.2, -0.2)
    exact = enumerated(problem, state).test_error
    ratios = []
    for seed in range(40):
        value = sampled(problem, state, 2000, seed)
        ratios.append(abs(value.test_error - exact) / value.test_error_bound)
    assert np.sort(ratios)[-2] <= 1.0
    assert 0.1 < np.mean(ratios) < 0.35


def test_undecided_signs_are_part_of_the_bound():
    """At alpha = 1e-320 outputs underflow; the test error is equal to the one at 1e-110."""
    problem = Problem(D=9, C=3, q=0.5, p=3, nu=1e-12, beta=0.3)
    exact = enumerated(problem, State(1e-110, 0.2, 0.1))
    value = sampled(problem, State(1e-320, 0.2, 0.1), 2000, 0)
    gap = abs(value.test_error - exact.test_error)
    assert 0.4 < gap <= value.test_error_bound < 0.6


def test_rare_unsampled_images_are_part_of_the_bound():
    """Their slopes are a thousand times larger than three standard errors."""
    problem = Problem(D=8, C=2, q=0.0081, p=21, nu=3.5e-6, beta=0.0)
    state = State(0.0226, -0.394, 4.41)
    value, exact = sampled(problem, state, 100, 0), enumerated(problem, state)
    expectation = Population(problem, "sampling", samples=100, seed=0).expectation
    expectation._unsampled = expectation._unsampled._replace(mass=0.0 * expectation._unsampled.mass)
    without = expectation.evaluate(state)
    for i in (1, 2):
        gap = abs(value.gradient[i] - exact.gradient[i])
        assert 100.0 * without.gradient_bound[i] < gap <= value.gradient_bound[i]


@pytest.mark.parametrize(
    ("problem", "state", "seed"),
    [
        (Problem(D=6, C=2, q=0.0715, nu=1.27e-4), State(0.08, -0.67, 2.3), 7),
        (Problem(D=8, C=2, q=0.469, nu=0.036), State(0.095, -0.245, 1.63), 4),
    ],
)
def test_bound_for_few_errors_in_a_small_sample(problem, state, seed):
    """Three standard errors of the sampled errors are not enough."""
    samples = 100
    value, exact = sampled(problem, state, samples, seed), enumerated(problem, state)
    gap = abs(value.test_error - exact.test_error)
    assert value.test_error_bound - 6.0 / samples < gap <= value.test_error_bound


def test_rule_of_three_for_rare_errors():
    """Three divided by the number of images from the data distribution, half of the sample."""
    problem, samples = Problem(D=64, C=4, q=2 / 64), 400
    value = Population(problem, "sampling", samples=samples, seed=0).evaluate(State(0.1, 9.0, -9.0))
    assert value.test_error < 1e-5
    assert 3.0 / (0.5 * samples) <= value.test_error_bound < 3.1 / (0.5 * samples)


def test_ties_count_as_errors():
    """At beta = gamma = rho the sign of F is that of T; the bound is less than half of the ties."""
    problem, state = Problem(D=16, C=2, q=0.4, beta=0.0), State(0.1, 0.0, 0.0)
    value, exact = sampled(problem, state, 20_000, 1), enumerated(problem, state)
    assert abs(value.test_error - exact.test_error) <= value.test_error_bound
    assert abs(value.ties - exact.ties) <= value.ties_bound
    assert value.test_error_bound < 0.25 * exact.ties


@pytest.mark.parametrize("samples", [100, 20_000])
@pytest.mark.parametrize("problem", [Problem(D=64, C=4, q=2 / 64), Problem(D=600, C=3, q=0.02)])
def test_unsampled_images_have_fewer_than_three_expected(problem, samples):
    laws, types = proposal_laws(problem), set_types(problem)
    size, trials = np.append(types.plus + types.minus, 0), problem.D - problem.C
    share = max((problem.L - 1) * float(law @ size) for law in laws) / trials
    expected = samples / (2 * len(laws)) * stats.binom.sf(np.arange(trials), trials, share)
    first = int(np.argmax(expected < 3.0))
    groups = unsampled(problem, samples, laws)
    close(groups.mass.sum(), stats.binom.sf(first, trials, problem.q), rel=1e-6)
    # the largest number of features in each group
    edges = np.round(groups.sets @ np.arange(problem.C + 1)).astype(int)
    assert edges[-1] == trials
    above = stats.binom.sf(np.append(first, edges), trials, problem.q)
    within(groups.mass, above[:-1] - above[1:], 1e-9 * above[0])
    for k, bound in zip(edges.tolist(), groups.norm):
        sums = problem.C + 2.0 * np.arange(k + 1) - k
        norm = (stats.binom.pmf(np.arange(k + 1), k, 0.5) @ np.abs(sums) ** 3) ** (1 / 3)
        assert norm <= bound <= 1.6 * norm
