r"""The sign of F from sums of powers alone, with exact special cases.

The attention weights of a column add up to 1, so that the linear part of F depends on T only:

.. math:: F = \kappa\alpha\,\bigl[\nu T + (\kappa\alpha)^{p-1} \textstyle\sum_i c_i^p\bigr],
          \qquad c = \Xi T + (\Gamma - \Xi)\,n + (\Lambda - \Gamma)\,s .

Given R the first term is exact up to the relative rounding of one number, and at ``T = 0`` it is 0.
There ``c`` is odd in the types: a multiset that together with the signal set (C, 0) contains every
type (a, b) as often as (b, a) has ``F = 0`` for all weights (:func:`symmetric_probability`). If two
of beta, gamma, rho are equal, all sums at ``T = 0`` are integers up to a common factor (notebook
``fourier_method``, Section 7).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dynamics.core.jit import kernel
from dynamics.positional._emitted import power
from dynamics.positional.population.fourier.errors import TINY, UNIT
from dynamics.positional.population.fourier.set_law import SetLaw
from dynamics.positional.population.fourier.tables import patches_of
from dynamics.positional.problem import Problem, State

#: Error assigned to sums of integers: less than their distances.
_QUARTER = 0.25

#: Largest integers that are added up exactly, with a margin.
_MOST = 2.0**45

#: At T = 0 the largest ``|c|`` for which the errors of the weights, `TINY`, are relatively small.
_LEAST = 1e-290


class Order(NamedTuple):
    """Signs -1, 0, 1 of the differences of logits; differences of the weights may underflow."""

    beta_gamma: float
    gamma_rho: float
    beta_rho: float

    @classmethod
    def of(cls, problem: Problem, state: State) -> Order:
        """Return the order of beta, gamma and rho."""
        beta, (_, gamma, rho) = problem.beta, state
        return cls(
            *(float(a > b) - float(a < b) for a, b in ((beta, gamma), (gamma, rho), (beta, rho)))
        )


@kernel(borrows=True)
def power_tables(r, law, model, weight_errors, order, rows, x, dx):
    """Fill ``x[type]``, the contribution of a set to the bracket at R = r, and ``dx``, its error.

    The unit is the largest ``|c|``, the sign is the one of alpha, and an empty set is subtracted.
    ``rows`` is scratch for values and errors by s + 1 and n + C; ``order`` is an :class:`Order`.
    Return the bracket of the signal set with empty sets, and its error.
    """
    C, L, nu = law.C, law.L, model.nu
    side = 1.0 if model.alpha > 0.0 else -1.0
    T = r + 1.0 * C
    if T == 0.0:
        known = _integers(law, model, order, side, x)
        if known < math.inf:
            for k in range(len(x)):
                dx[k] = 0.0
            return known, _QUARTER
    largest = abs(model.Xi * T)
    for n in range(-C, C + 1):
        for s in range(-1, 2):
            if abs(n - s) < C:
                largest = max(largest, abs(model.Xi * T + model.GX * n + model.LG * s))
    if largest < _LEAST:  # all weights are nearly equal, and T = 0: the sign is unknown
        for k in range(len(x)):
            x[k], dx[k] = 0.0, 1.0
        return 0.0, 1.0
    for n in range(-C, C + 1):
        for s in range(-1, 2):
            if abs(n - s) < C:
                rows[0, s + 1, n + C], rows[1, s + 1, n + C] = _power_of(
                    s, n, T, model, weight_errors, largest
                )
    empty, of_empty = rows[0, 1, C], rows[1, 1, C]
    for k in range(len(x)):
        value = error = 0.0
        for s in range(-1, 2):
            patches = patches_of(law, k, s)
            if patches > 0.0:
                value += patches * (rows[0, s + 1, law.level_index[k]] - empty)
                error += patches * (rows[1, s + 1, law.level_index[k]] + of_empty)
        x[k], dx[k] = side * value, error * 1.000001
    linear, relative = _linear(
        nu, abs(T), model.kappa * abs(model.alpha) * largest, largest, model.p
    )
    base = C * rows[0, 2, 2 * C] + (L - 1.0) * C * empty + math.copysign(linear, T)
    error = C * rows[1, 2, 2 * C] + (L - 1.0) * C * of_empty + linear * relative
    return side * base, error * 1.000001 + 8.0 * UNIT * linear + TINY


@kernel(inner=True)
def _power_of(s, n, T, model, weight_errors, unit):
    """Return (c / unit)^p and a bound of its error, which covers the summation over a set."""
    p, Xi, LG, GX = model.p, model.Xi, model.LG, model.GX
    c = Xi * T + GX * n + LG * s
    terms = abs(Xi * T) + abs(GX * n) + abs(LG * s)
    error = weight_errors.Xi * abs(T) + weight_errors.GX * abs(n) + weight_errors.LG * abs(s)
    error += 6.0 * UNIT * terms
    v, e = c / unit, error / unit
    value = power(v, p)
    most = power(abs(v) + e, p - 1)
    return value, p * most * e + (p + 16.0) * UNIT * most * (abs(v) + e)


@kernel(inner=True)
def _linear(nu, T, steepness, unit, p):
    """Return ``nu T / (steepness^(p-1) unit)`` and its relative error.

    Logarithms are used if the power is out of the range of floats; values beyond e^700, which no
    sum of powers reaches, are replaced by e^700.
    """
    if T == 0.0:
        return 0.0, 0.0
    steep = power(steepness, p - 1)
    value = nu * T / unit / steep
    if 1e-280 < steep < 1e280 and nu > 1e-300 and unit > 1e-280 and 1e-280 < value < 1e280:
        return value, (2.0 * p + 8.0) * UNIT
    if steepness == 0.0:
        return math.exp(700.0), 0.0
    logarithm = math.log(nu) + math.log(T) - math.log(unit) - (p - 1.0) * math.log(steepness)
    size = abs(math.log(nu)) + abs(math.log(T)) + abs(math.log(unit)) + p * abs(math.log(steepness))
    return math.exp(min(max(logarithm, -700.0), 700.0)), 8.0 * UNIT * (size + p + 8.0)


@kernel(borrows=True)
def _integers(law, model, order, side, x):
    """Fill ``x`` at T = 0 if all sums are integers times a common factor, else return inf.

    gamma = rho: 0, because the sum of all s is T. beta = gamma: n^p, beta = rho: (n - s)^p. Return
    the value of the signal set.
    """
    p, C, shifted = model.p, law.C, order.beta_rho == 0.0
    if order.gamma_rho != 0.0:
        if not (order.beta_gamma == 0.0 or shifted):
            return math.inf
        if law.L * C * power(2.0 * C, p) > _MOST:
            return math.inf
    sign = side * order.gamma_rho
    for k in range(len(x)):
        a, b = law.plus[k], law.minus[k]
        n = a - b
        x[k] = sign * (
            C * power(n, p)
            if not shifted
            else a * power(n - 1.0, p) + b * power(n + 1.0, p) + (C - a - b) * power(n, p)
        )
    return sign * C * power(C - (1.0 if shifted else 0.0), p)


def symmetric_probability(law: SetLaw) -> float:
    """Return the probability of the multisets with F = 0 at T = 0 for all weights.

    With ``lam = sets p`` the types (a, b) and (b, a) occur equally often with generating function
    ``sum_k (lam t)^(2k) / k!^2``, the pair of (C, 0) with ``sum_k (lam t)^(2k+1) / (k! (k+1)!)``,
    and the types (a, a) with ``exp(lam t)``; t counts the sets that are not empty. All terms are
    positive. Terms beyond the last number of sets are left out, so that this is a lower bound up to
    rounding.
    """
    C, sets = law.C, law.L - 1
    mean = sets * float(law.p.sum())
    if mean > 300.0:
        return 0.0
    most = min(sets, int(mean + 12 * math.sqrt(mean)) + 40)
    k = np.arange(most + 1)
    occurs = np.zeros(most + 1)  # by the number of sets that are not empty
    occurs[0] = 1.0
    for a, b, log_lam in zip(law.plus, law.minus, math.log(sets) + law.log_p):
        if a < b:
            continue
        factor = np.zeros(most + 1)
        for m in range(most + 1):
            if a == b:
                factor[m] = math.exp(m * log_lam - math.lgamma(m + 1))
            elif m % 2 == (1 if (a, b) == (C, 0) else 0):
                log_factorials = math.lgamma(m // 2 + 1) + math.lgamma(m - m // 2 + 1)
                factor[m] = math.exp(m * log_lam - log_factorials)
        occurs = np.convolve(occurs, factor)[: most + 1]
    fewer = np.concatenate([[1.0], np.cumprod(1.0 - k[:-1] / sets)])
    return float(np.sum(occurs * fewer * law.p_empty ** (sets - k)))
