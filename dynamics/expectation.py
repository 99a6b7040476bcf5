"""Compiled sums over a table of states: population risk, its gradient and its Hessian.

For each total sum T the contribution of every set type is tabulated once, relative to an empty
set; a state is then a short sparse dot product followed by one exponential. Derivatives are those
of ``ell(alpha, gamma, rho) = E log(1 + e^{-F})``; dividing by ``Problem.multiplicity`` gives the
entrywise gradient that gradient descent uses.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dynamics._emitted import attention_weights, row_gradient, row_hessian
from dynamics._jit import kernel
from dynamics.problem import Problem

ROUNDING_UNIT = float(np.finfo(float).eps)


class Constants(NamedTuple):
    """The numbers of a :class:`Problem` that the kernels use (floats; ``p`` an integer)."""

    beta: float
    tau: float
    C: float
    D: float
    L: float
    kappa: float
    nu: float
    p: int

    @classmethod
    def of(cls, problem: Problem) -> Constants:
        """Return the constants of a problem."""
        return cls(
            problem.beta,
            problem.tau,
            float(problem.C),
            float(problem.D),
            float(problem.L),
            problem.kappa,
            problem.nu,
            problem.p,
        )


@kernel
def add_set(out, a, b, T, alpha, weights, constants):
    """Write F's part from one set with a patches +1, b patches -1, and its derivatives, to ``out``.

    ``out`` holds (value, d/d alpha, d/d gamma, d/d rho) and, if it has 10 entries, the second
    derivatives (aa, ag, ar, gg, gr, rr).
    """
    Lambda, Gamma, Xi, LG, GX = weights
    C, D, kappa, tau = constants.C, constants.D, constants.kappa, constants.tau
    p, nu = constants.p, constants.nu
    out[:] = 0.0
    for s, patches in ((1.0, a), (-1.0, b), (0.0, C - a - b)):
        if patches > 0.0:
            row = row_gradient(
                s, a - b, T, alpha, Lambda, Gamma, Xi, LG, GX, C, D, kappa, tau, p, nu
            )
            for m in range(4):
                out[m] += patches * row[m]
            if out.size > 4:
                bend = row_hessian(
                    s, a - b, T, alpha, Lambda, Gamma, Xi, LG, GX, C, D, kappa, tau, p, nu
                )
                for m in range(6):
                    out[4 + m] += patches * bend[m]


@kernel
def tabulate(states, constants, alpha, gamma, rho, quantities):
    """Tabulate, for every T, the signal set plus L-1 empty sets, and each type less an empty set.

    Returns ``base`` (sums, quantities) and ``table`` (sums, types, quantities); ``quantities`` is
    4 (value and gradient) or 10 (and Hessian).
    """
    weights = attention_weights(constants.beta, gamma, rho, constants.tau, constants.C, constants.D)
    base = np.empty((states.total.size, quantities))
    table = np.empty((states.total.size, states.plus.size, quantities))
    empty = np.empty(quantities)
    for t in range(states.total.size):
        T = states.total[t]
        add_set(empty, 0.0, 0.0, T, alpha, weights, constants)
        add_set(base[t], constants.C, 0.0, T, alpha, weights, constants)
        base[t] += (constants.L - 1.0) * empty
        for k in range(states.plus.size):
            add_set(table[t, k], states.plus[k], states.minus[k], T, alpha, weights, constants)
            table[t, k] -= empty
    return base, table


@kernel
def gradient_sum(states, constants, alpha, gamma, rho):
    """Return E[s(-F)] and the derivatives of ell with respect to alpha, gamma, rho."""
    base, table = tabulate(states, constants, alpha, gamma, rho, 4)
    mean, d_alpha, d_gamma, d_rho = 0.0, 0.0, 0.0, 0.0
    for t in range(states.total.size):
        b0, b1, b2, b3 = base[t, 0], base[t, 1], base[t, 2], base[t, 3]
        for i in range(states.offset[t], states.offset[t + 1]):
            F, F_alpha, F_gamma, F_rho = b0, b1, b2, b3
            for j in range(states.start[i], states.start[i + 1]):
                k, m = states.kind[j], states.copies[j]
                F += m * table[t, k, 0]
                F_alpha += m * table[t, k, 1]
                F_gamma += m * table[t, k, 2]
                F_rho += m * table[t, k, 3]
            decay = math.exp(-abs(F))
            sigmoid = states.weight[i] * (decay if F >= 0.0 else 1.0) / (1.0 + decay)
            mean += sigmoid
            d_alpha -= sigmoid * F_alpha
            d_gamma -= sigmoid * F_gamma
            d_rho -= sigmoid * F_rho
    return mean, d_alpha, d_gamma, d_rho


@kernel
def risk_sums(states, constants, alpha, gamma, rho):
    """Return the sums behind a full evaluation.

    Rows of the (3, 5) result: the expectations (compensated summation), the expectations of
    squares, and a bound of the rounding error, of (loss, s(-F), and -dF s(-F) for alpha, gamma,
    rho). Then P[F <= 0] and P[F = 0], where F counts as 0 within its own rounding error.
    """
    base, table = tabulate(states, constants, alpha, gamma, rho, 4)
    sums = np.zeros((3, 5))
    errors, ties = 0.0, 0.0
    terms, carry = np.empty(5), np.zeros(5)
    for t in range(states.total.size):
        for i in range(states.offset[t], states.offset[t + 1]):
            F, F_alpha, F_gamma, F_rho = base[t, 0], base[t, 1], base[t, 2], base[t, 3]
            size = abs(F)
            for j in range(states.start[i], states.start[i + 1]):
                k, m = states.kind[j], states.copies[j]
                F += m * table[t, k, 0]
                F_alpha += m * table[t, k, 1]
                F_gamma += m * table[t, k, 2]
                F_rho += m * table[t, k, 3]
                size += abs(m * table[t, k, 0])
            uncertainty = 64.0 * ROUNDING_UNIT * size
            if uncertainty >= F:
                errors += states.weight[i]
                if -uncertainty <= F:
                    ties += states.weight[i]
            decay = math.exp(-abs(F))
            terms[0] = max(-F, 0.0) + math.log1p(decay)
            terms[1] = (decay if F >= 0.0 else 1.0) / (1.0 + decay)
            terms[2] = -terms[1] * F_alpha
            terms[3] = -terms[1] * F_gamma
            terms[4] = -terms[1] * F_rho
            # an error in F moves the sigmoid by s(F) s(-F) and the loss by s(-F) times that error
            moved = states.weight[i] * terms[1] * uncertainty
            sums[2, 0] += moved
            moved *= decay / (1.0 + decay) if F < 0.0 else 1.0
            sums[2, 1] += moved
            sums[2, 2] += moved * abs(F_alpha)
            sums[2, 3] += moved * abs(F_gamma)
            sums[2, 4] += moved * abs(F_rho)
            for m in range(5):
                term = states.weight[i] * terms[m]
                corrected = term - carry[m]
                total = sums[0, m] + corrected
                carry[m] = (total - sums[0, m]) - corrected
                sums[0, m] = total
                sums[1, m] += term * terms[m]
                sums[2, m] += abs(term) * 64.0 * ROUNDING_UNIT
    return sums, errors, ties


@kernel
def hessian_sum(states, constants, alpha, gamma, rho):
    """Return the 3 x 3 Hessian of ell at (alpha, gamma, rho)."""
    base, table = tabulate(states, constants, alpha, gamma, rho, 10)
    hessian = np.zeros((3, 3))
    F = np.empty(10)
    for t in range(states.total.size):
        for i in range(states.offset[t], states.offset[t + 1]):
            F[:] = base[t]
            for j in range(states.start[i], states.start[i + 1]):
                k, m = states.kind[j], states.copies[j]
                for c in range(10):
                    F[c] += m * table[t, k, c]
            decay = math.exp(-abs(F[0]))
            sigmoid = states.weight[i] * (decay if F[0] >= 0.0 else 1.0) / (1.0 + decay)
            slope = states.weight[i] * decay / ((1.0 + decay) * (1.0 + decay))
            c = 4
            for row in range(3):
                for column in range(row, 3):
                    hessian[row, column] += slope * F[1 + row] * F[1 + column] - sigmoid * F[c]
                    c += 1
    for row in range(3):
        for column in range(row):
            hessian[row, column] = hessian[column, row]
    return hessian
