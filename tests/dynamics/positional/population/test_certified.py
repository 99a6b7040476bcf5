"""Certified bounds of the enumeration hold for all problems and states.

References: exact evaluation in Arb balls (``ball_reference``), and a 30-digit check value.
"""

import pickle

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dynamics import (
    Population,
    Problem,
    State,
    Status,
    ToleranceError,
    gradient_descent,
    gradient_flow,
)
from tests.closeness import close
from tests.dynamics.positional.ball_reference import contains, reference
from tests.dynamics.positional.bound_cases import Case, draw, outside

CHECK = Problem(D=8, C=2, q=0.3, p=3, nu=0.01, beta=1.0, temperature=1.3)
CHECK_STATE = State(0.37, 0.2, -0.03)
TINY_ALPHA = State(1e-10, 0.2, -0.03)
FAINT = [  # cases with |F| below its rounding error
    (Problem(D=8, C=2, q=0.5), TINY_ALPHA),
    (Problem(D=10, C=2, q=0.5187, p=5, nu=1e-15, beta=0, temperature=58), TINY_ALPHA),
    (Problem(D=9, C=3, q=0.5, p=9, nu=10, beta=0, output_scale=71.2), TINY_ALPHA),
]


def test_ball_reference_contains_the_check_value():
    """The check value has 15 digits, from 30-digit arithmetic over all 3^6 patterns."""
    exact = reference(CHECK, CHECK_STATE)
    assert contains(exact.loss, 0.19523298425368842, 1e-15)
    assert not contains(exact.loss, 0.195232984253698, 1e-15)
    for ball, number in zip(
        exact.gradient, (-0.23712811189972516, -0.003931929555507072, 0.001489724841890816)
    ):
        assert contains(ball, number, 4e-15 * abs(number))


@pytest.mark.parametrize(("problem", "state"), FAINT)
def test_test_error_for_F_below_its_rounding_error(problem, state):
    value = Population(problem, "enumeration", 1e-8).evaluate(state)
    exact = reference(problem, state)
    assert contains(exact.test_error, value.test_error, value.test_error_bound)
    assert contains(exact.ties, value.ties, value.ties_bound)
    assert value.test_error_bound < 1e-9


def test_test_error_at_tiny_alpha():
    value = Population(FAINT[0][0], "enumeration").evaluate(TINY_ALPHA)
    assert value.test_error == pytest.approx(0.123535, abs=1e-6)
    assert value.ties == pytest.approx(0.050537, abs=1e-6)


@pytest.mark.slow
@settings(max_examples=100)
@given(rng=st.randoms(use_true_random=False))
def test_all_values_are_within_their_bounds(rng):
    case = draw(rng)
    try:
        failures = list(outside(case, "enumeration"))
    except (ToleranceError, OverflowError):
        assume(False)
    assert not failures


@pytest.mark.parametrize(
    "case",
    [
        # nearly opposite differences of weights: the leading integer vanishes
        Case(
            Problem(D=10, C=2, q=0.525, p=5, nu=1e-300, beta=-6.99, temperature=0.1194),
            State(4.21e-10, 9.385, 0.5), 0.01, False,
        ),
        Case(Problem(D=6, C=2, q=0.3, p=5, nu=8.2, beta=-1e3, temperature=0.55),
             State(1.5e-11, 27.3, 0.0), 0.01, False),
        Case(Problem(D=6, C=3, q=0.7, p=9, nu=1e-15, beta=1e3, temperature=0.0357,
                     output_scale=71.2), State(0.0233, -0.876, 2.256), 0.01, False),
        Case(Problem(D=9, C=3, q=1 - 1e-14, p=21, beta=0.0, temperature=0.5),
             State(-0.3, 0.2, 0.0), 0.01, False),
        Case(Problem(D=10, C=5, q=1e-12, p=7), State(0.1, 0.2, 0.0), 1e-3, True),
    ],
)  # fmt: skip
def test_corner_cases_are_within_their_bounds(case):
    assert not list(outside(case, "enumeration"))


def test_contains_rejects_a_value_shifted_by_two_bounds():
    """The check itself can fail."""
    value = Population(CHECK, "enumeration", 1e-10).evaluate(CHECK_STATE)
    exact = reference(CHECK, CHECK_STATE)
    assert contains(exact.loss, value.loss, value.loss_bound)
    assert not contains(exact.loss, value.loss + 2.0 * value.loss_bound, value.loss_bound)


class TestRelative:
    """Tolerances relative to the loss and to each gradient entry."""

    LATE = Problem(D=8, C=2, q=1e-4, p=3)

    @pytest.mark.parametrize("alpha", [0.3, 0.6, 1.0])
    def test_small_values_are_relatively_accurate(self, alpha):
        state = State(alpha, 2.0, -0.5)
        value = Population(self.LATE, "enumeration", 1e-6, relative=True).evaluate(state)
        exact = reference(self.LATE, state)
        assert value.loss < 1e-4
        for ball, number, bound in zip(
            (exact.loss, *exact.gradient),
            (value.loss, *value.gradient),
            (value.loss_bound, *value.gradient_bound),
        ):
            assert contains(ball, number, bound)
            assert bound <= 1e-6 * abs(number)

    def test_loss_of_1e_12_is_relatively_accurate(self):
        problem = Problem(D=8, C=2, q=1e-12, p=3)
        value = Population(problem, "enumeration", 1e-8, relative=True).evaluate(State(2, 2, -0.5))
        assert 0.0 < value.loss < 1e-11
        assert value.loss_bound <= 1e-8 * value.loss

    def test_absolute_tolerance_is_not_relatively_accurate(self):
        value = Population(self.LATE, "enumeration", 1e-6).evaluate(State(0.6, 2.0, -0.5))
        assert value.loss_bound > 1e-6 * value.loss

    @pytest.mark.parametrize("state", [State(0.0, 0.3, 0.1), State(0.2, 0.0, 0.0)])
    def test_entries_that_vanish_by_symmetry_raise_no_error(self, state):
        problem = CHECK.replace(beta=0.0) if state.alpha else CHECK
        value = Population(problem, relative=True).evaluate(state)
        assert value.gradient.gamma == value.gradient.rho == 0.0
        assert value.gradient_bound.gamma == value.gradient_bound.rho == 0.0

    def test_tolerance_below_rounding_raises(self):
        with pytest.raises(ToleranceError, match="relative tolerance = 1e-16 is out of reach"):
            Population(CHECK, "enumeration", 1e-16, relative=True).evaluate(CHECK_STATE)

    def test_descent_and_flow_complete(self):
        relative = Population(CHECK, "enumeration", 1e-8, relative=True)
        absolute = Population(CHECK, "enumeration", 1e-12)
        runs = [gradient_descent(p, learning_rate=0.05, steps=400) for p in (relative, absolute)]
        assert [run.status for run in runs] == [Status.COMPLETED] * 2
        close(runs[0].final, runs[1].final, rel=1e-6)
        assert np.all(runs[0].bound <= 1e-3)
        flow = gradient_flow(relative, horizon=1e4)
        assert flow.status is Status.COMPLETED

    def test_pickle_preserves_the_relative_tolerance(self):
        population = Population(CHECK, "enumeration", 1e-8, relative=True)
        copy = pickle.loads(pickle.dumps(population))
        assert (copy.relative, copy.tolerance) == (True, 1e-8)
        assert copy.evaluate(CHECK_STATE) == population.evaluate(CHECK_STATE)

    def test_sampling_rejects_a_relative_tolerance(self):
        with pytest.raises(ValueError, match="relative = True"):
            Population(CHECK, "sampling", relative=True)


class TestRareEvents:
    """Sampling of a loss that is dominated by images with a probability of 1e-7."""

    RARE = Problem(
        D=15,
        C=5,
        q=0.05996878133272957,
        p=7,
        nu=0.01764837251930165,
        beta=3.967741590931773,
        temperature=0.11490915843281181,
    )
    STATE = State(0.6576994214281153, -1.3856778636217082, -1.8843211179301815)

    def test_exact_value_is_within_the_error_bar(self):
        exact = Population(self.RARE, "enumeration", 1e-6).evaluate(self.STATE)
        assert exact.loss == pytest.approx(1.12606, abs=1e-5)
        for seed in range(8):
            value = Population(self.RARE, "sampling", samples=20_000, seed=seed).evaluate(
                self.STATE
            )
            assert abs(value.loss - exact.loss) <= value.loss_bound < 0.5 * exact.loss
            assert abs(value.test_error - exact.test_error) <= value.test_error_bound
            gap = np.abs(np.subtract(value.gradient, exact.gradient))
            assert np.all(gap <= value.gradient_bound)

    def test_bound_is_finite_if_squares_overflow(self):
        problem = Problem(D=128, C=8, q=1 - 1e-16, p=5, beta=-700, output_scale=1.4e52)
        population = Population(problem, "sampling", samples=1000)
        value = population.evaluate(problem.initial_state)
        assert 0.1 < value.loss_bound / value.loss < 1.0
        assert value.loss > 1e250
