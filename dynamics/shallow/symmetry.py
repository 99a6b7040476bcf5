"""Matrices that are invariant under the symmetries of the problem, as vectors of order parameters.

The symmetries permute the M - 2 irrelevant patterns, and exchange the two discriminative ones
together with the signs of the label and the output weights. An invariant M x M matrix has six
distinct entries 11, 12, 1k, k1, kk, kl, where k and l are different irrelevant patterns. The rows
of W_O for neurons with a > 0 along pattern 1 (``P``), pattern 2 (``U``) and an irrelevant pattern
(``I``) have 3, 3 and 4 distinct entries. The exchange maps them to the neurons with a < 0.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np

Array = np.ndarray
_PAIRS = ("11", "12", "1k", "k1", "kk", "kl")
_ROWS = ("P_1", "P_2", "P_k", "U_1", "U_2", "U_k", "I_1", "I_2", "I_own", "I_other")


@dataclass(frozen=True, eq=False)
class Layout:
    """Assignment of matrix entries to the order parameters of a state.

    Attributes
    ----------
    names
        Names of the n order parameters.
    W, V, K, Q
        Index of the order parameter of each entry of W_O (2M, M), V (M, M), K and Q
        (blocks M, M). The 2M rows of W_O represent classes of neurons: those with a > 0 along the
        patterns 0 to M - 1, then those with a < 0.
    """

    names: tuple[str, ...]
    W: Array
    V: Array
    K: Array
    Q: Array

    def unpack(self, state: Array) -> tuple[Array, Array, Array, Array]:
        """Return the matrices W_O, V, K and Q of a state (n,)."""
        return state[self.W], state[self.V], state[self.K], state[self.Q]

    def pack(self, W: Array, V: Array, K: Array, Q: Array) -> Array:
        """Return the state (n,) of matrices: the mean of the entries of each order parameter.

        For matrices that are not invariant it is the state of their average over the symmetries.
        """
        slots = np.concatenate([x.ravel() for x in (self.W, self.V, self.K, self.Q)])
        entries = np.concatenate([x.ravel() for x in (W, V, K, Q)])
        sums = np.bincount(slots, weights=entries, minlength=len(self.names))
        return sums / np.bincount(slots)


@cache
def layout(M: int, blocks: int) -> Layout:
    """Return the layout for M patterns; K and Q consist of ``blocks`` invariant matrices each."""
    pairs, rows = _pair_classes(M), _row_classes(M)
    distinct_pairs, distinct_rows = np.unique(pairs), np.unique(rows)
    suffixes = [""] if blocks == 1 else [str(block) for block in range(1, blocks + 1)]
    matrices = ["V"] + [f"{name}{suffix}" for name in "KQ" for suffix in suffixes]
    names = [_ROWS[row] for row in distinct_rows]
    tables = {}
    for matrix in matrices:
        tables[matrix] = len(names) + np.searchsorted(distinct_pairs, pairs)
        names += [f"{matrix}_{_PAIRS[pair]}" for pair in distinct_pairs]
    K, Q = (
        np.vstack([table for matrix, table in tables.items() if matrix[0] == name]) for name in "KQ"
    )
    return Layout(tuple(names), np.searchsorted(distinct_rows, rows), tables["V"], K, Q)


def _pair_classes(M: int) -> Array:
    """Return the index in `_PAIRS` of each entry of an M x M matrix."""
    classes = np.full((M, M), 5)
    np.fill_diagonal(classes, 4)
    classes[:2, :2] = [[0, 1], [1, 0]]
    classes[:2, 2:], classes[2:, :2] = 2, 3
    return classes


def _row_classes(M: int) -> Array:
    """Return the index in `_ROWS` of each entry of W_O, (2M, M)."""
    classes = np.full((M, M), 9)
    np.fill_diagonal(classes, 8)
    classes[0], classes[1] = 2, 5
    classes[:, 0], classes[:, 1] = 6, 7
    classes[:2, :2] = [[0, 1], [3, 4]]
    swap = np.r_[1, 0, 2:M]
    return np.vstack([classes, classes[np.ix_(swap, swap)]])
