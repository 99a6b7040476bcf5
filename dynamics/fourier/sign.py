r"""Test error P[F <= 0] and ties P[F = 0] by counting, with a certified remainder.

No smoothing resolves the sign of a discrete ``F``, so the signs are counted. Given ``R = r``, sets
with a single +1 or a single -1 are summed in closed form: if ``j`` sets hold a lone -1 then
``j + r - n`` hold a lone +1 (``n`` the sum over all other sets), and ``F`` is linear in ``j``, so
``P[F <= 0]`` is a value of a cumulative sum tabulated once. Only the multisets of the other
("crowded") types are enumerated, in a tree pruned by probability; they become rare as D grows at
fixed q D. The probability that was not enumerated is known exactly and bounds the error.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dynamics._jit import kernel
from dynamics.fourier.plan import SetLaw, set_tables, tilt
from dynamics.problem import Problem

_MOST_NODES = 400_000
_UNIT = 2.0**-53


class SignLaw(NamedTuple):
    """Multisets of crowded types, and the law of the lone ones; functions of D, C, q alone.

    The tree has one node per multiset: ``parent`` (the multiset without its last set), ``last``
    (type of that set), ``number`` (of its sets), ``total`` (sum of their n) and ``weight``, the
    probability that exactly these crowded sets occur. ``single`` are the indices of types (1, 0)
    and (0, 1), -1 if impossible. ``cumulative[number, d + offset, j]`` is the probability, given
    ``number`` crowded sets, of ``d`` more lone +1 than lone -1 and fewer than ``j`` of the rarer.
    """

    parent: np.ndarray
    last: np.ndarray
    number: np.ndarray
    total: np.ndarray
    weight: np.ndarray
    single: np.ndarray
    cumulative: np.ndarray
    offset: int
    reach: int
    tolerance: float


def sign_law(problem: Problem, law: SetLaw, tolerance: float) -> SignLaw:
    """Build the tree for a remainder of about ``tolerance``, or the largest tree allowed."""
    sets = problem.L - 1
    log_keep = _log_not_crowded(law)
    crowded = np.flatnonzero(law.plus + law.minus >= 2)
    crowded = crowded[np.argsort(-law.p[crowded], kind="stable")]
    tree, threshold = None, 1e-2
    while tree is None or (1.0 - tree[4].sum() > 0.2 * tolerance and threshold > 1e-17):
        threshold *= 0.1
        finer = _tree(law.p[crowded], law.n[crowded], sets, log_keep, threshold)
        if tree is not None and len(finer[0]) >= _MOST_NODES:
            break
        tree = finer
    parent, last, count, total, weight = tree
    reach = int(np.searchsorted(-law.log_tail, -math.log(0.01 * tolerance)))
    reach = min(reach, len(law.log_tail) - 1)
    offset = reach + int(np.abs(total).max())
    return SignLaw(
        parent=parent,
        last=crowded[last],
        number=count,
        total=total,
        weight=weight,
        single=np.array([_index(law, 1, 0), _index(law, 0, 1)]),
        cumulative=_lone_law(problem, law, int(count.max()), offset, log_keep),
        offset=offset,
        reach=reach,
        tolerance=tolerance,
    )


def _index(law: SetLaw, plus: int, minus: int) -> int:
    found = np.flatnonzero((law.plus == plus) & (law.minus == minus))
    return int(found[0]) if len(found) else -1


def _log_not_crowded(law: SetLaw) -> float:
    """Return the log-probability that a set is empty or holds a lone patch."""
    lone = float(law.p[law.plus + law.minus == 1].sum())
    return math.log(max(lone + law.p_empty, 1e-300))


def _tree(
    p: np.ndarray, n: np.ndarray, sets: int, log_keep: float, threshold: float
) -> tuple[np.ndarray, ...]:
    """Return (parent, last, count, total, probability) of the multisets above the threshold."""
    ratio = np.log(sets * p) - log_keep
    # the largest factor by which sets of types t, t + 1, ... can still raise the probability
    gain = [max(0.0, *_poisson_peak(v, sets)) for v in ratio]
    future = np.cumsum(gain[::-1])[::-1].copy()
    room = _MOST_NODES
    ints = np.zeros((4, room), dtype=np.int64)
    weight = np.empty(room)
    weight[0] = sets * log_keep
    floor = math.log(threshold)
    nodes = _grow(p, n, sets, log_keep, floor, future, ints, weight)
    return (*ints[:, :nodes].copy(), np.exp(weight[:nodes]))


def _poisson_peak(log_ratio: float, most: int) -> list[float]:
    peak = math.exp(min(log_ratio, 30.0))
    return [
        m * log_ratio - math.lgamma(m + 1) for m in {min(most, int(peak)), min(most, int(peak) + 1)}
    ]


@kernel
def _grow(p, n, sets, log_keep, floor, future, ints, weight):
    """Grow the tree of multisets (breadth first) and return its number of nodes."""
    parent, last, count, total = ints[0], ints[1], ints[2], ints[3]
    nodes, done = 1, 0
    while done < nodes:
        k = count[done]
        for t in range(last[done], len(p)):
            if k >= sets:
                break
            same, node = 1, done
            while node > 0 and last[node] == t:
                same += 1
                node = parent[node]
            log_weight = weight[done] + math.log((sets - k) * p[t] / same) - log_keep
            if log_weight + future[t] < floor:
                continue
            if nodes >= len(weight):
                return nodes
            parent[nodes], last[nodes] = done, t
            count[nodes], total[nodes] = k + 1, total[done] + int(n[t])
            weight[nodes] = log_weight
            nodes += 1
        done += 1
    return nodes


def _lone_law(problem: Problem, law: SetLaw, most: int, offset: int, log_keep: float) -> np.ndarray:
    """Tabulate the cumulative law of lone +1 and lone -1 among the sets that are not crowded."""
    single = _index(law, 1, 0)
    log_lone = law.log_p[single] - log_keep if single >= 0 else -math.inf
    log_none = law.log_p_empty - log_keep
    mean = (problem.L - 1) * math.exp(log_lone)
    width = min((problem.L - 1) // 2 + 1, int(mean + 12 * math.sqrt(mean) + 30))
    j = np.arange(width)[None, :]
    d = np.abs(np.arange(-offset, offset + 1))[:, None]
    table = np.zeros((most + 1, 2 * offset + 1, width + 1))
    factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, 2 * width + offset + 2)))])
    lone = 2 * j + d
    for k in range(most + 1):
        sets = problem.L - 1 - k
        steps = np.arange(int(lone.max()))
        falling = np.concatenate([[0.0], np.cumsum(np.log(np.maximum(sets - steps, 1)))])
        logs = falling[lone] - factorial[j] - factorial[j + d]
        logs = logs + _times(lone, log_lone) + _times(np.maximum(sets - lone, 0), log_none)
        table[k, :, 1:] = np.cumsum(np.where(lone <= sets, np.exp(logs), 0.0), axis=1)
    return table


def _times(count: np.ndarray, log_p: float) -> np.ndarray:
    if log_p > -math.inf:
        return count * log_p
    return np.where(count > 0, -1e300, 0.0)


@kernel
def sign_probabilities(law, signs, C, L, constants, power):
    """Return P[F <= 0], P[F = 0] within rounding, and a bound of the error of either."""
    types = len(law.n)
    x, y, base = np.empty(types), np.empty((3, types)), np.empty(5)
    rows, scratch = np.empty((3, 2 * C + 1, 4)), np.empty((2, 2 * C + 1))
    share, partial = np.empty(types), np.empty(len(signs.parent))
    wrong = tie = missing = 0.0
    if signs.reach + 1 < len(law.log_tail):
        missing = math.exp(law.log_tail[signs.reach + 1])
    cut = math.log(0.1 * signs.tolerance / (2 * signs.reach + 1))
    for r in range(-signs.reach, signs.reach + 1):
        set_tables(r, law.plus, law.minus, law.level, L, C, constants, power, rows, x, y, base)
        here = law.total[law.center + r]
        log_p = law.log_probability[len(law.log_tail) - 1 + r]
        positive = negative = 0.0
        for side in range(2):
            bound = _sure(
                0.25 - 0.5 * side, cut - 40.0, r, law.log_p, law.log_p_empty, law.level, L - 1.0, C,
                base[0], x, share, scratch[0], scratch[1],
            )  # fmt: skip
            if side == 0:
                positive = bound
            else:
                negative = bound
        if min(log_p, positive, negative) < cut:
            missing += math.exp(log_p if log_p < cut else positive if positive < cut else negative)
            wrong += here if min(log_p, positive) >= cut else 0.0
            continue
        low, high, found = _count_signs(r, signs, base[0], x, partial)
        left = max(0.0, here - found)
        wrong += high + left * (high / found if found > 0 else 0.5)
        tie += high - low
        missing += left
    return wrong, tie, missing + len(law.log_tail) * law.noise


@kernel(inner=True)
def _sure(lam, enough, r, log_p, log_p_empty, of_type, sets, C, base, x, share, level, rise):
    """Bound log P[F <= 0, R = r] by Chernoff with lam, 2 lam, ...; for lam < 0 log P[F >= 0].

    Stops at a bound below ``enough``.
    """
    best = u = 0.0
    for _ in range(16):
        u, log_f, _, _ = tilt(
            lam, r, log_p, log_p_empty, of_type, sets, C, x, u, share, level, rise
        )
        bound = -lam * base + sets * log_f - r * u
        if not bound < best:
            break
        best = bound
        if best < enough:
            break
        lam *= 2.0
    return best


@kernel(inner=True)
def _count_signs(r, signs, base, x, partial):
    """Return P[F < 0, R = r], P[F <= 0, R = r] and the probability enumerated."""
    lone = np.zeros(2)
    largest = 0.0
    for k in range(len(x)):
        largest = max(largest, abs(x[k]))
    for side in range(2):
        if signs.single[side] >= 0:
            lone[side] = x[signs.single[side]]
    slope = lone[0] + lone[1]
    width = signs.cumulative.shape[2] - 1
    low = high = found = 0.0
    for node in range(len(partial)):
        if node == 0:
            partial[0] = base
        else:
            partial[node] = partial[signs.parent[node]] + x[signs.last[node]]
        d = r - signs.total[node]
        if abs(d) > signs.offset:
            continue
        table = signs.cumulative[signs.number[node], d + signs.offset]
        weight = signs.weight[node]
        start = partial[node] + (d * lone[0] if d > 0 else -d * lone[1])
        blur = 1e-300 + 64 * _UNIT * (abs(base) + (signs.number[node] + abs(d) + 2) * largest)
        high += weight * _at_most(blur - start, slope, table, width)
        low += weight * _at_most(-blur - start, slope, table, width)
        found += weight * table[width]
    return low, high, found


@kernel(inner=True)
def _at_most(rest, slope, table, width):
    """Return the probability that ``j slope <= rest``."""
    if slope > 0:
        edge = rest / slope
        return 0.0 if edge < 0 else table[min(width, int(min(edge, 1e9)) + 1)]
    if slope < 0:
        edge = rest / slope
        return (
            table[width]
            if edge <= 0
            else table[width] - table[min(width, math.ceil(min(edge, 1e9)))]
        )
    return table[width] if rest >= 0 else 0.0
