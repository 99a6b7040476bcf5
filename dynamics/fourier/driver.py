r"""Sum over R of the Fourier integrals, with every error accounted for by name.

For real ``eta`` in (-1, 1), ``w = eta + i t``, the trapezoid rule with half-shifted nodes
``t_k = (k + 1/2) 2 pi / Omega`` gives exactly

.. math:: s(-F) = \frac{1}{1 + e^{\eta\Omega}} + \frac{2\pi}{\Omega}\sum_{k \ge 0}
          \mathrm{Re}\frac{e^{-w_k F}}{\sin \pi w_k}
          + \sum_{m \ge 1} (-1)^m \bigl[e^{-\eta m\Omega} s(F - m\Omega)
          - e^{\eta m\Omega} s(-F - m\Omega)\bigr],

so the aliases (last sum) are exponentially small wherever F stays inside the window
``|F| < Omega`` by a margin, and are bounded by tilted expectations elsewhere. The loss is the
same integral with 1/(w sin(pi w)). No node sits at t = 0, and none of eta is excluded.
"""

from __future__ import annotations

import math

import numpy as np

from dynamics._jit import kernel
from dynamics.fourier.bound import account, circle, window
from dynamics.fourier.kernel import PLAIN_POWER, node_sums
from dynamics.fourier.plan import log_weighted, set_tables, tilt

#: Parts of the bound, in the order of the columns of ``bounds``.
PARTS = ("truncation in R", "truncation in t", "aliasing in t", "aliasing in R", "rounding")

#: No error is asked for below this fraction of E|dF|: it would drown in rounding.
FLOOR = 1e-15

#: An R that would need more nodes than this is left out, at its full size in the bound.
MOST_NODES = 16384

_UNIT = 2.0**-53
_LOG_TWO = math.log(2.0)


@kernel
def expectation(law, C, L, constants, power, tilts, crude, tolerance, with_loss):
    """Return the loss, E[s(-F) dF] for alpha, gamma, rho, and E[s(-F)], with their errors.

    Returns ``values[5], bounds[5, parts], magnitude[5], unit[5], counts[3]``. ``magnitude`` bounds
    E[s(-F) |dF|] and ``unit`` E|dF| from above; ``crude`` bounds softplus(-F), |dF|, 1 everywhere.
    Without ``with_loss`` the first and the last component are not held to the tolerance.
    """
    reach, tail, x, y, base, logs, sure, ready, unit, goal = prepare(
        law, C, L, constants, power, tilts, crude, tolerance
    )
    if not with_loss:
        goal[0] = goal[4] = math.inf
    for _ in range(4):
        values, bounds, magnitude, counts = _integrate(
            law, C, L, tilts, reach, x, y, base, logs, sure, ready, goal
        )
        for k in range(5):
            bounds[k, 0] += math.exp(tail) * crude[k]
        if _settled(tolerance, bounds, magnitude, unit, goal):
            break
    return values, bounds, magnitude, unit, counts


@kernel
def prepare(law, C, L, constants, power, tilts, crude, tolerance):
    """Tabulate the sets for every R that may matter, bound each by tilting, choose the goals."""
    reach, tail = _reach(law, C, L, constants, power, crude, tolerance)
    count, types = 2 * reach + 1, len(law.n)
    x, y = np.empty((count, types)), np.empty((count, 3, types))
    base = np.ones((count, 5))
    logs, sure = np.full((count, 5, 5), -math.inf), np.empty((count, 5))
    ready = np.zeros(count, dtype=np.bool_)
    unit = np.zeros(5)
    for i in range(count):
        b = set_tables(i - reach, law, C, L, constants, power, x[i], y[i])
        for k in range(4):
            base[i, k] = b[k]
        _untilted(i - reach, law, L, x[i], y[i], base[i], logs[i, 2], sure[i])
        _add_unit(i - reach, law, L, x[i], y[i], base[i], unit)
    goal = np.empty(5)
    for k in range(5):
        goal[k] = tolerance * unit[k]
    _choose_goal(law, C, L, tilts, tolerance, unit, reach, x, y, base, logs, sure, ready, goal)
    return reach, tail, x, y, base, logs, sure, ready, unit, goal


@kernel
def _add_unit(r, law, L, x, y, base, unit):
    """Add E[(log 2 + |F|) 1{R=r}], E[|dF| 1{R=r}] and P[R = r], with |F|, |dF| set by set."""
    center = law.center + r
    unit[0] += (_LOG_TWO + abs(base[0])) * law.total[center]
    unit[4] += law.total[center]
    for k in range(1, 4):
        unit[k] += abs(base[k]) * law.total[center]
    for j in range(len(x)):
        w = (L - 1.0) * law.p[j] * law.total_less_one[center - int(law.n[j])]
        unit[0] += w * abs(x[j])
        for k in range(3):
            unit[1 + k] += w * abs(y[k, j])


@kernel
def _settled(tolerance, bounds, magnitude, unit, goal):
    """Lower each goal whose error exceeds its share of the answer; rounding cannot be lowered."""
    settled = True
    for k in range(5):
        aim = max(tolerance * magnitude[k], FLOOR * unit[k], bounds[k, 4])
        error = bounds[k, :4].sum()
        if goal[k] < math.inf and error > aim:
            goal[k] *= 0.5 * aim / error
            settled = False
    return settled


@kernel
def _reach(law, C, L, constants, power, crude, tolerance):
    """Choose the largest |R| to visit; return it with the log-probability of all beyond."""
    limit = len(law.log_tail) - 1
    x, y = np.empty(len(law.n)), np.empty((3, len(law.n)))
    logs, sure = np.empty(5), np.empty(5)
    b = set_tables(0, law, C, L, constants, power, x, y)
    base = np.array([b[0], b[1], b[2], b[3], 1.0])
    _untilted(0, law, L, x, y, base, logs, sure)
    depth = 0.0
    for k in range(5):
        depth = max(depth, min(math.log(crude[k] + 1e-300) - sure[k], 60.0))
    depth += math.log(100.0 / FLOOR)
    for reach in range(limit):
        if law.log_tail[reach + 1] < -depth:
            return reach, law.log_tail[reach + 1]
    if limit >= (L - 1) * C:
        return limit, -math.inf
    return limit, law.log_tail[limit]


@kernel
def _untilted(r, law, L, x, y, base, logs, sure):
    """Fill the bounds at ``lam = 0``; ``sure`` also bounds the loss, by log 2 + |F|."""
    row = len(law.log_tail) - 1 + r
    share = law.share[row]
    log_p = law.log_probability[row]
    sure[0] = log_p + math.log(_LOG_TWO + math.exp(log_weighted(share, x, base[0], L)))
    logs[0] = sure[0]
    logs[4] = sure[4] = log_p
    for k in range(3):
        logs[1 + k] = log_p + log_weighted(share, y[k], base[1 + k], L)
        sure[1 + k] = logs[1 + k]


@kernel
def _choose_goal(law, C, L, tilts, tolerance, unit, reach, x, y, base, logs, sure, ready, goal):
    """Tilt every R that may matter and lower ``goal`` to the size of the answer, by its bounds."""
    for _ in range(4):
        if not _tilt_where_needed(law, C, L, tilts, reach, x, y, base, logs, sure, ready, goal):
            return
        total = np.zeros(5)
        for i in range(len(ready)):
            if ready[i]:
                for k in range(5):
                    total[k] += math.exp(sure[i, k])
        for k in range(5):
            goal[k] = min(goal[k], max(0.1 * tolerance * total[k], FLOOR * unit[k]))


@kernel
def _tilt_where_needed(law, C, L, tilts, reach, x, y, base, logs, sure, ready, goal):
    """Bound by tilting every R not yet negligible; say whether there was any."""
    share, level = np.empty(x.shape[1]), np.empty(2 * C + 1)
    changed = False
    for i in range(len(ready)):
        if ready[i] or negligible(sure[i], goal, len(ready)):
            continue
        ready[i] = changed = True
        u = 0.0
        for j in range(5):
            if tilts[j] == 0.0:
                continue
            u, log_f, _, _ = tilt(tilts[j], i - reach, law, L, C, x[i], u, share, level)
            _tilted(tilts[j], i - reach, L, u, log_f, y[i], base[i], share, logs[i, j])
            if tilts[j] > 0:
                sure[i, 0] = min(sure[i, 0], logs[i, j, 0] - math.log(tilts[j]))
                for k in range(1, 5):
                    sure[i, k] = min(sure[i, k], logs[i, j, k])
    return changed


@kernel
def negligible(sure, goal, count):
    """Say whether R may be left out: its bound is below a twentieth of its share of every goal."""
    worst = -math.inf
    for k in range(5):
        worst = max(worst, sure[k] - math.log(goal[k] + 1e-300))
    return worst <= -math.log(20.0 * count)


@kernel
def _tilted(lam, r, L, u, log_f, y, base, share, logs):
    logs[0] = logs[4] = -lam * base[0] + (L - 1) * log_f - r * u
    for k in range(3):
        logs[1 + k] = logs[0] + log_weighted(share, y[k], base[1 + k], L)


@kernel
def goal_of_each(sure, goal):
    """Share the goal among the totals R that are integrated and the four kinds of error."""
    active = 1
    for i in range(len(sure)):
        active += not negligible(sure[i], goal, len(sure))
    return np.log(goal + 1e-300) - math.log(5.0 * active)


@kernel
def combine(logs, log_goal):
    """Return ``log sum_k exp(logs_k) / goal_k``."""
    top = -math.inf
    for k in range(5):
        top = max(top, logs[k] - log_goal[k])
    total = 0.0
    for k in range(5):
        total += math.exp(logs[k] - log_goal[k] - top)
    return top + math.log(total)


@kernel
def _integrate(law, C, L, tilts, reach, x, y, base, logs, sure, ready, goal):
    """Add up all R at one goal of absolute errors."""
    values, bounds, magnitude = np.zeros(5), np.zeros((5, 5)), np.zeros(5)
    counts = np.zeros(3, dtype=np.int64)
    _tilt_where_needed(law, C, L, tilts, reach, x, y, base, logs, sure, ready, goal)
    log_goal = goal_of_each(sure, goal)
    q = np.empty(5)
    share, level = np.empty(x.shape[1]), np.empty(2 * C + 1)
    moments, sizes = np.empty(5), np.empty(5)
    for i in range(len(ready)):
        r = i - reach
        if negligible(sure[i], goal, len(ready)):
            for k in range(5):
                bounds[k, 0] += math.exp(sure[i, k])
                magnitude[k] += 0.0
            continue
        counts[0] += 1
        for j in range(5):
            q[j] = combine(logs[i, j], log_goal)
        moments_given(r, law, L, x[i], y[i], base[i], moments, sizes)
        if min(q[0], q[1]) <= 0.0:
            _surely_negative(logs[i], moments, sizes, values, bounds, magnitude)
        else:
            _one_total(
                r, law, C, L, tilts, x[i], y[i], base[i], logs[i], sure[i], q, log_goal,
                share, level, moments, sizes, values, bounds, magnitude, counts,
            )  # fmt: skip
    return values, bounds, magnitude, counts


@kernel
def moments_given(r, law, L, x, y, base, moments, sizes):
    """Fill E[F 1{R=r}], E[dF 1{R=r}] and the error to which rounding leaves them known."""
    center = law.center + r
    for k in range(5):
        moments[k] = base[k] * law.total[center]
        sizes[k] = abs(base[k]) * (8 * _UNIT * law.total[center] + law.noise)
    for j in range(len(x)):
        p = law.total_less_one[center - int(law.n[j])]
        w = (L - 1.0) * law.p[j]
        blur = 8 * _UNIT * p + law.noise
        moments[0] += w * p * x[j]
        sizes[0] += w * blur * abs(x[j])
        for k in range(3):
            moments[1 + k] += w * p * y[k, j]
            sizes[1 + k] += w * blur * abs(y[k, j])


@kernel
def _surely_negative(logs, moments, sizes, values, bounds, magnitude):
    """Take s(-F) = 1 and softplus(-F) = -F."""
    values[0] -= moments[0]
    magnitude[0] -= moments[0]
    for k in range(5):
        bounds[k, 0] += math.exp(min(logs[0, k], logs[1, k] + _LOG_TWO * (k == 0)))
        bounds[k, 4] += sizes[k]
    for k in range(1, 5):
        values[k] += moments[k]
        magnitude[k] += abs(moments[k])


@kernel
def design(r, law, C, L, tilts, x, y, base, q, log_goal, share, level, here):
    """Choose line, nodes and angles for R = r; fill ``share`` and the bounds ``here``."""
    eta, omega, time = window(q, tilts, log_goal[0] < math.inf)
    step = 2 * math.pi / omega
    if not time / step < MOST_NODES:
        return eta, omega, step, 0, 0.0, 0, 0.0, 0.0
    nodes = math.ceil(time / step / 4) * 4
    u, log_f, empty, variance = tilt(eta, r, law, L, C, x, 0.0, share, level)
    _tilted(eta, r, L, u, log_f, y, base, share, here)
    height = combine(here, log_goal)
    angles, alias = circle(r, law, C, L, share, y, base, log_goal, level, height, variance)
    return eta, omega, step, nodes, empty, angles, alias, height


@kernel
def _one_total(
    r, law, C, L, tilts, x, y, base, logs, sure, q, log_goal,
    share, level, moments, sizes, values, bounds, magnitude, counts,
):  # fmt: skip
    """Add the contribution of R = r by the Fourier integral, and its errors."""
    here, sums = np.empty(5), np.empty(len(x) + 1)
    eta, omega, step, nodes, empty, angles, alias, height = design(
        r, law, C, L, tilts, x, y, base, q, log_goal, share, level, here
    )
    if nodes == 0:
        for k in range(5):
            bounds[k, 2] += math.exp(min(sure[k], 700.0))
        return
    loss, weight, loss_weight = node_sums(
        r, base[0], x, law.n, share, empty, C, L, eta, step, nodes, angles, sums
    )
    counts[1] += nodes
    counts[2] += nodes * angles
    front = math.exp(here[0])
    constant = 1.0 / (1.0 + math.exp(eta * omega))
    value = front * loss + omega * constant * (1 - constant) * law.total[law.center + r]
    values[0] += value - constant * moments[0]
    magnitude[0] += value - constant * moments[0]
    _add_derivatives(law, L, r, x, y, base, sums, front, constant, values, magnitude)
    account(nodes * step, omega, eta, logs, here, tilts, bounds)
    spread = abs(base[0])
    for j in range(len(x)):
        spread += (L - 1.0) * share[j] * abs(x[j])
    relative = _rounding(L, empty) + angles + 60 + 2 * spread
    for k in range(5):
        w = loss_weight if k == 0 else weight
        if log_goal[k] < math.inf:
            bounds[k, 3] += w * alias * math.exp(log_goal[k] + height)
        bounds[k, 4] += relative * _UNIT * w * math.exp(here[k])
        blur = 2 * _UNIT * (4 + abs(eta * omega))  # of exp(eta omega)
        bounds[k, 4] += constant * (sizes[k] + blur * abs(moments[k]))
    p_r = law.total[law.center + r]
    bounds[0, 4] += omega * constant * (1 - constant) * (law.noise + blur * p_r)


@kernel
def _rounding(L, empty):
    """Bound the error of f^(L-2), in units of rounding and relative to the tilted power."""
    if L - 2 > PLAIN_POWER:
        return (L - 2.0) * (1.0 - empty) * (32.0 + 4.0 * math.log2(L))
    return (L - 2.0) * 32.0


@kernel
def _add_derivatives(law, L, r, x, y, base, sums, front, constant, values, magnitude):
    """Turn ``sums``, E over L - 2 sets for each type, into E[s(-F) dF 1{R=r}]."""
    total = front * sums[len(x)]
    total += constant * law.p_empty * law.total_less_one[law.center + r]
    for j in range(len(x)):
        sums[j] = front * sums[j]
        sums[j] += constant * law.p[j] * law.total_less_one[law.center + r - int(law.n[j])]
        total += sums[j]
    for k in range(3):
        value = base[1 + k] * total
        size = abs(value)
        for j in range(len(x)):
            value += (L - 1.0) * y[k, j] * sums[j]
            size += (L - 1.0) * abs(y[k, j] * sums[j])
        values[1 + k] += value
        magnitude[1 + k] += size
    values[4] += total
    magnitude[4] += total
