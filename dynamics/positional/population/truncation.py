r"""What a truncated enumeration neglects, bounded for certain.

The number N of features outside the signal set is binomial, so the mass beyond K is known exactly.
The neglected part of the loss is at most :math:`E[(\log 2 + |F|) 1\{N > K\}]` and that of a
derivative at most :math:`E[|\partial F| 1\{N > K\}]`. Given N = k, write :math:`t_k` for the
:math:`L_p` norm of T = C + R (R a sum of k signs). A row of a set with m features has
:math:`|c| \le |\Lambda-\Gamma| |s| + |\Gamma-\Xi| m + \Xi |T|`; every term of F and of its
derivatives is a product of at most p such factors, so Hoelder's inequality lets :math:`t_k` stand
for :math:`|T|`. The number of features in one set is hypergeometric given N = k, and independent
of the signs, which makes the sum over the sets exact.

Images with at most K features but negligible probability are dropped too. They are grouped by T,
which is then known, and bounded in the same way with their average number of sets of each size.

All these are sums and products of positive numbers, so that rounding is a relative error: the
masses are enlarged by it where they are made, the bounds where they are evaluated.
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

_NEGLIGIBLE = 1e-50  # tail mass at which one worst case for all larger N is enough
_FEW_PATCHES = 64  # so few are grouped to the last
_MOST_FEATURES = 400  # groups; no enumeration reaches so far
_QUANTITIES = 4  # loss, d/d alpha, and the two entries of the gradient in A


class Neglected(NamedTuple):
    """Groups of images that a table leaves out: their probability and what bounds F on them.

    Group i has probability ``mass[i]``; ``norm[i]`` is the L_p norm of T on it, and ``sets[i, m]``
    the expected number of random sets with m features. All three are upper bounds.
    """

    mass: np.ndarray  # (groups,)
    norm: np.ndarray  # (groups,)
    sets: np.ndarray  # (groups, C + 1)

    def joined(self, other: Neglected) -> Neglected:
        """Return the groups of both."""
        return Neglected(*(np.concatenate(pair) for pair in zip(self, other)))

    def beyond(self, K: int) -> Neglected:
        """Return the groups after the first K + 1."""
        return Neglected(*(part[K + 1 :] for part in self))


def binomial_tail(problem: Problem) -> Neglected:
    """Return all images grouped by N = 0 .. k_max; the last group is everything beyond k_max.

    That last group counts as if all D - C patches carried features of one sign. Beyond 400 features
    no table reaches, and no group is needed.
    """
    trials, C = problem.D - problem.C, problem.C
    mass = _binomial(trials, problem.q, min(trials, _MOST_FEATURES))
    rest = np.cumsum(mass[::-1])[::-1]
    k_max = mass.size - 2
    if mass[-1] > 0.5:  # no table reaches so far: one worst case for all
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
    """Return upper bounds, good to 1e-9 or so, of P[N = k], k = 0 .. most, and of P[N > most].

    From the more probable end of few trials, else from k = 0, by the ratio of neighbours. Where
    P[N = 0] underflows everything is counted as lying beyond.
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
    """Return P[a random set has m features | N = k], (k, C + 1), rounded up.

    Hypergeometric: ``binom(C, m) k!/(k-m)! (n-k)!/(n-k-C+m)! (n-C)!/n!`` by products whose factors
    are ordered so that nothing overflows; for sets too large for that, 1.
    """
    result = np.ones((k.size, C + 1))
    if C > 500:
        return result
    kept = k.astype(float)
    for m in range(C + 1):
        for i in range(m):
            result[:, m] *= np.maximum(kept - i, 0.0) / (trials - i) * ((C - i) / (i + 1.0))
        for j in range(C - m):
            result[:, m] *= np.maximum(trials - kept - j, 0.0) / (trials - m - j)
    return result * (1.0 + (8.0 * C + 10.0) * UNIT)


def groups_by_sum(
    problem: Problem, states: StateTable, chosen: np.ndarray, weight_error: float = 0.0
) -> Neglected:
    """Return the chosen states of a table (boolean array) grouped by their sum T.

    ``weight_error`` is the relative error of the weights of the table.
    """
    owner = np.repeat(np.arange(chosen.size), np.diff(states.start))
    features = (states.plus + states.minus).astype(np.int64)[states.kind]
    group = np.repeat(np.arange(states.total.size), np.diff(states.offset))
    weight = np.where(chosen, states.weight + UNDERFLOWN_WEIGHT, 0.0)
    mass = np.bincount(group, weights=weight)
    sets = np.zeros((mass.size, problem.C + 1))
    np.add.at(sets, (group[owner], features), states.copies * weight[owner])
    sets /= np.where(mass > 0.0, mass, 1.0)[:, None]
    sets[:, 0] = problem.L - 1
    enlarged = (1.0 + 2.0 * weight_error) * OUTWARD
    return Neglected(mass * enlarged, np.abs(states.total), sets * enlarged)


def nothing() -> Neglected:
    """Return no groups: nothing is neglected."""
    return Neglected(np.zeros(0), np.zeros(0), np.zeros((0, 1)))


def _norm(k: int, C: int, p: int) -> float:
    """L_p norm of C + R, R the sum of k independent signs, rounded up: exact up to the root."""
    ways, moment = 1, 0
    for heads in range(k + 1):
        moment += ways * abs(C + 2 * heads - k) ** p
        ways = ways * (k - heads) // (heads + 1)
    mean = moment / (C + k) ** p / 2**k if moment.bit_length() > 1000 else None
    if mean is None:
        return float((moment / 2**k) ** (1.0 / p)) * (1.0 + 1e-13)
    return float((C + k) * mean ** (1.0 / p)) * (1.0 + 1e-13)


@kernel
def _inflated(constants, gamma, rho):
    """Return the attention weights, the last two as moduli, enlarged by what rounding may do."""
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

    ``totals`` holds (F, dF/d alpha, dF/d gamma, dF/d rho).
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
    if m > 0.0:  # the rows of an empty set drop out of the two attention derivatives
        mass = set_mass(Lambda, Gamma, constants.C, constants.D) / constants.D
        totals[2] += rows * steep * x * Gamma / tau * (m + (constants.C - 1.0) * c)
        totals[3] += (
            rows * steep * x * Xi / tau * (mass * t + m + (constants.D - constants.C) * own)
        )


@kernel
def _finish(totals, mass, alpha, constants):
    """Turn the totals of F and its derivatives into bounds of loss and entries, rounded up.

    At alpha = 0 the entries in A vanish.
    """
    outward = mass * OUTWARD
    same, different = multiplicity(constants.C, constants.D)
    totals[2] /= same
    totals[3] /= different
    for m in range(_QUANTITIES):
        totals[m] = totals[m] * outward + (TINY if m < 2 or alpha != 0.0 else 0.0)


@kernel
def state_bounds(states, constants, alpha, gamma, rho):
    """Return, for each state of a table, bounds (4,) of what leaving it out does.

    Of the loss, of d/d alpha and of the two entries of the gradient in A, for the weights as they
    stand in the table.
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
                k = states.kind[j]
                size = int(states.plus[k] + states.minus[k])
                for m in range(_QUANTITIES):
                    totals[m] += states.copies[j] * per_set[size, m]
            _finish(totals, states.weight[i], alpha, constants)
    return bounds


@kernel
def group_bounds(neglected, constants, alpha, gamma, rho):
    """Return, for each group, bounds (4,) of what leaving it out does, as ``state_bounds``."""
    return weighted_bounds(neglected, constants, alpha, _inflated(constants, gamma, rho))


@kernel
def weighted_bounds(neglected, constants, alpha, weights):
    """Return the same given upper bounds of |alpha| and of the attention weights.

    ``weights`` bound Lambda, Gamma, Xi, |Lambda - Gamma|, |Gamma - Xi|; everything grows with them.
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
