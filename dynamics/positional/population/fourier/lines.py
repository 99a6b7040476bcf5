"""Lines: contour, nodes in t and angles in z for each total R.

The integral for s(-F) runs along ``Re w = eta``. Of the lines ``eta = j / 8`` (``j / 32`` if F has
a large range) the line that meets the goal with the fewest nodes is chosen (notebook
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
    MAX_LANES,
    TILTS,
    TOP,
    UNTILTED,
    VARIANCE,
    R,
    U,
    allocate_tilting,
    tilt_totals,
    weighted,
)
from dynamics.positional.population.fourier.windows import choose_angles, window

#: An R that needs more nodes is left out, and its full size is added to the bound.
MOST_NODES = 16384

#: Finer tilts are tried for more nodes than this: F has a large range.
_MANY_NODES = 64

#: If F has a large range, the answer is about this fraction of its Chernoff bounds.
_FAR_BELOW = 0.01

#: Treatments of a total R.
LEFT_OUT, TOO_MANY_NODES, NEGATIVE, INTEGRATED = 0, 1, 2, 3


class Lines(NamedTuple):
    """Treatment of each total R, and its line.

    Attributes
    ----------
    treatment
        `LEFT_OUT`, `TOO_MANY_NODES`, `NEGATIVE` or `INTEGRATED`.
    eta, omega, step
        Real part of w, alias period Omega, and distance 2 pi / Omega of the nodes in t.
    nodes, angles
        Numbers of nodes and of angles.
    share, empty
        Probabilities tilted to the line, (totals, types), and of an empty set, (totals,).
    logs, height
        Logarithms of the bounds on the line, (totals, 5), and of their sum over the goals.
    alias
        Aliases in R relative to the bounds.
    rounding, rounding_largest
        Average and largest relative error, due to the rounding of exponents, of the product of the
        bound and the probabilities of all sets; the second without the errors of x.
    log_goal
        Logarithm of the allowed error of each R and type of error, (5,).
    """

    treatment: np.ndarray
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
    rounding: np.ndarray
    rounding_largest: np.ndarray
    log_goal: np.ndarray


@kernel
def design(law, goals, target):
    """Return the :class:`Lines`, and compute further bounds where needed.

    Lower ``goals.goal`` if finer tilts show that the answer is smaller.
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
    selected, variance = np.empty(count, np.bool_), np.empty(count)
    while True:  # a lower goal may include further totals, which may need fine tilts too
        tilt_where_needed(law, goals)
        least = thresholds(goals.goal, count)
        _goal_of_each(bounds.best, goals.goal, least, lines.log_goal)
        _choose_lines(bounds, least, limits, ends, lines)
        if not _far_ranging(bounds, least, ends, lines.omega, selected):
            break
        tilt_finely(selected, law, goals)
        lower(_FAR_BELOW * target.tolerance, target.floor, goals)
    _choose_treatments(bounds, least, limits, ends, lines)
    _tilt_to_lines(law, goals.tables, lines, allocate_tilting(law), variance)
    _place_nodes(ends, lines)
    choose_angles(law, goals.tables, lines, variance)
    return lines


@kernel(borrows=True)
def _choose_lines(bounds, least, limits, ends, lines):
    """Fill eta, Omega and the end in t for each R, and ``limits``, its bounds over the goal."""
    for i in range(len(bounds.best)):
        if not negligible(bounds.best[i], least):
            _combine_all(bounds.logs[i], lines.log_goal, limits[i])
            grid = 8 if bounds.logs[i, UNTILTED + 1, 4] == math.inf else 32
            lines.eta[i], lines.omega[i], ends[i] = window(limits[i], grid)


@kernel(borrows=True)
def _far_ranging(bounds, least, ends, omega, selected):
    """Mark totals with many nodes whose fine tilts were not tried; return whether there are any."""
    exists = False
    for i in range(len(ends)):
        far = not negligible(bounds.best[i], least) and bounds.logs[i, UNTILTED + 1, 4] == math.inf
        selected[i] = far and omega[i] * ends[i] > 2 * math.pi * _MANY_NODES
        exists = exists or selected[i]
    return exists


@kernel(borrows=True)
def _choose_treatments(bounds, least, limits, ends, lines):
    """Fill the treatment of each R."""
    for i in range(len(ends)):
        if not negligible(bounds.best[i], least):
            nodes = lines.omega[i] * ends[i] / (2 * math.pi)
            lines.treatment[i] = _treatment(bounds.logs[i], limits[i], nodes)


@kernel(borrows=True)
def _place_nodes(ends, lines):
    """Fill the numbers of nodes, their distances, and ``height``."""
    for i in range(len(ends)):
        if lines.treatment[i] == INTEGRATED:
            omega = lines.omega[i]
            lines.height[i] = _combine(lines.logs[i], lines.log_goal)
            lines.nodes[i] = math.ceil(ends[i] * omega / (2 * math.pi * FEW_LANES)) * FEW_LANES
            lines.step[i] = 2 * math.pi / omega


@kernel(borrows=True)
def _tilt_to_lines(law, tables, lines, tilting, variance):
    """Tilt each R to its line, and fill the variances of n."""
    base, lam, rows, sets = tables.base, tilting.lam, tilting.rows, law.L - 1.0
    i = 0
    while i < len(lines.treatment):
        lanes = 0
        while (
            i + lanes < len(lines.treatment)
            and lanes < MAX_LANES
            and lines.treatment[i + lanes] == INTEGRATED
        ):
            lam[lanes] = lines.eta[i + lanes]
            rows[U * MAX_LANES + lanes] = 0.0
            rows[R * MAX_LANES + lanes] = i + lanes + tables.first
            lanes += 1
        if lanes > 0:
            tilt_totals(i, lanes, law, tables.x, tilting)
            for k in range(3):
                factor = tilting.factor[k, :lanes]
                weighted(tilting.share, 0, tables.y[k], i, base[1 + k], sets, factor)
            _store_lines(i, lanes, law, tables, tilting, lines)
            for lane in range(lanes):
                variance[i + lane] = rows[VARIANCE * MAX_LANES + lane]
        i += max(lanes, 1)


@kernel(borrows=True)
def _store_lines(first, lanes, law, tables, tilting, lines):
    """Store the shares, the bounds on the lines and their errors for ``lanes`` totals."""
    sets, base, rows = law.L - 1.0, tables.base[0], tilting.rows
    for lane in range(lanes):
        i = first + lane
        lam, log_f, u = tilting.lam[lane], tilting.log_f[lane], rows[U * MAX_LANES + lane]
        r = rows[R * MAX_LANES + lane]
        front = sets * log_f - lam * base[i] - r * u
        lines.logs[i, 0] = lines.logs[i, 4] = front
        for k in range(3):
            lines.logs[i, 1 + k] = front + math.log(tilting.factor[k, lane] + 1e-300)
        filled = stretch = 0.0
        for k in range(len(tables.x)):
            share = tilting.share[k * MAX_LANES + lane]
            lines.share[i, k] = share
            filled += share
            stretch += share * abs(tables.x[k, i])
        crowd, top = sets * filled, 0.0
        if sets - 1.0 <= PLAIN_POWER or filled >= 0.5:  # the empty type has its own error
            crowd, top = sets, rows[TOP * MAX_LANES + lane]
        # A probability has the error 8 u of log_p and 4 u of each exponent. It occurs once more in
        # log f and twice in its logarithm with cancellation. z^n needs 3 C multiplications.
        per_set = 3 * (12 * law.log_size + 5 * abs(u) * law.C + 6 * law.C + 20 + 2 * abs(top))
        error = 32 + 4 * sets * (abs(log_f) - max(law.log_p_empty, -745.0))
        error += 4 * (abs(lam * base[i]) + abs(r * u))
        lines.rounding[i] = (error + crowd * per_set + 8 * abs(lam) * sets * stretch) * UNIT
        lines.rounding_largest[i] = (error + sets * per_set) * UNIT
        lines.empty[i] = rows[EMPTY * MAX_LANES + lane]


@kernel(borrows=True)
def _treatment(logs, q, nodes):
    """Return the treatment of an R, from its bounds over the goal at negative tilts and nodes."""
    for j in range(UNTILTED):
        if q[j] <= 0.0 and logs[j, 4] < math.inf:
            return NEGATIVE
    return INTEGRATED if nodes < MOST_NODES else TOO_MANY_NODES


@kernel(borrows=True)
def _goal_of_each(best, goal, least, log_goal):
    """Divide the goal among the totals R that are integrated and the four types of error."""
    active = 1
    for i in range(len(best)):
        if not negligible(best[i], least):
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
    """Fill ``q[j]``, the bound by tilt j over the goal; unknown ones by convexity, on chords."""
    last = 0
    for j in range(len(TILTS)):
        if logs[j, 4] == math.inf:
            continue
        q[j] = _combine(logs[j], log_goal)
        for m in range(last + 1, j):
            part = (TILTS[m] - TILTS[last]) / (TILTS[j] - TILTS[last])
            q[m] = q[last] + part * (q[j] - q[last])
        last = j
