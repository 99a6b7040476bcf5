r"""Certified bounds of the truncation error of an enumeration.

The number N of features outside the signal set is binomial, so that the probability of more than K
features is known. Their contribution is at most :math:`E[(\log 2 + |F|) 1\{N > K\}]` to the loss
and :math:`E[|\partial F| 1\{N > K\}]` to a derivative. Given N = k, let :math:`t_k` be the
:math:`L_p` norm of T = C + R, where R is a sum of k signs. A row of a set with m features has
:math:`|c| \le |\Lambda-\Gamma| |s| + |\Gamma-\Xi| m + \Xi |T|`. Every term of F and of its
derivatives is a product of at most p such factors, so that :math:`|T|` may be replaced by
:math:`t_k` (Hoelder). Given N = k, the number of features in one set is hypergeometric and
independent of the signs, so that the sum over the sets is exact.

Images with at most K features but negligible probability are dropped too. They are grouped by T and
bounded in the same way, with the average number of sets of each size.

All these are sums and products of positive numbers, so that rounding is a relative error. The
probabilities are enlarged by it when they are computed, the bounds when they are evaluated.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dynamics.core.jit import kernel
from dynamics.positional._emitted import attention_weights, multiplicity, power, set_mass
from dynamics.positional.population.rounding import OUTWARD, TINY, UNIT, weights_error
from dynamics.positional.population.states import UNDERFLOWN_WEIGHT, StateTable
from dynamics.positional.problem import Problem

_NEGLIGIBLE = 1e-50  # tail probability below which all larger N form one group
_FEW_PATCHES = 64  # up to this number of patches each N is a group
_MOST_FEATURES = 400  # largest N with a group; no enumeration includes more features
_QUANTITIES = 4  # loss, d/d alpha, and the two entries of the gradient in A


class Neglected(NamedTuple):
    """Groups of images that a table leaves out. All numbers are upper bounds.

    Attributes
    ----------
    mass
        Probability of each group, (groups,).
    norm
        L_p norm of the sum T of all coefficients on each group, (groups,).
    sets
        Expected number of random sets with m = 0 .. C features, (groups, C + 1).
    """

    mass: np.ndarray
    norm: np.ndarray
    sets: np.ndarray

    def joined(self, other: Neglected) -> Neglected:
        """Return the groups of this object and of another."""
        return Neglected(*(np.concatenate(pair) for pair in zip(self, other)))

    def beyond(self, K: int) -> Neglected:
        """Return the groups after the first K + 1."""
        return Neglected(*(part[K + 1 :] for part in self))


def binomial_tail(problem: Problem) -> Neglected:
    """Return all images, grouped by the number of features N = 0 .. k_max and N > k_max.

    In the last group F is bounded for D - C features of one sign. k_max is at most 400.
    """
    trials, C = problem.D - problem.C, problem.C
    mass = _binomial(trials, problem.q, min(trials, _MOST_FEATURES))
    rest = np.cumsum(mass[::-1])[::-1]
    k_max = mass.size - 2
    if mass[-1] > 0.5:  # too many features for any table
        k_max = 0
    elif trials > _FEW_PATCHES:
        k_max = min(k_max, int(np.argmax(np.append(rest[1:], 0.0) < _NEGLIGIBLE)))
    k = np.append(np.arange(k_max + 1), trials)
    norm = [_norm(features, C, problem.p) for features in range(k_max + 1)]
    return Neglected(
        mass=np.append(mass[: k_max + 1], rest[k_max + 1] * OUTWARD),
        norm=np.append(norm, float(C + trials)),
        sets=expected_sets(trials, C, k) * (problem.L - 1),
    )


def _binomial(trials: int, q: float, most: int) -> np.ndarray:
    """Return upper bounds of P[N = k], k = 0 .. most, and of P[N > most], shape (most + 2,).

    They exceed the probabilities by about 1e-9, relative. The recurrence starts at the more
    probable end if ``trials <= most``, else at k = 0. If P[N = 0] underflows, P[N > most] is 1.
    """
    result = np.zeros(most + 2)
    up = q <= 0.5 or trials > most
    if q == 1.0:
        result[most if trials == most else most + 1] = 1.0
        return result
    start = trials * (math.log1p(-q) if up else math.log(q))
    if start < -600.0:
        result[most + 1] = 1.0
        return result
    inner = result[: most + 1] if up else result[most::-1]
    ratio = q / (1.0 - q) if up else (1.0 - q) / q
    inner[0] = math.exp(start)
    for k in range(most):
        inner[k + 1] = inner[k] * ((trials - k) / (k + 1.0) * ratio)
    if trials > most:
        falling = (trials - most) / (most + 1.0) * ratio
        beyond = inner[most] * falling / (1.0 - falling) if falling < 0.999 else 1.0
        result[most + 1] = min(1.0, beyond)
    result[: most + 1] += 1e-290
    return result * (1.0 + (8.0 * most + 20.0 * abs(start) + 40.0) * UNIT)


def expected_sets(trials: int, C: int, k: np.ndarray) -> np.ndarray:
    """Return upper bounds of P[a random set has m features | N = k], shape (k, C + 1).

    The law is hypergeometric, ``binom(C, m) k!/(k-m)! (n-k)!/(n-k-C+m)! (n-C)!/n!``. The factors
    are multiplied in an order without overflow. For C > 500 the bounds are 1.

    Parameters
    ----------
    trials
        Number n = D - C of patches outside the signal set.
    C
        Size of a set.
    k
        Values of N.
    """
    result = np.ones((k.size, C + 1))
    if C > 500:
        return result
    N = k.astype(float)
    for m in range(C + 1):
        for i in range(m):
            result[:, m] *= np.maximum(N - i, 0.0) / (trials - i) * ((C - i) / (i + 1.0))
        for j in range(C - m):
            result[:, m] *= np.maximum(trials - N - j, 0.0) / (trials - m - j)
    return result * (1.0 + (8.0 * C + 10.0) * UNIT)


def groups_by_sum(
    problem: Problem, states: StateTable, chosen: np.ndarray, weight_error: float = 0.0
) -> Neglected:
    """Return selected states of a table, grouped by their sum T.

    Parameters
    ----------
    problem
        Constants of data and model.
    states
        Table of states.
    chosen
        Selected states, boolean (states,).
    weight_error
        Relative error of the weights of the table.
    """
    owner = np.repeat(np.arange(chosen.size), np.diff(states.start))
    features = (states.plus + states.minus).astype(np.int64)[states.type_index]
    group = np.repeat(np.arange(states.total.size), np.diff(states.offset))
    weight = np.where(chosen, states.weight + UNDERFLOWN_WEIGHT, 0.0)
    mass = np.bincount(group, weights=weight)
    sets = np.zeros((mass.size, problem.C + 1))
    np.add.at(sets, (group[owner], features), states.copies * weight[owner])
    sets /= np.where(mass > 0.0, mass, 1.0)[:, None]
    sets[:, 0] = problem.L - 1
    enlarged = (1.0 + 2.0 * weight_error) * OUTWARD
    return Neglected(mass * enlarged, np.abs(states.total), sets * enlarged)


def no_groups() -> Neglected:
    """Return no groups: nothing is neglected."""
    return Neglected(np.zeros(0), np.zeros(0), np.zeros((0, 1)))


def _norm(k: int, C: int, p: int) -> float:
    """Return an upper bound of the L_p norm of C + R, R the sum of k independent signs.

    The p-th moment is an exact integer.
    """
    binomial, moment = 1, 0
    for plus in range(k + 1):
        moment += binomial * abs(C + 2 * plus - k) ** p
        binomial = binomial * (k - plus) // (plus + 1)
    mean = moment / (C + k) ** p / 2**k if moment.bit_length() > 1000 else None
    if mean is None:
        return float((moment / 2**k) ** (1.0 / p)) * (1.0 + 1e-13)
    return float((C + k) * mean ** (1.0 / p)) * (1.0 + 1e-13)


@kernel
def _inflated(constants, gamma, rho):
    """Return upper bounds of Lambda, Gamma, Xi, |Lambda - Gamma| and |Gamma - Xi|."""
    weights = attention_weights(constants.beta, gamma, rho, constants.tau, constants.C, constants.D)
    grow = 1.0 + 2.0 * weights_error(constants, gamma, rho)
    Lambda, Gamma, Xi, LG, GX = weights
    return (
        Lambda * grow + TINY,
        Gamma * grow + TINY,
        Xi * grow + TINY,
        abs(LG) * grow + TINY,
        abs(GX) * grow + TINY,
    )


@kernel
def _add_rows(totals, rows, s, m, t, alpha, weights, constants):
    """Add the bounds of ``rows`` rows with |coefficient| s in a set with m features to ``totals``.

    ``totals`` contains bounds of (|F|, |dF/d alpha|, |dF/d gamma|, |dF/d rho|).
    """
    Lambda, Gamma, Xi, LG, GX = weights
    kappa, tau, p = constants.kappa, constants.tau, constants.p
    own = LG * s + GX * m
    c = own + Xi * t
    x = kappa * abs(alpha)
    top = power(x * c, p - 1) + TINY
    steep = p * top
    totals[0] += rows * x * c * (top + constants.nu)
    totals[1] += rows * kappa * c * (steep + constants.nu)
    if m > 0.0:  # rows of an empty set do not contribute to the derivatives in gamma and rho
        mass = set_mass(Lambda, Gamma, constants.C, constants.D) / constants.D
        totals[2] += rows * steep * x * Gamma / tau * (m + (constants.C - 1.0) * c)
        totals[3] += (
            rows * steep * x * Xi / tau * (mass * t + m + (constants.D - constants.C) * own)
        )


@kernel
def _finish(totals, mass, alpha, constants):
    """Convert bounds of F and its derivatives into bounds of the loss and the gradient entries.

    The entries in A vanish at alpha = 0.
    """
    outward = mass * OUTWARD
    same, different = multiplicity(constants.C, constants.D)
    totals[2] /= same
    totals[3] /= different
    for m in range(_QUANTITIES):
        totals[m] = totals[m] * outward + (TINY if m < 2 or alpha != 0.0 else 0.0)


@kernel
def state_bounds(states, constants, alpha, gamma, rho):
    """Return bounds of the contribution of each state in a table, shape (states, 4).

    The columns are the loss, d/d alpha and the two gradient entries in A. Errors of the weights in
    the table are not included.
    """
    weights = _inflated(constants, gamma, rho)
    sizes = int(constants.C) + 1
    bounds = np.empty((states.weight.size, _QUANTITIES))
    per_set = np.zeros((sizes, _QUANTITIES))
    for t in range(states.total.size):
        T = abs(states.total[t])
        per_set[:] = 0.0
        for m in range(1, sizes):
            _add_rows(per_set[m], m, 1.0, float(m), T, alpha, weights, constants)
            _add_rows(per_set[m], constants.C - m, 0.0, float(m), T, alpha, weights, constants)
        common = np.zeros(_QUANTITIES)
        common[0] = math.log(2.0)
        _add_rows(common, constants.C, 1.0, constants.C, T, alpha, weights, constants)
        _add_rows(common, constants.D - constants.C, 0.0, 0.0, T, alpha, weights, constants)
        for i in range(states.offset[t], states.offset[t + 1]):
            totals = bounds[i]
            totals[:] = common
            for j in range(states.start[i], states.start[i + 1]):
                k = states.type_index[j]
                size = int(states.plus[k] + states.minus[k])
                for m in range(_QUANTITIES):
                    totals[m] += states.copies[j] * per_set[size, m]
            _finish(totals, states.weight[i], alpha, constants)
    return bounds


@kernel
def group_bounds(neglected, constants, alpha, gamma, rho):
    """Return bounds of the contribution of each group, (groups, 4), as in ``state_bounds``."""
    return weighted_bounds(neglected, constants, alpha, _inflated(constants, gamma, rho))


@kernel
def weighted_bounds(neglected, constants, alpha, weights):
    """Return the bounds of ``group_bounds`` for a set of states.

    ``alpha`` is an upper bound of its modulus, and ``weights`` are upper bounds of Lambda, Gamma,
    Xi, |Lambda - Gamma| and |Gamma - Xi|. The result increases with each of them.
    """
    C = constants.C
    bounds = np.zeros((neglected.mass.size, _QUANTITIES))
    for i in range(neglected.mass.size):
        if neglected.mass[i] > 0.0:
            t, totals = neglected.norm[i], bounds[i]
            totals[0] = math.log(2.0)
            _add_rows(totals, C, 1.0, C, t, alpha, weights, constants)
            _add_rows(totals, C * neglected.sets[i, 0], 0.0, 0.0, t, alpha, weights, constants)
            for m in range(1, neglected.sets.shape[1]):
                sets = neglected.sets[i, m]
                if sets > 0.0:
                    _add_rows(totals, sets * m, 1.0, float(m), t, alpha, weights, constants)
                    _add_rows(totals, sets * (C - m), 0.0, float(m), t, alpha, weights, constants)
            _finish(totals, neglected.mass[i], alpha, constants)
    return bounds
