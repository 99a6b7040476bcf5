"""Compiled sums over a table of states: population risk, its gradient and its Hessian.

For each total sum T the contribution of every set type to F is tabulated once, relative to an empty
set. Each state then needs a short sparse dot product and one exponential. The derivatives are those
of ``ell(alpha, gamma, rho) = E log(1 + e^{-F})``; dividing them by ``Problem.multiplicity`` gives
the entrywise gradient of gradient descent.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dynamics.core.jit import kernel
from dynamics.positional._emitted import attention_weights, loss_hessian, row_gradient, row_hessian
from dynamics.positional.population.rounding import TINY, UNIT, with_errors
from dynamics.positional.population.states import UNDERFLOWN_WEIGHT
from dynamics.positional.population.ties import UNKNOWN, tie_sign, unknown_ties
from dynamics.positional.problem import Problem


class Constants(NamedTuple):
    """The constants of a :class:`Problem` used by the kernels: floats, and the integer ``p``."""

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
    """Write the part of F from one set with a patches +1 and b patches -1 to ``out``.

    ``out`` receives (value, d/d alpha, d/d gamma, d/d rho) and, if it has 10 entries, the second
    derivatives (aa, ag, ar, gg, gr, rr), all without the linear part of the activation.
    """
    Lambda, Gamma, Xi, LG, GX = weights
    C, D, kappa, tau, p = constants.C, constants.D, constants.kappa, constants.tau, constants.p
    out[:] = 0.0
    for s, patches in ((1.0, a), (-1.0, b), (0.0, C - a - b)):
        if patches > 0.0:
            row = row_gradient(
                s, a - b, T, alpha, Lambda, Gamma, Xi, LG, GX, C, D, kappa, tau, p, 0.0
            )
            for m in range(4):
                out[m] += patches * row[m]
            if out.size > 4:
                second = row_hessian(
                    s, a - b, T, alpha, Lambda, Gamma, Xi, LG, GX, C, D, kappa, tau, p, 0.0
                )
                for m in range(6):
                    out[4 + m] += patches * second[m]


@kernel
def tabulate(states, constants, alpha, gamma, rho, quantities):
    """Return the contributions to F and its derivatives for every sum T.

    ``base`` (sums, quantities) is the signal set plus L - 1 empty sets, ``table``
    (sums, types, quantities) each type minus an empty set; ``quantities`` is 4 (value and gradient)
    or 10 (and Hessian). The columns of S sum to 1, so that the linear part of the activation adds
    kappa alpha nu T to F. It is part of ``base``, once and without cancellation.
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
        base[t, 0] += constants.kappa * alpha * constants.nu * T
        base[t, 1] += constants.kappa * constants.nu * T
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
                k, m = states.type_index[j], states.copies[j]
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
def sized_gradient_sum(states, constants, alpha, gamma, rho, out):
    """Write the derivatives of ell and E[s(-F) |dF|] to ``out``, shape (2, 3)."""
    base, table = tabulate(states, constants, alpha, gamma, rho, 4)
    out[:] = 0.0
    slope = np.empty(3)
    for t in range(states.total.size):
        for i in range(states.offset[t], states.offset[t + 1]):
            F = base[t, 0]
            slope[:] = base[t, 1:]
            for j in range(states.start[i], states.start[i + 1]):
                k, m = states.type_index[j], states.copies[j]
                F += m * table[t, k, 0]
                for c in range(3):
                    slope[c] += m * table[t, k, 1 + c]
            decay = math.exp(-abs(F))
            sigmoid = states.weight[i] * (decay if F >= 0.0 else 1.0) / (1.0 + decay)
            for c in range(3):
                out[0, c] -= sigmoid * slope[c]
                out[1, c] += sigmoid * abs(slope[c])


@kernel
def certified_sums(states, constants, alpha, gamma, rho, weight_error, tie):
    """Return the sums of a full evaluation, with bounds of their rounding errors.

    Parameters
    ----------
    states, constants
        Table of states, and constants of the model.
    alpha, gamma, rho
        Order parameters.
    weight_error
        Relative error of the weights.
    tie
        :class:`dynamics.positional.population.ties.TieLaw` for the signs at T = 0. At other T the
        sign is known where F exceeds its rounding error.

    Returns
    -------
    sums : ndarray, shape (3, 5)
        Columns: loss, s(-F), and -s(-F) dF for alpha, gamma and rho. Rows: the expectations by
        compensated summation; the square root of the sum of squared deviations of the weighted
        terms from their mean, for samples; bounds of the rounding errors.
    signs : ndarray, shape (4,)
        Probabilities of F < 0, of F = 0 and of an undecided sign, and the sum of the squared
        weights of all three.
    """
    base, table = tabulate(states, constants, alpha, gamma, rho, 4)
    base, table = with_errors(states, constants, alpha, gamma, rho, base, table)
    sums, carry, spread = np.zeros((3, 5)), np.zeros(5), np.zeros((5, 3))
    signs, signs_carry = np.zeros(4), np.zeros(4)
    terms, errors = np.empty(5), np.empty(5)
    relative = weight_error + 40.0 * UNIT  # error of a weight, a term and their sum
    mirrored = tie.log.size > 1  # F = 0 only for sets that mirror each other
    for t in range(states.total.size):
        balanced = states.total[t] == 0.0
        for i in range(states.offset[t], states.offset[t + 1]):
            F, F_alpha, F_gamma, F_rho = base[t, 0], base[t, 1], base[t, 2], base[t, 3]
            e, e_alpha, e_gamma, e_rho = base[t, 4], base[t, 5], base[t, 6], base[t, 7]
            for j in range(states.start[i], states.start[i + 1]):
                k, m = states.type_index[j], states.copies[j]
                F += m * table[t, k, 0]
                F_alpha += m * table[t, k, 1]
                F_gamma += m * table[t, k, 2]
                F_rho += m * table[t, k, 3]
                e += m * table[t, k, 4]
                e_alpha += m * table[t, k, 5]
                e_gamma += m * table[t, k, 6]
                e_rho += m * table[t, k, 7]
            weight = states.weight[i]
            sign = tie_sign(states, i, tie) * np.sign(alpha) if balanced else UNKNOWN
            if alpha == 0.0:
                sign = 0.0
            elif abs(sign) > 1.0 and abs(F) > e:
                sign = np.sign(F)
            if sign == 0.0:  # F = 0, and alpha dF/d alpha = p F at T = 0
                F, e = 0.0, 0.0
                if alpha != 0.0:
                    F_alpha, e_alpha = 0.0, 0.0
                    if mirrored:  # F = 0 for all gamma and rho
                        F_gamma, F_rho, e_gamma, e_rho = 0.0, 0.0, 0.0, 0.0
            if sign <= 0.0 or sign > 1.0:
                sign_class = 2 if abs(sign) > 1.0 else (1 if sign == 0.0 else 0)
                _add(signs, signs_carry, sign_class, weight)
                _add(signs, signs_carry, 3, weight * weight)
            decay = math.exp(-abs(F))
            sigmoid = (decay if F >= 0.0 else 1.0) / (1.0 + decay)
            loss_slope, slope = _lipschitz_constants(F, e, decay, sigmoid)
            slope = slope * e + 20.0 * UNIT * sigmoid + TINY
            terms[0] = max(-F, 0.0) + math.log1p(decay)
            terms[1] = sigmoid
            terms[2] = -sigmoid * F_alpha
            terms[3] = -sigmoid * F_gamma
            terms[4] = -sigmoid * F_rho
            errors[0] = loss_slope * e + TINY
            errors[1] = slope
            errors[2] = sigmoid * e_alpha + slope * (abs(F_alpha) + e_alpha)
            errors[3] = sigmoid * e_gamma + slope * (abs(F_gamma) + e_gamma)
            errors[4] = sigmoid * e_rho + slope * (abs(F_rho) + e_rho)
            larger = weight * (1.0 + relative) + UNDERFLOWN_WEIGHT / relative
            for m in range(5):
                term = weight * terms[m]
                _add(sums[0], carry, m, term)
                _add_deviation(spread, m, i + 1.0, term)
                sums[2, m] += larger * (errors[m] + relative * abs(terms[m]))
    sums[1] = spread[:, 1] * np.sqrt(spread[:, 2])
    return sums, signs


def risk_sums(states, constants, alpha, gamma, rho):
    """Return :func:`certified_sums` for exact weights, without exact signs at T = 0."""
    ties = unknown_ties(states.plus.size)
    return certified_sums(states, constants, alpha, gamma, rho, 0.0, ties)


@kernel
def _add(total, carry, m, term):
    """Add ``term`` to ``total[m]`` by compensated summation, error 2u times the sum of moduli."""
    corrected = term - carry[m]
    new = total[m] + corrected
    carry[m] = (new - total[m]) - corrected
    total[m] = new


@kernel
def _add_deviation(spread, m, count, term):
    """Update the mean, scale and scaled sum of squared deviations in ``spread[m]``.

    ``term`` is number ``count``, from 1. Welford's recurrence, with squares divided by the square
    of the largest deviation, the scale, to avoid overflow and underflow.
    """
    before = term - spread[m, 0]
    size = abs(before)
    if size == 0.0:
        return
    spread[m, 0] += before / count
    if size > spread[m, 1]:
        spread[m, 2] *= (spread[m, 1] / size) ** 2
        spread[m, 1] = size
    spread[m, 2] += (before / spread[m, 1]) * ((term - spread[m, 0]) / spread[m, 1])


@kernel
def _lipschitz_constants(F, error, decay, sigmoid):
    """Return Lipschitz constants of the loss and of s(-F) within ``error`` of F.

    The derivatives are s(-F) and s(F) s(-F). They change by a factor of at most e per unit of F.
    """
    if error <= 1.0:
        growth = 1.0 + 2.0 * error
        return min(1.0, sigmoid * growth), min(0.25, growth * decay / (1.0 + decay) ** 2)
    return min(1.0, math.exp(error - F)), min(0.25, math.exp(error - abs(F)))


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
                k, m = states.type_index[j], states.copies[j]
                for c in range(10):
                    F[c] += m * table[t, k, c]
            decay = math.exp(-abs(F[0]))
            sigmoid = states.weight[i] * (decay if F[0] >= 0.0 else 1.0) / (1.0 + decay)
            slope = states.weight[i] * decay / ((1.0 + decay) * (1.0 + decay))
            c = 4
            for row in range(3):
                for column in range(row, 3):
                    hessian[row, column] += loss_hessian(
                        sigmoid, slope, F[1 + row], F[1 + column], F[c]
                    )
                    c += 1
    for row in range(3):
        for column in range(row):
            hessian[row, column] = hessian[column, row]
    return hessian
