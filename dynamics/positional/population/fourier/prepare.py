r"""First half of the plan: tabulate the sets for every R that may matter, and bound each R."""

from __future__ import annotations

import math

import numpy as np

from dynamics.core.jit import REORDER, kernel
from dynamics.positional.population.fourier.plan import TILTS, UNTILTED, log_weighted, slack, tilt
from dynamics.positional.population.fourier.totals import (
    MANY,
    WORK,
    R,
    U,
    exponentials,
    tables,
    tilt_totals,
    weighted,
)

#: No error is asked for below this fraction of E|dF|, unless asked relative to the value.
FLOOR = 1e-15

#: The tilts tried for every R that may matter, in this order.
_COARSE = (1.0, 0.5, -0.5, -1.0)

_LOG_TWO = math.log(2.0)


@kernel
def prepare(law, C, L, constants, power, crude, tolerance, floor):
    """Tabulate the sets for every R that may matter, bound each by tilting, choose the goals.

    Returns ``reach``, the largest |R|, the log-probability of all beyond, and by R: the tables x,
    y, base of the sets, the Chernoff bounds ``logs``, the smallest, ``sure``, and whether all usual
    tilts were tried. At last E|dF| and the error allowed for each component, ``floor`` of it at
    least.
    """
    sets = L - 1.0
    _, _, _, _, sure = _tabulated(law, L, C, constants, power, 0)
    reach, tail = _reach(law.log_tail, crude, sure[0], L, C, floor)
    x, y, base, logs, sure = _tabulated(law, L, C, constants, power, reach)
    unit, goal = np.zeros(5), np.empty(5)
    _add_unit(law.center, law.p, law.n, law.total, law.total_less_one, sets, x, y, base, unit)
    ready = np.zeros(len(sure), dtype=np.bool_)
    for k in range(5):
        goal[k] = tolerance * unit[k]
    for _ in range(4 if floor >= FLOOR else 40):
        changed = tilt_where_needed(
            law.blur, law.log_p, law.log_p_empty, law.level, sets, C, reach, x, y, base, logs, sure,
            ready, goal,
        )  # fmt: skip
        if not changed and floor >= FLOOR:
            break
        fell = lower(0.1 * tolerance, floor, unit, sure, ready, goal)
        if not (changed or fell):
            break
    return reach, tail, x, y, base, logs, sure, ready, unit, goal


@kernel(inner=True)
def _tabulated(law, L, C, constants, power, reach):
    """Tabulate the sets for |R| <= reach, and bound each R at ``lam = 0``."""
    count, types = 2 * reach + 1, len(law.n)
    x, y, base = np.empty((types, count)), np.empty((3, types, count)), np.empty((5, count))
    logs, sure = np.empty((count, len(TILTS), 5)), np.empty((count, 5))
    tables(-reach, law.plus, law.minus, law.level, L, C, constants, power, x, y, base)
    _untilted(law, len(law.log_tail) - 1 - reach, L - 1.0, x, y, base, logs, sure)
    return x, y, base, logs, sure


@kernel(inner=True, fastmath=REORDER)
def _add_unit(center, p, n, total, total_less_one, sets, x, y, base, unit):
    """Add E[log 2 + |F|], E[|dF|] and the probability over all R, with |F|, |dF| set by set."""
    count = x.shape[1]
    center -= count // 2
    row = total[center : center + count]
    for k in range(5):
        for i in range(count):
            unit[k] += abs(base[k, i]) * row[i]
    unit[0] += _LOG_TWO * unit[4]
    for j in range(len(p)):
        row, weight = total_less_one[center - int(n[j]) :], sets * p[j]
        for k in range(4):
            size = x[j] if k == 0 else y[k - 1, j]
            here = 0.0
            for i in range(count):
                here += row[i] * abs(size[i])
            unit[k] += weight * here


@kernel(inner=True)
def _reach(log_tail, crude, sure, L, C, floor):
    """Choose the largest |R| to visit; return it with the log-probability of all beyond."""
    limit = len(log_tail) - 1
    depth = 0.0
    for k in range(5):
        depth = max(depth, min(math.log(crude[k] + 1e-300) - sure[k], 60.0))
    depth += math.log(100.0 / floor)
    for reach in range(limit):
        if log_tail[reach + 1] < -depth:
            return reach, log_tail[reach + 1]
    if limit >= (L - 1) * C:
        return limit, -math.inf
    return limit, log_tail[limit]


@kernel(inner=True)
def _untilted(law, first, sets, x, y, base, logs, sure):
    """Fill the bounds at ``lam = 0``, of the loss by log 2 + |F|; others are not known yet."""
    count = x.shape[1]
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


@kernel(inner=True)
def lower(part, floor, unit, sure, ready, goal):
    """Lower the finite goals to this part of the answer, by its bounds; say if any fell by half.

    Where accuracy is asked relative to the value, R that are negligible so far count too: the
    answer may lie there, and the goals come down step by step.
    """
    bounds, scratch = np.empty(len(ready)), np.empty(len(ready))
    fell = False
    for k in range(5):
        for i in range(len(ready)):
            known = ready[i] or floor < FLOOR
            bounds[i] = min(sure[i, k], 700.0) if known else -math.inf
        exponentials(bounds, scratch)
        if goal[k] < math.inf:
            before = goal[k]
            goal[k] = min(goal[k], max(part * bounds.sum(), floor * unit[k]))
            fell = fell or goal[k] < 0.5 * before
    return fell


@kernel(inner=True)
def tilt_where_needed(
    blur, log_p, log_p_empty, of_type, sets, C, reach, x, y, base, logs, sure, ready, goal
):  # fmt: skip
    """Bound by tilting every R not yet negligible; say whether there was any.

    Positive tilts first, which alone can show that an R is negligible.
    """
    lam, work = np.empty(MANY), np.zeros(WORK)
    level, share = np.empty((2 * C + 1) * MANY), np.empty(len(x) * MANY)
    start, totals, log_f = np.zeros(len(ready)), np.empty((3, MANY)), np.empty(MANY)
    least = thresholds(goal, len(ready))
    changed = False
    for each in _COARSE:
        lam[:] = each
        i = 0
        while i < len(ready):
            lanes = 0
            while i + lanes < len(ready) and lanes < MANY:
                if ready[i + lanes] or negligible(sure[i + lanes], least):
                    break
                work[U * MANY + lanes] = start[i + lanes]
                work[R * MANY + lanes] = i + lanes - reach
                lanes += 1
            if lanes > 0:
                tilt_totals(
                    lam, i, lanes, log_p, log_p_empty, of_type, sets, C, x, work, level, share,
                    log_f,
                )  # fmt: skip
                for k in range(3):
                    weighted(share, 0, y[k], i, base[1 + k], sets, totals[k, :lanes])
                _note(
                    each, i, lanes, blur, log_p_empty, base, sets, work, log_f, totals, start, logs,
                    sure,
                )  # fmt: skip
                changed = True
            i += max(lanes, 1)
    for i in range(len(ready)):
        ready[i] = ready[i] or logs[i, 0, 4] < math.inf
    return changed


@kernel(inner=True)
def _note(
    lam, first, lanes, blur, log_p_empty, base, sets, work, log_f, totals, start, logs, sure
):  # fmt: skip
    """Enter the Chernoff bounds of one tilt for the totals that were tilted."""
    j = 0
    while TILTS[j] != lam:
        j += 1
    for lane in range(lanes):
        i, u = first + lane, work[U * MANY + lane]
        start[i] = u
        shift = work[R * MANY + lane] * u
        front = -lam * base[0, i] + sets * log_f[lane] - shift
        front += slack(blur, sets, log_f[lane], log_p_empty, shift)
        logs[i, j, 0] = logs[i, j, 4] = front
        for k in range(3):
            logs[i, j, 1 + k] = front + math.log(totals[k, lane] + 1e-300)
        lower_sure(lam, logs[i, j], sure[i])


@kernel(inner=True)
def lower_sure(lam, logs, sure):
    """Note a bound by a positive tilt."""
    if lam > 0:
        sure[0] = min(sure[0], logs[0] - math.log(lam))
        for k in range(1, 5):
            sure[k] = min(sure[k], logs[k])


@kernel(inner=True)
def tilt_between(
    least, most, r, blur, log_p, log_p_empty, of_type, sets, C, x, y, base,
    start, share, level, rise, logs, sure,
):  # fmt: skip
    """Bound R = r by the tilts in an interval that were not tried yet; ``start`` guesses u."""
    for j in range(len(TILTS)):
        lam = TILTS[j]
        if not least <= lam <= most or logs[j, 4] < math.inf:
            continue
        start[j], log_f, _, _ = tilt(
            lam, r, log_p, log_p_empty, of_type, sets, C, x, start[j], share, level, rise
        )
        tilted(lam, r, sets, start[j], log_f, y, base, share, logs[j])
        more = slack(blur, sets, log_f, log_p_empty, r * start[j])
        for k in range(5):
            logs[j, k] += more
        lower_sure(lam, logs[j], sure)


@kernel(inner=True)
def tilted(lam, r, sets, u, log_f, y, base, share, logs):
    """Fill the Chernoff bounds of one tilt."""
    logs[0] = logs[4] = -lam * base[0] + sets * log_f - r * u
    for k in range(3):
        logs[1 + k] = logs[0] + log_weighted(share, y[k], base[1 + k], sets)


@kernel(inner=True)
def thresholds(goal, count):
    """Return the bounds, by component, below which each of ``count`` totals may be left out."""
    least = np.empty(5)
    for k in range(5):
        least[k] = math.log((goal[k] + 1e-300) / (20.0 * count))
    return least


@kernel(inner=True)
def negligible(sure, least):
    """Say whether R may be left out: its bound is below a twentieth of its share of every goal."""
    small = True
    for k in range(5):
        small = small and sure[k] <= least[k]
    return small
