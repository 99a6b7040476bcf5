"""A partition of the patches into the sets of the association."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynamics.core.arrays import real_array
from dynamics.core.checks import require
from dynamics.positional.problem import Problem


def checked_partition(problem: Problem, partition: Any = None) -> NDArray[np.intp]:
    """Return the sets as (L, C) patch indices; ``None`` means contiguous blocks."""
    D, shape = problem.D, (problem.L, problem.C)
    if partition is None:
        return np.arange(D).reshape(shape)
    indices = real_array("partition", partition, shape)
    complete = np.array_equal(np.sort(indices, axis=None), np.arange(D))
    found = np.asarray(partition).tolist() if D <= 16 else "(not a partition)"
    require(complete, "partition", found, f"each of 0 to {D - 1} exactly once")
    return indices.astype(np.intp)
