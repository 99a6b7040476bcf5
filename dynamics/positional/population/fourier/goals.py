r"""Which totals R matter, and how accurately each must be integrated.

Every R that may matter is bounded by tilting (notebook ``fourier_method``, Section 6): it may be
left out where its smallest bound is a small part of the error allowed. That error is a part of the
answer, which the bounds themselves limit from above.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dynamics.core.jit import REORDER, kernel
from dynamics.positional.population.fourier.tables import Tables, tabulate
from dynamics.positional.population.fourier.tilts import (
    MANY,
    TILTS,
    UNTILTED,
    R,
    U,
    exponentials,
    room_to_tilt,
    slack,
    tilt_totals,
    weighted,
)

#: No error is asked for below this fraction of E|dF|, unless asked relative to the value.
FLOOR = 1e-15

#: The same where accuracy is asked relative to the value, however small.
_RELATIVE_FLOOR = 1e-60

#: The largest tolerance that is planned for: with fewer nodes the error of cutting the integrals
#: jumps as nodes are added one by one (5 times the tolerance at .01 was seen, half of it at .003).
COARSEST = 1e-3

#: The tilts tried for every R that may matter, in this order.
_COARSE = (1.0, 0.5, -0.5, -1.0)

#: Those that are tried where many nodes are needed.
_FINE = (-0.25, -0.125, 0.125, 0.25)

_LOG_TWO = math.log(2.0)


class Asked(NamedTuple):
    """The accuracy that is asked: ``tolerance`` of the answer, ``relative`` to it however small.

    ``floor``: no error is asked for below this part of E|dF|; ``loss``: whether the loss is asked.
    """

    tolerance: float
    relative: bool
    floor: float
    loss: bool

    @classmethod
    def of(cls, tolerance: float, relative: bool = False, loss: bool = True) -> Asked:
        """Return what is asked, with its floor; at most `COARSEST` is planned for."""
        floor = _RELATIVE_FLOOR if relative else FLOOR
        return cls(min(tolerance, COARSEST), relative, floor, loss)


class Bounds(NamedTuple):
    """Chernoff bounds by total, as logarithms, of loss, three derivatives and mean sigmoid.

    ``logs[total, tilt, 5]`` of E[e^(-lam F) |dF|], infinite where not evaluated;
    ``sure[total, 5]``, the smallest for s(-F) |dF|; and whether all coarse tilts were ``tried``.
    """

    logs: np.ndarray
    sure: np.ndarray
    tried: np.ndarray


class Goals(NamedTuple):
    """What is known before any line is chosen.

    ``log_beyond``: log-probability of all R outside the tables; ``unit[5]``: E|dF| (for the loss
    E[log 2 + |F|]); ``goal[5]``: the error allowed, lowered as the answer turns out smaller.
    """

    tables: Tables
    bounds: Bounds
    log_beyond: float
    unit: np.ndarray
    goal: np.ndarray


@kernel
def prepare(law, model, crude, asked):
    """Tabulate the sets for every R that may matter, bound each by tilting, choose the goals.

    ``crude`` bounds softplus(-F), |dF| and 1 everywhere. Returns :class:`Goals`.
    """
    tolerance, floor = asked.tolerance, asked.floor
    center = _untilted(law, tabulate(law, model, 0))
    reach, log_beyond = _reach(law, crude, center.sure[0], floor)
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
def _reach(law, crude, sure, floor):
    """Choose the largest |R| to visit; return it with the log-probability of all beyond."""
    log_tail = law.log_tail
    limit = len(log_tail) - 1
    depth = 0.0
    for k in range(5):
        depth = max(depth, min(math.log(crude[k] + 1e-300) - sure[k], 60.0))
    depth += math.log(100.0 / floor)
    for reach in range(limit):
        if log_tail[reach + 1] < -depth:
            return reach, log_tail[reach + 1]
    if limit >= (law.L - 1) * law.C:
        return limit, -math.inf
    return limit, log_tail[limit]


@kernel(inner=True)
def _untilted(law, tables):
    """Return the bounds at ``lam = 0``, of the loss by log 2 + |F|; others are not known yet."""
    x, y, base, sets = tables.x, tables.y, tables.base, law.L - 1.0
    count, first = x.shape[1], len(law.log_tail) - 1 + tables.first
    logs, sure = np.empty((count, len(TILTS), 5)), np.empty((count, 5))
    total = np.empty(count)
    share = law.share.reshape(law.share.size)
    for k in range(4):
        weighted(share, first, x if k == 0 else y[k - 1], 0, base[k], sets, total)
        for i in range(count):
            size = total[i] + (_LOG_TWO if k == 0 else 1e-300)
            sure[i, k] = law.log_probability[first + i] + math.log(size)
    for i in range(count):
        sure[i, 4] = law.log_probability[first + i]
        for j in range(len(TILTS)):
            for k in range(5):
                logs[i, j, k] = sure[i, k] if j == UNTILTED else math.inf
    return Bounds(logs, sure, np.zeros(count, dtype=np.bool_))


@kernel(inner=True)
def lower(part, floor, goals):
    """Lower the finite goals to this part of the answer, by its bounds; say if any fell by half.

    Where accuracy is asked relative to the value, R that are negligible so far count too: the
    answer may lie there, and the goals come down step by step.
    """
    sure, tried, goal = goals.bounds.sure, goals.bounds.tried, goals.goal
    bounds, scratch = np.empty(len(tried)), np.empty(len(tried))
    fell = False
    for k in range(5):
        for i in range(len(tried)):
            known = tried[i] or floor < FLOOR
            bounds[i] = min(sure[i, k], 700.0) if known else -math.inf
        exponentials(bounds, scratch)
        if goal[k] < math.inf:
            before = goal[k]
            goal[k] = min(goal[k], max(part * bounds.sum(), floor * goals.unit[k]))
            fell = fell or goal[k] < 0.5 * before
    return fell


@kernel(inner=True)
def tilt_where_needed(law, goals):
    """Bound by tilting every R not yet negligible; say whether there was any.

    Positive tilts first, which alone can show that an R is negligible.
    """
    tried = goals.bounds.tried
    wanted, least = np.empty(len(tried), dtype=np.bool_), thresholds(goals.goal, len(tried))
    if not _are_wanted(goals.bounds, least, wanted):
        return False
    start, slope, last = np.zeros(len(tried)), slopes(law, goals.tables), 0.0
    tilting = room_to_tilt(law)
    for lam in _COARSE:
        _are_wanted(goals.bounds, least, wanted)
        _move(lam - last, slope, start)
        _bound_wanted(lam, wanted, law, goals, tilting, start)
        last = lam
    _note_tried(goals.bounds)
    return True


@kernel(borrows=True)
def _are_wanted(bounds, least, wanted):
    """Mark the totals that were not tried and are not negligible; say whether there are any."""
    found = False
    for i in range(len(wanted)):
        wanted[i] = not (bounds.tried[i] or negligible(bounds.sure[i], least))
        found = found or wanted[i]
    return found


@kernel(borrows=True)
def _move(change, slope, start):
    """Move the guesses of u to another tilt."""
    for i in range(len(start)):
        start[i] += change * slope[i]


@kernel(borrows=True)
def _note_tried(bounds):
    """Mark the totals whose bounds by the last of the coarse tilts are known."""
    for i in range(len(bounds.tried)):
        bounds.tried[i] = bounds.tried[i] or bounds.logs[i, 0, 4] < math.inf


@kernel(inner=True)
def tilt_finely(wanted, law, goals):
    """Bound the totals ``wanted`` by the tilts between -1/2 and 1/2 too."""
    start, slope, last = np.zeros(len(wanted)), slopes(law, goals.tables), 0.0
    tilting = room_to_tilt(law)
    for lam in _FINE:
        _move(lam - last, slope, start)
        _bound_wanted(lam, wanted, law, goals, tilting, start)
        last = lam


@kernel(inner=True)
def slopes(law, tables):
    """Return about how u grows with lam where F is large, by total: by x of a set of one +-1.

    So large a u would else be searched for step by step, 100 / C at first.
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
def _bound_wanted(lam, wanted, law, goals, tilting, start):
    """Enter the Chernoff bounds by one tilt for some totals, those in a row together.

    ``start``, guesses of u by total, is refined.
    """
    i = 0
    while i < len(wanted):
        lanes = 0
        while i + lanes < len(wanted) and lanes < MANY and wanted[i + lanes]:
            lanes += 1
        if lanes > 0:
            _bound_totals(lam, i, lanes, law, goals.tables, tilting, start, goals.bounds)
        i += max(lanes, 1)


@kernel(borrows=True)
def _bound_totals(lam, first, lanes, law, tables, tilting, start, bounds):
    """Enter the Chernoff bounds by one tilt for ``lanes`` totals; ``start`` guesses u by total."""
    rows, log_f, base, sets = tilting.rows, tilting.log_f, tables.base, law.L - 1.0
    j = 0
    while TILTS[j] != lam:
        j += 1
    for lane in range(lanes):
        tilting.lam[lane] = lam
        rows[U * MANY + lane] = start[first + lane]
        rows[R * MANY + lane] = first + lane + tables.first
    tilt_totals(first, lanes, law, tables.x, tilting)
    for k in range(3):
        weighted(tilting.share, 0, tables.y[k], first, base[1 + k], sets, tilting.factor[k, :lanes])
    for lane in range(lanes):
        i, u = first + lane, rows[U * MANY + lane]
        start[i] = u
        shift = rows[R * MANY + lane] * u
        front = -lam * base[0, i] + sets * log_f[lane] - shift
        front += slack(law, log_f[lane], shift)
        logs = bounds.logs[i, j]
        logs[0] = logs[4] = front
        for k in range(3):
            logs[1 + k] = front + math.log(tilting.factor[k, lane] + 1e-300)
        _lower_sure(lam, logs, bounds.sure[i])


@kernel(borrows=True)
def _lower_sure(lam, logs, sure):
    """Note a bound by a positive tilt."""
    if lam > 0:
        sure[0] = min(sure[0], logs[0] - math.log(lam))
        for k in range(1, 5):
            sure[k] = min(sure[k], logs[k])


@kernel(inner=True)
def thresholds(goal, count):
    """Return the bounds, by component, below which each of ``count`` totals may be left out."""
    least = np.empty(5)
    for k in range(5):
        least[k] = math.log((goal[k] + 1e-300) / (20.0 * count))
    return least


@kernel(borrows=True)
def negligible(sure, least):
    """Say whether R may be left out: its bound is below a twentieth of its share of every goal."""
    small = True
    for k in range(5):
        small = small and sure[k] <= least[k]
    return small
