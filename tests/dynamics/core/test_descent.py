"""Exit status and last record of gradient descent."""

import numpy as np
import pytest

from dynamics import Risk, Status, ToleranceError, gradient_descent
from tests.closeness import close


class Bowl(Risk):
    """The risk x^2 / 2, inaccurate for |x| outside [``least``, ``far``].

    It overflows for |x| above ``most``.
    """

    tolerance, method = 1e-15, "exact"
    order_parameters = ("x",)

    def __init__(self, least=0.0, most=np.inf, far=np.inf):
        self.least, self.most, self.far, self.evaluations = least, most, far, 0
        self.problem = type("Start", (), {"initial_state": (1.0,)})()

    def gradient(self, state):
        size = abs(float(state[0]))
        if not self.least <= size <= self.far:
            raise ToleranceError("out of reach")
        if size > self.most:
            raise OverflowError("too large")
        return (float(state[0]),)

    def jacobian(self, state):
        return np.eye(1)

    def evaluate(self, state):
        return type("Loss", (), {"loss": float(state[0]) ** 2 / 2, "bound": 0.0})()


@pytest.mark.parametrize(
    ("risk", "learning_rate", "status", "factor"),
    [
        (Bowl(least=0.3), 0.1, Status.INACCURATE, 0.9),
        (Bowl(most=1e9), 3.0, Status.DIVERGED, -2.0),
    ],
)
def test_run_that_stops_between_records_ends_with_its_last_state(
    risk, learning_rate, status, factor
):
    """The schedule is steps 0, 1 and a step that is never reached."""
    run = gradient_descent(risk, learning_rate=learning_rate, steps=1000, records=2)
    assert run.status is status
    steps = run.stats["steps"]
    assert 5 < steps < 1000
    close(run.time[[0, -1]], [0.0, learning_rate * steps], rel=1e-15)
    close(run.states[-1, 0], factor**steps, rel=1e-12)


def test_run_that_stops_at_a_record_contains_it_once():
    run = gradient_descent(
        Bowl(least=0.3), learning_rate=0.1, steps=1000, record="linear", records=1001
    )
    assert run.time.size == run.stats["steps"] + 1
    assert np.all(np.diff(run.time) > 0.0)


@pytest.mark.parametrize(
    ("risk", "learning_rate", "status", "last"),
    [
        (Bowl(), 1.9, Status.COMPLETED, 6),
        (Bowl(), 2.1, Status.UNSTABLE, 6),
        (Bowl(most=0.5), 3.0, Status.OVERFLOW, 0),
        (Bowl(most=3.0), 3.0, Status.DIVERGED, 2),
        (Bowl(far=3.0), 3.0, Status.INACCURATE, 2),
        (Bowl(far=12.0), 3.0, Status.DIVERGED, 4),  # at 16, more than ten times the start
    ],
)
def test_status_and_time_of_the_end(risk, learning_rate, status, last):
    """The iterates are powers of 1 - learning rate."""
    run = gradient_descent(risk, learning_rate=learning_rate, steps=6)
    assert run.status is status
    close(run.time[-1], learning_rate * last, rel=1e-15)
    close(run.states[-1, 0], (1.0 - learning_rate) ** last, rel=1e-12)
