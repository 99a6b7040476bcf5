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

from dynamics.core.errors import ToleranceError
from dynamics.core.jit import REORDER, kernel
from dynamics.positional.population.fourier.bound import account, fill_levels, mean_power
from dynamics.positional.population.fourier.design import (
    INTEGRATED,
    LEFT_OUT,
    SURELY_NEGATIVE,
    TOO_MANY_NODES,
    design,
)
from dynamics.positional.population.fourier.effort import (
    MOST_OPERATIONS,
    OPERATIONS_AT_ONCE,
    operations,
    too_long,
)
from dynamics.positional.population.fourier.kernel import node_sums
from dynamics.positional.population.fourier.plan import TILTS, UNTILTED
from dynamics.positional.population.fourier.prepare import FLOOR, prepare
from dynamics.positional.population.fourier.rounding import (
    MARGIN,
    TINY_RESULT,
    UNIT,
    add_drift,
    add_rounding,
    drift_of_moments,
    drifts,
    table_errors,
)

#: Parts of the bound, in the order of the columns of ``bounds``.
PARTS = ("truncation in R", "truncation in t", "aliasing in t", "aliasing in R", "rounding")

#: The same where accuracy is asked relative to the value, however small.
_RELATIVE_FLOOR = 1e-60


def expectation(law, C, L, constants, blur, power, crude, tolerance, relative):
    """Return the loss, E[s(-F) dF] for alpha, gamma, rho, and E[s(-F)], with their errors.

    Returns ``values[5], bounds[5, parts], magnitude[5], unit[5]``. ``magnitude`` bounds
    E[s(-F) |dF|] and ``unit`` E|dF| from above; ``crude`` bounds softplus(-F), |dF|, 1 everywhere,
    ``blur`` the errors of the attention weights among the constants. Raises ToleranceError where
    the integrals are counted to be more than ``MOST_OPERATIONS``, before they are computed.
    """
    floor = _RELATIVE_FLOOR if relative else FLOOR
    reach, tail, x, y, base, logs, sure, ready, unit, goal = prepare(
        law, C, L, constants, power, crude, tolerance, floor
    )
    values = None
    for _ in range(8 if relative else 4):
        kind, line, nodes, angles, share, here, log_goal = design(
            law, C, L, reach, tolerance, floor, unit, x, y, base, logs, sure, ready, goal
        )
        work = operations(C, L, len(law.n), nodes, angles, share)
        if work > MOST_OPERATIONS:
            if values is None:
                raise ToleranceError(too_long(work, int(nodes.sum())))
            break  # what is there, with its bounds
        sums, weights = _integrate(
            work, -reach, base[0], x, y, law.n, share, line, nodes, angles, C, L
        )
        values, bounds, magnitude, settled = assemble(
            law, C, L, reach, constants, blur, power, x, y, base, logs, sure, kind, line, nodes,
            angles, share, here, log_goal, sums, weights, math.exp(tail) * crude, unit, tolerance,
            relative, goal,
        )  # fmt: skip
        if settled:
            break
    return values, bounds, magnitude, unit


def _integrate(work, first, base, x, y, n, share, line, nodes, angles, C, L):
    """Return the sums and weights of ``node_sums``; long work in parts, so that Ctrl-C is heard."""
    parts = 1 + int(work / OPERATIONS_AT_ONCE)
    sums, weights = 0.0, 0.0
    done = np.cumsum(nodes * angles)
    owner = np.minimum(done * parts // max(done[-1], 1), parts - 1)  # the part of each total
    for part in range(parts):
        own = nodes if parts == 1 else np.where(owner == part, nodes, 0)
        more, _, weight, _ = node_sums(
            first, base, x, y, n, share, line, own, angles, C, L, False
        )  # rows without nodes give 0
        sums, weights = (more, weight) if part == 0 else (sums + more, weights + weight)
    return sums, weights


@kernel
def assemble(
    law, C, L, reach, constants, weight_errors, power, x, y, base, logs, sure, kind, line, nodes,
    angles, share, here, log_goal, sums, weights, rest, unit, tolerance, relative, goal,
):  # fmt: skip
    """Add up all R, ``rest`` bounding those beyond, and lower each goal that was missed.

    Returns values, bounds, magnitudes and whether all goals were met; overwrites ``sums``.
    """
    values, bounds, magnitude = np.zeros(5), np.zeros((5, 5)), np.zeros(5)
    moments, blurs = np.empty((5, len(kind))), np.empty((5, len(kind)))
    of_p = (16.0 + 8.0 * law.log_size) * UNIT
    _moments_given(
        law.center - reach, law.total, law.total_less_one, (law.accuracy, of_p, law.noise), law.p,
        law.n, L - 1.0, x, y, base, moments, blurs,
    )  # fmt: skip
    dx, dy = np.empty_like(x), np.empty_like(y)
    dbase, most = np.empty((4, len(kind))), np.empty((4, len(kind)))
    table_errors(
        -reach, law.plus, law.minus, law.level, L, C, constants, weight_errors, power, x, dx, dy,
        dbase, most,
    )  # fmt: skip
    untilted = law.share.shape[1] // 2 - reach
    tilted, drift = np.zeros_like(x), np.empty((7, len(kind)))
    for i in range(len(kind)):  # s(-F) is at most e^(-eta F) for eta >= 0, and 1 = e^(-0 F)
        if kind[i] == INTEGRATED:
            for j in range(len(x)):
                tilted[j, i] = share[i, j] if line[i, 0] >= 0.0 else law.share[j, untilted + i]
    drifts(L - 1.0, tilted, y, base, dx, dy, dbase, drift)
    front, level, series = np.empty(5), np.empty(2 * C + 1), np.empty(10)
    sizes, moved, here_bounds = np.empty(5), np.empty(6), np.zeros((5, 5))
    beyond = np.zeros(5)  # the totals that would need too many nodes, whatever the goal
    for k in range(5):
        bounds[k, 0] = rest[k]
    for i in range(len(kind)):
        if kind[i] == LEFT_OUT or kind[i] == TOO_MANY_NODES:
            _left_out(sure[i], most[:, i], 0 if kind[i] == LEFT_OUT else 2, bounds)
            for k in range(5):
                if kind[i] == TOO_MANY_NODES:
                    beyond[k] += math.exp(min(sure[i, k], 700.0))
            continue
        center = law.center + i - reach
        if kind[i] == SURELY_NEGATIVE:
            _surely_negative(
                logs[i], most[:, i], moments[:, i], blurs[:, i], values, bounds, magnitude
            )
            drift_of_moments(
                center, law.total, law.total_less_one, law.noise, law.p, law.n, L - 1.0, i, dx, dy,
                dbase, bounds,
            )  # fmt: skip
            continue
        for k in range(5):
            front[k] = math.exp(here[i, k])
        constant = 1.0 / (1.0 + math.exp(line[i, 0] * line[i, 3]))
        sizes[0] = _add_loss(
            law.total[center], front[0] * weights[i, 0], line[i, 3], constant, moments[0, i],
            values, magnitude,
        )  # fmt: skip
        _add_derivatives(
            center, law.total_less_one, law.p_empty, law.p, law.n, L - 1.0, i, y, base, sums[i],
            front[0], constant, values, magnitude, sizes,
        )  # fmt: skip
        account(
            nodes[i] * line[i, 1], line[i, 3], line[i, 0], logs[i], most[0, i] + line[i, 6], front,
            here_bounds,
        )  # fmt: skip
        fill_levels(share[i], law.level, line[i, 2], C, level)
        add_rounding(
            L, C, law.total[center], law.accuracy * law.total[center] + law.noise, x[:, i],
            base[0, i], share[i], line[i], angles[i], nodes[i], mean_power(L - 3, level, angles[i]),
            front, log_goal, weights[i], constant, moments[:, i], blurs[:, i], series, moved,
            here_bounds,
        )  # fmt: skip
        probability = front[4]
        if line[i, 0] < 0.0:
            probability = math.exp(law.log_probability[untilted + i])
        add_drift(probability, drift[:, i], most[:, i], moved, here_bounds, sizes, bounds)
    many = 64.0 + len(kind) + 2.0 * len(x)
    for k in range(5):  # adding up the types and the totals; then outwards
        bounds[k, 4] += many * UNIT * magnitude[k] + TINY_RESULT
        for part in range(5):
            bounds[k, part] *= MARGIN
    return (
        values,
        bounds,
        magnitude,
        _settled(
            tolerance, relative, bounds, rest, beyond, values if relative else magnitude, unit, goal
        ),
    )


@kernel(inner=True)
def _settled(tolerance, relative, bounds, rest, beyond, answer, unit, goal):
    """Lower each goal whose error exceeds its share of the answer.

    Rounding and the ``rest`` of all R that are never visited cannot be lowered, and nothing helps
    where what is left out ``beyond`` is too large.
    """
    floor = _RELATIVE_FLOOR if relative else FLOOR
    settled = True
    for k in range(5):
        whole, fixed = tolerance * abs(answer[k]), bounds[k, 4] + MARGIN * rest[k]
        aim = fixed if fixed >= whole else max(0.1 * whole, whole - fixed)
        aim = max(aim, floor * unit[k])
        if beyond[k] > aim:
            return True
        error = bounds[k, 0] - MARGIN * rest[k] + bounds[k, 1] + bounds[k, 2] + bounds[k, 3]
        if error > aim:
            goal[k] *= 0.5 * aim / error
            settled = False
    return settled


@kernel(inner=True, fastmath=REORDER)
def _moments_given(
    first, total, total_less_one, errors, p, n, sets, x, y, base, moments, blurs
):  # fmt: skip
    """Fill E[F 1{R=r}], E[dF 1{R=r}], and the error of the law and of adding up.

    ``errors``: relative ones of the law and of p, and an absolute one of the law.
    """
    count = x.shape[1]
    accuracy, of_p, noise = errors
    accuracy += (16.0 + len(p)) * UNIT
    here = total[first : first + count]
    for k in range(5):
        for i in range(count):
            moments[k, i] = base[k, i] * here[i]
            blurs[k, i] = abs(base[k, i]) * (accuracy * here[i] + noise)
    accuracy += of_p
    for j in range(len(p)):
        w, here = sets * p[j], total_less_one[first - int(n[j]) :]
        for k in range(4):
            size, moment, blur = x[j] if k == 0 else y[k - 1, j], moments[k], blurs[k]
            for i in range(count):
                moment[i] += w * here[i] * size[i]
                blur[i] += w * (accuracy * here[i] + noise) * abs(size[i])


@kernel(inner=True)
def _left_out(sure, most, part, bounds):
    """Account for one R that is left out: s(-F) |dF| by its bound for F~, with the errors of F~."""
    for k in range(5):
        bounds[k, part] += math.exp(min(sure[k] + most[0], 700.0))
    for k in range(1, 4):
        bounds[k, part] += math.exp(min(sure[4] + most[0], 700.0)) * most[k]


@kernel(inner=True)
def _surely_negative(logs, most, moments, blurs, values, bounds, magnitude):
    """Take s(-F) = 1 and softplus(-F) = -F; s(F) and softplus(F) are at most e^(aF) / a, a <= 1.

    ``most``: the largest errors of F and dF.
    """
    for k in range(5):
        least = rest = math.inf
        for j in range(UNTILTED):
            least = min(least, logs[j, k] - (math.log(-TILTS[j]) if k == 0 else 0.0))
            rest = min(rest, logs[j, 4])
        bounds[k, 0] += math.exp(min(least + most[0], 700.0))
        if 0 < k < 4:
            bounds[k, 0] += math.exp(min(rest + most[0], 700.0)) * most[k]
        bounds[k, 4] += blurs[k]
        values[k] += moments[k] if k > 0 else -moments[k]
        magnitude[k] += abs(moments[k]) if k > 0 else -moments[k]


@kernel(inner=True)
def _add_loss(total, integral, omega, constant, mean, values, magnitude):
    """Add the integral and the constants of the loss for one R; ``mean`` is E[F 1{R=r}].

    Returns its modulus.
    """
    value = integral + omega * constant * (1 - constant) * total - constant * mean
    values[0] += value
    magnitude[0] += value
    return abs(value)


@kernel(inner=True)
def _add_derivatives(
    center, total_less_one, p_empty, p, n, sets, i, y, base, sums, front, constant, values,
    magnitude, sizes,
):  # fmt: skip
    """Turn ``sums``, E over L - 2 sets for each type, into E[s(-F) dF 1{R=r}], r number i.

    Fills ``sizes[1:]`` with E[s(-F) |dF| 1{R=r}] set by set and E[s(-F) 1{R=r}].
    """
    types = len(p)
    total = front * sums[types] + constant * p_empty * total_less_one[center]
    for j in range(types):
        sums[j] = front * sums[j] + constant * p[j] * total_less_one[center - int(n[j])]
        total += sums[j]
    for k in range(3):
        value = base[1 + k, i] * total
        size = abs(value)
        for j in range(types):
            term = sets * y[k, j, i] * sums[j]
            value += term
            size += abs(term)
        values[1 + k] += value
        magnitude[1 + k] += size
        sizes[1 + k] = size
    values[4] += total
    magnitude[4] += total
    sizes[4] = abs(total)
