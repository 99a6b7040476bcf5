"""Gradient descent and gradient flow.

Tested are the start, fixed points, restarts, and the order in the learning rate. References: the
full-matrix oracle and, for the flow, descent with small learning rates.
"""

import math

import numpy as np
import pytest

from dynamics import (
    Interrupted,
    ParameterError,
    Population,
    Problem,
    SlowManifold,
    State,
    Status,
    gradient_descent,
    gradient_flow,
)
from dynamics.core import integrate
from dynamics.positional.oracle import descent as full
from tests.closeness import close, within

SMALL = Problem(D=8, C=2, q=0.3, p=3, nu=0.01, beta=1.0, temperature=1.3)
NAMED = Problem(D=64, C=4, q=2 / 64)


@pytest.fixture(scope="module")
def small():
    return Population(SMALL)


@pytest.fixture(scope="module")
def named():
    return Population(NAMED, tolerance=1e-7)


def full_setup(problem, state):
    w_star = np.linspace(1.0, 2.0, problem.dimension)
    w_star /= np.linalg.norm(w_star)
    return (*full.embed(problem, state, w_star), w_star)


class TestFullMatrix:
    PROBLEMS = (
        Problem(D=8, C=2, q=0.3, p=5, nu=0.05, beta=1.0),
        Problem(D=9, C=3, q=0.4, p=3, nu=0.01, beta=0.7),
        Problem(D=8, C=2, q=0.3, p=3, nu=0.01, beta=1.0, temperature=1.3, output_scale=3.0),
    )

    @pytest.mark.slow
    @pytest.mark.parametrize("problem", PROBLEMS)
    def test_descent_agrees_over_1000_steps(self, problem):
        """Both run in double precision: 1,000 steps leave a difference below 1e-11."""
        learning_rate = 0.02
        A, v, w_star = full_setup(problem, problem.initial_state)
        oracle = full.gradient_descent(
            problem, A, v, w_star, learning_rate=learning_rate, steps=1000, record_every=10
        )
        reduced = gradient_descent(
            Population(problem, tolerance=1e-13),
            learning_rate=learning_rate,
            steps=1000,
            record="linear",
            records=101,
        )
        close(reduced.time, oracle.time, rel=1e-14)
        states = np.array(oracle.states())
        assert np.max(np.abs(states - reduced.states)) <= 1e-11
        assert np.ptp(states[:, 0]) > 0.05  # something was learned: the agreement is not trivial

    def test_projection_commutes_with_a_step(self, small):
        """project(one full step of (A, v)) = one reduced step of project(A, v), without leakage."""
        state, rate = State(0.37, 0.2, -0.03), 0.1
        A, v, w_star = full_setup(SMALL, state)
        _, dA, dv = full.population_gradient(SMALL, A, v, w_star)
        after = full.project(SMALL, A - rate * dA, v - rate * dv, w_star)
        reduced = gradient_descent(small, learning_rate=rate, steps=1, initial=state).final
        within(after, reduced, 1e-15)
        back, v_back = full.embed(SMALL, after, w_star)
        within(A - rate * dA, back, 1e-15)
        within(v - rate * dv, v_back, 1e-15)


class TestDescent:
    def test_first_record_is_the_start(self, small):
        run = gradient_descent(small, learning_rate=0.01, steps=10)
        assert State(*run.states[0]) == SMALL.initial_state
        assert run.time[0] == 0.0
        close(run.time[-1], 0.1, rel=1e-12)

    def test_step_is_minus_learning_rate_times_entrywise_gradient(self, small):
        value = small.evaluate(SMALL.initial_state)
        run = gradient_descent(small, learning_rate=0.5, steps=1)
        expected = np.subtract(SMALL.initial_state, 0.5 * np.array(value.gradient))
        close(run.final, expected, rel=2e-15)  # its sums round in their own order

    def test_restarted_descent_is_identical(self, small):
        whole = gradient_descent(small, learning_rate=0.02, steps=700)
        half = gradient_descent(small, learning_rate=0.02, steps=300)
        rest = gradient_descent(small, learning_rate=0.02, steps=400, initial=half.final)
        assert rest.final == whole.final

    def test_schedule_does_not_change_the_trajectory(self, small):
        runs = [
            gradient_descent(small, learning_rate=0.02, steps=500, record=r, records=n)
            for r, n in (("log", 20), ("linear", 501))
        ]
        assert runs[0].final == runs[1].final
        assert runs[1].time.size == 501

    def test_attention_is_constant_at_alpha_zero(self, small):
        """At alpha = 0 every O is 0, so that the gradient in gamma and rho vanishes."""
        gradient = small.gradient(State(0.0, 0.3, -0.2))
        assert gradient.gamma == gradient.rho == 0.0
        assert gradient.alpha < 0.0

    def test_divergence_reports_step_and_largest_stable_rate(self, named):
        run = gradient_descent(named, learning_rate=5.0, steps=1000)
        assert run.status is Status.DIVERGED
        assert "lower the learning rate" in run.message
        assert "at step" in run.message
        assert "largest stable one" in run.message
        assert np.isfinite(run.loss).all()
        assert "\n" not in run.message

    def test_descent_is_unstable_above_the_stable_rate(self, named):
        """Descent converges to the quasi-steady state below 2 / curvature there, and not above."""
        manifold = SlowManifold(named)
        start = State(manifold.alpha(0.0, 0.0), 0.0, 0.0)
        stable = named.largest_stable_learning_rate(start)
        nudged = start._replace(alpha=start.alpha * 1.0001)
        below = gradient_descent(named, learning_rate=0.9 * stable, steps=60, initial=nudged)
        above = gradient_descent(named, learning_rate=1.2 * stable, steps=60, initial=nudged)
        assert abs(below.final.alpha / start.alpha - 1.0) < 1e-3
        assert abs(above.final.alpha / start.alpha - 1.0) > 1e-2

    def test_rising_loss_is_reported(self):
        """Far above the stable rate some trajectories remain finite while their loss rises."""
        population = Population(Problem(D=16, C=4, q=2 / 16), tolerance=1e-7)
        run = gradient_descent(population, learning_rate=1.0, steps=1000)
        assert run.status is Status.UNSTABLE
        assert run.violations()["loss non-increasing"] > 1.0
        assert "largest stable one" in run.message

    def test_overflow_at_the_start_is_a_status(self, small):
        run = gradient_descent(small, learning_rate=0.1, steps=5, initial=State(1e200, 0.0, 0.0))
        assert run.status is Status.OVERFLOW
        assert run.time.size == 0

    def test_ctrl_c_returns_the_completed_records(self, small):
        def stop(fraction):
            if fraction > 0.3:
                raise KeyboardInterrupt

        with pytest.raises(Interrupted) as caught:
            gradient_descent(small, learning_rate=0.02, steps=300_000, progress=stop)
        run = caught.value.trajectory
        assert run.status is Status.INTERRUPTED
        assert run.time.size > 10
        assert isinstance(caught.value, KeyboardInterrupt)

    @pytest.mark.parametrize(
        ("arguments", "name"),
        [
            ({"learning_rate": 0.0}, "learning_rate"),
            ({"learning_rate": -1.0}, "learning_rate"),
            ({"learning_rate": math.nan}, "learning_rate"),
            ({"steps": 0}, "steps"),
            ({"steps": 1.5}, "steps"),
            ({"record": "all"}, "record"),
            ({"records": 1}, "records"),
            ({"initial": State(math.nan, 0.0, 0.0)}, "alpha"),
            ({"initial": State(0.1, math.inf, 0.0)}, "gamma"),
        ],
    )
    def test_invalid_arguments_raise(self, small, arguments, name):
        with pytest.raises(ParameterError, match=f"^{name} = "):
            gradient_descent(small, **{"learning_rate": 0.1, "steps": 3, **arguments})


class TestFlow:
    def test_restarted_flow_has_the_same_end(self, small):
        """The difference is at most the error of the solver."""
        whole = gradient_flow(small, horizon=100.0, rtol=1e-10, atol=1e-13)
        half = gradient_flow(small, horizon=40.0, rtol=1e-10, atol=1e-13)
        rest = gradient_flow(small, horizon=60.0, initial=half.final, rtol=1e-10, atol=1e-13)
        within(rest.final, whole.final, 1e-8)

    def test_descent_converges_to_the_flow_at_first_order(self, small):
        horizon, start = 2.0, State(0.2, 0.0, 0.0)
        exact = np.array(
            gradient_flow(small, horizon=horizon, initial=start, rtol=1e-11, atol=1e-13).final
        )
        steps = np.array([200, 400, 800, 1600])
        errors = [
            np.abs(
                np.subtract(
                    gradient_descent(
                        small, learning_rate=horizon / n, steps=n, initial=start
                    ).final,
                    exact,
                )
            ).max()
            for n in steps.tolist()
        ]
        slope = np.polyfit(np.log(horizon / steps), np.log(errors), 1)[0]
        assert slope == pytest.approx(1.0, abs=0.05)

    @pytest.mark.parametrize("method", ["BDF", "Radau"])
    def test_integration_methods_agree(self, small, method):
        reference = gradient_flow(small, horizon=1e4, method="LSODA", rtol=1e-10, atol=1e-13)
        other = gradient_flow(small, horizon=1e4, method=method, rtol=1e-9, atol=1e-12)
        close(other.final, reference.final, rel=2e-6)

    def test_flow_at_time_1e5_has_known_values(self, named):
        """D=64, C=4, qD=2; digits confirmed with tolerances 1e-7 to 1e-12."""
        run = gradient_flow(named, horizon=1e5)
        assert run.status is Status.COMPLETED
        assert run.final.alpha == pytest.approx(0.108527, abs=2e-6)
        assert run.final.gamma == pytest.approx(1.54811, abs=2e-5)
        assert run.final.rho == pytest.approx(-0.100742, abs=2e-6)
        close(run.loss[-1], 1.8925e-4, rel=1e-4)
        assert run.attention[0, 3] == pytest.approx(5.5688, abs=1e-4)
        assert run.attention[-1, 3] == pytest.approx(15.1509, abs=1e-3)
        assert run.stats["evaluations"] < 2000

    def test_dense_output_equals_a_shorter_trajectory(self, small):
        long = gradient_flow(small, horizon=1000.0, rtol=1e-9)
        short = gradient_flow(small, horizon=37.0, rtol=1e-9)
        close(long.at(37.0), short.final, rel=1e-6)
        assert long.at(0.0) == SMALL.initial_state

    def test_overflow_is_a_status(self, small):
        run = gradient_flow(small, horizon=1.0, initial=State(1e160, 0.0, 0.0))
        assert run.status is Status.OVERFLOW
        assert np.isfinite(run.states).all()

    def test_loss_of_accuracy_is_a_status(self):
        population = Population(NAMED, "enumeration", tolerance=1e-6, memory_budget=2**23)
        run = gradient_flow(population, horizon=10.0, initial=State(30.0, 0.0, 0.0))
        assert run.status is Status.INACCURATE
        assert "memory budget" in run.message

    def test_ctrl_c_returns_the_completed_records(self, small):
        calls = []

        def stop(fraction):
            calls.append(fraction)
            if len(calls) == 5:
                raise KeyboardInterrupt

        with pytest.raises(Interrupted) as caught:
            gradient_flow(small, horizon=1e6, progress=stop)
        assert caught.value.trajectory.time.size == 6

    @pytest.mark.parametrize(
        ("arguments", "name"),
        [
            ({"horizon": 0.0}, "horizon"),
            ({"horizon": -1.0}, "horizon"),
            ({"horizon": math.inf}, "horizon"),
            ({"method": "Euler"}, "method"),
            ({"rtol": 0.0}, "rtol"),
            ({"atol": 0.0}, "atol"),
            ({"initial": State(0.1, 0.0, math.nan)}, "rho"),
        ],
    )
    def test_invalid_arguments_raise(self, small, arguments, name):
        with pytest.raises(ParameterError, match=f"^{name} = "):
            gradient_flow(small, **{"horizon": 1.0, **arguments})


class TestSlowManifold:
    def test_slope_vanishes_on_the_manifold(self, named):
        manifold = SlowManifold(named)
        alpha = manifold.alpha(0.5, -0.1)
        gradient = named.gradient(State(alpha, 0.5, -0.1))
        curvature = manifold.velocity(0.5, -0.1).curvature
        assert abs(gradient.alpha) < 1e-9 * curvature

    def test_manifold_is_attracting(self, named):
        manifold = SlowManifold(named)
        start = State(2.0 * manifold.alpha(0.0, 0.0), 0.0, 0.0)
        forgotten = 10.0 / manifold.velocity(0.0, 0.0).curvature  # negative if it repels
        run = gradient_flow(named, horizon=forgotten, initial=start)
        close(run.final.alpha, manifold.alpha(0.0, 0.0), rel=1e-3)

    def test_drift_is_the_velocity_of_alpha_star(self, small):
        manifold = SlowManifold(small)
        drift = manifold.velocity(0.4, -0.1)
        step = 1e-4
        ahead = manifold.alpha(0.4 + step * drift.gamma, -0.1 + step * drift.rho)
        behind = manifold.alpha(0.4 - step * drift.gamma, -0.1 - step * drift.rho)
        close(drift.alpha, (ahead - behind) / (2 * step), rel=1e-4)

    def test_flow_on_the_manifold_approximates_the_full_flow(self, small):
        """The error is the ratio of time scales, below 1e-4 after alpha has relaxed."""
        plane = SlowManifold(small).flow(1e4)
        whole = gradient_flow(small, horizon=1e4)
        close(plane.final, whole.final, rel=2e-4)

    def test_jacobian_on_the_manifold_equals_differences(self, small):
        manifold = SlowManifold(small)
        state = State(manifold.alpha(0.4, -0.1), 0.4, -0.1)
        numeric = np.empty((2, 2))
        for column, shift in enumerate(np.eye(2) * 1e-5):
            ahead = manifold.velocity(0.4 + shift[0], -0.1 + shift[1])
            behind = manifold.velocity(0.4 - shift[0], -0.1 - shift[1])
            numeric[:, column] = np.subtract(ahead[1:3], behind[1:3]) / 2e-5
        np.testing.assert_allclose(manifold.jacobian(state), numeric, rtol=1e-5, atol=1e-9)

    def test_missing_quasi_steady_value_raises(self):
        """For tiny q the smallest error is so low that alpha grows without limit."""
        population = Population(Problem(D=8, C=4, q=1e-9), tolerance=1e-6)
        with pytest.raises(ArithmeticError, match="no quasi-steady alpha"):
            SlowManifold(population).alpha(0.0, 0.0)


def test_stalled_integration_ends_with_a_status(monkeypatch):
    population = Population(Problem(D=8, C=2, q=0.25), tolerance=1e-6)
    monkeypatch.setattr(integrate, "_MOST_STEPS", 5)
    run = gradient_flow(population, horizon=1e3)
    assert run.status is Status.STALLED
    assert "5 steps" in run.message
    assert 2 <= run.time.size <= 7


@pytest.mark.parametrize("horizon", [1e-31, 1e101, 0.0, -1.0])
def test_huge_horizons_end_with_a_status(horizon):
    population = Population(Problem(D=8, C=2, q=0.25), tolerance=1e-6)
    with pytest.raises(ParameterError, match=r"horizon .* must be between 1e-30 and 1e100"):
        gradient_flow(population, horizon=horizon)
