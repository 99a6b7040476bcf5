r"""Test error P[F <= 0] and ties P[F = 0] by counting, with a certified remainder.

No smoothing resolves the sign of a discrete ``F`` (a band-limited majorant of the step leaves the
density of ``F`` over its bandwidth, some 1e-4 for the 1e4 nodes that one could afford), so the
signs are counted, for every total ``R`` for which they are not certain by Chernoff bounds, along
one of two roads; of each the probability that was not enumerated is known and bounds the error.
Only sums of powers are added up (:mod:`dynamics.positional.population.fourier.signs.power_sums`),
with their errors; where they leave the sign open and no symmetry decides it, the probability goes
into the bound.

*Crowded sets.* Given ``R = r``, sets with a single +1 or a single -1 are summed in closed form: if
``j`` sets hold a lone -1 then ``j + r - n`` hold a lone +1 (``n`` the sum over all other sets), and
``F`` is linear in ``j``, so ``P[F <= 0]`` is a value of a cumulative sum tabulated once. Only the
multisets of the other ("crowded") types are enumerated, in a tree pruned by probability; they
become rare as D grows at fixed q D.

*Halves* (:mod:`dynamics.positional.population.fourier.signs.halves`). Many features in few sets
leave no type rare. There each half of the sets is enumerated, and the two are joined by sorting.
"""

import math
from typing import NamedTuple

import numpy as np

from dynamics.core.jit import kernel
from dynamics.positional.population.fourier.errors import MARGIN, UNIT, WeightErrors
from dynamics.positional.population.fourier.set_law import SetLaw
from dynamics.positional.population.fourier.signs.halves import count_by_halves
from dynamics.positional.population.fourier.signs.power_sums import Order, power_tables
from dynamics.positional.population.fourier.signs.sign_law import SignLaw
from dynamics.positional.population.fourier.tables import Model
from dynamics.positional.population.fourier.tilts import (
    MANY,
    R,
    U,
    room_to_tilt,
    slack,
    tilt_totals,
)

#: Pairs of a total and a multiset that are visited at most: some ten seconds.
_MOST_VISITS = 5 * 10**8


class Signs(NamedTuple):
    """P[F <= 0] and P[F = 0], and the absolute errors of either."""

    error: float
    ties: float
    error_bound: float
    ties_bound: float


class Undecided(NamedTuple):
    """The totals whose sign Chernoff bounds leave open.

    ``totals``, their tables ``base`` and ``x[total, type]`` and the errors of these, ``dbase`` and
    ``dx``; P[F <= 0] over the decided ones, ``wrong``, and the probability by which that may be
    wrong, ``missing``.
    """

    totals: np.ndarray
    base: np.ndarray
    x: np.ndarray
    dbase: np.ndarray
    dx: np.ndarray
    wrong: float
    missing: float


def sign_probabilities(
    law: SetLaw, signs: SignLaw, model: Model, of_weights: WeightErrors, order: Order
) -> Signs:
    """Return P[F <= 0] and P[F = 0] with bounds of their errors.

    ``of_weights``: the errors of the attention weights; ``order``: of the logits.
    """
    if model.alpha == 0.0:
        return Signs(1.0, 1.0, 0.0, 0.0)
    left_open = undecided(law, signs.reach, signs.tolerance, model, of_weights, order)
    totals, x, dx, wrong = left_open.totals, left_open.x, left_open.dx, left_open.wrong
    (low, high, found), nodes = _counted(law, signs, left_open)
    here = law.p_total[law.center + totals]
    left = np.maximum(0.0, here - found)
    share = np.divide(high, found, out=np.full(len(found), 0.5), where=found > 0.0)
    tied = np.zeros(len(totals))
    balanced = totals == -law.C
    if dx[balanced].any():
        tied[balanced] = np.minimum(signs.symmetric, here[balanced])
    elif not x[balanced].any():  # gamma = rho: all of T = 0 ties, enumerated or not
        tied[balanced] = high[balanced] = here[balanced]
        low[balanced] = left[balanced] = 0.0
    else:
        tied[balanced] = (high - low)[balanced]
    open_ = np.maximum(0.0, high - low - tied)
    noise = len(law.log_tail) * law.noise + left_open.missing
    noise += (signs.accuracy + law.accuracy + (256 + nodes) * UNIT) * float(np.sum(here) + wrong)
    error = wrong + float(np.sum(low + tied + 0.5 * open_ + left * share))
    below = float(np.sum(0.5 * open_ + left * share))
    above = float(np.sum(0.5 * open_ + left * (1.0 - share)))
    return Signs(
        error,
        float(np.sum(tied)),
        MARGIN * (max(below, above) + noise),
        MARGIN * (float(np.sum(open_ + left)) + noise),
    )


def _counted(law: SetLaw, signs: SignLaw, left_open: Undecided) -> tuple[np.ndarray, int]:
    """Count along the chosen road; nothing where it is too long, and the bounds say so."""
    trees = signs.halves if signs.crowded is None else (signs.crowded,)
    nodes = sum(len(tree.weight) for tree in trees or ())
    if len(left_open.totals) * nodes > _MOST_VISITS:
        return np.zeros((3, len(left_open.totals))), nodes
    if signs.crowded is not None:
        return count_by_crowded(left_open, signs.crowded), nodes
    assert signs.halves is not None
    return count_by_halves(left_open, signs.halves.a, signs.halves.b, law.L), nodes


@kernel
def undecided(law, reach, tolerance, model, of_weights, order):
    """Decide the sign for every R that Chernoff bounds can decide; return the others."""
    types, count, limit = len(law.n), 2 * reach + 1, len(law.log_tail) - 1
    x, dx, rows = (
        np.empty((types, count)),
        np.empty((types, count)),
        np.empty((2, 3, 2 * law.C + 1)),
    )
    base, dbase, largest = np.empty(count), np.empty(count), np.empty(count)
    for i in range(count):
        base[i], dbase[i] = power_tables(
            i - reach, law, model, of_weights, order, rows, x[:, i], dx[:, i]
        )
        largest[i] = dbase[i] + (law.L - 1.0) * dx[:, i].max()
    cut = math.log(0.1 * tolerance / count)
    positive = _sure(0.25, cut - 40.0, law, x, base, largest)
    negative = _sure(-0.25, cut - 40.0, law, x, base, largest)
    wrong, missing, left = 0.0, 0.0, np.zeros(count, dtype=np.bool_)
    if reach + 1 < len(law.log_tail):
        missing = math.exp(law.log_tail[reach + 1])
    for i in range(count):
        log_p = law.log_probability[limit + i - reach]
        best = log_p if log_p < cut else positive[i] if positive[i] < cut else negative[i]
        left[i] = best >= cut
        if not left[i]:
            missing += math.exp(best)
            wrong += law.p_total[law.center + i - reach] if min(log_p, positive[i]) >= cut else 0.0
    totals = np.flatnonzero(left)
    return Undecided(
        totals - reach, base[totals], x.T[totals], dbase[totals], dx.T[totals], wrong, missing
    )


@kernel(inner=True)
def _sure(lam, enough, law, x, base, error):
    """Bound log P[F <= 0, R = r] by Chernoff with lam, 2 lam, ...; for lam < 0 log P[F >= 0].

    For each total, until a bound is below ``enough``. ``error``: how far the tables may be off for
    any multiset.
    """
    count, tilting = len(base), room_to_tilt(law)
    rows, best, done = tilting.rows, np.zeros(count), np.zeros(count, dtype=np.bool_)
    for first in range(0, count, MANY):
        lanes = min(MANY, count - first)
        tilting.lam[:] = lam
        for lane in range(lanes):
            rows[U * MANY + lane] = 0.0
            rows[R * MANY + lane] = first + lane - count // 2
        for _ in range(48):
            tilt_totals(first, lanes, law, x, tilting)
            for lane in range(lanes):
                i, each, log_f = first + lane, tilting.lam[lane], tilting.log_f[lane]
                shift = rows[R * MANY + lane] * rows[U * MANY + lane]
                bound = -each * base[i] + (law.L - 1.0) * log_f - shift + abs(each) * error[i]
                bound += slack(law, log_f, shift)
                if done[i] or not bound < best[i]:
                    done[i] = True
                    continue
                best[i], done[i] = bound, bound < enough
                tilting.lam[lane] *= 2.0
            if done[first : first + lanes].all():
                break
    return best


@kernel
def count_by_crowded(left_open, signs):
    """Return P[F < 0, R = r], P[F <= 0, R = r] and the probability enumerated, for each total.

    What may be on either side within the errors of the tables counts as the second.
    """
    many = len(left_open.totals)
    counted, partial = np.empty((3, many)), np.empty(len(signs.parent))
    for i in range(many):
        counted[0, i], counted[1, i], counted[2, i] = _count_signs(i, left_open, signs, partial)
    return counted


@kernel(inner=True)
def _count_signs(i, left_open, signs, partial):
    """Return P[F < 0, R = r], P[F <= 0, R = r] and the probability enumerated, for R number i.

    With j pairs of lone patches F is ``start + j slope`` within ``near + j wide``.
    """
    r, base, dbase = left_open.totals[i], left_open.base[i], left_open.dbase[i]
    x, dx = left_open.x[i], left_open.dx[i]
    lone, of_lone = np.zeros(2), 0.0
    largest = error = 0.0
    for k in range(len(x)):
        largest, error = max(largest, abs(x[k])), max(error, dx[k])
    for side in range(2):
        if signs.single[side] >= 0:
            lone[side] = x[signs.single[side]]
            of_lone = max(of_lone, dx[signs.single[side]])
    slope = lone[0] + lone[1]
    wide = 2.0 * of_lone + 4.0 * UNIT * (abs(lone[0]) + abs(lone[1]))
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
        weight, number = signs.weight[node], signs.number[node]
        start = partial[node] + (d * lone[0] if d > 0 else -d * lone[1])
        size = abs(base) + number * largest + abs(d) * max(abs(lone[0]), abs(lone[1]))
        near = dbase + number * error + abs(d) * of_lone + UNIT * (number + 8.0) * size
        high += weight * _at_most(near - start, slope - wide, table, width)
        low += weight * _at_most(-near - start, slope + wide, table, width)
        found += weight * table[width]
    return low, high, found


@kernel(borrows=True)
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
