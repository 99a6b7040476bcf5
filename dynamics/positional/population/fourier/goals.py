"""Totals R that matter, and the allowed error of each integral.

Every R is bounded by tilting (notebook ``fourier_method``, Section 6). It is left out if its
smallest bound is a small part of the allowed error. That error is a part of the answer, for which
the bounds are upper limits.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dynamics.core.jit import REORDER, kernel
from dynamics.positional.population.fourier.tables import Tables, tabulate
from dynamics.positional.population.fourier.tilts import (
    MAX_LANES,
    TILTS,
    UNTILTED,
    R,
    U,
    allocate_tilting,
    exponentials,
    slack,
    tilt_totals,
    weighted,
)

#: Smallest error that is required, relative to E|dF|.
FLOOR = 1e-15

#: The same for an accuracy relative to the value.
_RELATIVE_FLOOR = 1e-60

#: Larger tolerances are replaced by this one. With fewer nodes the truncation error is irregular:
#: 5 times the tolerance was observed at 0.01, half of it at 0.003.
COARSEST = 1e-3

#: Tilts tried for every R that may matter, in this order.
_COARSE = (1.0, 0.5, -0.5, -1.0)

#: Tilts tried for totals with many nodes.
_FINE = (-0.25, -0.125, 0.125, 0.25)

_LOG_TWO = math.log(2.0)


class Target(NamedTuple):
    """Requested accuracy.

    Attributes
    ----------
    tolerance
        Error relative to the answer.
    relative
        Whether the answer is the value itself, however small, instead of E[s(-F) |dF|].
    floor
        Smallest error that is required, relative to E|dF|.
    loss
        Whether the loss is required.
    """

    tolerance: float
    relative: bool
    floor: float
    loss: bool

    @classmethod
    def of(cls, tolerance: float, relative: bool = False, loss: bool = True) -> Target:
        """Return the target with its floor, and with a tolerance of at most `COARSEST`."""
        floor = _RELATIVE_FLOOR if relative else FLOOR
        return cls(min(tolerance, COARSEST), relative, floor, loss)


class Bounds(NamedTuple):
    """Logarithms of Chernoff bounds by total, for loss, three derivatives and mean sigmoid.

    Attributes
    ----------
    logs
        Bounds of E[e^(-lam F) |dF|], (totals, tilts, 5); infinite if not computed.
    best
        Smallest bounds of s(-F) |dF|, (totals, 5).
    tried
        Whether all coarse tilts were tried, (totals,).
    """

    logs: np.ndarray
    best: np.ndarray
    tried: np.ndarray


class Goals(NamedTuple):
    """Tables, bounds and allowed errors, before a line is chosen.

    Attributes
    ----------
    tables, bounds
        Contributions of the sets, and Chernoff bounds.
    log_beyond
        Logarithm of the probability of all R outside the tables.
    unit
        E|dF|, for the loss E[log 2 + |F|], (5,).
    goal
        Allowed errors, (5,); lowered as better upper bounds of the answer become known.
    """

    tables: Tables
    bounds: Bounds
    log_beyond: float
    unit: np.ndarray
    goal: np.ndarray


@kernel
def prepare(law, model, crude, target):
    """Return the :class:`Goals`: tables for every R that may matter, bounds, allowed errors.

    ``crude`` bounds softplus(-F), |dF| and 1 everywhere.
    """
    tolerance, floor = target.tolerance, target.floor
    center = _untilted(law, tabulate(law, model, 0))
    reach, log_beyond = _reach(law, crude, center.best[0], floor)
    of_sets = tabulate(law, model, reach)
    bounds = _untilted(law, of_sets)
    unit, goal = np.zeros(5), np.empty(5)
    _add_unit(law, of_sets, unit)
    for k in range(5):
        goal[k] = tolerance * unit[k]
    goals = Goals(of_sets, bounds, log_beyond, unit, goal)
    for _ in range(4 if floor >= FLOOR else 40):
        changed = tilt_where_needed(law, goals)
        if not changed and floor >= FLOOR:
            break
        fell = lower(0.1 * tolerance, floor, goals)
        if not (changed or fell):
            break
    return goals


@kernel(borrows=True, fastmath=REORDER)
def _add_unit(law, tables, unit):
    """Add E[log 2 + |F|], E[|dF|] and the probability over all R, with |F|, |dF| set by set."""
    p, n, sets = law.p, law.n, law.L - 1.0
    x, y, base = tables.x, tables.y, tables.base
    count = x.shape[1]
    center = law.center + tables.first
    row = law.p_total[center : center + count]
    for k in range(5):
        for i in range(count):
            unit[k] += abs(base[k, i]) * row[i]
    unit[0] += _LOG_TWO * unit[4]
    for j in range(len(p)):
        row, weight = law.p_less_one[center - int(n[j]) :], sets * p[j]
        for k in range(4):
            size = x[j] if k == 0 else y[k - 1, j]
            here = 0.0
            for i in range(count):
                here += row[i] * abs(size[i])
            unit[k] += weight * here


@kernel(borrows=True)
def _reach(law, crude, best, floor):
    """Return the largest |R| in the tables, and the log-probability of all larger ones."""
    log_tail = law.log_tail
    limit = len(log_tail) - 1
    depth = 0.0
    for k in range(5):
        depth = max(depth, min(math.log(crude[k] + 1e-300) - best[k], 60.0))
    depth += math.log(100.0 / floor)
    for reach in range(limit):
        if log_tail[reach + 1] < -depth:
            return reach, log_tail[reach + 1]
    if limit >= (law.L - 1) * law.C:
        return limit, -math.inf
    return limit, log_tail[limit]


@kernel(inner=True)
def _untilted(law, tables):
    """Return the bounds at ``lam = 0``, for the loss by log 2 + |F|; others are infinite."""
    x, y, base, sets = tables.x, tables.y, tables.base, law.L - 1.0
    count, first = x.shape[1], len(law.log_tail) - 1 + tables.first
    logs, best = np.empty((count, len(TILTS), 5)), np.empty((count, 5))
    total = np.empty(count)
    share = law.share.reshape(law.share.size)
    for k in range(4):
        weighted(share, first, x if k == 0 else y[k - 1], 0, base[k], sets, total)
        for i in range(count):
            size = total[i] + (_LOG_TWO if k == 0 else 1e-300)
            best[i, k] = law.log_probability[first + i] + math.log(size)
    for i in range(count):
        best[i, 4] = law.log_probability[first + i]
        for j in range(len(TILTS)):
            for k in range(5):
                logs[i, j, k] = best[i, k] if j == UNTILTED else math.inf
    return Bounds(logs, best, np.zeros(count, dtype=np.bool_))


@kernel(inner=True)
def lower(part, floor, goals):
    """Lower the finite goals to a part of the upper bounds of the answer; return if any was halved.

    For an accuracy relative to the value, totals that are negligible so far count too: they may
    contribute to the answer, and the goals decrease step by step.
    """
    best, tried, goal = goals.bounds.best, goals.bounds.tried, goals.goal
    bounds, scratch = np.empty(len(tried)), np.empty(len(tried))
    fell = False
    for k in range(5):
        for i in range(len(tried)):
            known = tried[i] or floor < FLOOR
            bounds[i] = min(best[i, k], 700.0) if known else -math.inf
        exponentials(bounds, scratch)
        if goal[k] < math.inf:
            before = goal[k]
            goal[k] = min(goal[k], max(part * bounds.sum(), floor * goals.unit[k]))
            fell = fell or goal[k] < 0.5 * before
    return fell


@kernel(inner=True)
def tilt_where_needed(law, goals):
    """Bound every R that is not yet negligible by tilting; return whether there is any.

    Positive tilts come first because only they can show that an R is negligible.
    """
    tried = goals.bounds.tried
    selected, least = np.empty(len(tried), dtype=np.bool_), thresholds(goals.goal, len(tried))
    if not _select_untried(goals.bounds, least, selected):
        return False
    start, slope, last = np.zeros(len(tried)), slopes(law, goals.tables), 0.0
    tilting = allocate_tilting(law)
    for lam in _COARSE:
        _select_untried(goals.bounds, least, selected)
        _shift_guesses(lam - last, slope, start)
        _bound_selected(lam, selected, law, goals, tilting, start)
        last = lam
    _mark_tried(goals.bounds)
    return True


@kernel(borrows=True)
def _select_untried(bounds, least, selected):
    """Mark the totals that were not tried and are not negligible; return whether there are any."""
    exists = False
    for i in range(len(selected)):
        selected[i] = not (bounds.tried[i] or negligible(bounds.best[i], least))
        exists = exists or selected[i]
    return exists


@kernel(borrows=True)
def _shift_guesses(change, slope, start):
    """Update the guesses of u for another tilt."""
    for i in range(len(start)):
        start[i] += change * slope[i]


@kernel(borrows=True)
def _mark_tried(bounds):
    """Mark the totals with known bounds for the last of the coarse tilts."""
    for i in range(len(bounds.tried)):
        bounds.tried[i] = bounds.tried[i] or bounds.logs[i, 0, 4] < math.inf


@kernel(inner=True)
def tilt_finely(selected, law, goals):
    """Bound the ``selected`` totals by the tilts between -1/2 and 1/2 too."""
    start, slope, last = np.zeros(len(selected)), slopes(law, goals.tables), 0.0
    tilting = allocate_tilting(law)
    for lam in _FINE:
        _shift_guesses(lam - last, slope, start)
        _bound_selected(lam, selected, law, goals, tilting, start)
        last = lam


@kernel(inner=True)
def slopes(law, tables):
    """Return approximate slopes of u in lam for large F, by total, from x of a set with one +-1.

    Without them the search for a large u takes many steps, 100 / C at first.
    """
    x, lone = tables.x, np.zeros(2, np.int64)
    for k in range(len(law.n)):
        side = 1 if law.n[k] > 0 else 0
        if abs(law.n[k]) == 1 and (law.n[lone[side]] != law.n[k] or law.p[k] > law.p[lone[side]]):
            lone[side] = k
    slope = np.empty(x.shape[1])
    for i in range(len(slope)):
        r, up, down = i + tables.first, x[lone[1], i], -x[lone[0], i]
        slope[i] = up if r > 0 else down if r < 0 else 0.5 * (up + down)
    return slope


@kernel(borrows=True)
def _bound_selected(lam, selected, law, goals, tilting, start):
    """Compute the Chernoff bounds by one tilt for selected totals, consecutive ones together.

    ``start`` contains guesses of u by total, which are improved.
    """
    i = 0
    while i < len(selected):
        lanes = 0
        while i + lanes < len(selected) and lanes < MAX_LANES and selected[i + lanes]:
            lanes += 1
        if lanes > 0:
            _bound_totals(lam, i, lanes, law, goals.tables, tilting, start, goals.bounds)
        i += max(lanes, 1)


@kernel(borrows=True)
def _bound_totals(lam, first, lanes, law, tables, tilting, start, bounds):
    """Compute the Chernoff bounds by one tilt for ``lanes`` totals; ``start`` has guesses of u."""
    rows, log_f, base, sets = tilting.rows, tilting.log_f, tables.base, law.L - 1.0
    j = 0
    while TILTS[j] != lam:
        j += 1
    for lane in range(lanes):
        tilting.lam[lane] = lam
        rows[U * MAX_LANES + lane] = start[first + lane]
        rows[R * MAX_LANES + lane] = first + lane + tables.first
    tilt_totals(first, lanes, law, tables.x, tilting)
    for k in range(3):
        weighted(tilting.share, 0, tables.y[k], first, base[1 + k], sets, tilting.factor[k, :lanes])
    for lane in range(lanes):
        i, u = first + lane, rows[U * MAX_LANES + lane]
        start[i] = u
        shift = rows[R * MAX_LANES + lane] * u
        front = -lam * base[0, i] + sets * log_f[lane] - shift
        front += slack(law, log_f[lane], shift)
        logs = bounds.logs[i, j]
        logs[0] = logs[4] = front
        for k in range(3):
            logs[1 + k] = front + math.log(tilting.factor[k, lane] + 1e-300)
        _update_best(lam, logs, bounds.best[i])


@kernel(borrows=True)
def _update_best(lam, logs, best):
    """Update the smallest bounds by those of a positive tilt."""
    if lam > 0:
        best[0] = min(best[0], logs[0] - math.log(lam))
        for k in range(1, 5):
            best[k] = min(best[k], logs[k])


@kernel(inner=True)
def thresholds(goal, count):
    """Return the bounds, by component, below which each of ``count`` totals may be left out."""
    least = np.empty(5)
    for k in range(5):
        least[k] = math.log((goal[k] + 1e-300) / (20.0 * count))
    return least


@kernel(borrows=True)
def negligible(best, least):
    """Return whether R may be left out: its bounds are a twentieth of its part of every goal."""
    small = True
    for k in range(5):
        small = small and best[k] <= least[k]
    return small
