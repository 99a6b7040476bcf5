"""Test error P[F <= 0] and ties P[F = 0] by enumeration, with a certified remainder.

Smoothing does not resolve the sign of a discrete ``F``: the error of a band-limited majorant of the
step is the density of ``F`` over its bandwidth, some 1e-4 for 1e4 nodes. The signs are therefore
enumerated for every total ``R`` for which Chernoff bounds do not determine them. The probability
that is not enumerated is known and bounds the error. Only sums of powers are added up
(:mod:`dynamics.positional.population.fourier.signs.power_sums`), with their errors. If these do not
determine the sign and no symmetry does, the probability is part of the bound. There are two
algorithms.

*Crowded sets.* Given ``R = r``, sets with a single +1 or a single -1 are summed in closed form: if
``j`` sets have a lone -1, then ``j + r - n`` have a lone +1 (``n`` the sum over all other sets),
and ``F`` is linear in ``j``, so that ``P[F <= 0]`` is a value of a cumulative sum. Only the
multisets of the other ("crowded") types are enumerated, in a tree pruned by probability; they
become rare as D grows at fixed q D.

*Halves* (:mod:`dynamics.positional.population.fourier.signs.halves`). If there are many features in
few sets, no type is rare. Then each half of the sets is enumerated, and the two halves are combined
by sorting.
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
    MAX_LANES,
    R,
    U,
    allocate_tilting,
    slack,
    tilt_totals,
)

#: Largest number of visited pairs of a total and a multiset: some ten seconds.
_MOST_VISITS = 5 * 10**8


class Signs(NamedTuple):
    """P[F <= 0] and P[F = 0], and the absolute errors of both."""

    error: float
    ties: float
    error_bound: float
    ties_bound: float


class Undecided(NamedTuple):
    """Totals for which Chernoff bounds do not determine the sign.

    Attributes
    ----------
    totals
        Values of R.
    base, x, dbase, dx
        Their tables ``base`` and ``x[total, type]``, and the errors of these.
    wrong, missing
        P[F <= 0] over all other totals, and its error.
    """

    totals: np.ndarray
    base: np.ndarray
    x: np.ndarray
    dbase: np.ndarray
    dx: np.ndarray
    wrong: float
    missing: float


def sign_probabilities(
    law: SetLaw, signs: SignLaw, model: Model, weight_errors: WeightErrors, order: Order
) -> Signs:
    """Return P[F <= 0] and P[F = 0] with bounds of their errors.

    Parameters
    ----------
    law, signs, model
        Distribution of the sets, multisets to enumerate, and attention weights at the state.
    weight_errors
        Errors of the attention weights.
    order
        Order of the logits.
    """
    if model.alpha == 0.0:
        return Signs(1.0, 1.0, 0.0, 0.0)
    open_totals = undecided(law, signs.reach, signs.tolerance, model, weight_errors, order)
    totals, x, dx, wrong = open_totals.totals, open_totals.x, open_totals.dx, open_totals.wrong
    (low, high, enumerated), nodes = _count(law, signs, open_totals)
    here = law.p_total[law.center + totals]
    left = np.maximum(0.0, here - enumerated)
    share = np.divide(high, enumerated, out=np.full(len(enumerated), 0.5), where=enumerated > 0.0)
    tied = np.zeros(len(totals))
    balanced = totals == -law.C
    if dx[balanced].any():
        tied[balanced] = np.minimum(signs.symmetric, here[balanced])
    elif not x[balanced].any():  # gamma = rho: all images with T = 0 are ties
        tied[balanced] = high[balanced] = here[balanced]
        low[balanced] = left[balanced] = 0.0
    else:
        tied[balanced] = (high - low)[balanced]
    open_ = np.maximum(0.0, high - low - tied)
    noise = len(law.log_tail) * law.noise + open_totals.missing
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


def _count(law: SetLaw, signs: SignLaw, open_totals: Undecided) -> tuple[np.ndarray, int]:
    """Enumerate by the chosen algorithm; with too many visits return 0, which the bounds cover."""
    trees = signs.halves if signs.crowded is None else (signs.crowded,)
    nodes = sum(len(tree.weight) for tree in trees or ())
    if len(open_totals.totals) * nodes > _MOST_VISITS:
        return np.zeros((3, len(open_totals.totals))), nodes
    if signs.crowded is not None:
        return count_by_crowded(open_totals, signs.crowded), nodes
    assert signs.halves is not None
    return count_by_halves(open_totals, signs.halves.a, signs.halves.b, law.L), nodes


@kernel
def undecided(law, reach, tolerance, model, weight_errors, order):
    """Return the totals whose signs Chernoff bounds do not determine."""
    types, count, limit = len(law.n), 2 * reach + 1, len(law.log_tail) - 1
    x, dx, rows = (
        np.empty((types, count)),
        np.empty((types, count)),
        np.empty((2, 3, 2 * law.C + 1)),
    )
    base, dbase, largest = np.empty(count), np.empty(count), np.empty(count)
    for i in range(count):
        base[i], dbase[i] = power_tables(
            i - reach, law, model, weight_errors, order, rows, x[:, i], dx[:, i]
        )
        largest[i] = dbase[i] + (law.L - 1.0) * dx[:, i].max()
    cut = math.log(0.1 * tolerance / count)
    positive = _chernoff_bounds(0.25, cut - 40.0, law, x, base, largest)
    negative = _chernoff_bounds(-0.25, cut - 40.0, law, x, base, largest)
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
def _chernoff_bounds(lam, enough, law, x, base, error):
    """Bound log P[F <= 0, R = r] by Chernoff with lam, 2 lam, ...; log P[F >= 0, ...] for lam < 0.

    This is repeated for each total until the bound is below ``enough``. ``error`` bounds the errors
    of the tables for any multiset.
    """
    count, tilting = len(base), allocate_tilting(law)
    rows, best, done = tilting.rows, np.zeros(count), np.zeros(count, dtype=np.bool_)
    for first in range(0, count, MAX_LANES):
        lanes = min(MAX_LANES, count - first)
        tilting.lam[:] = lam
        for lane in range(lanes):
            rows[U * MAX_LANES + lane] = 0.0
            rows[R * MAX_LANES + lane] = first + lane - count // 2
        for _ in range(48):
            tilt_totals(first, lanes, law, x, tilting)
            for lane in range(lanes):
                i, tilt, log_f = first + lane, tilting.lam[lane], tilting.log_f[lane]
                shift = rows[R * MAX_LANES + lane] * rows[U * MAX_LANES + lane]
                bound = -tilt * base[i] + (law.L - 1.0) * log_f - shift + abs(tilt) * error[i]
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
def count_by_crowded(open_totals, signs):
    """Return P[F < 0, R = r], P[F <= 0, R = r] and the enumerated probability, for each total.

    Signs that the errors of the tables leave open count in the second only.
    """
    count = len(open_totals.totals)
    counted, partial = np.empty((3, count)), np.empty(len(signs.parent))
    for i in range(count):
        counted[0, i], counted[1, i], counted[2, i] = _count_signs(i, open_totals, signs, partial)
    return counted


@kernel(inner=True)
def _count_signs(i, open_totals, signs, partial):
    """Return P[F < 0, R = r], P[F <= 0, R = r] and the enumerated probability, for total number i.

    With j pairs of lone patches F is ``start + j slope`` with the error ``near + j wide``.
    """
    r, base, dbase = open_totals.totals[i], open_totals.base[i], open_totals.dbase[i]
    x, dx = open_totals.x[i], open_totals.dx[i]
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
    low = high = enumerated = 0.0
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
        enumerated += weight * table[width]
    return low, high, enumerated


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
