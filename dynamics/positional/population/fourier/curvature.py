r"""Second derivatives of ell by the Fourier method, for Newton iterations in stiff solvers.

.. math:: \partial_j\partial_k\,\ell = E[s(F)s(-F)\,\partial_jF\,\partial_kF]
          - E[s(-F)\,\partial_j\partial_kF].

The second term is a gradient with other tables. In the first term the derivative of the logistic
sigmoid is the integral with w / sin(pi w), and the product of two sums over sets consists of terms
with one set (L - 2 sets remain) and with two sets (L - 3 remain). Lines and nodes are those of the
gradient. The error is of the order of the gradient's error but not certified (notebook
``fourier_method``, Section 5).
"""

import math

import numpy as np

from dynamics.core.jit import kernel
from dynamics.positional._emitted import row_hessian
from dynamics.positional.population.fourier.goals import Target, prepare
from dynamics.positional.population.fourier.lines import (
    INTEGRATED,
    LEFT_OUT,
    TOO_MANY_NODES,
    design,
)
from dynamics.positional.population.fourier.node_sums import node_sums
from dynamics.positional.population.fourier.set_law import SetLaw
from dynamics.positional.population.fourier.tables import Model, patches_of


def curvature(law: SetLaw, model: Model, crude: np.ndarray, target: Target) -> np.ndarray:
    """Return the second derivatives (aa, ag, ar, gg, gr, rr) of ell; nan for too many nodes."""
    goals = prepare(law, model, crude, target)
    goals.goal[0] = goals.goal[4] = math.inf
    lines = design(law, goals, target)
    if TOO_MANY_NODES in lines.treatment:
        return np.full(6, math.nan)
    sums = node_sums(law.n, law.C, law.L, goals.tables, lines, lines.nodes, True)
    return _second(law, model, goals.tables, lines, sums)


@kernel
def _second(law, model, tables, lines, sums):
    """Return the sum over all R. ``sums``, relative to the bounds on the lines, is overwritten."""
    result, second_x, second_base = np.zeros(6), np.empty((6, len(law.n))), np.empty(6)
    rows = np.empty((3, 2 * law.C + 1, 6))
    for i in range(len(lines.treatment)):
        if lines.treatment[i] == LEFT_OUT:
            continue
        _second_tables(tables.first + i, law, model, rows, second_x, second_base)
        _add_second(i, law, tables, lines, second_x, second_base, sums, result)
    return result


@kernel(borrows=True)
def _second_tables(r, law, model, rows, second_x, second_base):
    """Fill the second derivatives of the contribution of each type to F, minus an empty set."""
    C = law.C
    for k in range(3 * (2 * C + 1)):
        s, n = k % 3 - 1, k // 3 - C
        if abs(n - s) < C:
            row = row_hessian(
                1.0 * s,
                1.0 * n,
                r + 1.0 * C,
                model.alpha,
                model.Lambda,
                model.Gamma,
                model.Xi,
                model.LG,
                model.GX,
                C,
                model.D,
                model.kappa,
                model.tau,
                model.p,
                model.nu,
            )
            for j in range(6):
                rows[k % 3, k // 3, j] = row[j]
    for j in range(6):
        empty = rows[1, C, j]
        second_base[j] = C * rows[2, 2 * C, j] + (law.L - 1.0) * C * empty
        for k in range(len(law.n)):
            second_x[j, k] = 0.0
            for s in (1, -1, 0):
                patches = patches_of(law, k, s)
                if patches > 0:
                    second_x[j, k] += patches * (rows[s + 1, law.level_index[k], j] - empty)


@kernel(borrows=True)
def _add_second(t, law, tables, lines, second_x, second_base, sums, result):
    """Add the contribution of total number t."""
    p, n, L, p_less_one = law.p, law.n, law.L, law.p_less_one
    y, center, types = tables.y, law.center + tables.first + t, len(law.p)
    of_type, slopes = sums.by_type[t], sums.slopes[t]
    front, constant = math.exp(lines.logs[t, 0]), 1.0
    if lines.treatment[t] == INTEGRATED:
        constant = 1.0 / (1.0 + math.exp(lines.eta[t] * lines.omega[t]))
    total = front * of_type[types] + constant * law.p_empty * p_less_one[center]
    slope = front * slopes[types]
    for k in range(types):
        slopes[k] *= front
        of_type[k] *= front
        of_type[k] += constant * p[k] * p_less_one[center - int(n[k])]
        total += of_type[k]
        slope += slopes[k]
    m = 0
    for i in range(3):
        for j in range(i, 3):
            g, h = tables.base[1 + i, t], tables.base[1 + j, t]
            value = g * h * slope - second_base[m] * total
            value += (L - 1.0) * (L - 2.0) * front * sums.pairs[t, m]
            for k in range(types):
                both = g * y[j, k, t] + h * y[i, k, t] + y[i, k, t] * y[j, k, t]
                value += (L - 1.0) * (both * slopes[k] - second_x[m, k] * of_type[k])
            result[m] += value
            m += 1
