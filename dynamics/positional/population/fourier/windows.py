"""Windows in t and angles in z: aliases and truncation of the trapezoidal rule.

The trapezoidal rule with step ``2 pi / Omega`` returns s(-F) for the window ``|F| < Omega`` and
aliases, which decrease like ``e^{-(1 -+ eta) Omega}``; a discrete Fourier transform over m angles
returns the coefficient of z^r and those of z^(r + k m), whose size at another radius of z is
bounded by Chernoff (notebook ``fourier_method``, Sections 3 and 6). All bounds are those of tilted
expectations, ``logs[j, k]`` for tilt ``j`` and component ``k`` (loss, three derivatives, mean
sigmoid); infinite if not computed.
"""

import math

import numpy as np

from dynamics.core.jit import kernel
from dynamics.positional.population.fourier.tilts import TILTS, UNTILTED

#: Logarithms of the absolute tilts, 0 at tilt 0.
_LOG_TILTS = np.log(np.abs(np.where(TILTS == 0.0, 1.0, TILTS)))

#: 1 / (tilt - eta) for eta = j / 32, j = -32 ... 32; 0 where eta is the tilt.
_GAPS = TILTS[None, :] - np.arange(-32, 33)[:, None] / 32
_INVERSE_GAPS = np.divide(1.0, _GAPS, out=np.zeros_like(_GAPS), where=_GAPS != 0.0)


@kernel(borrows=True)
def window(q, grid):
    """Return eta, the alias period Omega and the end in t with the fewest nodes that meet the goal.

    ``q`` contains the bounds by tilt over the goal, and ``eta`` is a multiple of 1 / grid, with
    grid a divisor of 32. s(-F) <= e^{-lam F} for lam in [0, 1]; softplus(-F) <= e^{-lam F} / lam
    for lam in (0, 1] and <= log 2 + |F|, used at lam = 0.
    """
    best, eta_best, omega_best, time_best = math.inf, 0.0, 1.0, math.inf
    j = 0
    for step in range(1 - grid, grid):
        eta = step / grid
        while TILTS[j + 1] <= eta:
            j += 1
        height = q[j] + (eta - TILTS[j]) * (q[j + 1] - q[j]) / (TILTS[j + 1] - TILTS[j])
        time = max(0.5, height / math.pi)
        above = below = math.inf
        inverse = _INVERSE_GAPS[32 + step * (32 // grid)]
        for k in range(max(j + 1, UNTILTED), len(TILTS)):
            above = min(above, q[k] * inverse[k])
        for k in range(min(j if eta == TILTS[j] else j + 1, UNTILTED + 1)):
            below = min(below, -q[k] * inverse[k])
        omega = max(above, below, 2.0)
        if omega * time < best:
            best, eta_best, omega_best, time_best = omega * time, eta, omega, time
    return eta_best, omega_best, time_best


@kernel(borrows=True)
def add_truncation_and_aliases(lines, logs, most, integrated, sides):
    """Add the truncation in t and the aliases of the trapezoidal rule to ``integrated.bounds``.

    Rounding may change the logarithm of a bound by ``most`` and ``lines.rounding``; ``sides[2, 5]``
    is scratch. ``-log tanh(x / 2) = log(1 + 2 / (e^x - 1))``.
    """
    for i in range(len(lines.nodes)):
        if lines.nodes[i] == 0:
            continue
        end, omega, eta = lines.nodes[i] * lines.step[i], lines.omega[i], lines.eta[i]
        cut = math.log1p(2.0 / math.expm1(min(math.pi * end, 700.0))) / math.pi
        more = math.exp(min(most[0, i] + lines.rounding[i], 700.0))
        _aliases(eta, omega, logs[i], sides)
        for k in range(5):
            front, bounds = integrated.front[i, k], integrated.bounds[i, k]
            bounds[1] += more * cut * front / (end if k == 0 else 1.0)
            bounds[2] += more * (math.exp(sides[0, k]) + math.exp(sides[1, k]))


@kernel(borrows=True)
def _aliases(eta, omega, logs, sides):
    """Bound the aliases from above and below by the best tilt on either side of eta."""
    for k in range(5):
        sides[0, k] = sides[1, k] = math.inf
    for j in range(len(TILTS)):
        gap = abs(TILTS[j] - eta)
        if gap == 0.0 or logs[j, 4] == math.inf:
            continue
        geometric = -math.expm1(-gap * omega)
        lost = gap * omega + math.log(geometric)
        for k in range(5):
            size = logs[j, k] - lost
            if k == 0:  # an alias is at most softplus(-+F), thus log 2 + |F|, e^(-+lam F) / lam
                size -= _LOG_TILTS[j]
            if TILTS[j] > eta and TILTS[j] >= 0:
                sides[0, k] = min(sides[0, k], size)
            elif TILTS[j] < eta and TILTS[j] <= 0:
                sides[1, k] = min(sides[1, k], size)


@kernel(inner=True)
def choose_angles(law, tables, lines, variance):
    """Fill the angles of every R that is integrated, a multiple of 4, and ``lines.alias``.

    ``variance`` contains the variance of n, by total.
    """
    by_n = np.empty((2, 2 * law.C + 1))
    _choose_angles(law, tables, lines, variance, by_n, np.empty(6), np.exp(-lines.log_goal))


@kernel(borrows=True)
def _choose_angles(law, tables, lines, variance, by_n, rise, inverse):
    """Fill angles and aliases; ``by_n`` and ``rise`` are scratch.

    ``inverse`` contains the reciprocals of the allowed errors.
    """
    C, sets, n_types = law.C, law.L - 1.0, len(law.n)
    y, base, level_index, level, weight = tables.y, tables.base, law.level_index, by_n[0], by_n[1]
    for i in range(len(lines.nodes)):
        if lines.nodes[i] == 0:
            continue
        share = lines.share[i]
        fill_levels(share, level_index, lines.empty[i], C, level)
        for j in range(len(weight)):
            weight[j] = 0.0
        rest = inverse[0] + inverse[4]
        rest += (
            abs(base[1, i]) * inverse[1]
            + abs(base[2, i]) * inverse[2]
            + abs(base[3, i]) * inverse[3]
        )
        for j in range(n_types):
            size = abs(y[0, j, i]) * inverse[1] + abs(y[1, j, i]) * inverse[2]
            size += abs(y[2, j, i]) * inverse[3]
            weight[level_index[j]] += sets * share[j] * size
        excess = max(lines.height[i], 1.0)
        delta = min(math.sqrt(2 * excess / max(sets * variance[i], 1e-6)), 200.0 / C)  # no overflow
        for trial in range(3):
            shift = _shift(trial, delta)
            factor = math.exp(shift)
            r = tables.first + i
            rise[trial] = _rise(shift, factor, r, C, sets, level, weight, rest)
            rise[trial + 3] = _rise(-shift, 1.0 / factor, r, C, sets, level, weight, rest)
        span = (2 * int(sets) * C + 5) // 4 * 4
        lines.angles[i], lines.alias[i] = _circle(span, excess, delta, rise)


@kernel(borrows=True)
def _circle(span, excess, delta, rise):
    """Return the angles, at most ``span``, and the aliases in R relative to exp(excess)."""
    angles = 0.0
    for side in range(0, 6, 3):
        best = math.inf
        for trial in range(side, side + 3):
            best = min(best, (rise[trial] + excess) / abs(_shift(trial, delta)))
        angles = max(angles, best)
    if not angles + 4.5 < span:
        return span, 0.0
    fours = math.ceil((angles + 0.5) / 4) * 4
    alias = 0.0
    for side in range(0, 6, 3):
        best = math.inf
        for trial in range(side, side + 3):
            wrap = fours * abs(_shift(trial, delta))
            best = min(best, math.exp(rise[trial] - wrap) / -math.expm1(-wrap))
        alias += best
    return fours, alias


@kernel(borrows=True)
def _shift(trial, delta):
    """Return one of the tried shifts of u: three to one side, and three to the other."""
    return delta * (0.7 + 0.3 * (trial % 3)) * (-1.0 if trial < 3 else 1.0)


@kernel(borrows=True)
def _rise(shift, factor, r, C, sets, level, weight, rest):
    """Return the increase of the logarithm of the Chernoff bound when u changes by ``shift``."""
    f = g = start = 0.0
    power, inverse = 1.0, 1.0 / factor
    for _ in range(C):
        power *= inverse
    for i in range(2 * C + 1):
        f += level[i] * power
        g += weight[i] * power
        start += weight[i]
        power *= factor
    rounding = sets * (4.0 * C + 16.0) * 2.0**-53  # f has an error of 2 u for each power of e^shift
    return (
        (sets - 1.0) * math.log(f)
        + math.log((rest * f + g) / (rest + start))
        - r * shift
        + rounding
    )


@kernel(borrows=True)
def mean_power(power, level, angles):
    """Bound the mean over the angles of ``|f|^power``, at any t; ``level`` adds up to 1.

    ``f^M`` is a polynomial in z with coefficients that are largest in absolute value at t = 0
    (triangle inequality), so by Parseval the mean of ``|f|^(2M)`` is largest there too, at angles
    that are not shifted. There ``1 - |f|^2 >= W (1 - cos theta)``, with W the probability that two
    independent sets differ by 1 in n, and ``(1 - v)^M <= e^{-M v} <= 1 / (1 + M v)``, whose mean
    over m angles is ``(1 + 2 M W)^(-1/2) (1 + rho^m) / (1 - rho^m)`` (a Poisson kernel). With few
    angles this may exceed 1, which is always a bound.
    """
    one_apart = 0.0
    for i in range(len(level) - 1):
        one_apart += 2.0 * level[i] * level[i + 1]
    size = max(power // 2, 0) * one_apart
    if size == 0.0:
        return 1.0
    root = math.sqrt(1.0 + 2.0 * size)
    wrap = (size / (1.0 + size + root)) ** angles
    return min(1.0, (1.0 + wrap) / ((1.0 - wrap) * root))


@kernel(borrows=True)
def fill_levels(share, level_index, empty, C, level):
    """Fill ``level[n + C]``, the sums of the shares over n."""
    for i in range(2 * C + 1):
        level[i] = 0.0
    level[C] = empty
    for k in range(len(share)):
        level[level_index[k]] += share[k]
