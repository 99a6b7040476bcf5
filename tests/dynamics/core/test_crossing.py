"""Times of events: found wherever they lie between two records."""

import math

import numpy as np
import pytest

from dynamics.core.crossing import first_passage, root, stretches, turning_values
from dynamics.core.trajectory import Status, Trajectory
from tests.closeness import close, within


@pytest.mark.parametrize("jump", [1e-9, 3.5e-3, 1.0, 4e17])
def test_a_jump_anywhere_in_a_long_time(jump):
    """Steps of descent at an absurd learning rate are that long; 1e-6 relative and 1e-12."""
    found = root(lambda t: -1.0 if t < jump else 1e300, 0.0, 5e17)
    within(found, jump, 2e-6 * jump + 2e-12)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_an_extremum_between_two_equal_records(sign):
    """Each of the two is above one neighbour and level with the other."""
    run = clock(6)
    times, values = turning_values(run, lambda state: -sign * (float(state[0]) - 2.5) ** 2)
    extremum = values.max() if sign > 0.0 else values.min()
    within(extremum, 0.0, 1e-9)
    assert values.size > 6
    within(times[np.argmin(np.abs(values))], 2.5, 1e-4)


def test_the_first_passage_is_found_to_six_digits():
    """A quantity that jumps: nothing but halving finds it."""
    run = clock(9)
    time = first_passage(run, lambda state: float(state[0] > 5.123456789), 0.5)
    within(time, 5.123456789, 2e-5)
    assert math.isnan(first_passage(run, lambda state: float(state[0]), 8.0))


def test_a_passage_is_sought_between_the_records_that_show_it():
    """Roots at 0.3, 0.6 and 3.5: the first two lie between two records and are missed."""

    def quantity(state):
        t = float(state[0])
        return (t - 0.3) * (t - 0.6) * (t - 3.5)

    within(first_passage(clock(9), quantity), 3.5, 1e-5)


def test_each_stretch_has_its_own_largest_value():
    """Above 0 from the start to 1.5, from 3.5 to 6.5, and from 7.5 to the end."""

    def quantity(state):
        t = float(state[0])
        return (t - 1.5) * (t - 3.5) * (t - 6.5) * (t - 7.5) / 10.0

    found = stretches(clock(10), quantity)
    within([one.start for one in found], [0.0, 3.5, 7.5], 1e-5)
    within([one.end for one in found], [1.5, 6.5, 9.0], 1e-5)
    largest = [max(quantity([t]) for t in np.linspace(*one[:2], 2001)) for one in found]
    close([one.largest for one in found], largest, rel=1e-5)


def clock(number):
    """Return a run whose single order parameter is its time, 0, 1, ... at the records."""
    time = np.arange(float(number))
    return Trajectory(
        None, ("x",), "clock", time, time[:, None], 0 * time, 0 * time, Status.COMPLETED, "", 0.0
    )


def test_a_change_that_rounding_hides_is_at_the_end():
    assert root(lambda t: 1.0, 2.0, 3.0) == 3.0
