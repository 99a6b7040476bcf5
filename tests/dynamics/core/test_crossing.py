"""Event location between the records of a trajectory."""

import math

import numpy as np
import pytest

from dynamics.core.crossing import excursions, first_passage, root, with_extrema
from dynamics.core.trajectory import Status, Trajectory
from tests.closeness import close, within


@pytest.mark.parametrize("jump", [1e-9, 3.5e-3, 1.0, 4e17])
def test_root_at_a_jump_in_a_long_interval(jump):
    """Records of descent with a very large learning rate are this far apart."""
    time = root(lambda t: -1.0 if t < jump else 1e300, 0.0, 5e17)
    within(time, jump, 2e-6 * jump + 2e-12)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_extremum_between_two_equal_records(sign):
    """Each of the two records exceeds one neighbour and equals the other."""
    run = clock(6)
    times, values = with_extrema(run, lambda state: -sign * (float(state[0]) - 2.5) ** 2)
    extremum = values.max() if sign > 0.0 else values.min()
    within(extremum, 0.0, 1e-9)
    assert values.size > 6
    within(times[np.argmin(np.abs(values))], 2.5, 1e-4)


def test_first_passage_is_accurate_to_six_digits():
    """The quantity jumps, so that only bisection converges."""
    run = clock(9)
    time = first_passage(run, lambda state: float(state[0] > 5.123456789), 0.5)
    within(time, 5.123456789, 2e-5)
    assert math.isnan(first_passage(run, lambda state: float(state[0]), 8.0))


def test_first_passage_is_detected_at_records():
    """Roots at 0.3, 0.6 and 3.5: the first two lie between the same records and are missed."""

    def quantity(state):
        t = float(state[0])
        return (t - 0.3) * (t - 0.6) * (t - 3.5)

    within(first_passage(clock(9), quantity), 3.5, 1e-5)


def test_each_excursion_has_its_ends_and_maximum():
    """Above 0 from the start to 1.5, from 3.5 to 6.5, and from 7.5 to the end."""

    def quantity(state):
        t = float(state[0])
        return (t - 1.5) * (t - 3.5) * (t - 6.5) * (t - 7.5) / 10.0

    results = excursions(clock(10), quantity)
    within([result.start for result in results], [0.0, 3.5, 7.5], 1e-5)
    within([result.end for result in results], [1.5, 6.5, 9.0], 1e-5)
    largest = [max(quantity([t]) for t in np.linspace(*result[:2], 2001)) for result in results]
    close([result.largest for result in results], largest, rel=1e-5)


def clock(number):
    """Return a trajectory whose order parameter is the time, with records at 0, 1, ..."""
    time = np.arange(float(number))
    return Trajectory(
        None, ("x",), "clock", time, time[:, None], 0 * time, 0 * time, Status.COMPLETED, "", 0.0
    )


def test_root_without_a_change_of_sign_is_the_end():
    assert root(lambda t: 1.0, 2.0, 3.0) == 3.0
