"""The Fourier expectation compared with a plain reference, enumeration and sampling."""

import time
from functools import partial

import numpy as np
import pytest

from dynamics import Population, Problem, State
from dynamics.positional.population.expectation import risk_sums
from dynamics.positional.population.fourier import FourierExpectation, predicted_cost
from tests.benchmarks.naive_fourier import naive_fourier
from tests.closeness import close, within

EARLY = State(0.05, 1.0, -0.06)
LATE = State(0.0215, 12.1, -0.744)
FEW = Problem(D=64, C=4, q=2 / 64)
CROWDED = Problem(D=64, C=4, q=16 / 64)


def assert_equal_to_reference(problem, state, tolerance):
    """Check that loss, mean sigmoid and derivatives agree, the latter relative to E[s(-F) |dF|]."""
    value = FourierExpectation(problem, tolerance).evaluate(state)
    naive = naive_fourier(problem, state, tolerance)
    assert value.loss == pytest.approx(naive.loss, rel=1e-9, abs=1e-9)
    assert value.mean_sigmoid == pytest.approx(naive.mean_sigmoid, rel=1e-9, abs=1e-9)
    error = np.abs(np.array(value.derivatives) - naive.derivatives)
    # 1e-9: well above the tolerance 1e-10 of both, far below the effect of a wrong term
    assert np.all(error <= 1e-9 * np.maximum(1e-6, value.magnitude[1:4]))


class TestReferenceImplementation:
    """The reference has no shifted lines, tilting, pruning or bounds."""

    @pytest.mark.parametrize(
        ("problem", "state"),
        [
            (Problem(D=16, C=2, q=0.4), State(0.2, 0.3, -0.1)),
            (Problem(D=24, C=4, q=0.5), State(0.1, 0.5, -0.05)),
            (Problem(D=30, C=3, q=0.2, p=5, nu=0.05, temperature=1.4), State(0.15, 1.0, 0.2)),
            (FEW, EARLY),
            (CROWDED, EARLY),
            (CROWDED, LATE),
            (CROWDED, State(0.1, 0.0, 0.0)),
            (CROWDED, State(0.06, -0.5, 0.3)),
        ],
        ids=str,
    )
    def test_values_agree_to_nine_digits(self, problem, state):
        assert_equal_to_reference(problem, state, 1e-10)

    @pytest.mark.slow
    def test_values_agree_at_1024_patches(self):
        assert_equal_to_reference(
            Problem(D=1024, C=4, q=16 / 1024), State(0.0206, 0.5, -0.01), 1e-10
        )

    def test_reference_has_the_check_value(self):
        problem = Problem(D=8, C=2, q=0.3, p=3, nu=0.01, beta=1.0, temperature=1.3)
        naive = naive_fourier(problem, State(0.37, 0.2, -0.03), 1e-13)
        assert naive.loss == pytest.approx(0.19523298425368842, abs=2e-14)
        expected = (-0.23712811189972516, -0.003931929555507072, 0.001489724841890816)
        close(naive.derivatives / problem.multiplicity, expected, rel=1e-11)

    @pytest.mark.parametrize("state", [EARLY, State(0.1, 0.0, 0.0)], ids=str)
    def test_reference_agrees_with_enumeration(self, state):
        exact = Population(FEW, "enumeration", 1e-11).evaluate(state)
        naive = naive_fourier(FEW, state, 1e-11)
        assert naive.loss == pytest.approx(exact.loss, abs=1e-10)
        within(naive.derivatives / FEW.multiplicity, exact.gradient, 1e-10)


class TestEnumeration:
    @pytest.mark.parametrize(
        "state",
        [
            State(0.1, 0.0, 0.0),
            EARLY,
            State(0.12, 0.8, -0.08),
            pytest.param(State(0.0398, 3.45, -0.217), marks=pytest.mark.slow),
        ],
        ids=str,
    )
    def test_values_agree_with_enumeration(self, state):
        exact = Population(FEW, "enumeration", 1e-11).evaluate(state)
        value = FourierExpectation(FEW, 1e-11).evaluate(state)
        assert value.loss == pytest.approx(exact.loss, abs=1e-10)
        within(value.gradient, exact.gradient, 1e-10)
        assert abs(value.loss - exact.loss) <= value.loss_bound + exact.bound
        allowed = np.array(value.gradient_bound) + exact.bound
        assert np.all(np.abs(np.subtract(value.gradient, exact.gradient)) <= allowed)
        assert abs(value.test_error - exact.test_error) <= (
            value.test_error_bound + exact.test_error_bound + 1e-12
        )
        assert abs(value.ties - exact.ties) <= (
            value.test_error_bound + exact.test_error_bound + 1e-12
        )


class TestSampling:
    """Samples of the library; `test_fourier` generates its own."""

    @pytest.mark.parametrize("qD", [16, pytest.param(32, marks=pytest.mark.slow)])
    @pytest.mark.parametrize("state", [State(0.1, 0.0, 0.0), EARLY, LATE], ids=str)
    def test_values_are_within_error_bars_of_samples(self, qD, state):
        problem = Problem(D=64, C=4, q=qD / 64)
        value = FourierExpectation(problem, 1e-9).evaluate(state)
        population = Population(problem, "sampling", samples=200_000, seed=qD)
        sampled = population.evaluate(state)
        sample = population.expectation
        sums = risk_sums(sample.states, sample.constants, *state)[0]
        exact = np.array([value.loss, value.mean_sigmoid, *value.derivatives])
        # five standard errors each: 30 comparisons, false alarm about 2e-5
        assert np.all(np.abs(sums[0] - exact) <= 5 * sums[1] + 1e-8)
        allowed = 2 * sampled.test_error_bound + value.test_error_bound  # the first: six deviations
        assert abs(sampled.test_error - value.test_error) <= allowed


class TestGrowthInD:
    """At fixed qD = 16 with alpha of order D^(-1/3) and nu of order D^(-2/3).

    There F = sum_i O_i^3 + nu sum_i O_i with O = D alpha c, c of order 1/D, stays of order one, and
    so does each of its terms: the expectation has a limit, which it approaches like 1/D.
    """

    SIZES = (10**3, 10**4, 10**5, 10**6)

    @staticmethod
    def at(D):
        problem = Problem(D=D, C=4, q=16 / D, nu=D ** (-2 / 3))
        return problem, State(0.2 * D ** (-1 / 3), 0.5, 0.0)

    def test_values_converge_as_D_grows(self):
        rows = []
        for D in self.SIZES:
            problem, state = self.at(D)
            value = FourierExpectation(problem, 1e-10).evaluate(state)
            # alpha d ell / d alpha has a limit, the derivatives in gamma and rho vanish like it
            rows.append([value.loss, value.mean_sigmoid, state.alpha * value.derivatives.alpha])
        steps = np.abs(np.diff(rows, axis=0))
        assert np.all(steps[2] < 0.2 * steps[1])
        assert np.all(steps[1] < 0.2 * steps[0])

    def test_time_does_not_grow_with_D(self):
        """A cost of order D grows by a factor of 1000; the factor 4 allows for a busy machine."""
        times = self.seconds([self.at(D) for D in (self.SIZES[0], self.SIZES[-1])])
        assert times[1] < 4 * times[0]
        costs = [predicted_cost(self.at(D)[0], 1e-8) for D in self.SIZES]
        assert max(costs) < 2 * min(costs)

    @staticmethod
    def seconds(cases):
        """Return the shortest of thirty gradients of each case, in turn after a first one."""
        gradients = [partial(FourierExpectation(x, 1e-8).gradient, state) for x, state in cases]
        times = [[] for _ in cases]
        for _ in range(31):
            for gradient, taken in zip(gradients, times):
                start = time.process_time()  # what other processes take does not count
                gradient()
                taken.append(time.process_time() - start)
        return [min(taken[1:]) for taken in times]
