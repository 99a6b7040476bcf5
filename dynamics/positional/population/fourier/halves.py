r"""Counting signs by halves of the sets: sums of one half against sorted sums of the other.

The sets are independent given their types, so with the sets in two groups ``A`` and ``B``

.. math:: P[F \le 0, R = r] = \sum_A P(A)\,
          P_B[\,n_B = r - n_A,\ x_B \le -\mathrm{base} - x_A\,],

``n`` and ``x`` being sums over a group. For every ``n_B`` the multisets of B are sorted by
``x_B``; a value of their cumulative law answers for one multiset of A. The pairs are as many as the
multisets of all sets, the work is that of the two groups.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dynamics.core.jit import kernel
from dynamics.positional.population.fourier.multisets import multisets
from dynamics.positional.population.fourier.plan import SetLaw
from dynamics.positional.population.fourier.rounding import UNIT

#: Multisets of one half beyond these are left out.
_MOST_NODES = 400_000

#: Buckets up to this size are sorted by insertion.
_SHORT = 24


class Half(NamedTuple):
    """Multisets of one half, sorted by the sum of their n.

    ``parent``, ``last``, ``number``: the tree, in its own order; ``slot``: where a node stands in
    the sorted one. Those of ``n = g - span`` fill ``first[g] ... first[g + 1] - 1``; ``weight`` is
    sorted.
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
    """Enumerate both halves; return them with the probability left out."""
    a, b = (_half(half, law, 0.4 * remainder) for half in (sets // 2, sets - sets // 2))
    return Halves(a, b), 1.0 - float(a.weight.sum() * b.weight.sum())


def _half(sets: int, law: SetLaw, remainder: float) -> Half:
    order = np.argsort(-law.p, kind="stable")
    log_keep = max(law.log_p_empty, -690.0)
    tree = multisets(law.p[order], law.n[order], sets, log_keep, remainder, _MOST_NODES)
    span = int(np.abs(tree.total).max())
    group = tree.total + span
    nodes = np.argsort(group, kind="stable")
    slot = np.empty_like(nodes)
    slot[nodes] = np.arange(len(nodes))
    first = np.concatenate([[0], np.cumsum(np.bincount(group, minlength=2 * span + 1))])
    return Half(
        tree.parent, order[tree.last], tree.number, slot, first, tree.weight[nodes], span
    )  # fmt: skip


@kernel
def count_by_halves(totals, bases, x, dbases, dx, a, b, L):
    """Return P[F < 0, R = r], P[F <= 0, R = r] and the probability enumerated, for each total.

    What may be on either side within the errors ``dbases, dx`` of the tables counts as the second.
    """
    counted = np.zeros((3, len(totals)))
    scratch = np.empty(max(len(a.slot), len(b.slot)))
    sums_a, sums_b = np.empty(len(a.slot)), np.empty(len(b.slot))
    room = 0
    for g in range(2 * b.span + 1):
        room = max(room, b.first[g + 1] - b.first[g])
    buckets, edges = np.empty(max(room, len(a.slot)), np.int64), np.empty(room + 1, np.int64)
    ends, value, weight = np.empty((3, room + 1)), np.empty(room), np.empty(room)
    for i in range(len(totals)):
        largest = error = 0.0
        for k in range(x.shape[1]):
            largest, error = max(largest, abs(x[i, k])), max(error, dx[i, k])
        blur = 1e-300 + dbases[i] + L * error + UNIT * (L + 8.0) * (abs(bases[i]) + L * largest)
        _sum_up(a.parent, a.last, a.slot, x[i], scratch, sums_a)
        _sum_up(b.parent, b.last, b.slot, x[i], scratch, sums_b)
        for g in range(2 * b.span + 1):
            h = totals[i] - (g - b.span) + a.span
            if h < 0 or h > 2 * a.span:
                continue
            p, q, u, v = a.first[h], a.first[h + 1], b.first[g], b.first[g + 1]
            if p < q and u < v:
                _join(
                    -bases[i], blur, sums_a[p:q], a.weight[p:q], sums_b[u:v], b.weight[u:v],
                    buckets, edges, ends, value, weight, counted[:, i],
                )  # fmt: skip
    return counted


@kernel(inner=True)
def _sum_up(parent, last, slot, x, scratch, sums):
    """Fill the sum of ``x`` over each multiset, in the sorted order."""
    scratch[0] = sums[slot[0]] = 0.0
    for node in range(1, len(sums)):
        value = scratch[parent[node]] + x[last[node]]
        scratch[node] = sums[slot[node]] = value


@kernel(inner=True)
def _join(
    goal, blur, sums_a, weights_a, sums_b, weights_b, buckets, edges, ends, value, weight, counted
):
    """Add the probability of pairs with sum below ``goal``, at most ``goal``, and of all."""
    all_a, least, most = _total_and_range(sums_a, weights_a)
    all_b, lowest, highest = _total_and_range(sums_b, weights_b)
    counted[2] += all_a * all_b
    if goal - least + blur < lowest:
        return
    if goal - most - blur >= highest:
        counted[0] += all_a * all_b
        counted[1] += all_a * all_b
        return
    middle, width = _spread(sums_b)
    many = len(sums_b)
    _buckets(sums_b, 0.0, 1.0, middle, width, many, buckets)
    _fill(sums_b, weights_b, buckets, edges, ends, value, weight)
    _buckets(sums_a, goal - blur, -1.0, middle, width, many, buckets)
    for i in range(len(sums_a)):
        k, rest = buckets[i], goal - blur - sums_a[i]
        if rest < ends[1, k]:
            under, after = ends[0, k], ends[1, k]
        elif rest >= ends[2, k]:
            under, after = ends[0, k + 1], ends[1, k + 1]
        else:
            under, after = _weight_up_to(rest, k, edges, ends, value, weight), -np.inf
        over = under
        if rest + 2.0 * blur >= after:
            over = _weight_around(
                rest + 2.0 * blur, middle, width, many, edges, ends, value, weight
            )
        counted[0] += weights_a[i] * under
        counted[1] += weights_a[i] * over


@kernel(inner=True)
def _total_and_range(sums, weights):
    """Return the total weight, the least and the largest sum."""
    total, least, most = 0.0, sums[0], sums[0]
    for i in range(len(sums)):
        total += weights[i]
        least, most = min(least, sums[i]), max(most, sums[i])
    return total, least, most


@kernel(inner=True)
def _spread(sums):
    """Return the median of a few sums, and the median distance from it."""
    row = np.empty(15)
    for k in range(15):
        row[k] = sums[k * len(sums) // 15]
    row.sort()
    middle = row[7]
    for k in range(15):
        row[k] = abs(row[k] - middle)
    row.sort()
    return middle, max(row[7], 1e-3 * row[14], 1e-290)


@kernel(inner=True)
def _buckets(sums, start, sign, middle, width, many, buckets):
    """Fill the buckets 0 ... many - 1 of ``start + sign sums``.

    Every rounded operation is monotone, so values in order have buckets in order.
    """
    for i in range(len(sums)):
        away = start + sign * sums[i] - middle
        part = 0.5 * (width / (width + abs(away)))
        part = 1.0 - part if away >= 0.0 else part
        buckets[i] = min(int(part * many), many - 1)


@kernel(inner=True)
def _fill(sums, weights, buckets, edges, ends, value, weight):
    """Distribute the sums and their weights among buckets; ``edges[k]`` is where bucket k begins.

    ``ends``: the weight before each bucket, the least value from there on, the largest up to there.
    """
    many = len(sums)
    for k in range(many + 1):
        edges[k] = 0
    for i in range(many):
        edges[buckets[i]] += 1
    end = 0
    for k in range(many + 1):
        end += edges[k]
        edges[k] = end
    for i in range(many):
        k = buckets[i]
        edges[k] -= 1
        value[edges[k]], weight[edges[k]] = sums[i], weights[i]
    total, most = 0.0, -np.inf
    for k in range(many):
        ends[0, k] = total
        for i in range(edges[k], edges[k + 1]):
            total += weight[i]
            most = max(most, value[i])
        ends[2, k] = most
    ends[0, many], least = total, np.inf
    ends[1, many] = np.inf
    for k in range(many - 1, -1, -1):
        for i in range(edges[k], edges[k + 1]):
            least = min(least, value[i])
        ends[1, k] = least


@kernel(inner=True)
def _weight_around(goal, middle, width, many, edges, ends, value, weight):
    """Return the weight of the sums up to ``goal``."""
    away = goal - middle
    part = 0.5 * (width / (width + abs(away)))
    part = 1.0 - part if away >= 0.0 else part
    k = min(int(part * many), many - 1)
    if goal < ends[1, k]:
        return ends[0, k]
    if goal >= ends[2, k]:
        return ends[0, k + 1]
    return _weight_up_to(goal, k, edges, ends, value, weight)


@kernel(inner=True)
def _weight_up_to(goal, k, edges, ends, value, weight):
    """Return the weight of the sums up to ``goal``, which lies inside bucket k.

    Sorts the bucket the first time; from then on ``weight`` holds minus the weight before each.
    """
    i, j = edges[k], edges[k + 1]
    if weight[i] >= 0.0:
        _sort(value[i:j], weight[i:j])
        total = ends[0, k]
        for m in range(i, j):
            total, weight[m] = total + weight[m], -total
        weight[i] = -max(ends[0, k], 1e-300)
    while i < j:
        m = (i + j) // 2
        if value[m] <= goal:
            i = m + 1
        else:
            j = m
    return -weight[i]


@kernel(inner=True)
def _sort(value, weight):
    """Sort values in place, their weights with them."""
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
