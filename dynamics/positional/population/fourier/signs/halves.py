r"""Enumeration of signs by halves: sums of one half of the sets against sorted sums of the other.

The sets are independent given their types, so with the sets in two groups ``A`` and ``B``

.. math:: P[F \le 0, R = r] = \sum_A P(A)\,
          P_B[\,n_B = r - n_A,\ x_B \le -\mathrm{base} - x_A\,],

``n`` and ``x`` being sums over a group. For every ``n_B`` the multisets of B are sorted by ``x_B``,
so that a value of their cumulative distribution is enough for each multiset of A. The number of
pairs is the number of multisets of all sets; the cost is the sum over both groups (notebook
``fourier_method``, Section 7).

The sums are sorted into buckets, and a bucket is sorted only when a value inside it is needed: 9
times faster than sorting B and a binary search for each multiset of A (measured by the benchmark
``test_halves``).
"""

from typing import NamedTuple

import numpy as np

from dynamics.core.jit import kernel
from dynamics.positional.population.fourier.errors import UNIT
from dynamics.positional.population.fourier.set_law import SetLaw
from dynamics.positional.population.fourier.signs.multisets import multisets

#: Largest number of multisets of one half.
_MOST_NODES = 400_000

#: Buckets up to this size are sorted by insertion.
_SHORT = 24


class Half(NamedTuple):
    """Multisets of one half, sorted by the sum of their n.

    Attributes
    ----------
    parent, last, number
        Nodes of the tree, in its own order.
    slot
        Position of each node in the sorted order.
    first
        The multisets with ``n = g - span`` are ``first[g] ... first[g + 1] - 1``.
    weight
        Probabilities, sorted.
    span
        Largest |n|.
    """

    parent: np.ndarray
    last: np.ndarray
    number: np.ndarray
    slot: np.ndarray
    first: np.ndarray
    weight: np.ndarray
    span: int


class Halves(NamedTuple):
    """The two halves of the sets."""

    a: Half
    b: Half


def halves_law(sets: int, law: SetLaw, remainder: float) -> tuple[Halves, float]:
    """Return the multisets of both halves, and the probability left out."""
    a, b = (_half(half, law, 0.4 * remainder) for half in (sets // 2, sets - sets // 2))
    return Halves(a, b), 1.0 - float(a.weight.sum() * b.weight.sum())


def _half(sets: int, law: SetLaw, remainder: float) -> Half:
    """Return the multisets of one half with ``sets`` sets."""
    order = np.argsort(-law.log_p, kind="stable")
    log_other = max(law.log_p_empty, -690.0)
    tree = multisets(law.log_p[order], law.n[order], sets, log_other, remainder, _MOST_NODES)
    span = int(np.abs(tree.total).max())
    group = tree.total + span
    nodes = np.argsort(group, kind="stable")
    slot = np.empty_like(nodes)
    slot[nodes] = np.arange(len(nodes))
    first = np.concatenate([[0], np.cumsum(np.bincount(group, minlength=2 * span + 1))])
    return Half(tree.parent, order[tree.last], tree.number, slot, first, tree.weight[nodes], span)


class Buckets(NamedTuple):
    """Work arrays: the sums of one group of B in buckets.

    Attributes
    ----------
    of
        Bucket of each requested sum.
    edges, value, weight
        Bucket k contains ``value`` and ``weight`` from ``edges[k]`` on.
    before
        Weight before bucket k.
    least, most
        Smallest value from bucket k on, and largest value up to bucket k.
    """

    of: np.ndarray
    edges: np.ndarray
    before: np.ndarray
    least: np.ndarray
    most: np.ndarray
    value: np.ndarray
    weight: np.ndarray


class Scale(NamedTuple):
    """Map from sums to ``number`` buckets: uniform around ``middle``, sparse beyond ``width``."""

    middle: float
    width: float
    number: int


@kernel
def count_by_halves(open_totals, a, b, L):
    """Return P[F < 0, R = r], P[F <= 0, R = r] and the enumerated probability, for each total.

    Signs that the errors of the tables leave open count in the second only.
    """
    totals, x, dx, bases = open_totals.totals, open_totals.x, open_totals.dx, open_totals.base
    counted = np.zeros((3, len(totals)))
    scratch = np.empty(max(len(a.slot), len(b.slot)))
    sums_a, sums_b = np.empty(len(a.slot)), np.empty(len(b.slot))
    capacity = 0
    for g in range(2 * b.span + 1):
        capacity = max(capacity, b.first[g + 1] - b.first[g])
    ends = np.empty((3, capacity + 1))
    buckets = Buckets(
        np.empty(max(capacity, len(a.slot)), np.int64),
        np.empty(capacity + 1, np.int64),
        ends[0],
        ends[1],
        ends[2],
        np.empty(capacity),
        np.empty(capacity),
    )
    for i in range(len(totals)):
        largest = error = 0.0
        for k in range(x.shape[1]):
            largest, error = max(largest, abs(x[i, k])), max(error, dx[i, k])
        off = 1e-300 + open_totals.dbase[i] + L * error
        off += UNIT * (L + 8.0) * (abs(bases[i]) + L * largest)
        _sum_up(a.parent, a.last, a.slot, x[i], scratch, sums_a)
        _sum_up(b.parent, b.last, b.slot, x[i], scratch, sums_b)
        for g in range(2 * b.span + 1):
            h = totals[i] - (g - b.span) + a.span
            if h < 0 or h > 2 * a.span:
                continue
            p, q, u, v = a.first[h], a.first[h + 1], b.first[g], b.first[g + 1]
            if p < q and u < v:
                group_a, group_b = (sums_a[p:q], a.weight[p:q]), (sums_b[u:v], b.weight[u:v])
                _join(-bases[i], off, group_a, group_b, buckets, counted[:, i])
    return counted


@kernel(borrows=True)
def _sum_up(parent, last, slot, x, scratch, sums):
    """Fill the sum of ``x`` over each multiset, in the sorted order."""
    scratch[0] = sums[slot[0]] = 0.0
    for node in range(1, len(sums)):
        value = scratch[parent[node]] + x[last[node]]
        scratch[node] = sums[slot[node]] = value


@kernel(inner=True)
def _join(goal, off, group_a, group_b, buckets, counted):
    """Add the probability of pairs with sum below ``goal``, at most ``goal``, and of all.

    ``group_a``, ``group_b``: sums and weights of a group of A and of B; ``off``: error of a sum.
    """
    (sums_a, weights_a), (sums_b, weights_b) = group_a, group_b
    all_a, least, most = _total_and_range(sums_a, weights_a)
    all_b, lowest, highest = _total_and_range(sums_b, weights_b)
    counted[2] += all_a * all_b
    if goal - least + off < lowest:
        return
    if goal - most - off >= highest:
        counted[0] += all_a * all_b
        counted[1] += all_a * all_b
        return
    scale = _scale(sums_b)
    _find_buckets(sums_b, 0.0, 1.0, scale, buckets.of)
    _fill(sums_b, weights_b, buckets)
    _find_buckets(sums_a, goal - off, -1.0, scale, buckets.of)
    for i in range(len(sums_a)):
        k, rest = buckets.of[i], goal - off - sums_a[i]
        if rest < buckets.least[k]:
            under, after = buckets.before[k], buckets.least[k]
        elif rest >= buckets.most[k]:
            under, after = buckets.before[k + 1], buckets.least[k + 1]
        else:
            under, after = _weight_up_to(rest, k, buckets), -np.inf
        over = under
        if rest + 2.0 * off >= after:
            over = _weight_around(rest + 2.0 * off, scale, buckets)
        counted[0] += weights_a[i] * under
        counted[1] += weights_a[i] * over


@kernel(borrows=True)
def _total_and_range(sums, weights):
    """Return the total weight, the smallest and the largest sum."""
    total, least, most = 0.0, sums[0], sums[0]
    for i in range(len(sums)):
        total += weights[i]
        least, most = min(least, sums[i]), max(most, sums[i])
    return total, least, most


@kernel(inner=True)
def _scale(sums):
    """Return the :class:`Scale`: the median of a few sums, and the median distance from it."""
    row = np.empty(15)
    for k in range(15):
        row[k] = sums[k * len(sums) // 15]
    row.sort()
    middle = row[7]
    for k in range(15):
        row[k] = abs(row[k] - middle)
    row.sort()
    return Scale(middle, max(row[7], 1e-3 * row[14], 1e-290), len(sums))


@kernel(borrows=True)
def _find_buckets(sums, start, sign, scale, buckets):
    """Fill the buckets 0 ... count - 1 of ``start + sign sums``.

    Every rounded operation is monotone, so that increasing values have nondecreasing buckets.
    """
    for i in range(len(sums)):
        buckets[i] = _bucket(start + sign * sums[i], scale)


@kernel(borrows=True)
def _bucket(value, scale):
    """Return the bucket of a value."""
    away = value - scale.middle
    part = 0.5 * (scale.width / (scale.width + abs(away)))
    part = 1.0 - part if away >= 0.0 else part
    return min(int(part * scale.number), scale.number - 1)


@kernel(borrows=True)
def _fill(sums, weights, buckets):
    """Distribute the sums and their weights among the buckets ``buckets.of``."""
    of, edges, value, weight = buckets.of, buckets.edges, buckets.value, buckets.weight
    before, least_from, upto = buckets.before, buckets.least, buckets.most
    count = len(sums)
    for k in range(count + 1):
        edges[k] = 0
    for i in range(count):
        edges[of[i]] += 1
    end = 0
    for k in range(count + 1):
        end += edges[k]
        edges[k] = end
    for i in range(count):
        k = of[i]
        edges[k] -= 1
        value[edges[k]], weight[edges[k]] = sums[i], weights[i]
    total, most = 0.0, -np.inf
    for k in range(count):
        before[k] = total
        for i in range(edges[k], edges[k + 1]):
            total += weight[i]
            most = max(most, value[i])
        upto[k] = most
    before[count], least = total, np.inf
    least_from[count] = np.inf
    for k in range(count - 1, -1, -1):
        for i in range(edges[k], edges[k + 1]):
            least = min(least, value[i])
        least_from[k] = least


@kernel(inner=True)
def _weight_around(goal, scale, buckets):
    """Return the weight of the sums up to ``goal``."""
    k = _bucket(goal, scale)
    if goal < buckets.least[k]:
        return buckets.before[k]
    if goal >= buckets.most[k]:
        return buckets.before[k + 1]
    return _weight_up_to(goal, k, buckets)


@kernel(inner=True)
def _weight_up_to(goal, k, buckets):
    """Return the weight of the sums up to ``goal``, a value inside bucket k.

    The bucket is sorted the first time; then ``weight`` contains minus the weight before each sum.
    """
    edges, value, weight = buckets.edges, buckets.value, buckets.weight
    i, j = edges[k], edges[k + 1]
    if weight[i] >= 0.0:
        _sort(value[i:j], weight[i:j])
        total = buckets.before[k]
        for m in range(i, j):
            total, weight[m] = total + weight[m], -total
        weight[i] = -max(buckets.before[k], 1e-300)
    while i < j:
        m = (i + j) // 2
        if value[m] <= goal:
            i = m + 1
        else:
            j = m
    return -weight[i]


@kernel(inner=True)
def _sort(value, weight):
    """Sort values in place, together with their weights."""
    if len(value) > _SHORT:
        order = np.argsort(value)
        value[:], weight[:] = value[order], weight[order]
        return
    for i in range(1, len(value)):
        v, w = value[i], weight[i]
        j = i
        while j > 0 and value[j - 1] > v:
            value[j], weight[j] = value[j - 1], weight[j - 1]
            j -= 1
        value[j], weight[j] = v, w
