r"""All images with at most K features, as multisets of set types with certified weights.

A multiset with k features consists of I of the 3^N patterns outside the signal set (N = D - C).
Each has the probability :math:`(q/2)^k(1-q)^{N-k}`, and I is the integer

.. math:: I = \frac{(L-1)!}{m_0!\,\prod_t m_t!}\prod_t\binom{C}{a_t,\,b_t,\,C-a_t-b_t}^{m_t},

with m_t sets of type t = (a_t, b_t) and m_0 empty ones. Completeness is verified: the multisets are
distinct, all I > 0, and for every k

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
    """Multisets, sorted by their number of features.

    State i has ``copies[j]`` sets of type ``type_index[j]`` for ``start[i] <= j < start[i + 1]``.

    Attributes
    ----------
    plus, minus
        Numbers of +1 and -1 in each type, int64 (types,).
    upto
        Number of states with at most k features, int64 (K + 1,); they come first.
    total
        Sum T of each state, int64 (states,).
    weight, error
        Center and radius of the probability of each state, float (states,).
    start
        First entry of each state, int64 (states + 1,).
    type_index
        Index of a type, int32 (entries,).
    copies
        Number of sets of this type, float (entries,).
    """

    plus: np.ndarray
    minus: np.ndarray
    upto: np.ndarray
    total: np.ndarray
    weight: np.ndarray
    error: np.ndarray
    start: np.ndarray
    type_index: np.ndarray
    copies: np.ndarray

    @property
    def K(self) -> int:
        """The largest number of features outside the signal set."""
        return self.upto.size - 1

    def sets(self, i: int) -> tuple[list[tuple[int, int]], list[int]]:
        """Return the types (a, b) of the nonempty random sets of state i, and their numbers."""
        entries = slice(self.start[i], self.start[i + 1])
        types = self.type_index[entries]
        pairs = zip(self.plus[types].tolist(), self.minus[types].tolist())
        return list(pairs), self.copies[entries].astype(int).tolist()


class IncompleteError(ArithmeticError):
    """The enumeration of the multisets is incomplete, which is a defect of the code."""


@lru_cache(maxsize=8)
def images(problem: Problem, K: int, q_radius: float = 0.0) -> Images:
    """Return all multisets with at most K features, and verify that none is missing.

    Parameters
    ----------
    problem
        Constants of the data.
    K
        Largest number of features outside the signal set.
    q_radius
        The probabilities are enclosed for all q up to this distance from that of the problem.

    Raises
    ------
    IncompleteError
        If a multiset is missing or repeated.
    """
    table = enumerate_states(problem, K)
    features, total = features_and_totals(problem, table)
    counts = patterns(problem, table)
    require_complete(problem, K, table, features, counts)
    probabilities = [_probability(problem, k, q_radius) for k in range(K + 1)]
    weight, error = _weights(features, counts, probabilities)
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


@lru_cache(maxsize=8)
def by_q(problem: Problem, K: int, q_radius: float) -> Images:
    """Return the multisets of :func:`images` with the derivatives of their probabilities by q."""
    table = enumerate_states(problem, K)
    features, _ = features_and_totals(problem, table)
    slopes = [_slope(problem, k, q_radius) for k in range(K + 1)]
    order = np.argsort(features, kind="stable")
    weight, error = _weights(features, patterns(problem, table), slopes)
    return images(problem, K, q_radius)._replace(weight=weight[order], error=error[order])


def _probability(problem: Problem, k: int, radius: float) -> arb:
    """Enclose the probability of a pattern with k features for all q of a box."""
    with ctx.workprec(_BITS):
        q, N = exact(problem.q), problem.D - problem.C
        middle = (q / 2) ** k * (1 - q) ** (N - k)
        if radius == 0.0:
            return middle
        return middle + arb(0, 1) * exact(radius) * abs(_slope(problem, k, radius)).upper()


def _slope(problem: Problem, k: int, radius: float) -> arb:
    """Enclose the derivative of the probability of a pattern by q for all q of a box."""
    with ctx.workprec(_BITS):
        q, N = exact(problem.q) + arb(0, 1) * exact(radius), problem.D - problem.C
        more = k * (q / 2) ** max(k - 1, 0) / 2 * (1 - q) ** (N - k)
        return more - (N - k) * (q / 2) ** k * (1 - q) ** max(N - k - 1, 0)


def _weights(
    features: np.ndarray, counts: list[int], probabilities: list[arb]
) -> tuple[np.ndarray, np.ndarray]:
    """Return centres and radii of the products of number of patterns and probability."""
    with ctx.workprec(_BITS):
        pairs = [ball(arb(n) * probabilities[k]) for k, n in zip(features.tolist(), counts)]
    return np.array([x for x, _ in pairs]), np.array([r for _, r in pairs])


def features_and_totals(problem: Problem, table: StateTable) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of features and the sum T of each state in a table."""
    owner = np.repeat(np.arange(table.weight.size), np.diff(table.start))
    size, charge = (
        (table.plus + table.minus)[table.type_index],
        (table.plus - table.minus)[table.type_index],
    )
    features, sums = (
        np.bincount(owner, weights=table.copies * part, minlength=table.weight.size)
        for part in (size, charge)
    )
    return features.astype(np.int64), sums.astype(np.int64) + problem.C


def patterns(problem: Problem, table: StateTable) -> list[int]:
    """Return the number I of patterns of each multiset in a table."""
    C, others = problem.C, problem.L - 1
    arrangements = [
        math.comb(C, a + b) * math.comb(a + b, a)
        for a, b in zip(table.plus.astype(int).tolist(), table.minus.astype(int).tolist())
    ]
    types, copies = table.type_index.tolist(), table.copies.astype(int).tolist()
    counts = []
    for first, last in zip(table.start[:-1].tolist(), table.start[1:].tolist()):
        count, left = 1, others
        for index, m in zip(types[first:last], copies[first:last]):
            count *= math.comb(left, m) * arrangements[index] ** m
            left -= m
        counts.append(count)
    return counts


def require_complete(
    problem: Problem, K: int, table: StateTable, features: np.ndarray, counts: list[int]
) -> None:
    """Raise IncompleteError unless the multisets are distinct and comprise all patterns.

    ``features`` and ``counts`` are the numbers of features and of patterns of each multiset.
    """
    bounds = zip(table.start[:-1].tolist(), table.start[1:].tolist())
    types, copies = table.type_index.tolist(), table.copies.astype(int).tolist()
    distinct = {frozenset(zip(types[i:j], copies[i:j])) for i, j in bounds}
    sums = [0] * (K + 1)
    for k, count in zip(features.tolist(), counts):
        if not (k <= K and count > 0):
            raise IncompleteError(f"a multiset with {k} features comprises {count} patterns")
        sums[k] += count
    N = problem.D - problem.C
    if len(distinct) != len(counts) or sums != [math.comb(N, k) * 2**k for k in range(K + 1)]:
        raise IncompleteError(f"the multisets with at most {K} features are incomplete")
