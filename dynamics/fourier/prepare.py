r"""First half of the plan: tabulate the sets for every R that may matter, and bound each R."""

from __future__ import annotations

import math

import numpy as np

from dynamics._jit import kernel
from dynamics.fourier.plan import TILTS, UNTILTED, log_weighted, set_tables, tilt

#: No error is asked for below this fraction of E|dF|: it would drown in rounding.
FLOOR = 1e-15

#: The tilts tried for every R that may matter, in this order.
_COARSE = (1.0, 0.5, -0.5, -1.0)

_LOG_TWO = math.log(2.0)


@kernel
def prepare(law, C, L, constants, power, crude, tolerance):
    """Tabulate the sets for every R that may matter, bound each by tilting, choose the goals.

    Returns ``reach``, the largest |R|, the log-probability of all beyond, and by R: the tables x,
    y, base of the sets, the Chernoff bounds ``logs``, the smallest, ``sure``, and whether all usual
    tilts were tried. At last E|dF| and the error allowed for each component.
    """
    limit, sets, types = len(law.log_tail) - 1, L - 1.0, len(law.n)
    x, y = np.empty((2 * limit + 1, types)), np.empty((2 * limit + 1, 3, types))
    base = np.empty((2 * limit + 1, 5))
    logs, sure = np.empty((2 * limit + 1, len(TILTS), 5)), np.empty((2 * limit + 1, 5))
    rows, unit, goal = np.empty((3, 2 * C + 1, 4)), np.zeros(5), np.empty(5)
    reach, tail = limit, -math.inf
    for step in range(2 * limit + 1):
        r = (step + 1) // 2 * (1 - 2 * (step % 2))  # 0, -1, 1, -2, 2, ...
        if abs(r) > reach:
            break
        i = limit + r
        set_tables(
            r, law.plus, law.minus, law.level, L, C, constants, power, rows, x[i], y[i], base[i]
        )
        _untilted(law.log_probability[i], law.share[i], sets, x[i], y[i], base[i], logs[i], sure[i])
        _add_unit(
            law.center + r, law.p, law.n, law.total, law.total_less_one, sets, x[i], y[i], base[i],
            unit,
        )  # fmt: skip
        if step == 0:
            reach, tail = _reach(law.log_tail, crude, sure[i], L, C)
    first, last = limit - reach, limit + reach + 1
    x, y, base, logs, sure = (
        x[first:last], y[first:last], base[first:last], logs[first:last], sure[first:last],
    )  # fmt: skip
    ready = np.zeros(len(x), dtype=np.bool_)
    for k in range(5):
        goal[k] = tolerance * unit[k]
    for _ in range(4):
        if not tilt_where_needed(
            law.log_p, law.log_p_empty, law.level, sets, C, reach, x, y, base, logs, sure, ready,
            goal,
        ):  # fmt: skip
            break
        lower(0.1 * tolerance, unit, sure, ready, goal)
    return reach, tail, x, y, base, logs, sure, ready, unit, goal


@kernel(inner=True)
def _add_unit(center, p, n, total, total_less_one, sets, x, y, base, unit):
    """Add E[(log 2 + |F|) 1{R=r}], E[|dF| 1{R=r}] and P[R = r], with |F|, |dF| set by set."""
    here = total[center]
    unit[0] += (_LOG_TWO + abs(base[0])) * here
    unit[4] += here
    for k in range(1, 4):
        unit[k] += abs(base[k]) * here
    for j in range(len(x)):
        w = sets * p[j] * total_less_one[center - int(n[j])]
        unit[0] += w * abs(x[j])
        for k in range(3):
            unit[1 + k] += w * abs(y[k, j])


@kernel(inner=True)
def _reach(log_tail, crude, sure, L, C):
    """Choose the largest |R| to visit; return it with the log-probability of all beyond."""
    limit = len(log_tail) - 1
    depth = 0.0
    for k in range(5):
        depth = max(depth, min(math.log(crude[k] + 1e-300) - sure[k], 60.0))
    depth += math.log(100.0 / FLOOR)
    for reach in range(limit):
        if log_tail[reach + 1] < -depth:
            return reach, log_tail[reach + 1]
    if limit >= (L - 1) * C:
        return limit, -math.inf
    return limit, log_tail[limit]


@kernel(inner=True)
def _untilted(log_p, share, sets, x, y, base, logs, sure):
    """Fill the bounds at ``lam = 0``, of the loss by log 2 + |F|; others are not known yet."""
    sure[0] = log_p + math.log(_LOG_TWO + math.exp(log_weighted(share, x, base[0], sets)))
    sure[4] = log_p
    for k in range(3):
        sure[1 + k] = log_p + log_weighted(share, y[k], base[1 + k], sets)
    for k in range(5):
        for j in range(len(TILTS)):
            logs[j, k] = sure[k] if j == UNTILTED else math.inf


@kernel(inner=True)
def lower(part, unit, sure, ready, goal):
    """Lower the finite goals to this part of the answer, by its bounds."""
    for k in range(5):
        total = 0.0
        for i in range(len(ready)):
            if ready[i]:
                total += math.exp(min(sure[i, k], 700.0))
        if goal[k] < math.inf:
            goal[k] = min(goal[k], max(part * total, FLOOR * unit[k]))


@kernel(inner=True)
def tilt_where_needed(
    log_p, log_p_empty, of_type, sets, C, reach, x, y, base, logs, sure, ready, goal
):
    """Bound by tilting every R not yet negligible; say whether there was any.

    Positive tilts first, which alone can show that an R is negligible.
    """
    share, scratch = np.empty(x.shape[1]), np.empty((2, 2 * C + 1))
    start = np.zeros(len(TILTS))
    changed = False
    for i in range(len(ready)):
        if ready[i]:
            continue
        for lam in _COARSE:
            if negligible(sure[i], goal, len(ready)):
                break
            tilt_between(
                lam, lam, i - reach, log_p, log_p_empty, of_type, sets, C, x[i], y[i], base[i],
                start, share, scratch[0], scratch[1], logs[i], sure[i],
            )  # fmt: skip
            changed = True
        ready[i] = logs[i, 0, 4] < math.inf
    return changed


@kernel(inner=True)
def tilt_between(
    least, most, r, log_p, log_p_empty, of_type, sets, C, x, y, base,
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
        if lam > 0:
            sure[0] = min(sure[0], logs[j, 0] - math.log(lam))
            for k in range(1, 5):
                sure[k] = min(sure[k], logs[j, k])


@kernel(inner=True)
def tilted(lam, r, sets, u, log_f, y, base, share, logs):
    """Fill the Chernoff bounds of one tilt."""
    logs[0] = logs[4] = -lam * base[0] + sets * log_f - r * u
    for k in range(3):
        logs[1 + k] = logs[0] + log_weighted(share, y[k], base[1 + k], sets)


@kernel(inner=True)
def negligible(sure, goal, count):
    """Say whether R may be left out: its bound is below a twentieth of its share of every goal."""
    small = True
    for k in range(5):
        small = small and sure[k] <= math.log((goal[k] + 1e-300) / (20.0 * count))
    return small
