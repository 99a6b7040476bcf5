r"""Lines: where each total R is integrated, eta and the nodes in t, and the angles in z.

The integral for s(-F) runs along ``Re w = eta``. Of the lines ``eta = j / 8`` (``j / 32`` where F
ranges far) the one is taken that meets the goal with the fewest nodes (notebook
``fourier_method``, Section 6).
"""

import math
from typing import NamedTuple

import numpy as np

from dynamics.core.jit import kernel
from dynamics.positional.population.fourier.errors import UNIT
from dynamics.positional.population.fourier.four_angles import PLAIN_POWER
from dynamics.positional.population.fourier.goals import (
    lower,
    negligible,
    thresholds,
    tilt_finely,
    tilt_where_needed,
)
from dynamics.positional.population.fourier.node_sums import FEW_LANES
from dynamics.positional.population.fourier.tilts import (
    EMPTY,
    MANY,
    TILTS,
    TOP,
    UNTILTED,
    VARIANCE,
    R,
    U,
    room_to_tilt,
    tilt_totals,
    weighted,
)
from dynamics.positional.population.fourier.windows import choose_angles, window

#: An R that would need more nodes than this is left out, at its full size in the bound.
MOST_NODES = 16384

#: From this many nodes on, finer tilts are tried: F ranges far, but rarely.
_MANY_NODES = 64

#: Where F ranges far its Chernoff bounds exceed the answer by about this factor's inverse.
_FAR_BELOW = 0.01

#: What is done with a total R.
LEFT_OUT, TOO_MANY_NODES, SURELY_NEGATIVE, INTEGRATED = 0, 1, 2, 3


class Lines(NamedTuple):
    """What is done with each total R, and along which line.

    ``kind``; ``eta``; ``omega``, the alias period Omega, and ``step`` = 2 pi / Omega in t; the
    numbers of ``nodes`` and ``angles``. ``share[total, type]``: the probabilities tilted to the
    line, of an ``empty`` set too; ``logs[total, 5]``: the bounds on the line; ``height``: the
    logarithm of all five over the goal; ``alias``: the aliases in R relative to them. By ``moved``
    rounding of the exponents may move the product of the bound and of the probabilities of all
    sets on average, by ``moved_most`` at most besides what the errors of x do. ``log_goal[5]``:
    logarithm of the error allowed for each R and kind of error.
    """

    kind: np.ndarray
    eta: np.ndarray
    omega: np.ndarray
    step: np.ndarray
    nodes: np.ndarray
    angles: np.ndarray
    share: np.ndarray
    empty: np.ndarray
    logs: np.ndarray
    height: np.ndarray
    alias: np.ndarray
    moved: np.ndarray
    moved_most: np.ndarray
    log_goal: np.ndarray


@kernel
def design(law, goals, asked):
    """Choose what to do with each R, by line, nodes and angles; refine the bounds where needed.

    Lowers ``goals.goal`` where finer tilts show that the answer is smaller than it seemed. Returns
    :class:`Lines`.
    """
    bounds = goals.bounds
    count, types = len(bounds.tried), len(law.n)
    ints, floats = np.zeros((3, count), np.int64), np.zeros((8, count))
    lines = Lines(
        ints[0],
        floats[0],
        floats[1],
        floats[2],
        ints[1],
        ints[2],
        np.zeros((count, types)),
        floats[3],
        np.zeros((count, 5)),
        floats[4],
        floats[5],
        floats[6],
        floats[7],
        np.empty(5),
    )
    ends, limits = np.empty(count), np.empty((count, len(TILTS)))
    wanted, variance = np.empty(count, np.bool_), np.empty(count)
    while True:  # a lower goal may call for further totals, which may need fine tilts too
        tilt_where_needed(law, goals)
        least = thresholds(goals.goal, count)
        _goal_of_each(bounds.sure, goals.goal, least, lines.log_goal)
        _choose_lines(bounds, least, limits, ends, lines)
        if not _far_ranging(bounds, least, ends, lines.omega, wanted):
            break
        tilt_finely(wanted, law, goals)
        lower(_FAR_BELOW * asked.tolerance, asked.floor, goals)
    _decide(bounds, least, limits, ends, lines)
    _tilt_to_lines(law, goals.tables, lines, room_to_tilt(law), variance)
    _place_nodes(ends, lines)
    choose_angles(law, goals.tables, lines, variance)
    return lines


@kernel(borrows=True)
def _choose_lines(bounds, least, limits, ends, lines):
    """Fill eta, Omega and the end in t for each R, and ``limits``, its bounds over the goal."""
    for i in range(len(bounds.sure)):
        if not negligible(bounds.sure[i], least):
            _combine_all(bounds.logs[i], lines.log_goal, limits[i])
            grid = 8 if bounds.logs[i, UNTILTED + 1, 4] == math.inf else 32
            lines.eta[i], lines.omega[i], ends[i] = window(limits[i], grid)


@kernel(borrows=True)
def _far_ranging(bounds, least, ends, omega, wanted):
    """Mark where many nodes are needed and the fine tilts were not tried yet; say if anywhere."""
    found = False
    for i in range(len(ends)):
        far = not negligible(bounds.sure[i], least) and bounds.logs[i, UNTILTED + 1, 4] == math.inf
        wanted[i] = far and omega[i] * ends[i] > 2 * math.pi * _MANY_NODES
        found = found or wanted[i]
    return found


@kernel(borrows=True)
def _decide(bounds, least, limits, ends, lines):
    """Fill what is done with each R."""
    for i in range(len(ends)):
        if not negligible(bounds.sure[i], least):
            nodes = lines.omega[i] * ends[i] / (2 * math.pi)
            lines.kind[i] = _kind(bounds.logs[i], limits[i], nodes)


@kernel(borrows=True)
def _place_nodes(ends, lines):
    """Fill the numbers of nodes, their distances, and ``height``."""
    for i in range(len(ends)):
        if lines.kind[i] == INTEGRATED:
            omega = lines.omega[i]
            lines.height[i] = _combine(lines.logs[i], lines.log_goal)
            lines.nodes[i] = math.ceil(ends[i] * omega / (2 * math.pi * FEW_LANES)) * FEW_LANES
            lines.step[i] = 2 * math.pi / omega


@kernel(borrows=True)
def _tilt_to_lines(law, tables, lines, tilting, variance):
    """Tilt each R to its line, and fill the variances of n."""
    base, lam, rows, sets = tables.base, tilting.lam, tilting.rows, law.L - 1.0
    i = 0
    while i < len(lines.kind):
        lanes = 0
        while i + lanes < len(lines.kind) and lanes < MANY and lines.kind[i + lanes] == INTEGRATED:
            lam[lanes] = lines.eta[i + lanes]
            rows[U * MANY + lanes] = 0.0
            rows[R * MANY + lanes] = i + lanes + tables.first
            lanes += 1
        if lanes > 0:
            tilt_totals(i, lanes, law, tables.x, tilting)
            for k in range(3):
                factor = tilting.factor[k, :lanes]
                weighted(tilting.share, 0, tables.y[k], i, base[1 + k], sets, factor)
            _note_lines(i, lanes, law, tables, tilting, lines)
            for lane in range(lanes):
                variance[i + lane] = rows[VARIANCE * MANY + lane]
        i += max(lanes, 1)


@kernel(borrows=True)
def _note_lines(first, lanes, law, tables, tilting, lines):
    """Enter the shares and the bounds on the lines of ``lanes`` totals, and their errors."""
    sets, base, rows = law.L - 1.0, tables.base[0], tilting.rows
    for lane in range(lanes):
        i = first + lane
        lam, log_f, u = tilting.lam[lane], tilting.log_f[lane], rows[U * MANY + lane]
        r = rows[R * MANY + lane]
        front = sets * log_f - lam * base[i] - r * u
        lines.logs[i, 0] = lines.logs[i, 4] = front
        for k in range(3):
            lines.logs[i, 1 + k] = front + math.log(tilting.factor[k, lane] + 1e-300)
        filled = stretch = 0.0
        for k in range(len(tables.x)):
            share = tilting.share[k * MANY + lane]
            lines.share[i, k] = share
            filled += share
            stretch += share * abs(tables.x[k, i])
        crowd, top = sets * filled, 0.0
        if sets - 1.0 <= PLAIN_POWER or filled >= 0.5:  # the empty type has its own error
            crowd, top = sets, rows[TOP * MANY + lane]
        # of a probability 8 u of log_p and 4 u of each exponent, once more in log f and twice
        # in its cancelling logarithm; z^n takes 3 C multiplications
        each = 3 * (12 * law.log_size + 5 * abs(u) * law.C + 6 * law.C + 20 + 2 * abs(top))
        error = 32 + 4 * sets * (abs(log_f) - max(law.log_p_empty, -745.0))
        error += 4 * (abs(lam * base[i]) + abs(r * u))
        lines.moved[i] = (error + crowd * each + 8 * abs(lam) * sets * stretch) * UNIT
        lines.moved_most[i] = (error + sets * each) * UNIT
        lines.empty[i] = rows[EMPTY * MANY + lane]


@kernel(borrows=True)
def _kind(logs, q, nodes):
    """Decide about an R by its bounds over the goal at negative tilts, and the nodes it needs."""
    for j in range(UNTILTED):
        if q[j] <= 0.0 and logs[j, 4] < math.inf:
            return SURELY_NEGATIVE
    return INTEGRATED if nodes < MOST_NODES else TOO_MANY_NODES


@kernel(borrows=True)
def _goal_of_each(sure, goal, least, log_goal):
    """Share the goal among the totals R that are integrated and the four kinds of error."""
    active = 1
    for i in range(len(sure)):
        if not negligible(sure[i], least):
            active += 1
    for k in range(5):
        log_goal[k] = math.log(goal[k] + 1e-300) - math.log(5.0 * active)


@kernel(borrows=True)
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


@kernel(borrows=True)
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
