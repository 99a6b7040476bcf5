r"""Bounds of the rounding errors of the tabulated terms of F and of its derivatives.

A running error analysis with the unit roundoff ``u = 2^-53`` (Higham, *Accuracy and Stability of
Numerical Algorithms*, chapter 3). A product of positive numbers has the sum of the relative errors
of its factors, a sum of signed numbers has the sum of the absolute errors, and the error of a power
follows from the mean value theorem, :math:`|a^p-b^p|\le p\max(|a|,|b|)^{p-1}|a-b|`. `TINY` covers
underflow at every step. Assumptions: IEEE arithmetic; errors of exp, expm1 and log1p of the C
library below 1 ulp, of powers and of NumPy's functions below 4 ulp. The bounds are themselves
computed in floats; callers multiply them by `OUTWARD`, which exceeds the rounding of a billion
additions of positive terms.
"""

import math

import numpy as np

from dynamics.core.jit import kernel
from dynamics.positional._emitted import attention_weights, power

#: Unit roundoff u.
UNIT = 2.0**-53
#: Upper bound of the error of a few operations due to underflow, with later factors.
TINY = 1e-310
#: Factor that makes a computed sum of positive terms an upper bound.
OUTWARD = 1.0 + 1e-6


@kernel
def weights_error(constants, gamma, rho):
    """Return the relative error of the five attention weights, in addition to `TINY`, absolute.

    An exponent -a has the error 2au, so that e^(-a) has the error (2a + 2) u, with one ulp of exp.
    Z has the weighted mean of these errors plus 3u. A quotient adds u. A difference adds 2u for its
    gap, 2u for expm1, and 2u for product and quotient.
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
    """Add the rounding errors of ``rows`` rows with coefficient s in a set of sum n to ``out``.

    ``out`` contains the errors of (F, dF/d alpha, dF/d gamma, dF/d rho), without the linear part,
    as ``row_gradient`` computes them at nu = 0. The three additions per set, 3u each, are included.
    Coefficients of u count operations. Products of the integers n, s, T, C and D are exact.
    ``relative`` is the error of the attention weights, at least 13u.
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
    M = max(output, x * far + e_O)  # e_O also bounds the error of the output of an empty set
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
    """Add the errors of one set with a patches +1 and b patches -1 to ``out``."""
    for s, patches in ((1.0, a), (-1.0, b), (0.0, constants.C - a - b)):
        if patches > 0.0:
            add_row_error(out, patches, s, a - b, T, alpha, weights, relative, constants)


@kernel
def with_errors(states, constants, alpha, gamma, rho, base, table):
    """Return ``base`` and ``table`` with 8 quantities: the 4 values and bounds of their errors.

    The errors include the summation over the m entries of a state: a sum of m + 1 products has an
    error of at most (m + 2) u times the sum of their moduli.
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
