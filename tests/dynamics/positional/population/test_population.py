"""Population: values, bounds, errors raised, and the choice of the method.

References: the full-matrix oracle (no shared code), mpmath, and central differences.
"""

import math
import pickle
from functools import cache

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dynamics import (
    AccuracyWarning,
    ParameterError,
    Population,
    Problem,
    State,
    ToleranceError,
    gradient_descent,
)
from dynamics.positional.oracle.descent import embed, population_gradient
from dynamics.positional.population.expectation import Constants, gradient_sum, hessian_sum
from tests.closeness import close, within
from tests.dynamics.positional.oracle_rounding import oracle_rounding

CHECK = Problem(D=8, C=2, q=0.3, p=3, nu=0.01, beta=1.0, temperature=1.3)
CHECK_STATE = State(0.37, 0.2, -0.03)


@cache
def accurate(problem, state):
    """Return the values by enumeration with the smallest truncation error."""
    return Population(problem, method="enumeration", tolerance=1e-11).evaluate(state)


def oracle(problem, state):
    w_star = np.zeros(problem.dimension)
    w_star[0] = 1.0
    A, v = embed(problem, state, w_star)
    loss, dA, dv = population_gradient(problem, A, v, w_star)
    return loss, State(dv[0], dA[0, 1], dA[0, -1])


def test_values_equal_30_digit_reference():
    """The reference is a sum over all 3^6 patterns in 30-digit arithmetic."""
    value = Population(CHECK).evaluate(CHECK_STATE)
    assert value.loss == pytest.approx(0.19523298425368842, abs=2e-15)
    assert value.gradient.alpha == pytest.approx(-0.23712811189972516, abs=2e-15)
    assert value.gradient.gamma == pytest.approx(-0.003931929555507072, abs=2e-17)
    assert value.gradient.rho == pytest.approx(0.001489724841890816, abs=2e-17)


@settings(max_examples=40)
@given(
    shape=st.sampled_from([(8, 2), (9, 3), (8, 4), (6, 2), (10, 5)]),
    q=st.floats(0.01, 1.0),
    p=st.sampled_from([3, 5, 7]),
    kappa=st.sampled_from([None, 1.0, 2.5]),
    tau=st.floats(0.3, 3.0),
    beta=st.floats(-2.0, 3.0),
    state=st.tuples(st.floats(-0.6, 0.6), st.floats(-2.0, 3.0), st.floats(-3.0, 2.0)),
)
@example(shape=(8, 2), q=1.0, p=3, kappa=None, tau=1.0, beta=0.0, state=(0.1, 0.0, 0.0))
@example(shape=(8, 4), q=1.0, p=5, kappa=None, tau=0.5, beta=0.0, state=(0.5, 0.0, 1.0))
def test_reduced_equals_full_matrix_within_the_bound(shape, q, p, kappa, tau, beta, state):
    D, C = shape
    problem = Problem(D=D, C=C, q=q, p=p, nu=0.01, beta=beta, temperature=tau, output_scale=kappa)
    state = State(*state)
    value = Population(problem, method="enumeration", tolerance=1e-9).evaluate(state)
    loss, gradient = oracle(problem, state)
    size = max(1.0, abs(loss), *map(abs, gradient))
    lost = oracle_rounding(problem, state.alpha)
    within(value.loss, loss, value.bound + lost.loss)
    entries = (lost.alpha, lost.entry, lost.entry)
    within(value.gradient, gradient, np.add(value.bound, entries))
    assert value.bound <= 1e-9 * size * (1 + 1e-9)


class TestBound:
    """Truncation errors are within the bound, at every tolerance."""

    STATES = (
        State(0.1, 0.0, 0.0),
        State(0.26, 0.5, -0.05),
        State(0.04, 3.4, -0.2),
        State(-0.2, -1.0, 1.0),
    )

    @pytest.mark.parametrize("state", STATES)
    @pytest.mark.parametrize("tolerance", [1e-2, 1e-3, 1e-5, 1e-7])
    @pytest.mark.parametrize(
        "kwargs",
        [
            {"D": 64, "C": 4, "q": 2 / 64},
            {"D": 64, "C": 2, "q": 4 / 64, "p": 5},
            pytest.param({"D": 10**6, "C": 4, "q": 1e-6}, marks=pytest.mark.slow),
        ],
    )
    def test_bounds(self, kwargs, tolerance, state):
        problem = Problem(**kwargs)
        reference = accurate(problem, state)
        value = Population(problem, method="enumeration", tolerance=tolerance).evaluate(state)
        slack = value.bound + reference.bound
        assert abs(value.loss - reference.loss) <= slack
        assert np.max(np.abs(np.subtract(value.gradient, reference.gradient))) <= slack
        slack = value.test_error_bound + reference.test_error_bound + 1e-15
        assert abs(value.test_error - reference.test_error) <= slack

    def test_coarse_table_has_a_truncation_error(self):
        problem = Problem(D=64, C=4, q=2 / 64)
        coarse = Population(problem, method="enumeration", tolerance=1e-2)
        fine = Population(problem, method="enumeration", tolerance=1e-11)
        gap = coarse.evaluate(self.STATES[0]).loss - fine.evaluate(self.STATES[0]).loss
        assert 1e-8 < abs(gap) < 1e-2

    def test_named_bounds_add_up_to_the_bound(self):
        value = Population(CHECK).evaluate(CHECK_STATE)
        assert sum(value.bounds.values()) == value.bound
        assert set(value.bounds) == {"truncation", "rounding"}

    def test_larger_alpha_uses_a_larger_table(self):
        population = Population(Problem(D=64, C=4, q=2 / 64), "enumeration", tolerance=1e-6)
        table, state = population.expectation.table, State(2.0, 0.0, 0.0)
        assert table(population.problem.initial_state).K < table(state).K
        value = population.evaluate(state)
        assert value.bound <= 1e-6 * max(1.0, value.loss, *map(abs, value.gradient))


def test_full_enumeration_has_no_truncation_error():
    value = Population(CHECK).evaluate(CHECK_STATE)
    assert value.bounds["truncation"] < 1e-12
    assert Population(CHECK, tolerance=1e-13).evaluate(CHECK_STATE).bound < 1e-13


@pytest.mark.parametrize("state", [CHECK_STATE, State(0.05, 2.0, -1.0), State(-0.2, 0.1, 0.3)])
def test_jacobian_is_the_derivative_of_the_gradient(state):
    population = Population(CHECK)
    step = 1e-6  # central differences: error about step^2 times a third derivative of order 1e4
    for column in range(3):
        shift = np.eye(3)[column] * step
        ahead = population.gradient(State(*(np.array(state) + shift)))
        behind = population.gradient(State(*(np.array(state) - shift)))
        numeric = np.subtract(ahead, behind) / (2 * step)
        within(population.jacobian(state)[:, column], numeric, 2e-8)


def test_hessian_is_symmetric():
    problem = Problem(D=64, C=4, q=2 / 64)
    expectation = Population(problem, "enumeration", tolerance=1e-6).expectation
    states = expectation.table(problem.initial_state).states
    hessian = hessian_sum(states, Constants.of(problem), 0.2, 0.5, -0.1)
    np.testing.assert_array_equal(hessian, hessian.T)


def test_compiled_equals_plain_python_bit_for_bit():
    problem = Problem(D=12, C=3, q=0.2, p=5, temperature=0.7)
    expectation = Population(problem, method="enumeration").expectation
    states = expectation.table(problem.initial_state).states
    arguments = (states, Constants.of(problem), 0.21, 0.4, -0.1)
    assert gradient_sum(*arguments) == gradient_sum.py_func(*arguments)


def test_cost_does_not_depend_on_D():
    problems = [Problem(D=D, C=4, q=2 / D, output_scale=1.0) for D in (10**4, 10**6)]
    tables = [
        Population(p, "enumeration", tolerance=1e-7).expectation.table(p.initial_state)
        for p in problems
    ]
    assert tables[1].n_states <= tables[0].n_states


def test_values_converge_as_D_grows_at_fixed_qD():
    """With kappa = D, alpha ~ D^(-1/3), nu ~ D^(-2/3), F converges in law with rate 1/D."""

    def loss(D):
        problem = Problem(D=D, C=4, q=2 / D, nu=0.01 * (64 / D) ** (2 / 3))
        state = State(0.3 * (64 / D) ** (1 / 3), 0.0, 0.0)
        return Population(problem, tolerance=1e-9).evaluate(state).loss

    small, middle, large = map(loss, (10**4, 10**5, 10**6))
    assert abs(large - middle) < 0.2 * abs(middle - small)


class TestTestError:
    def test_ties_at_the_uniform_start_are_counted_as_errors(self):
        """At beta = gamma = rho = 0 the sign of F is that of T, so P[F <= 0] = P[T <= 0]."""
        problem = Problem(D=16, C=2, q=0.4, beta=0.0)
        value = Population(problem).evaluate(problem.initial_state)
        law = np.ones(1)
        for _ in range(14):
            law = np.convolve(law, [0.2, 0.6, 0.2])
        totals = 2 + np.arange(-14, 15)
        assert value.test_error == pytest.approx(law[totals <= 0].sum(), abs=1e-13)
        assert value.ties == pytest.approx(law[totals == 0].sum(), abs=1e-13)

    def test_zero_alpha_gives_only_ties(self):
        value = Population(CHECK).evaluate(State(0.0, 0.3, 0.1))
        close(value.loss, math.log(2.0), rel=1e-14)
        assert value.test_error == pytest.approx(1.0, abs=1e-12)
        assert value.ties == pytest.approx(1.0, abs=1e-12)

    def test_negative_alpha_swaps_right_and_wrong_images(self):
        positive = Population(CHECK).evaluate(CHECK_STATE)
        negative = Population(CHECK).evaluate(CHECK_STATE._replace(alpha=-CHECK_STATE.alpha))
        expected = 1.0 - positive.test_error + positive.ties
        assert negative.test_error == pytest.approx(expected, abs=1e-12)


class TestSampling:
    def test_enumeration_lies_within_the_error_bars(self):
        """At most one of ten seeds may exceed three standard errors."""
        problem = Problem(D=64, C=4, q=2 / 64)
        state = State(0.1, 0.2, 0.0)
        exact = Population(problem, tolerance=1e-8).evaluate(state)
        misses = 0
        for seed in range(10):
            sampled = Population(problem, method="sampling", samples=20_000, seed=seed).evaluate(
                state
            )
            gap = np.abs(np.subtract(sampled.gradient, exact.gradient)).max()
            misses += max(gap, abs(sampled.loss - exact.loss)) > sampled.bound
            assert abs(sampled.test_error - exact.test_error) <= sampled.test_error_bound
        assert misses <= 1

    def test_error_falls_with_the_root_of_the_sample(self):
        problem = Problem(D=64, C=4, q=2 / 64)
        few, many = (
            Population(problem, method="sampling", samples=n).evaluate(problem.initial_state).bound
            for n in (5_000, 80_000)
        )
        close(few / many, 4.0, rel=0.3)

    def test_tolerance_determines_the_sample_size(self):
        problem = Problem(D=16, C=2, q=0.2)
        population = Population(problem, method="sampling", tolerance=0.02)
        value = population.evaluate(problem.initial_state)
        assert value.bound <= 0.02 * max(1.0, *map(abs, value.gradient))

    def test_equal_seeds_give_equal_values(self):
        problem = Problem(D=16, C=2, q=0.2)
        first, second, other = (
            Population(problem, method="sampling", samples=1000, seed=s).evaluate(State(0.1, 0, 0))
            for s in (3, 3, 4)
        )
        assert first == second
        assert first.loss != other.loss


class TestErrors:
    MANY_FEATURES = Problem(D=64, C=4, q=16 / 64)

    def test_enumeration_reports_the_bound_it_can_reach(self):
        with pytest.raises(ToleranceError, match="the certified bound is") as caught:
            Population(self.MANY_FEATURES, method="enumeration", tolerance=1e-6)
        assert caught.value.reachable > 1e-6
        assert "\n" not in str(caught.value)

    def test_sampling_reports_the_error_it_can_reach(self):
        with pytest.raises(ToleranceError, match="three standard errors are") as caught:
            Population(self.MANY_FEATURES, method="sampling", tolerance=1e-8)
        assert caught.value.reachable > 1e-8

    def test_tolerance_below_rounding_raises(self):
        with pytest.raises(ToleranceError, match="double precision"):
            Population(CHECK, tolerance=1e-17).evaluate(CHECK_STATE)

    def test_overflow_message_contains_the_state(self):
        with pytest.raises(OverflowError, match="alpha = 1e\\+200"):
            Population(CHECK).evaluate(State(1e200, 0.0, 0.0))

    @pytest.mark.parametrize(
        ("arguments", "name"),
        [
            ({"method": "magic"}, "method"),
            ({"tolerance": 0.0}, "tolerance"),
            ({"tolerance": math.nan}, "tolerance"),
            ({"samples": 3}, "samples"),
            ({"memory_budget": 10}, "memory_budget"),
        ],
    )
    def test_invalid_arguments_raise(self, arguments, name):
        with pytest.raises(ParameterError, match=f"^{name} = "):
            Population(CHECK, **arguments)

    def test_problem_of_another_type_raises(self):
        with pytest.raises(ParameterError, match="must be a Problem"):
            Population("problem")

    @pytest.mark.parametrize("state", [(1.0, 2.0), None, (math.nan, 0.0, 0.0), ("a", 0.0, 0.0)])
    def test_invalid_states_raise(self, state):
        with pytest.raises(ParameterError):
            Population(CHECK).evaluate(state)


class TestAuto:
    """Auto chooses the cheaper certified method, and sampling if both are out of reach."""

    HUGE = Problem(D=4096, C=64, q=0.5)

    def test_few_states_are_enumerated(self):
        population = Population(CHECK)
        assert population.method == "enumeration"
        assert "states" in population.reason

    def test_many_features_use_fourier(self):
        problem = Problem(D=64, C=4, q=16 / 64)
        population = Population(problem, tolerance=1e-6)
        assert population.method == "fourier"
        assert "ms a gradient" in population.reason
        value = population.evaluate(problem.initial_state)
        sampled = Population(problem, method="sampling").evaluate(problem.initial_state)
        assert abs(value.loss - sampled.loss) <= 2 * sampled.bound

    def test_sampling_warns_if_no_certified_method_is_affordable(self):
        with pytest.warns(AccuracyWarning, match="estimated by sampling"):
            population = Population(self.HUGE, memory_budget=2**24)
        assert population.method == "sampling"

    def test_unreachable_tolerance_raises(self):
        with pytest.raises(ToleranceError, match="cannot be certified"):
            Population(self.HUGE, tolerance=1e-6)

    def test_requested_method_is_used(self):
        population = Population(CHECK, method="fourier", tolerance=1e-8)
        assert population.method == "fourier"
        exact = Population(CHECK).evaluate(CHECK_STATE)
        assert abs(population.evaluate(CHECK_STATE).loss - exact.loss) <= 1e-8


def test_descent_by_fourier_equals_descent_by_enumeration():
    """The descent loop is compiled for enumeration only."""
    runs = [
        gradient_descent(Population(CHECK, method=m, tolerance=1e-10), learning_rate=0.02, steps=50)
        for m in ("fourier", "enumeration")
    ]
    within(runs[0].final, runs[1].final, 1e-9)


def test_largest_stable_learning_rate_is_two_over_the_curvature():
    population = Population(CHECK)
    eigenvalues = np.linalg.eigvals(population.jacobian(CHECK_STATE)).real
    expected = 2.0 / eigenvalues.max()
    close(population.largest_stable_learning_rate(CHECK_STATE), expected, rel=1e-12)


@pytest.mark.parametrize("method", ["enumeration", "fourier", "sampling"])
def test_pickle_contains_arguments_and_not_tables(method):
    population = Population(
        Problem(D=64, C=4, q=1 / 64), method, None if method == "sampling" else 1e-6
    )
    state = State(0.25, 0.3, -0.02)
    value = population.evaluate(state)
    pickled = pickle.dumps(population)
    assert len(pickled) < 2000
    copy = pickle.loads(pickled)
    assert (copy.method, copy.tolerance, copy.reason, copy.evaluations) == (
        population.method,
        population.tolerance,
        population.reason,
        1,
    )
    other = copy.evaluate(state)
    assert abs(other.loss - value.loss) <= (0.0 if method == "sampling" else value.bound)


def test_certified_loss_equals_loss_of_full_evaluation():
    for method in ("enumeration", "fourier"):
        population = Population(Problem(D=64, C=4, q=2 / 64), method, tolerance=1e-7)
        state = State(0.2, 0.6, -0.05)
        value, loss = population.evaluate(state), population.certified_loss(state)
        assert (loss.loss, loss.bound) == (value.loss, value.bound)


@pytest.mark.parametrize("q", [5e-324, 1e-300, 1e-200, 1e-30])
def test_sampling_with_negligible_feature_probability(q):
    """All sampled images contain only the signal set."""
    problem = Problem(D=12, C=3, q=q)
    state = State(0.2, 0.1, 0.0)
    estimate = Population(problem, "sampling", samples=1000).evaluate(state)
    exact = Population(problem, "enumeration", 1e-10).evaluate(state)
    assert abs(estimate.loss - exact.loss) <= estimate.bound + exact.bound
    assert estimate.bound < 0.5
