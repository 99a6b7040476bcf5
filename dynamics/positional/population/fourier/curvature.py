r"""Second derivatives of ell by the Fourier method, for Newton iterations in stiff solvers.

.. math:: \partial_j\partial_k\,\ell = E[s(F)s(-F)\,\partial_jF\,\partial_kF]
          - E[s(-F)\,\partial_j\partial_kF].

The second term is a gradient with other tables. In the first, the derivative of the logistic
sigmoid is the integral with w / sin(pi w), and the product of two sums over sets splits into one
set twice (L - 2 sets remain) and two sets (L - 3 remain). The lines and nodes are those chosen for
the gradient; the error is of the order of the gradient's but not certified.
"""

from __future__ import annotations

import math

import numpy as np

from dynamics.core.jit import kernel
from dynamics.positional._emitted import row_hessian
from dynamics.positional.population.fourier.design import (
    INTEGRATED,
    LEFT_OUT,
    TOO_MANY_NODES,
    design,
)
from dynamics.positional.population.fourier.kernel import node_sums
from dynamics.positional.population.fourier.prepare import FLOOR, prepare


def curvature(law, C, L, constants, power, crude, tolerance):
    """Return the second derivatives (aa, ag, ar, gg, gr, rr) of ell."""
    reach, _, x, y, base, logs, sure, ready, unit, goal = prepare(
        law, C, L, constants, power, crude, tolerance, FLOOR
    )
    goal[0] = goal[4] = math.inf
    kind, line, nodes, angles, share, here, _ = design(
        law, C, L, reach, tolerance, FLOOR, unit, x, y, base, logs, sure, ready, goal
    )
    if np.any(kind == TOO_MANY_NODES):
        return np.full(6, math.nan)
    sums, slopes, _, pair = node_sums(
        -reach, base[0], x, y, law.n, share, line, nodes, angles, C, L, True
    )
    front = np.exp(here[:, :1])
    return _second(
        law, C, L, constants, power, reach, y, base, kind, line,
        front * sums, front * slopes, front * pair,
    )  # fmt: skip


@kernel
def _second(law, C, L, constants, power, reach, y, base, kind, line, sums, slopes, pair):
    """Add up all R; overwrites ``sums``, E over L - 2 sets for each type."""
    result, bend, bend_base = np.zeros(6), np.empty((6, y.shape[1])), np.empty(6)
    rows = np.empty((3, 2 * C + 1, 6))
    for i in range(len(kind)):
        if kind[i] == LEFT_OUT:
            continue
        _bend_tables(
            i - reach, law.plus, law.minus, law.level, L, C, constants, power, rows, bend, bend_base
        )
        constant = 1.0
        if kind[i] == INTEGRATED:
            constant = 1.0 / (1.0 + math.exp(line[i, 0] * line[i, 3]))
        _add_second(
            law.center + i - reach, law.total_less_one, law.p_empty, law.p, law.n, L, y[:, :, i],
            base[:, i], bend, bend_base, constant, sums[i], slopes[i], pair[i], result,
        )  # fmt: skip
    return result


@kernel(inner=True)
def _bend_tables(r, plus, minus, level, L, C, constants, power, rows, bend, bend_base):
    """Fill the second derivatives of a set's contribution to F, in excess of an empty set."""
    alpha, Lambda, Gamma, Xi, LG, GX, D, kappa, tau, nu = constants
    for k in range(3 * (2 * C + 1)):
        s, n = k % 3 - 1, k // 3 - C
        if abs(n - s) < C:
            row = row_hessian(
                1.0 * s, 1.0 * n, r + 1.0 * C, alpha, Lambda, Gamma, Xi, LG, GX, C, D, kappa, tau,
                power, nu,
            )  # fmt: skip
            for j in range(6):
                rows[k % 3, k // 3, j] = row[j]
    for j in range(6):
        empty = rows[1, C, j]
        bend_base[j] = C * rows[2, 2 * C, j] + (L - 1.0) * C * empty
        for k in range(len(level)):
            a, b, m = plus[k], minus[k], level[k]
            bend[j, k] = 0.0
            if a > 0:
                bend[j, k] += a * (rows[2, m, j] - empty)
            if b > 0:
                bend[j, k] += b * (rows[0, m, j] - empty)
            if a + b < C:
                bend[j, k] += (C - a - b) * (rows[1, m, j] - empty)


@kernel(inner=True)
def _add_second(
    center, total_less_one, p_empty, p, n, L, y, base, bend, bend_base, constant,
    sums, slopes, pair, result,
):  # fmt: skip
    """Add the contribution of one R."""
    types = len(p)
    total = sums[types] + constant * p_empty * total_less_one[center]
    slope = slopes[types]
    for k in range(types):
        sums[k] += constant * p[k] * total_less_one[center - int(n[k])]
        total += sums[k]
        slope += slopes[k]
    m = 0
    for i in range(3):
        for j in range(i, 3):
            g, h = base[1 + i], base[1 + j]
            value = g * h * slope - bend_base[m] * total + (L - 1.0) * (L - 2.0) * pair[m]
            for k in range(types):
                both = g * y[j, k] + h * y[i, k] + y[i, k] * y[j, k]
                value += (L - 1.0) * (both * slopes[k] - bend[m, k] * sums[k])
            result[m] += value
            m += 1
