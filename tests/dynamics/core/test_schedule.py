"""Schedules of recorded steps, and thinning of records."""

import numpy as np
import pytest

from dynamics.core.schedule import recorded_steps, thinned


@pytest.mark.parametrize("record", ["linear", "log"])
@pytest.mark.parametrize(("steps", "records"), [(1, 2), (7, 300), (10**6, 50)])
def test_both_ends_are_recorded_once(record, steps, records):
    schedule = recorded_steps(steps, record, records)
    assert (schedule[0], schedule[-1]) == (0, steps)
    assert np.all(np.diff(schedule) > 0)
    assert len(schedule) <= records + 1


def test_logarithmic_schedule_is_denser_early():
    schedule = recorded_steps(10**6, "log", 50)
    assert np.sum(schedule <= 1000) > 20 > np.sum(recorded_steps(10**6, "linear", 50) <= 1000)


@pytest.mark.parametrize(("count", "most"), [(1, 5), (5, 5), (5, 400), (1000, 7)])
def test_thinned_indices_are_even_and_include_both_ends(count, most):
    indices = thinned(count, most)
    assert (indices[0], indices[-1]) == (0, count - 1)
    assert len(indices) == min(count, most)
    assert np.ptp(np.diff(indices)) <= 1 if len(indices) > 1 else count == 1
