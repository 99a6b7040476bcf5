r"""Rounding, bounded: how far the tabulated terms of F and of its derivatives may be off.

A running error analysis with the unit roundoff ``u = 2^-53`` (Higham, *Accuracy and Stability of
Numerical Algorithms*, chapter 3): every product of positive quantities carries the sum of the
relative errors of its factors, every sum of signed ones the sum of absolute errors, and a power is
bounded by the mean value theorem, :math:`|a^p-b^p|\le p\max(|a|,|b|)^{p-1}|a-b|`. What underflows
is covered by `TINY` at every step. Trusted: IEEE arithmetic; exp, expm1 and log1p of the C library
within 1 ulp, powers and NumPy's functions within 4. The bounds are themselves computed in floats;
callers multiply by `OUTWARD`, which exceeds the rounding of a billion additions of positive terms.
"""

import math

import numpy as np

from dynamics.core.jit import kernel
from dynamics.positional._emitted import attention_weights, power

UNIT = 2.0**-53
TINY = 1e-310  # exceeds what underflow does to a few operations, times what multiplies it later
OUTWARD = 1.0 + 1e-6


@kernel
def weights_error(constants, gamma, rho):
    """Return the relative error of the five attention weights (beside `TINY`, absolute).

    An exponent -a carries 2u of itself, with an ulp of exp its weight e^(-a) is off by (2a + 2) u;
    Z by the mean of that and 3u. A quotient adds u; a difference 2u for its gap, 2u for expm1, and
    2u for product and quotient.
    """
    beta, tau, C, D = constants.beta, constants.tau, constants.C, constants.D
    top = max(beta, gamma, rho)
    a = min((top - beta) / tau, 750.0)
    b = min((top - gamma) / tau, 750.0)
    c = min((top - rho) / tau, 750.0)
    x, y, z = math.exp(-a), (C - 1.0) * math.exp(-b), (D - C) * math.exp(-c)
    in_Z = 2.0 * (x * (a + 1.0) + y * (b + 1.0) + z * (c + 1.0)) / (x + y + z) + 3.0
    single = 2.0 * max(a, b, c) + 3.0
    difference = 2.0 * max(min(a, b), min(b, c)) + 8.0
    return (in_Z + max(single, difference)) * (1.0 + 1e-9) * UNIT


@kernel
def add_row_error(out, rows, s, n, T, alpha, weights, relative, constants):
    """Add to ``out`` what rounding may do to ``rows`` rows with coefficient s in a set of sum n.

    ``out`` holds the errors of (value without its linear part, d/d alpha likewise, d/d gamma,
    d/d rho) as ``row_gradient`` computes them at nu = 0, and of adding up the three rows of a set:
    3u of each. Coefficients of u count operations; n, s, T, C and D are integers, whose products
    stay exact. Terms of u next to ``relative``, which is at least 13u, are never the largest.
    """
    Lambda, Gamma, Xi, LG, GX = weights
    C, D, tau, p, kappa = constants.C, constants.D, constants.tau, constants.p, constants.kappa
    x = kappa * abs(alpha)
    own, far = abs(LG * s) + abs(GX * n), abs(Xi * T)
    c = abs(LG * s + GX * n + Xi * T)
    e_c = (relative + 3.0 * UNIT) * (own + far) + TINY * (2.0 + abs(n) + abs(T))
    e_O = x * (e_c + 2.0 * UNIT * c) + TINY * (1.0 + own + far)
    output = x * c + e_O
    c += e_c
    steep, slope_2 = power(output, p - 1), power(output, p - 2)
    out[0] += rows * (p * steep * e_O + (p + 3.0) * UNIT * output * steep + TINY * (1.0 + output))
    e_steep = (p - 1.0) * slope_2 * e_O + (p + 4.0) * UNIT * steep + TINY
    out[1] += rows * (kappa * p * (c * e_steep + e_c * steep) + TINY * (1.0 + p * steep))
    if s == 0.0 and n == 0.0:
        return  # the row drops out of the two attention derivatives, also in floats
    M = max(output, x * far + e_O)  # e_O exceeds the error of the output of an empty set, too
    e_own = x * own * (relative + 4.0 * UNIT) + TINY * (2.0 + abs(n)) * (1.0 + x)
    own_x = x * own + e_own
    top, top_2 = power(M, p - 2), power(M, p - 3)
    many = p * (p - 1.0)
    excess = many * own_x * top
    e_excess = (
        many * (e_own * top + own_x * (p - 2.0) * top_2 * e_O)
        + (2.0 * p + 3.0) * UNIT * excess
        + TINY * many * (1.0 + top) * (1.0 + own_x)
    )
    pull, e_pull = x * excess + TINY * (1.0 + excess), x * e_excess + TINY * (1.0 + excess)
    balance = abs((D - C) * (n - s) - (C - 1.0) * (T - n))
    for m in range(2):
        if m == 0:
            turn = Gamma / tau * (Xi * balance + Lambda * abs(n - C * s))
        else:
            turn = Xi / tau * (Lambda * abs(T - n - s * (D - C)) + Gamma * balance)
        e_turn = turn * (2.0 * relative + 9.0 * UNIT) + TINY * (1.0 + 1.0 / tau) * (
            2.0 + balance + abs(T) + D * (1.0 + C)
        )
        out[2 + m] += rows * (turn * e_pull + e_turn * pull + TINY)


@kernel
def add_set_error(out, a, b, T, alpha, weights, relative, constants):
    """Add to ``out`` the errors of one set with a patches +1 and b patches -1."""
    for s, patches in ((1.0, a), (-1.0, b), (0.0, constants.C - a - b)):
        if patches > 0.0:
            add_row_error(out, patches, s, a - b, T, alpha, weights, relative, constants)


@kernel
def with_errors(states, constants, alpha, gamma, rho, base, table):
    """Return ``base`` and ``table`` with a bound of its error after each of their 4 quantities.

    A state has at most as many entries as types (and as features); its sum of m + 1 products is
    off by at most (m + 2) u times the sum of their moduli.
    """
    weights = attention_weights(constants.beta, gamma, rho, constants.tau, constants.C, constants.D)
    relative = weights_error(constants, gamma, rho)
    longest = 0
    for i in range(states.weight.size):
        longest = max(longest, states.start[i + 1] - states.start[i])
    share = (longest + 8.0) * UNIT
    wide_base = np.empty((states.total.size, 8))
    wide_table = np.empty((states.total.size, states.plus.size, 8))
    empty, error = np.empty(4), np.empty(4)
    linear = np.zeros(4)
    for t in range(states.total.size):
        T = states.total[t]
        empty[:] = 0.0
        add_set_error(empty, 0.0, 0.0, T, alpha, weights, relative, constants)
        error[:] = 0.0
        add_set_error(error, constants.C, 0.0, T, alpha, weights, relative, constants)
        linear[0] = abs(constants.kappa * alpha * constants.nu * T)
        linear[1] = abs(constants.kappa * constants.nu * T)
        underflow = TINY * (1.0 + abs(T)) * (1.0 + constants.kappa)
        for m in range(4):
            error[m] += constants.L * empty[m] + share * (abs(base[t, m]) + linear[m]) + underflow
            wide_base[t, m] = base[t, m]
            wide_base[t, 4 + m] = error[m]
        for k in range(states.plus.size):
            error[:] = 0.0
            add_set_error(
                error, states.plus[k], states.minus[k], T, alpha, weights, relative, constants
            )
            for m in range(4):
                wide_table[t, k, m] = table[t, k, m]
                wide_table[t, k, 4 + m] = error[m] + empty[m] + share * abs(table[t, k, m]) + TINY
    return wide_base, wide_table
