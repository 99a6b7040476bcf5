"""Matrices that every symmetry of the problem leaves alone, and the few numbers they hold.

The symmetries permute the M - 2 irrelevant patterns, and exchange the discriminative ones together
with the signs of label and output weights. An invariant M x M matrix has the numbers 11, 12, 1k,
k1, kk, kl (k, l irrelevant and different). Neurons with a > 0 along pattern 1 (``P``: lucky), along
2 (``U``) and along k (``I``) have 3, 3 and 4 numbers; the exchange gives those with a < 0.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np

Array = np.ndarray
_PAIRS = ("11", "12", "1k", "k1", "kk", "kl")
_ROWS = ("P_1", "P_2", "P_k", "U_1", "U_2", "U_k", "I_1", "I_2", "I_own", "I_other")


@dataclass(frozen=True, eq=False)
class Layout:
    """Slots of the entries of W_O (2M, M), V (M, M), K and Q (blocks M, M) in a state.

    The 2M rows of W_O stand for the neurons: a > 0 along patterns 0..M-1, then a < 0.
    """

    names: tuple[str, ...]
    W: Array
    V: Array
    K: Array
    Q: Array

    def unpack(self, state: Array) -> tuple[Array, Array, Array, Array]:
        """Return W_O, V, K and Q of a state."""
        return state[self.W], state[self.V], state[self.K], state[self.Q]

    def pack(self, W: Array, V: Array, K: Array, Q: Array) -> Array:
        """Return the mean entry of each slot: of invariant matrices their numbers.

        Of any matrices it is that of their average over all symmetries.
        """
        slots = np.concatenate([x.ravel() for x in (self.W, self.V, self.K, self.Q)])
        entries = np.concatenate([x.ravel() for x in (W, V, K, Q)])
        sums = np.bincount(slots, weights=entries, minlength=len(self.names))
        return sums / np.bincount(slots)


@cache
def layout(M: int, blocks: int) -> Layout:
    """Return the slots for M patterns; K and Q consist of ``blocks`` invariant matrices each."""
    pairs, rows = _pairs(M), _rows(M)
    matrices = ["V"] + [f"{name}{block}" for name in "KQ" for block in range(1, blocks + 1)]
    if blocks == 1:
        matrices = ["V", "K", "Q"]
    kept = np.unique(pairs)
    first = len(np.unique(rows))
    names = [_ROWS[row] for row in np.unique(rows)]
    tables = {}
    for number, matrix in enumerate(matrices):
        tables[matrix] = first + number * kept.size + np.searchsorted(kept, pairs)
        names += [f"{matrix}_{_PAIRS[pair]}" for pair in kept]
    K, Q = (np.vstack([x for name, x in tables.items() if name[0] == one]) for one in "KQ")
    return Layout(tuple(names), np.searchsorted(np.unique(rows), rows), tables["V"], K, Q)


def _pairs(M: int) -> Array:
    """Return the kind of each entry of an M x M matrix."""
    kind = np.full((M, M), 5)
    np.fill_diagonal(kind, 4)
    kind[:2, :2] = [[0, 1], [1, 0]]
    kind[:2, 2:], kind[2:, :2] = 2, 3
    return kind


def _rows(M: int) -> Array:
    """Return the kind of each entry of W_O, (2M, M)."""
    kind = np.full((M, M), 9)
    np.fill_diagonal(kind, 8)
    kind[0], kind[1] = 2, 5
    kind[:, 0], kind[:, 1] = 6, 7
    kind[:2, :2] = [[0, 1], [3, 4]]
    swap = np.r_[1, 0, 2:M]
    return np.vstack([kind, kind[np.ix_(swap, swap)]])
