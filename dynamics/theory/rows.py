"""Distinct rows of data: families with equal rows share the quantities computed from them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def total(values: NDArray[Any], first: NDArray[np.int64], of: NDArray[np.int64]) -> NDArray[Any]:
    """Sum over the families of another set in the same configuration, for each family of a set.

    Parameters
    ----------
    values
        Summands, one for each family of the other set.
    first, of
        Index of the first family of each configuration, shape (b + 1,), of the other set and of the
        set itself.
    """
    sums = np.add.reduceat(np.append(values, 0), first[:-1])
    return np.repeat(np.where(np.diff(first) > 0, sums, 0), np.diff(of))


def distinct(columns: Sequence[NDArray[Any]]) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return the row index of each family (families,), and the distinct rows (rows, columns).

    Rows of floats are merged if they are equal; rows of objects (balls) are never merged.
    """
    table = np.column_stack(columns)
    row = np.arange(len(table), dtype=np.int64)
    if table.dtype == object:
        return row, table
    row = np.zeros_like(row)
    for values in table.T:
        known, index = np.unique(values, return_inverse=True)
        row = np.unique(row * len(known) + index, return_inverse=True)[1]
    _, first = np.unique(row, return_index=True)
    return row, table[first]
