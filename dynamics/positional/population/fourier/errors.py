r"""Bounds of the rounding errors of the Fourier method.

Assumptions on the machine, made only here: additions, multiplications, divisions and square roots
are rounded to nearest, with or without fused multiply-adds and in any order (``u = 2^-53``), and
``exp, expm1, log, log1p, sin, cos`` have errors of at most 2 units in the last place, 4 u.
First-order errors are bounded one by one; :data:`MARGIN` covers products of several. The effect of
an underflow is below :data:`TINY`.

The tables of a set, ``x`` and ``y``, have the errors of the attention weights and of their own
evaluation. These are bounded patch by patch, before terms cancel inside a set. For the rounded
tables, F~ in place of F, everything else is an exact identity, and :func:`add_rounding` bounds the
errors of its terms. The difference between F and F~ is bounded by

.. math:: |E[s(-F)\,dF] - E[s(-\tilde F)\,d\tilde F]|
          \le e^{\max|\delta|}\,E\bigl[s(-\tilde F)\,(|\delta|\,|d\tilde F| + |d\delta|)\bigr],
          \qquad \delta = F - \tilde F,

since the logarithm of the sigmoid has slopes between -1 and 0; for the loss by the same without
``dF``. The expectation is bounded at a tilt in [0, 1), like all others.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dynamics.core.jit import REORDER, kernel
from dynamics.positional._emitted import power
from dynamics.positional.population.fourier.four_angles import PLAIN_POWER, binomial_series
from dynamics.positional.population.fourier.tables import Model, patches_of
from dynamics.positional.population.fourier.windows import fill_levels, mean_power
from dynamics.positional.problem import Problem, State

UNIT = 2.0**-53

#: Factor of a sum of bounds, which covers second-order errors.
MARGIN = 1.0 + 1e-6

#: Bound of the effect of underflow on a weight, large because it may be multiplied later.
TINY = 1e-300

#: Bound of the effect of underflow on an expectation.
TINY_RESULT = 1e-285


class WeightErrors(NamedTuple):
    """Bounds of the errors of the five attention weights of a :class:`Model`."""

    Lambda: float
    Gamma: float
    Xi: float
    LG: float
    GX: float

    @classmethod
    def of(cls, problem: Problem, state: State, model: Model) -> WeightErrors:
        """Return the bounds for a model at a state."""
        _, gamma, rho = map(float, state)
        weights = (model.Lambda, model.Gamma, model.Xi, model.LG, model.GX)
        return cls(
            *_weight_errors(problem.beta, gamma, rho, problem.tau, problem.C, model.D, weights)
        )


class TableErrors(NamedTuple):
    """Bounds of the errors of :class:`Tables`, by total.

    ``dx[type]``, ``dy[3, type]`` and ``dbase[4]`` belong to x, y and base; ``most[4]`` are the
    largest errors of F and dF.
    """

    dx: np.ndarray
    dy: np.ndarray
    dbase: np.ndarray
    most: np.ndarray


@kernel
def _weight_errors(beta, gamma, rho, tau, C, D, weights):
    """Bound the errors of ``attention_weights``: Lambda, Gamma, Xi and the two differences.

    A logit over tau has a relative error of 2 u, and its exponential an additional 4 u.
    """
    top = max(beta, gamma, rho)
    x_beta, e_beta = _exponential((beta - top) / tau)
    x_gamma, e_gamma = _exponential((gamma - top) / tau)
    x_rho, e_rho = _exponential((rho - top) / tau)
    Z = x_beta + x_gamma * (C - 1) + x_rho * (D - C)
    of_Z = (e_beta + e_gamma * (C - 1) + e_rho * (D - C)) / Z + 6 * UNIT
    # expm1 is well conditioned below 0: 2 u from its argument and 4 u of rounding
    first = (e_beta if beta > gamma else e_gamma) / Z
    second = (e_gamma if gamma > rho else e_rho) / Z
    Lambda, Gamma, Xi, LG, GX = weights
    return (
        e_beta / Z + of_Z * Lambda + TINY,
        e_gamma / Z + of_Z * Gamma + TINY,
        e_rho / Z + of_Z * Xi + TINY,
        (0.0 if LG == 0.0 else first * _share(beta, gamma, tau) + (of_Z + 12 * UNIT) * abs(LG))
        + (0.0 if beta == gamma else TINY),
        (0.0 if GX == 0.0 else second * _share(gamma, rho, tau) + (of_Z + 12 * UNIT) * abs(GX))
        + (0.0 if gamma == rho else TINY),
    )


@kernel(borrows=True)
def _exponential(exponent):
    """Return e^exponent and a bound of its error."""
    x = math.exp(exponent)
    return x, x * UNIT * (2.0 * min(-exponent, 800.0) + 6.0)


@kernel(borrows=True)
def _share(a, b, tau):
    """Return the difference of two weights over the larger one."""
    return -math.expm1(-abs(a - b) / tau)


@kernel(inner=True)
def table_errors(law, model, weight_errors, tables):
    """Return the :class:`TableErrors`: the sums of the tables with all terms positive."""
    count = tables.x.shape[1]
    errors = TableErrors(
        np.zeros_like(tables.x), np.zeros_like(tables.y), np.zeros((4, count)), np.zeros((4, count))
    )
    _add_errors(
        law, model, weight_errors, tables.first, errors, np.empty((4, count)), np.empty((4, count))
    )
    return errors


@kernel(borrows=True)
def _add_errors(law, model, weight_errors, first, errors, rows, empty):
    """Add up the errors patch by patch; ``rows`` and ``empty`` are scratch."""
    C, sets, dx, dy = law.C, law.L - 1.0, errors.dx, errors.dy
    dbase, most = errors.dbase, errors.most
    types, count = dx.shape
    _patch_errors(0, 0, first, C, model, weight_errors, empty)
    for i in range(count):
        dbase[0, i], dbase[1, i] = sets * C * empty[0, i], sets * C * empty[1, i]
        empty[2, i] = empty[3, i] = 0.0
    for s in range(-1, 2):
        for n in range(max(s + 1 - C, -C), min(s + C - 1, C) + 1):
            _patch_errors(s, n, first, C, model, weight_errors, rows)
            if s == 1 and n == C:
                for j in range(4):
                    _add(float(C), rows[j], dbase[j])
            for j in range(4):
                _add(1.0, empty[j], rows[j])
            for k in range(types):
                patches = patches_of(law, k, s)
                if law.level_index[k] == n + C and patches > 0.0:
                    _add(patches, rows[0], dx[k])
                    for j in range(3):
                        _add(patches, rows[1 + j], dy[j, k])
    for k in range(types):
        for j in range(4):
            row, largest = dx[k] if j == 0 else dy[j - 1, k], most[j]
            for i in range(count):
                largest[i] = max(largest[i], row[i])
    for j in range(4):
        for i in range(count):
            most[j, i] = dbase[j, i] + sets * most[j, i]


@kernel(borrows=True, fastmath=REORDER)
def _add(factor, row, target):
    """Add a multiple of a row to another."""
    for i in range(len(row)):
        target[i] += factor * row[i]


@kernel(borrows=True, fastmath=REORDER)
def _patch_errors(s, n, first, C, model, weight_errors, rows):
    """Bound the errors of ``tables._patch``, including the summation of its rows over a set."""
    if model.p == 3:  # vectorized once the power is known to the compiler
        for i in range(rows.shape[1]):
            rows[0, i], rows[1, i], rows[2, i], rows[3, i] = patch_error(
                1.0 * s, 1.0 * n, first + i + 1.0 * C, C, model, weight_errors, 3
            )
    else:
        for i in range(rows.shape[1]):
            rows[0, i], rows[1, i], rows[2, i], rows[3, i] = patch_error(
                1.0 * s, 1.0 * n, first + i + 1.0 * C, C, model, weight_errors, model.p
            )


@kernel(inner=True, lane=True, fastmath=REORDER)
def patch_error(s, n, T, C, model, weight_errors, p):
    """Bound the errors of ``row_gradient``: its value and its derivatives in alpha, gamma, rho.

    ``own`` has an error of 2 u of its terms (``e_own`` allows 3); ``c_empty``, ``c`` and the factor
    kappa alpha add at most 4 u b, ``b >= |c|, |c_empty|``. Let ``e`` be the total error of ``c``,
    and ``B = kappa |alpha| b``. The error of the activation is ``(nu + p B^(p-1)) kappa |alpha| e``
    and its own rounding, relative to ``nu B + B^p``. The excess slope,
    ``p (O - O_e)(O + O_e)(O^(p-3) + ... + O_e^(p-3))``, has one error term per factor.
    """
    _, alpha, Lambda, Gamma, Xi, LG, GX, D, kappa, tau, nu = model
    e_Lambda, e_Gamma, e_Xi, e_LG, e_GX = weight_errors
    u = UNIT
    c_empty, own = T * Xi, GX * n + LG * s
    e_own = e_GX * abs(n) + e_LG * abs(s) + 3.0 * u * (abs(GX * n) + abs(LG * s))
    e = e_own + e_Xi * abs(T)
    b = max(abs(c_empty + own), abs(c_empty)) + e
    e += 4.0 * u * b
    scale = abs(alpha * kappa)
    B = scale * b
    low = power(B, p - 3)
    high = low * B * B
    value = scale * ((nu + p * high) * e + (p + 16.0) * u * b * (nu + high))
    by_alpha = kappa * ((nu + p * p * high) * e + (2.0 * p + 20.0) * u * b * (nu + p * high))
    # excess slope: at most ``size``, in error by ``error``
    front = 0.5 * p * (p - 1.0) * low * scale * scale
    both = abs(c_empty + (c_empty + own)) + 2.0 * e
    size = front * abs(own) * both
    error = front * (both * e_own + 2.0 * (p - 2.0) * abs(own) * e)
    error += (2.0 * p + 16.0) * u * size
    balance = (D - C) * (n - s) - (C - 1) * (T - n)
    lone, apart = n - C * s, T - n - s * (D - C)
    cool = 1.0 / tau
    g = Gamma * cool * (Xi * balance + Lambda * lone)
    r = Xi * cool * (Lambda * apart - Gamma * balance)
    g_terms, r_terms = Xi * abs(balance) + Lambda * abs(lone), Lambda * abs(apart)
    r_terms += Gamma * abs(balance)
    e_g = (e_Gamma + 8.0 * u * Gamma) * g_terms
    e_g = (e_g + Gamma * (e_Xi * abs(balance) + e_Lambda * abs(lone))) * cool
    e_r = (e_Xi + 8.0 * u * Xi) * r_terms
    e_r = (e_r + Xi * (e_Lambda * abs(apart) + e_Gamma * abs(balance))) * cool
    by_gamma = scale * ((abs(g) + e_g) * error + e_g * size)
    by_rho = scale * ((abs(r) + e_r) * error + e_r * size)
    return value, by_alpha, by_gamma, by_rho


@kernel(inner=True)
def drifts(sets, share, tables, errors):
    """Bound E[|delta|], E[|delta| |dF~|] and E[|d delta|] for all totals; seven rows by total.

    The sets have the probabilities ``share[type, total]``, which add up to at most 1.
    """
    count = share.shape[1]
    out = np.empty((7, count))
    _add_drifts(sets, share, tables, errors, out, np.empty((3, count)), np.zeros((3, count)))
    return out


@kernel(borrows=True, fastmath=REORDER)
def _add_drifts(sets, share, tables, errors, out, size, cross):
    """Fill ``out``; ``size``, E[|dF~|], and ``cross``, E[|delta| |dF~|] set by set, are scratch."""
    count = share.shape[1]
    y, base, dx, dy, dbase = tables.y, tables.base, errors.dx, errors.dy, errors.dbase
    mean = out[0]
    for i in range(count):
        mean[i] = dbase[0, i]
    for k in range(3):
        for i in range(count):
            size[k, i] = abs(base[1 + k, i])
            out[4 + k, i] = dbase[1 + k, i]
    for j in range(len(dx)):
        w, d = share[j], dx[j]
        for i in range(count):
            mean[i] += sets * w[i] * d[i]
        for k in range(3):
            g, e, a, b, c = y[k, j], dy[k, j], size[k], cross[k], out[4 + k]
            for i in range(count):
                term = sets * w[i] * abs(g[i])
                a[i] += term
                b[i] += term * d[i]
                c[i] += sets * w[i] * e[i]
    for k in range(3):
        for i in range(count):
            out[1 + k, i] = mean[i] * size[k, i] + cross[k, i]


@kernel(borrows=True)
def add_drift(law, tables, lines, errors, drift, integrated, bounds):
    """Add the errors of every integral, and the effects of the errors of the tables.

    The latter are bounded by the largest errors, ``errors.most``, times E[s(-F~) |dF~|] (and the
    loss), that is ``integrated.sizes`` plus their bounds, or by the average errors ``drift`` times
    ``front``, the Chernoff bound of E[e^(-lam F)] at R, lam in [0, 1]. Averages are smaller if many
    sets are rarely non-empty. The errors of all probabilities are bounded in the same two ways.
    """
    untilted = len(law.log_tail) - 1 + tables.first
    for i in range(len(lines.nodes)):
        if lines.nodes[i] == 0:
            continue
        sizes, here, most = integrated.sizes[i], integrated.bounds[i], errors.most
        for k in range(5):
            for part in range(5):
                sizes[k] += here[k, part]
                bounds[k, part] += here[k, part]
        front = integrated.front[i, 4]
        if lines.eta[i] < 0.0:
            front = math.exp(law.log_probability[untilted + i])
        steep = math.exp(min(most[0, i], 700.0))
        # exponents lam x are rounded too: less than half the errors of the tables
        largest = lines.rounding_largest[i] + 0.5 * most[0, i]
        for k in range(5):
            if 0 < k < 4:
                error = min(front * drift[k, i], most[0, i] * sizes[k])
                error += min(front * drift[3 + k, i], most[k, i] * sizes[4])
            else:
                error = min(front * drift[0, i], most[0, i] * sizes[4])
            bounds[k, 4] += steep * error + min(largest * sizes[k], integrated.rounding[i, k])


@kernel(borrows=True)
def drift_of_moments(taken, law, tables, errors, bounds):
    """Add E|F~ - F| and E|dF~ - dF| of the totals ``taken``, for which s(-F) is replaced by 1."""
    sets, noise = law.L - 1.0, law.noise
    for i in range(len(taken)):
        if not taken[i]:
            continue
        center = law.center + tables.first + i
        for k in range(4):
            bounds[k, 4] += errors.dbase[k, i] * (law.p_total[center] + noise)
        for j in range(len(law.p)):
            w = sets * law.p[j] * (law.p_less_one[center - int(law.n[j])] + noise)
            bounds[0, 4] += w * errors.dx[j, i]
            for k in range(3):
                bounds[1 + k, 4] += w * errors.dy[k, j, i]


@kernel(borrows=True, fastmath=REORDER)
def add_rounding(law, tables, lines, sums, moments, integrated, level, series):
    """Add the aliases in R and the rounding errors of every integral, without those of the tables.

    The error of f^(L-2) is bounded in units of rounding, relative to |f|^(L-3), with a mean over
    the angles of at most ``mean_power``, or relative to 1 if the excess over 1 is computed digit by
    digit. Fills ``integrated.rounding``, the errors of all probabilities; ``level`` (by n) and
    ``series`` (of 10) are scratch.
    """
    C, L, types, x = law.C, law.L, len(law.n), tables.x
    for i in range(len(lines.nodes)):
        if lines.nodes[i] == 0:
            continue
        share, angles, filled = lines.share[i], lines.angles[i], 0.0
        spread = abs(tables.base[0, i])
        for j in range(types):
            filled += share[j]
            spread += (L - 1.0) * share[j] * abs(x[j, i])
        fill_levels(share, law.level_index, lines.empty[i], C, level)
        average = mean_power(L - 3, level, angles)
        relative, relative_to_one = _error_of_power(law, filled, series)
        if relative_to_one:
            average = 1.0
        # transformation to coefficients: 26 for cosines and products and angles / 4 additions, both
        # twice; 12 for the products with weights and waves; 48 lanes, blocks, types
        relative += angles / 2.0 + 130.0 + types + lines.nodes[i] / 32.0
        if relative * UNIT > 1e-4:
            relative = math.inf  # beyond first order
        omega, constant, center = lines.omega[i], integrated.constant[i], law.center + tables.first
        of_exp = 4.0 * UNIT * (4.0 + abs(lines.eta[i] * omega))  # of exp(eta omega)
        total = law.p_total[center + i]
        bounds = integrated.bounds[i]
        for k in range(5):
            w = sums.size_over_w[i] if k == 0 else sums.size[i]
            phases = 4.0 * spread * (sums.size[i] if k == 0 else sums.size_times_t[i])
            of_nodes = sums.error_over_w[i] if k == 0 else sums.error[i]
            front = average * integrated.front[i, k]
            bounds[k, 3] += w * lines.alias[i] * math.exp(lines.log_goal[k] + lines.height[i])
            bounds[k, 4] += (relative * w + phases + of_nodes) * UNIT * front
            bounds[k, 4] += constant * (moments.error[k, i] + of_exp * abs(moments.mean[k, i]))
            integrated.rounding[i, k] = lines.rounding[i] * w * front
        law_error = law.accuracy * total + law.noise
        bounds[0, 4] += omega * constant * (1 - constant) * (law_error + of_exp * total)


@kernel(borrows=True)
def _error_of_power(law, filled, series):
    """Return the error of f^(L-2) in units of rounding, and whether it is relative to 1.

    A sum over the types has 14 of waves and C / 2 + 2 additions of a level, twice since even and
    odd multiples, cosines and sines are added up separately, 6 of a cosine and C + 5 additions.
    """
    L, sum_error = law.L, 40.0 + 3.0 * law.C
    if L - 2 <= PLAIN_POWER:
        return (L - 2.0) * (sum_error + 4.0), False
    squarings = binomial_series(L - 2, 2.0 * filled, series)
    # each squaring of a number near 1 adds 4 u and doubles the previous error
    power_error = 16.0 * 2.0**squarings
    if squarings < 0:  # a step (1 + z)^2 - 1 adds at most 13 u |z| and doubles the previous error
        power_error = 40.0 * (L - 2.0) * filled * math.log2(L)
    return (L - 2.0) * filled * (sum_error + len(law.n)) + power_error, squarings < 0
