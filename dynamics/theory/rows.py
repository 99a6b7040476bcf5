"""Rows of data that families share, so that what depends on a row alone is computed once."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def total(values: NDArray[Any], first: NDArray[np.int64], of: NDArray[np.int64]) -> NDArray[Any]:
    """Return, for each family of one set, a sum over those of another set in its configuration.

    Parameters
    ----------
    values
        What is summed, one for each family of the other set.
    first, of
        Where the families of each configuration begin, of the other set and of the one, (b + 1,).
    """
    sums = np.add.reduceat(np.append(values, 0), first[:-1])
    return np.repeat(np.where(np.diff(first) > 0, sums, 0), np.diff(of))


def distinct(columns: Sequence[NDArray[Any]]) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return the row of each family, (families,), and the rows, each once, (rows, columns).

    Floats are the same if they are equal; numbers of another kind are each taken for another row.
    """
    table = np.column_stack(columns)
    row = np.arange(len(table), dtype=np.int64)
    if table.dtype == object:
        return row, table
    row = np.zeros_like(row)
    for values in table.T:
        known, place = np.unique(values, return_inverse=True)
        row = np.unique(row * len(known) + place, return_inverse=True)[1]
    _, one = np.unique(row, return_index=True)
    return row, table[one]
