"""Steps that are recorded and records that are kept."""

import numpy as np
import pytest

from dynamics.core.schedule import recorded_steps, thinned


@pytest.mark.parametrize("record", ["linear", "log"])
@pytest.mark.parametrize(("steps", "records"), [(1, 2), (7, 300), (10**6, 50)])
def test_both_ends_are_recorded_once(record, steps, records):
    found = recorded_steps(steps, record, records)
    assert (found[0], found[-1]) == (0, steps)
    assert np.all(np.diff(found) > 0)
    assert len(found) <= records + 1


def test_a_logarithmic_schedule_is_denser_early():
    found = recorded_steps(10**6, "log", 50)
    assert np.sum(found <= 1000) > 20 > np.sum(recorded_steps(10**6, "linear", 50) <= 1000)


@pytest.mark.parametrize(("count", "most"), [(1, 5), (5, 5), (5, 400), (1000, 7)])
def test_thinned_records_keep_both_ends(count, most):
    kept = thinned(count, most)
    assert (kept[0], kept[-1]) == (0, count - 1)
    assert len(kept) == min(count, most)
    assert np.ptp(np.diff(kept)) <= 1 if len(kept) > 1 else count == 1
