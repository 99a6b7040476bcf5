r"""All images with at most K features, as multisets of set types with exact weights.

A multiset with k features stands for I of the 3^N patterns outside the signal set (N = D - C), each
of probability :math:`(q/2)^k(1-q)^{N-k}`; I is an integer,

.. math:: I = \frac{(L-1)!}{m_0!\,\prod_t m_t!}\prod_t\binom{C}{a_t,\,b_t,\,C-a_t-b_t}^{m_t},

with m_t sets of type t = (a_t, b_t) and m_0 empty ones. That no image is missing is checked, not
trusted: the multisets are distinct, all I > 0, and for every k

.. math:: \sum_{\text{multisets with }k\text{ features}} I = \binom Nk 2^k .
"""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from flint import arb, ctx

from dynamics.core.balls.exact import ball, exact
from dynamics.positional.population.states import StateTable, enumerate_states
from dynamics.positional.problem import Problem

_BITS = 128


class Images(NamedTuple):
    """Multisets sorted by their number of features, so that those with at most K are the first.

    State i has probability in the ball (``weight[i]``, ``error[i]``), sum ``T = total[i]``, and
    ``copies[j]`` sets of type ``kind[j]`` for ``start[i] <= j < start[i + 1]``. The first
    ``upto[k]`` states are those with at most k features.
    """

    plus: np.ndarray  # int64 (types,)
    minus: np.ndarray  # int64 (types,)
    upto: np.ndarray  # int64 (K + 1,)
    total: np.ndarray  # int64 (states,)
    weight: np.ndarray  # float (states,)
    error: np.ndarray  # float (states,)
    start: np.ndarray  # int64 (states + 1,)
    kind: np.ndarray  # int32 (entries,)
    copies: np.ndarray  # float (entries,)

    @property
    def K(self) -> int:
        """The largest number of features outside the signal set."""
        return self.upto.size - 1

    def sets(self, i: int) -> tuple[list[tuple[int, int]], list[int]]:
        """Return the types (a, b) of the nonempty random sets of state i, and how many of each."""
        entries = slice(self.start[i], self.start[i + 1])
        kinds = self.kind[entries]
        pairs = zip(self.plus[kinds].tolist(), self.minus[kinds].tolist())
        return list(pairs), self.copies[entries].astype(int).tolist()


class IncompleteError(ArithmeticError):
    """The multisets are not all there are: a defect of their enumeration."""


@lru_cache(maxsize=4)
def images(problem: Problem, K: int) -> Images:
    """Return all multisets with at most K features, proved complete.

    Raises
    ------
    IncompleteError
        If the integer identity fails.
    """
    table = enumerate_states(problem, K)
    features, total = features_and_totals(problem, table)
    counts = patterns(problem, table)
    require_complete(problem, K, table, features, counts)
    weight, error = np.empty(features.size), np.empty(features.size)
    with ctx.workprec(_BITS):
        q, N = exact(problem.q), problem.D - problem.C
        each = [(q / 2) ** k * (1 - q) ** (N - k) for k in range(K + 1)]
        for i, (k, count) in enumerate(zip(features.tolist(), counts)):
            weight[i], error[i] = ball(arb(count) * each[k])
    order = np.argsort(features, kind="stable")
    lengths = np.diff(table.start)
    start = np.concatenate([[0], np.cumsum(lengths[order])])
    entries = np.arange(start[-1]) + np.repeat(table.start[:-1][order] - start[:-1], lengths[order])
    return Images(
        table.plus.astype(np.int64),
        table.minus.astype(np.int64),
        np.cumsum(np.bincount(features, minlength=K + 1)),
        total[order],
        weight[order],
        error[order],
        start,
        table.type_index[entries],
        table.copies[entries],
    )


def features_and_totals(problem: Problem, table: StateTable) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of features and the sum T of each state, from its entries."""
    owner = np.repeat(np.arange(table.weight.size), np.diff(table.start))
    size, charge = (
        (table.plus + table.minus)[table.type_index],
        (table.plus - table.minus)[table.type_index],
    )
    found = [
        np.bincount(owner, weights=table.copies * part, minlength=table.weight.size)
        for part in (size, charge)
    ]
    return found[0].astype(np.int64), found[1].astype(np.int64) + problem.C


def patterns(problem: Problem, table: StateTable) -> list[int]:
    """Return the number I of patterns that each multiset stands for."""
    C, others = problem.C, problem.L - 1
    ways = [
        math.comb(C, a + b) * math.comb(a + b, a)
        for a, b in zip(table.plus.astype(int).tolist(), table.minus.astype(int).tolist())
    ]
    kinds, copies = table.type_index.tolist(), table.copies.astype(int).tolist()
    found = []
    for first, last in zip(table.start[:-1].tolist(), table.start[1:].tolist()):
        count, left = 1, others
        for kind, m in zip(kinds[first:last], copies[first:last]):
            count *= math.comb(left, m) * ways[kind] ** m
            left -= m
        found.append(count)
    return found


def require_complete(
    problem: Problem, K: int, table: StateTable, features: np.ndarray, counts: list[int]
) -> None:
    """Raise IncompleteError unless the multisets are distinct and stand for all patterns."""
    bounds = zip(table.start[:-1].tolist(), table.start[1:].tolist())
    kinds, copies = table.type_index.tolist(), table.copies.astype(int).tolist()
    distinct = {frozenset(zip(kinds[i:j], copies[i:j])) for i, j in bounds}
    sums = [0] * (K + 1)
    for k, count in zip(features.tolist(), counts):
        if not (k <= K and count > 0):
            raise IncompleteError(f"a multiset with {k} features stands for {count} patterns")
        sums[k] += count
    N = problem.D - problem.C
    if len(distinct) != len(counts) or sums != [math.comb(N, k) * 2**k for k in range(K + 1)]:
        raise IncompleteError(f"the multisets with at most {K} features are not all there are")
