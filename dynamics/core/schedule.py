"""Which steps of a run are recorded, and which records of a long one are kept."""

import numpy as np


def recorded_steps(steps: int, record: str, records: int) -> np.ndarray:
    """Return at most about ``records`` steps from 0 to ``steps``, both included, in order.

    ``record`` is ``"linear"`` or ``"log"``, evenly spread in the number of steps or its logarithm.
    """
    if record == "linear":
        return np.unique(np.linspace(0, steps, min(records, steps + 1)).astype(np.int64))
    wanted = np.unique(np.geomspace(1, steps, records).round().astype(np.int64))
    return np.concatenate([[0], wanted])


def thinned(count: int, most: int) -> np.ndarray:
    """Return indices of at most ``most`` of ``count`` records, evenly spread, with both ends."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(int))
