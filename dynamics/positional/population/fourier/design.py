r"""Second half of the plan: line, nodes and angles for every R that is integrated."""

from __future__ import annotations

import math

import numpy as np

from dynamics.core.jit import kernel
from dynamics.positional.population.fourier.bound import circle, window
from dynamics.positional.population.fourier.kernel import FEW_LANES
from dynamics.positional.population.fourier.plan import TILTS, UNTILTED
from dynamics.positional.population.fourier.prepare import (
    lower,
    negligible,
    thresholds,
    tilt_between,
    tilt_where_needed,
)
from dynamics.positional.population.fourier.rounding import PLAIN_POWER, UNIT
from dynamics.positional.population.fourier.totals import (
    EMPTY,
    MANY,
    TOP,
    VARIANCE,
    WORK,
    R,
    U,
    tilt_totals,
    weighted,
)

#: An R that would need more nodes than this is left out, at its full size in the bound.
MOST_NODES = 16384

#: From this many nodes on, finer tilts are tried: F ranges far, but rarely.
_MANY_NODES = 64

#: Where F ranges far its Chernoff bounds exceed the answer by about this factor's inverse.
_FAR_BELOW = 0.01

#: What is done with a total R.
LEFT_OUT, TOO_MANY_NODES, SURELY_NEGATIVE, INTEGRATED = 0, 1, 2, 3


@kernel
def design(law, C, L, reach, tolerance, floor, unit, x, y, base, logs, sure, ready, goal):
    """Choose what to do with each R, by line, nodes and angles; refine the bounds where needed.

    Lowers ``goal`` where finer tilts show that the answer is smaller than it seemed.

    Returns by R: ``kind``; ``line`` (eta, step, share of the empty type, Omega, logarithm of the
    integrand's bound over the goal, aliases in R relative to it, and by how much rounding
    may move the product of the bound on the line and of all probabilities, on average and at most);
    the numbers of nodes and of
    angles; the tilted probabilities ``share``; the bounds ``here`` on the line. At last the
    logarithm of the error allowed for each R and kind of error.
    """
    count, types, sets = len(ready), x.shape[0], L - 1.0
    kind, sizes = np.zeros(count, np.int64), np.zeros((2, count), np.int64)
    line, share, here = np.zeros((count, 8)), np.zeros((count, types)), np.zeros((count, 5))
    log_goal = np.empty(5)
    blur, log_p, log_p_empty, level = law.blur, law.log_p, law.log_p_empty, law.level
    scratch = np.empty((3, 2 * C + 1))
    lines, limits = np.empty((count, 3)), np.empty((count, len(TILTS)))
    while True:  # a lower goal may call for further totals, which may need fine tilts too
        tilt_where_needed(
            blur, log_p, log_p_empty, level, sets, C, reach, x, y, base, logs, sure, ready, goal
        )
        least = thresholds(goal, count)
        _goal_of_each(sure, goal, least, log_goal)
        _choose_lines(logs, sure, log_goal, least, limits, lines)
        if not _tilt_finely(
            blur, log_p, log_p_empty, level, sets, C, reach, x, y, base, logs, sure, least, lines,
            scratch,
        ):  # fmt: skip
            break
        lower(_FAR_BELOW * tolerance, floor, unit, sure, ready, goal)
    for i in range(count):
        if not negligible(sure[i], least):
            kind[i] = _kind(logs[i], limits[i], lines[i, 1] * lines[i, 2] / (2 * math.pi))
    variance = np.empty(count)
    _tilt_to_lines(law, sets, C, reach, x, y, base, kind, lines, share, here, line, variance)
    for i in range(count):
        if kind[i] != INTEGRATED:
            continue
        eta, omega, time = lines[i]
        height = _combine(here[i], log_goal)
        sizes[0, i] = math.ceil(time * omega / (2 * math.pi * FEW_LANES)) * FEW_LANES
        sizes[1, i], alias = circle(
            i - reach, level, sets, C, share[i], y[:, :, i], base[:, i], log_goal, scratch[0],
            line[i, 2], scratch[2], height, variance[i],
        )  # fmt: skip
        line[i, 0], line[i, 1] = eta, 2 * math.pi / omega
        line[i, 3], line[i, 4], line[i, 5] = omega, height, alias
    return kind, line, sizes[0], sizes[1], share, here, log_goal


@kernel(inner=True)
def _choose_lines(logs, sure, log_goal, least, limits, lines):
    """Fill eta, Omega and the end in t for each R, and ``limits``, its bounds over the goal."""
    for i in range(len(sure)):
        if not negligible(sure[i], least):
            _combine_all(logs[i], log_goal, limits[i])
            grid = 8 if logs[i, UNTILTED + 1, 4] == math.inf else 32
            lines[i, 0], lines[i, 1], lines[i, 2] = window(limits[i], grid)


@kernel(inner=True)
def _tilt_finely(
    blur, log_p, log_p_empty, level, sets, C, reach, x, y, base, logs, sure, least, lines, scratch
):  # fmt: skip
    """Try the tilts between -1/2 and 1/2 where many nodes are needed; say whether there were any.

    ``scratch``: three rows for the levels.
    """
    start, share = np.zeros(len(TILTS)), np.empty(x.shape[0])
    changed = False
    for i in range(len(sure)):
        if negligible(sure[i], least) or logs[i, UNTILTED + 1, 4] < math.inf:
            continue
        if lines[i, 1] * lines[i, 2] > 2 * math.pi * _MANY_NODES:
            tilt_between(
                -0.4, 0.4, i - reach, blur, log_p, log_p_empty, level, sets, C, x[:, i], y[:, :, i],
                base[:, i], start, share, scratch[0], scratch[1], logs[i], sure[i],
            )  # fmt: skip
            changed = True
    return changed


@kernel(inner=True)
def _tilt_to_lines(law, sets, C, reach, x, y, base, kind, lines, share, here, line, variance):
    """Tilt each R to its line: ``share``, its bounds ``here``, in ``line`` the empty type's share.

    Fills the variances of n too, and in ``line`` by how much rounding of the exponents may move
    the product of the bound and of the probabilities of all sets, on average, and at most besides
    what the errors of x do.
    """
    W = MANY
    lam, work, log_f, totals = np.empty(W), np.zeros(WORK), np.empty(W), np.empty((3, W))
    level, shares = np.empty((2 * C + 1) * W), np.empty(len(x) * W)
    i = 0
    while i < len(kind):
        lanes = 0
        while i + lanes < len(kind) and lanes < W and kind[i + lanes] == INTEGRATED:
            lam[lanes] = lines[i + lanes, 0]
            work[U * W + lanes] = 0.0
            work[R * W + lanes] = i + lanes - reach
            lanes += 1
        if lanes > 0:
            tilt_totals(
                lam, i, lanes, law.log_p, law.log_p_empty, law.level, sets, C, x, work, level,
                shares, log_f,
            )  # fmt: skip
            for k in range(3):
                weighted(shares, 0, y[k], i, base[1 + k], sets, totals[k, :lanes])
        for m in range(lanes):
            front = sets * log_f[m] - lam[m] * base[0, i + m] - work[R * W + m] * work[U * W + m]
            here[i + m, 0] = here[i + m, 4] = front
            for k in range(3):
                here[i + m, 1 + k] = front + math.log(totals[k, m] + 1e-300)
            filled = stretch = 0.0
            for k in range(len(x)):
                share[i + m, k] = shares[k * W + m]
                filled += shares[k * W + m]
                stretch += shares[k * W + m] * abs(x[k, i + m])
            crowd, top = sets * filled, 0.0
            if sets - 1.0 <= PLAIN_POWER or filled >= 0.5:  # the empty type has its own error
                crowd, top = sets, work[TOP * W + m]
            shift = work[U * W + m]
            # of a probability 8 u of log_p and 4 u of each exponent, once more in log f and twice
            # in its cancelling logarithm; z^n takes 3 C multiplications
            each = 3 * (12 * law.log_size + 5 * abs(shift) * C + 6 * C + 20 + 2 * abs(top))
            error = 32 + 4 * sets * (abs(log_f[m]) - max(law.log_p_empty, -745.0))
            error += 4 * (abs(lam[m] * base[0, i + m]) + abs(work[R * W + m] * shift))
            line[i + m, 6] = (error + crowd * each + 8 * abs(lam[m]) * sets * stretch) * UNIT
            line[i + m, 7] = (error + sets * each) * UNIT
            line[i + m, 2], variance[i + m] = work[EMPTY * W + m], work[VARIANCE * W + m]
        i += max(lanes, 1)


@kernel(inner=True)
def _kind(logs, q, nodes):
    """Decide about an R by its bounds over the goal at negative tilts, and the nodes it needs."""
    for j in range(UNTILTED):
        if q[j] <= 0.0 and logs[j, 4] < math.inf:
            return SURELY_NEGATIVE
    return INTEGRATED if nodes < MOST_NODES else TOO_MANY_NODES


@kernel(inner=True)
def _goal_of_each(sure, goal, least, log_goal):
    """Share the goal among the totals R that are integrated and the four kinds of error."""
    active = 1
    for i in range(len(sure)):
        if not negligible(sure[i], least):
            active += 1
    for k in range(5):
        log_goal[k] = math.log(goal[k] + 1e-300) - math.log(5.0 * active)


@kernel(inner=True)
def _combine(logs, log_goal):
    """Return ``log sum_k exp(logs_k) / goal_k``."""
    top = -math.inf
    for k in range(5):
        top = max(top, logs[k] - log_goal[k])
    total = 0.0
    for k in range(5):
        if log_goal[k] < math.inf:
            total += math.exp(logs[k] - log_goal[k] - top)
    return top + math.log(total)


@kernel(inner=True)
def _combine_all(logs, log_goal, q):
    """Fill ``q[j]``, the bound by tilt j over the goal; by convexity on chords where not known."""
    last = 0
    for j in range(len(TILTS)):
        if logs[j, 4] == math.inf:
            continue
        q[j] = _combine(logs[j], log_goal)
        for m in range(last + 1, j):
            part = (TILTS[m] - TILTS[last]) / (TILTS[j] - TILTS[last])
            q[m] = q[last] + part * (q[j] - q[last])
        last = j
