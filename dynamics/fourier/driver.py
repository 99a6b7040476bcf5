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

from dynamics._jit import REORDER, kernel
from dynamics.fourier.bound import account, fill_levels, mean_power
from dynamics.fourier.design import LEFT_OUT, SURELY_NEGATIVE, TOO_MANY_NODES, design
from dynamics.fourier.kernel import PLAIN_POWER, node_sums
from dynamics.fourier.plan import TILTS, UNTILTED
from dynamics.fourier.prepare import FLOOR, prepare
from dynamics.fourier.quads import binomial_series

#: Parts of the bound, in the order of the columns of ``bounds``.
PARTS = ("truncation in R", "truncation in t", "aliasing in t", "aliasing in R", "rounding")

_UNIT = 2.0**-53


def expectation(law, C, L, constants, power, crude, tolerance):
    """Return the loss, E[s(-F) dF] for alpha, gamma, rho, and E[s(-F)], with their errors.

    Returns ``values[5], bounds[5, parts], magnitude[5], unit[5]``. ``magnitude`` bounds
    E[s(-F) |dF|] and ``unit`` E|dF| from above; ``crude`` bounds softplus(-F), |dF|, 1 everywhere.
    """
    reach, tail, x, y, base, logs, sure, ready, unit, goal = prepare(
        law, C, L, constants, power, crude, tolerance
    )
    for _ in range(4):
        kind, line, nodes, angles, share, here, log_goal = design(
            law, C, L, reach, tolerance, unit, x, y, base, logs, sure, ready, goal
        )
        sums, _, weights, _ = node_sums(
            -reach, base[0], x, y, law.n, share, line, nodes, angles, C, L, False
        )
        values, bounds, magnitude, settled = assemble(
            law, C, L, reach, x, y, base, logs, sure, kind, line, nodes, angles, share, here,
            log_goal, sums, weights, math.exp(tail) * crude, unit, tolerance, goal,
        )  # fmt: skip
        if settled:
            break
    return values, bounds, magnitude, unit


@kernel
def assemble(
    law, C, L, reach, x, y, base, logs, sure, kind, line, nodes, angles, share, here,
    log_goal, sums, weights, rest, unit, tolerance, goal,
):  # fmt: skip
    """Add up all R, ``rest`` bounding those beyond, and lower each goal that was missed.

    Returns values, bounds, magnitudes and whether all goals were met; overwrites ``sums``.
    """
    values, bounds, magnitude = np.zeros(5), np.zeros((5, 5)), np.zeros(5)
    moments, blurs = np.empty((5, len(kind))), np.empty((5, len(kind)))
    _moments_given(
        law.center - reach, law.total, law.total_less_one, law.noise, law.p, law.n, L - 1.0, x, y,
        base, moments, blurs,
    )  # fmt: skip
    front, level, series = np.empty(5), np.empty(2 * C + 1), np.empty(10)
    beyond = np.zeros(5)  # the totals that would need too many nodes, whatever the goal
    for k in range(5):
        bounds[k, 0] = rest[k]
    for i in range(len(kind)):
        if kind[i] == LEFT_OUT or kind[i] == TOO_MANY_NODES:
            for k in range(5):
                size = math.exp(min(sure[i, k], 700.0))
                bounds[k, 0 if kind[i] == LEFT_OUT else 2] += size
                beyond[k] += 0.0 if kind[i] == LEFT_OUT else size
            continue
        center = law.center + i - reach
        if kind[i] == SURELY_NEGATIVE:
            _surely_negative(logs[i], moments[:, i], blurs[:, i], values, bounds, magnitude)
            continue
        for k in range(5):
            front[k] = math.exp(here[i, k])
        constant = 1.0 / (1.0 + math.exp(line[i, 0] * line[i, 3]))
        _add_loss(
            law.total[center], front[0] * weights[i, 0], line[i, 3], constant, moments[0, i],
            values, magnitude,
        )  # fmt: skip
        _add_derivatives(
            center, law.total_less_one, law.p_empty, law.p, law.n, L - 1.0, y[:, :, i],
            base[:, i], sums[i], front[0], constant, values, magnitude,
        )  # fmt: skip
        account(nodes[i] * line[i, 1], line[i, 3], line[i, 0], logs[i], front, bounds)
        fill_levels(share[i], law.level, line[i, 2], C, level)
        power = mean_power(L - 3, level, angles[i])
        _add_rounding(
            L, law.total[center], law.noise, x[:, i], base[0, i], share[i], line[i], angles[i],
            power, front, log_goal, weights[i], constant, moments[:, i], blurs[:, i], series,
            bounds,
        )  # fmt: skip
    return values, bounds, magnitude, _settled(tolerance, bounds, beyond, magnitude, unit, goal)


@kernel(inner=True)
def _settled(tolerance, bounds, beyond, magnitude, unit, goal):
    """Lower each goal whose error exceeds its share of the answer.

    Rounding cannot be lowered, and nothing helps where what is left out ``beyond`` is too large.
    """
    settled = True
    for k in range(5):
        whole, rounding = tolerance * magnitude[k], bounds[k, 4]
        aim = rounding if rounding >= whole else max(0.1 * whole, whole - rounding)
        aim = max(aim, FLOOR * unit[k])
        if beyond[k] > aim:
            return True
        error = bounds[k, 0] + bounds[k, 1] + bounds[k, 2] + bounds[k, 3]
        if error > aim:
            goal[k] *= 0.5 * aim / error
            settled = False
    return settled


@kernel(inner=True, fastmath=REORDER)
def _moments_given(first, total, total_less_one, noise, p, n, sets, x, y, base, moments, blurs):
    """Fill E[F 1{R=r}], E[dF 1{R=r}] and the error to which rounding leaves them known."""
    count = x.shape[1]
    here = total[first : first + count]
    for k in range(5):
        for i in range(count):
            moments[k, i] = base[k, i] * here[i]
            blurs[k, i] = abs(base[k, i]) * (8 * _UNIT * here[i] + noise)
    for j in range(len(p)):
        w, here = sets * p[j], total_less_one[first - int(n[j]) :]
        for k in range(4):
            size, moment, blur = x[j] if k == 0 else y[k - 1, j], moments[k], blurs[k]
            for i in range(count):
                moment[i] += w * here[i] * size[i]
                blur[i] += w * (8 * _UNIT * here[i] + noise) * abs(size[i])


@kernel(inner=True)
def _surely_negative(logs, moments, blurs, values, bounds, magnitude):
    """Take s(-F) = 1 and softplus(-F) = -F; s(F) and softplus(F) are at most e^(aF) / a, a <= 1."""
    for k in range(5):
        least = math.inf
        for j in range(UNTILTED):
            least = min(least, logs[j, k] - (math.log(-TILTS[j]) if k == 0 else 0.0))
        bounds[k, 0] += math.exp(least)
        bounds[k, 4] += blurs[k]
        values[k] += moments[k] if k > 0 else -moments[k]
        magnitude[k] += abs(moments[k]) if k > 0 else -moments[k]


@kernel(inner=True)
def _add_loss(total, integral, omega, constant, mean, values, magnitude):
    """Add the integral and the constants of the loss for one R; ``mean`` is E[F 1{R=r}]."""
    value = integral + omega * constant * (1 - constant) * total - constant * mean
    values[0] += value
    magnitude[0] += value


@kernel(inner=True)
def _add_derivatives(
    center, total_less_one, p_empty, p, n, sets, y, base, sums, front, constant, values, magnitude
):
    """Turn ``sums``, E over L - 2 sets for each type, into E[s(-F) dF 1{R=r}]."""
    types = len(p)
    total = front * sums[types] + constant * p_empty * total_less_one[center]
    for j in range(types):
        sums[j] = front * sums[j] + constant * p[j] * total_less_one[center - int(n[j])]
        total += sums[j]
    for k in range(3):
        value = base[1 + k] * total
        size = abs(value)
        for j in range(types):
            term = sets * y[k, j] * sums[j]
            value += term
            size += abs(term)
        values[1 + k] += value
        magnitude[1 + k] += size
    values[4] += total
    magnitude[4] += total


@kernel(inner=True)
def _add_rounding(
    L, total, noise, x, base, share, line, angles, power, front, log_goal, weights, constant,
    moments, blurs, series, bounds,
):  # fmt: skip
    """Add the aliases in R and the rounding errors of one R.

    The error of f^(L-2) is bounded in units of rounding, relative to |f|^(L-3), whose mean over
    the angles is at most ``power``; to 1 where the excess over 1 is taken digit by digit.
    ``series`` is scratch.
    """
    eta, empty, omega, height, alias = line[0], line[2], line[3], line[4], line[5]
    # of a sum over the types: 10 u of the waves, additions (at most 2 C, C^2 <= 2 types), tables
    sum_error = 24.0 + 2.0 * math.sqrt(2.0 * len(x))
    relative = (L - 2.0) * (sum_error + 4.0) + angles + 60
    if L - 2 > PLAIN_POWER:
        filled = 1.0 - empty
        squarings = binomial_series(L - 2, 2.0 * share.sum(), series)
        # each squaring of a number near 1 adds 3 u and doubles what there was
        power_error = 4.0 * 2.0**squarings
        if squarings < 0:
            power_error, power = (L - 2.0) * filled * 4.0 * math.log2(L), 1.0
        relative = (L - 2.0) * filled * sum_error + power_error + angles + 60
    spread = abs(base)
    for j in range(len(x)):
        spread += (L - 1.0) * share[j] * abs(x[j])
    blur = 2 * _UNIT * (4 + abs(eta * omega))  # of exp(eta omega)
    for k in range(5):
        w = weights[2] if k == 0 else weights[1]
        bounds[k, 3] += w * alias * math.exp(log_goal[k] + height)
        bounds[k, 4] += (relative + 2 * spread) * _UNIT * w * power * front[k]
        bounds[k, 4] += constant * (blurs[k] + blur * abs(moments[k]))
    bounds[0, 4] += omega * constant * (1 - constant) * (noise + blur * total)
