"""Validation of a partition of the patches into the sets of the patch association."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynamics.core.arrays import real_array
from dynamics.core.checks import require
from dynamics.positional.problem import Problem


def checked_partition(problem: Problem, partition: Any = None) -> NDArray[np.intp]:
    """Return a partition as an array of patch indices, shape (L, C).

    Parameters
    ----------
    problem
        Constants of the data.
    partition
        Patch indices of each set, shape (L, C); ``None`` for contiguous blocks.

    Raises
    ------
    ParameterError
        If the shape is wrong or the sets do not contain each patch exactly once.
    """
    D, shape = problem.D, (problem.L, problem.C)
    if partition is None:
        return np.arange(D).reshape(shape)
    indices = real_array("partition", partition, shape)
    complete = np.array_equal(np.sort(indices, axis=None), np.arange(D))
    value = np.asarray(partition).tolist() if D <= 16 else "(not a partition)"
    require(complete, "partition", value, f"each of 0 to {D - 1} exactly once")
    return indices.astype(np.intp)
