r"""Bounds of the rounding errors of the Fourier method.

Assumed of the machine, here and nowhere else: additions, multiplications, divisions and square
roots are rounded to nearest, with or without fused multiply-adds and in any order
(``u = 2^-53``), and ``exp, expm1, log, log1p, sin, cos`` are good to 2 units in the last place,
4 u. Errors of first order are bounded one by one; :data:`MARGIN` covers products of several. An
underflow leaves less than :data:`TINY`.

The tables of a set, ``x`` and ``y``, carry the errors of the attention weights and of their own
evaluation. They are bounded patch by patch, before anything cancels inside a set. With the tables
as they were rounded, F~ in place of F, everything else is an exact identity whose terms are
computed with the errors that :func:`add_rounding` bounds; what F~ changes is bounded by

.. math:: |E[s(-F)\,dF] - E[s(-\tilde F)\,d\tilde F]|
          \le e^{\max|\delta|}\,E\bigl[s(-\tilde F)\,(|\delta|\,|d\tilde F| + |d\delta|)\bigr],
          \qquad \delta = F - \tilde F,

since the logarithm of the sigmoid has slopes between -1 and 0; for the loss by the same without
``dF``. The expectation is bounded at a tilt in [0, 1), as all others are.
"""

from __future__ import annotations

import math

import numpy as np

from dynamics.core.jit import REORDER, kernel
from dynamics.positional._emitted import power
from dynamics.positional.population.fourier.quads import binomial_series

UNIT = 2.0**-53

#: What a sum of bounds is multiplied by at last.
MARGIN = 1.0 + 1e-6

#: What underflow may cost; far above the smallest float since it may be multiplied later.
TINY = 1e-300

#: What underflow may cost an expectation.
TINY_RESULT = 1e-285

#: Beyond this many sets a power is taken as ``(1 + x)^N - 1`` so that rounding does not grow
#: with N; see ``kernel``.
PLAIN_POWER = 16


@kernel
def weight_errors(beta, gamma, rho, tau, C, D, weights):
    """Bound the errors of ``attention_weights``: Lambda, Gamma, Xi and the two differences.

    A logit over tau is good to 2 u of itself, and so is its exponential besides 4 u.
    """
    top = max(beta, gamma, rho)
    x_beta, e_beta = _exponential((beta - top) / tau)
    x_gamma, e_gamma = _exponential((gamma - top) / tau)
    x_rho, e_rho = _exponential((rho - top) / tau)
    Z = x_beta + x_gamma * (C - 1) + x_rho * (D - C)
    of_Z = (e_beta + e_gamma * (C - 1) + e_rho * (D - C)) / Z + 6 * UNIT
    # expm1 is well conditioned below 0: 2 u of its argument, 4 u of its own
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
    )  # fmt: skip


@kernel(inner=True)
def _exponential(exponent):
    """Return e^exponent and a bound of its error."""
    x = math.exp(exponent)
    return x, x * UNIT * (2.0 * min(-exponent, 800.0) + 6.0)


@kernel(inner=True)
def _share(a, b, tau):
    """Return the difference of two weights over the larger one."""
    return -math.expm1(-abs(a - b) / tau)


@kernel(inner=True)
def table_errors(
    first, plus, minus, level, L, C, constants, blur, power_p, x, dx, dy, dbase, most
):  # fmt: skip
    """Bound the errors of ``totals.tables``, row by row the same sums with plus signs.

    ``blur``: the errors of the attention weights. ``x`` is read for its shape alone; ``dbase`` has
    four rows. Fills ``most[4, total]``: the largest errors that F and dF may have.
    """
    count, sets = x.shape[1], L - 1.0
    rows, empty = most.copy(), most.copy()
    _patch_errors(0, 0, first, C, constants, blur, power_p, empty)
    for j in range(4):
        _fill(sets * C if j < 2 else 0.0, empty[j], dbase[j])
        _fill(0.0, empty[j], most[j])
        if j >= 2:
            _fill(0.0, empty[j], empty[j])
    for k in range(len(level)):
        for j in range(4):
            _fill(0.0, empty[j], dx[k] if j == 0 else dy[j - 1, k])
    for s in range(-1, 2):
        for n in range(max(s + 1 - C, -C), min(s + C - 1, C) + 1):
            _patch_errors(s, n, first, C, constants, blur, power_p, rows)
            if s == 1 and n == C:
                for j in range(4):
                    _add(float(C), rows[j], dbase[j])
            for j in range(4):
                _add(1.0, empty[j], rows[j])
            for k in range(len(level)):
                if level[k] != n + C:
                    continue
                many = plus[k] if s == 1 else minus[k] if s == -1 else C - plus[k] - minus[k]
                if many > 0.0:
                    _add(many, rows[0], dx[k])
                    for j in range(3):
                        _add(many, rows[1 + j], dy[j, k])
    for k in range(len(level)):
        for j in range(4):
            row, largest = dx[k] if j == 0 else dy[j - 1, k], most[j]
            for i in range(count):
                largest[i] = max(largest[i], row[i])
    for j in range(4):
        for i in range(count):
            most[j, i] = dbase[j, i] + sets * most[j, i]


@kernel(inner=True)
def _fill(factor, row, target):
    for i in range(len(row)):
        target[i] = factor * row[i] if factor != 0.0 else 0.0


@kernel(inner=True, fastmath=REORDER)
def _add(factor, row, target):
    for i in range(len(row)):
        target[i] += factor * row[i]


@kernel(inner=True, fastmath=REORDER)
def _patch_errors(s, n, first, C, constants, blur, power_p, rows):
    """Bound the errors of ``totals._patch``, with those of adding its rows up in a set."""
    if power_p == 3:  # vectorised once the power is known to the compiler
        for i in range(rows.shape[1]):
            rows[0, i], rows[1, i], rows[2, i], rows[3, i] = patch_error(
                1.0 * s, 1.0 * n, first + i + 1.0 * C, C, constants, blur, 3
            )
    else:
        for i in range(rows.shape[1]):
            rows[0, i], rows[1, i], rows[2, i], rows[3, i] = patch_error(
                1.0 * s, 1.0 * n, first + i + 1.0 * C, C, constants, blur, power_p
            )


@kernel(inner=True, fastmath=REORDER)
def patch_error(s, n, T, C, constants, blur, p):
    r"""Bound the errors of ``row_gradient``: its value and its derivatives in alpha, gamma, rho.

    With ``c`` in error by ``e``, ``b >= |c|, |c_empty|`` and ``B = kappa |alpha| b`` the activation
    is in error by ``(nu + p B^(p-1)) kappa |alpha| e`` and its own rounding, which is relative to
    ``nu B + B^p``; its excess slope, ``p (O - O_e)(O + O_e)(O^(p-3) + ... + O_e^(p-3))``, by three
    terms, one for each factor.
    """
    alpha, Lambda, Gamma, Xi, LG, GX, D, kappa, tau, nu = constants
    e_Lambda, e_Gamma, e_Xi, e_LG, e_GX = blur
    u = UNIT
    c_empty, own = T * Xi, GX * n + LG * s
    e_own = e_GX * abs(n) + e_LG * abs(s) + 3.0 * u * (abs(GX * n) + abs(LG * s))
    e = e_own + e_Xi * abs(T) + 3.0 * u * (abs(c_empty) + abs(own))
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


@kernel(inner=True, fastmath=REORDER)
def drifts(sets, share, y, base, dx, dy, dbase, out):
    """Bound E[|delta|], E[|delta| |dF~|] and E[|d delta|] for all totals, sets drawn by ``share``.

    ``share[type, total]`` adds up to at most 1. Fills ``out``: one row, three and three.
    """
    count = out.shape[1]
    size, cross = np.empty((3, count)), np.zeros((3, count))
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


@kernel(inner=True)
def add_drift(front, drift, most, moved, here, sizes, bounds):
    """Add what the errors of the tables, and by ``moved`` those of all probabilities, do to one R.

    Either by their largest values, ``most``, times E[s(-F~) |dF~|] (and the loss), which are
    ``sizes`` within ``here``; or by their averages ``drift`` times ``front``, the Chernoff bound of
    E[e^(-lam F)] at R, lam in [0, 1]. The second is less where many sets are rarely filled.
    ``moved``: at most, and on average times Chernoff bounds.
    """
    for k in range(5):
        for part in range(5):
            sizes[k] += here[k, part]
    steep = math.exp(min(most[0], 700.0))
    # exponents lam x are rounded too: less than half the errors of the tables
    largest = moved[0] + 0.5 * most[0]
    for k in range(5):
        if 0 < k < 4:
            error = min(front * drift[k], most[0] * sizes[k])
            error += min(front * drift[3 + k], most[k] * sizes[4])
        else:
            error = min(front * drift[0], most[0] * sizes[4])
        bounds[k, 4] += steep * error + min(largest * sizes[k], moved[1 + k])
        for part in range(5):
            bounds[k, part] += here[k, part]
            here[k, part] = 0.0


@kernel(inner=True)
def drift_of_moments(center, total, total_less_one, noise, p, n, sets, i, dx, dy, dbase, bounds):
    """Add E|F~ - F| and E|dF~ - dF| at R number i, where s(-F) is taken as 1."""
    for k in range(4):
        bounds[k, 4] += dbase[k, i] * (total[center] + noise)
    for j in range(len(p)):
        w = sets * p[j] * (total_less_one[center - int(n[j])] + noise)
        bounds[0, 4] += w * dx[j, i]
        for k in range(3):
            bounds[1 + k, 4] += w * dy[k, j, i]


@kernel(inner=True, fastmath=REORDER)
def add_rounding(
    L, C, total, law_error, x, base, share, line, angles, nodes, mean_power, front, log_goal,
    weights, constant, moments, blurs, series, moved, bounds,
):  # fmt: skip
    """Add the aliases in R and the rounding errors of one R, tables aside.

    The error of f^(L-2) is bounded in units of rounding, relative to |f|^(L-3), whose mean over
    the angles is at most ``mean_power``; to 1 where the excess over 1 is taken digit by digit.
    Fills ``moved``: the errors of all probabilities, relative and times the bounds of the
    components; ``series`` is scratch.
    """
    eta, omega, height, alias = line[0], line[3], line[4], line[5]
    moved[0] = line[7]
    types, filled = len(x), 0.0
    spread = abs(base)
    for j in range(types):
        filled += share[j]
        spread += (L - 1.0) * share[j] * abs(x[j])
    # a sum over the types: waves 14, additions of a level C / 2 + 2; twice, since even and odd
    # multiples, cosines and sines are added up apart, 6 of a cosine and C + 5 additions
    sum_error = 40.0 + 3.0 * C
    # back to coefficients: twice 26 of cosines and products and angles / 4 additions; 12 of the
    # products with weights and waves, 48 lanes, blocks, types
    rest = angles / 2.0 + 130.0 + types + nodes / 32.0
    relative = (L - 2.0) * (sum_error + 4.0) + rest
    if L - 2 > PLAIN_POWER:
        squarings = binomial_series(L - 2, 2.0 * filled, series)
        # each squaring of a number near 1 adds 4 u and doubles what there was
        power_error = 16.0 * 2.0**squarings
        if squarings < 0:  # a step (1 + z)^2 - 1 adds at most 13 u |z| and doubles what there was
            power_error = 40.0 * (L - 2.0) * filled * math.log2(L)
            mean_power = 1.0
        relative = (L - 2.0) * filled * (sum_error + types) + power_error + rest
    if relative * UNIT > 1e-4:
        relative = math.inf  # beyond first order
    blur = 4.0 * UNIT * (4.0 + abs(eta * omega))  # of exp(eta omega)
    for k in range(5):
        w = weights[2] if k == 0 else weights[1]
        phases = 4.0 * spread * (weights[1] if k == 0 else weights[4])
        of_nodes = weights[5] if k == 0 else weights[3]
        bounds[k, 3] += w * alias * math.exp(log_goal[k] + height)
        size = (relative * w + phases + of_nodes) * UNIT
        bounds[k, 4] += size * mean_power * front[k]
        moved[1 + k] = line[6] * w * mean_power * front[k]
        bounds[k, 4] += constant * (blurs[k] + blur * abs(moments[k]))
    bounds[0, 4] += omega * constant * (1 - constant) * (law_error + blur * total)
