"""When a flow gets nowhere: told by its steps, long before the most that a run may take."""

import numpy as np
import pytest

from dynamics import Population, Problem
from dynamics.core.errors import ToleranceError
from dynamics.core.integrate import _MOST_FAILURES, _MOST_STEPS, _creeps, integrate
from dynamics.core.trajectory import Status


def path(velocity, start, horizon, seconds):
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
    """A velocity that no step resolves, as where an expectation is known to its tolerance only."""
    return np.array([1.0, 1e3 * np.sin(1e9 * y[0])])


@pytest.mark.parametrize(
    ("seconds", "horizon", "steps"),
    [(1.0, 1e25, 750), (1.0, 1e40, 256), (5e-4, 1e25, 2000), (5e-4, 1e40, 2000),
     (0.0, 1e25, 20_000)],
)  # fmt: skip
def test_a_flow_that_creeps_is_told_by_its_pace(seconds, horizon, steps):
    found = path(noisy, [0.0, 0.0], horizon, seconds)
    assert found.status is Status.STALLED
    assert f"after {steps} steps, it would need" in found.message
    assert found.stats["steps"] == steps
    assert found.times[-1] < 1e-3


def test_a_passage_is_no_creeping():
    """Flows at D = 10^6 take 500 even steps with more than 1e6 to go at their pace, and arrive."""
    assert f"{_MOST_STEPS} steps" in path(noisy, [0.0, 0.0], 1e6, 1.0).message


def test_a_jump_that_the_clock_does_not_show_is_no_creeping():
    """At a time of 2.6e17 the clock shows 32 at least, and alpha jumps in less."""
    assert _creeps([2.6e17] * 601, 3e17, 300, dear=True) is None
    assert _creeps([2.6e17] * 601, 1e60, 300, dear=True) is not None


def test_an_even_pace_that_arrives_is_no_creeping():
    found = path(lambda y: np.array([y[1], -y[0]]), [0.0, 1.0], 1e3, 1.0)
    assert found.status is Status.COMPLETED
    assert found.stats["steps"] > 4000
    assert abs(found.points[-1][0] - np.sin(1e3)) < 1e-4


def test_trial_steps_that_fail_now_and_then_end_no_run():
    """As where alpha is all but lost in rounding: three in turn, at times far apart."""
    calls = []

    def turning(y):
        calls.append(y)
        if len(calls) % 2500 in (0, 1, 2):
            raise ToleranceError("here and there")
        return np.array([y[1], -y[0]])

    found = path(turning, [0.0, 1.0], 1e3, 0.0)
    assert found.status is Status.COMPLETED
    assert found.stats["restarts"] > 2 * _MOST_FAILURES
    assert abs(found.points[-1][0] - np.sin(1e3)) < 1e-4


def test_trial_steps_that_fail_beyond_a_wall_end_the_run():
    def up_to_a_wall(y):
        if y[0] > 0.5:
            raise ToleranceError("beyond the wall")
        return np.array([1.0])

    found = path(up_to_a_wall, [0.0], 1e3, 0.0)
    assert found.status is Status.INACCURATE
    assert found.message == "beyond the wall"
    assert found.stats["restarts"] <= 2 * _MOST_FAILURES
    assert 0.4 < found.times[-1] <= 0.5


def test_where_gradients_are_dear_is_predicted_for_every_method():
    problem = Problem(D=62, C=2, q=1 / 31)
    methods = {name: Population(problem, name, 1e-6) for name in ("enumeration", "fourier")}
    methods["sampling"] = Population(problem, "sampling", samples=100_000)
    for population in methods.values():
        assert 1e-5 < population.predicted_seconds < 1e-2
