"""Schedules of the recorded steps of a run."""

import numpy as np


def recorded_steps(steps: int, record: str, records: int) -> np.ndarray:
    """Return at most about ``records`` increasing steps from 0 to ``steps``, both included.

    ``record`` is ``"linear"`` or ``"log"``: evenly spaced in the step or in its logarithm.
    """
    if record == "linear":
        return np.unique(np.linspace(0, steps, min(records, steps + 1)).astype(np.int64))
    positive = np.unique(np.geomspace(1, steps, records).round().astype(np.int64))
    return np.concatenate([[0], positive])


def thinned(count: int, most: int) -> np.ndarray:
    """Return at most ``most`` evenly spaced indices below ``count``, both ends included."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(int))
