"""Stall detection and restarts of the integrator."""

import numpy as np
import pytest

from dynamics import Population, Problem
from dynamics.core.errors import ToleranceError
from dynamics.core.integrate import _MOST_FAILURES, _MOST_STEPS, _stall_reason, integrate
from dynamics.core.trajectory import Status


def path(velocity, start, horizon, seconds):
    """Integrate with LSODA and the default tolerances."""
    return integrate(
        velocity,
        None,
        np.array(start, float),
        horizon,
        method="LSODA",
        rtol=1e-8,
        atol=1e-11,
        seconds=seconds,
    )


def noisy(y):
    """Return a velocity with noise that no step resolves, like an inaccurate expectation."""
    return np.array([1.0, 1e3 * np.sin(1e9 * y[0])])


@pytest.mark.parametrize(
    ("seconds", "horizon", "steps"),
    [(1.0, 1e25, 750), (1.0, 1e40, 256), (5e-4, 1e25, 2000), (5e-4, 1e40, 2000),
     pytest.param(0.0, 1e25, 20_000, marks=pytest.mark.slow)],
)  # fmt: skip
def test_stalled_flow_ends_early(seconds, horizon, steps):
    result = path(noisy, [0.0, 0.0], horizon, seconds)
    assert result.status is Status.STALLED
    assert f"after {steps} steps, it would need" in result.message
    assert result.stats["steps"] == steps
    assert result.times[-1] < 1e-3


@pytest.mark.slow
def test_slow_phase_is_not_a_stall():
    """Flows at D = 10^6 take 500 equal steps while 1e6 more are predicted, and still arrive."""
    assert f"{_MOST_STEPS} steps" in path(noisy, [0.0, 0.0], 1e6, 1.0).message


def test_jump_below_the_resolution_of_time_is_not_a_stall():
    """At a time of 2.6e17 floats are 32 apart, and alpha jumps within a shorter time."""
    assert _stall_reason([2.6e17] * 601, 3e17, 300, expensive=True) is None
    assert _stall_reason([2.6e17] * 601, 1e60, 300, expensive=True) is not None


@pytest.mark.slow
def test_equal_steps_are_not_a_stall():
    result = path(lambda y: np.array([y[1], -y[0]]), [0.0, 1.0], 1e3, 1.0)
    assert result.status is Status.COMPLETED
    assert result.stats["steps"] > 4000
    assert abs(result.points[-1][0] - np.sin(1e3)) < 1e-4


@pytest.mark.slow
@pytest.mark.traced
def test_occasional_failures_of_trial_steps_do_not_end_the_run():
    """Three consecutive failures, at times far apart."""
    calls = []

    def turning(y):
        calls.append(y)
        if len(calls) % 2500 in (0, 1, 2):
            raise ToleranceError("here and there")
        return np.array([y[1], -y[0]])

    result = path(turning, [0.0, 1.0], 1e3, 0.0)
    assert result.status is Status.COMPLETED
    assert result.stats["restarts"] > 2 * _MOST_FAILURES
    for time in (3.0, 500.1, 977.7, 1e3):  # the dense output, after restarts too
        assert abs(result.at(time)[0] - np.sin(time)) < 1e-4


def test_repeated_failures_of_trial_steps_end_the_run():
    def defined_below_half(y):
        if y[0] > 0.5:
            raise ToleranceError("not defined here")
        return np.array([1.0])

    result = path(defined_below_half, [0.0], 1e3, 0.0)
    assert result.status is Status.INACCURATE
    assert result.message == "not defined here"
    assert result.stats["restarts"] <= 2 * _MOST_FAILURES
    assert 0.4 < result.times[-1] <= 0.5


@pytest.mark.slow
def test_cost_of_gradients_is_predicted_for_every_method():
    problem = Problem(D=62, C=2, q=1 / 31)
    methods = {name: Population(problem, name, 1e-6) for name in ("enumeration", "fourier")}
    methods["sampling"] = Population(problem, "sampling", samples=100_000)
    for population in methods.values():
        assert 1e-5 < population.predicted_seconds < 1e-2
