r"""What a truncated enumeration neglects, bounded for certain.

The number N of features outside the signal set is binomial, so the mass beyond K is known exactly.
The neglected part of the loss is at most :math:`E[(\log 2 + |F|) 1\{N > K\}]` and that of a
derivative at most :math:`E[|\partial F| 1\{N > K\}]`. Given N = k, write :math:`t_k` for the
:math:`L_p` norm of T = C + R (R a sum of k signs). A row of a set with m features has
:math:`|c| \le |\Lambda-\Gamma| |s| + |\Gamma-\Xi| m + \Xi |T|`; every term of F and of its
derivatives is a product of at most p such factors, so Hoelder's inequality lets :math:`t_k` stand
for |T|. The number of features in one set is hypergeometric given N = k, and independent of the
signs, which makes the sum over the sets exact.

Images with at most K features but negligible probability are dropped too. They are grouped by T,
which is then known, and bounded in the same way with their average number of sets of each size.
"""

from __future__ import annotations

import bisect
import math
from typing import NamedTuple

import numpy as np
from scipy import stats

from dynamics._emitted import attention_weights, power
from dynamics._jit import kernel
from dynamics.problem import Problem
from dynamics.states import StateTable

_NEGLIGIBLE = 1e-50  # tail mass at which one worst case for all larger N is enough


class Neglected(NamedTuple):
    """Groups of images that a table leaves out: their probability and what bounds F on them.

    Group i has probability ``mass[i]``; ``norm[i]`` is the L_p norm of T on it, and ``sets[i, m]``
    (at least) the expected number of random sets with m features.
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

    That last group counts as if all D - C patches carried features of one sign.
    """
    trials, C = problem.D - problem.C, problem.C
    number = stats.binom(trials, problem.q)
    k_max = bisect.bisect_left(range(trials), True, key=lambda k: number.sf(k) < _NEGLIGIBLE)
    k = np.append(np.arange(k_max + 1), trials)
    norm = [_norm(features, C, problem.p) for features in range(k_max + 1)]
    return Neglected(
        mass=np.append(number.pmf(k[:-1]), number.sf(k_max)),
        norm=np.append(norm, float(C + trials)),
        sets=(problem.L - 1) * stats.hypergeom.pmf(np.arange(C + 1), trials, C, k[:, None]),
    )


def groups_by_sum(problem: Problem, states: StateTable, chosen: np.ndarray) -> Neglected:
    """Return the chosen states of a table (boolean array) grouped by their sum T."""
    owner = np.repeat(np.arange(chosen.size), np.diff(states.start))
    features = (states.plus + states.minus).astype(np.int64)[states.kind]
    group = np.repeat(np.arange(states.total.size), np.diff(states.offset))
    weight = np.where(chosen, states.weight, 0.0)
    mass = np.bincount(group, weights=weight)
    sets = np.zeros((mass.size, problem.C + 1))
    np.add.at(sets, (group[owner], features), states.copies * weight[owner])
    sets /= np.where(mass > 0.0, mass, 1.0)[:, None]
    sets[:, 0] = problem.L - 1
    return Neglected(mass, np.abs(states.total), sets)


def nothing() -> Neglected:
    """Return no groups: nothing is neglected."""
    return Neglected(np.zeros(0), np.zeros(0), np.zeros((0, 1)))


def _norm(k: int, C: int, p: int) -> float:
    """L_p norm of C + R, R the sum of k independent signs."""
    heads = np.arange(k + 1)
    size = np.abs(C + 2 * heads - k) / (C + k)
    return float((C + k) * np.sum(stats.binom.pmf(heads, k, 0.5) * size**p) ** (1 / p))


@kernel
def _add_rows(totals, rows, s, m, t, alpha, weights, constants):
    """Add the bounds of ``rows`` rows with |coefficient| s in a set with m features to ``totals``.

    ``totals`` holds (F, dF/d alpha, dF/d gamma, dF/d rho).
    """
    Lambda, Gamma, Xi, LG, GX = weights
    kappa, tau, p = constants.kappa, constants.tau, constants.p
    own = abs(LG) * s + abs(GX) * m
    c = own + Xi * t
    x = kappa * abs(alpha)
    top = power(x * c, p - 1)
    steep = p * top
    totals[0] += rows * x * c * (top + constants.nu)
    totals[1] += rows * kappa * c * (steep + constants.nu)
    if m > 0.0:  # the rows of an empty set drop out of the two attention derivatives
        mass = Lambda + (constants.C - 1.0) * Gamma
        totals[2] += rows * steep * x * Gamma / tau * (m + (constants.C - 1.0) * c)
        totals[3] += (
            rows * steep * x * Xi / tau * (mass * t + m + (constants.D - constants.C) * own)
        )


@kernel
def _group_bound(neglected, i, alpha, weights, constants):
    """Largest bound over loss and entrywise gradient of the expectation over group i."""
    C, D, t = constants.C, constants.D, neglected.norm[i]
    totals = np.zeros(4)
    totals[0] = math.log(2.0)
    _add_rows(totals, C, 1.0, C, t, alpha, weights, constants)
    _add_rows(totals, C * neglected.sets[i, 0], 0.0, 0.0, t, alpha, weights, constants)
    for m in range(1, neglected.sets.shape[1]):
        sets = neglected.sets[i, m]
        if sets > 0.0:
            _add_rows(totals, sets * m, 1.0, float(m), t, alpha, weights, constants)
            _add_rows(totals, sets * (C - m), 0.0, float(m), t, alpha, weights, constants)
    totals[2] /= D * (C - 1.0)
    totals[3] /= D * (D - C)
    return neglected.mass[i] * np.max(totals)


@kernel
def state_bounds(states, constants, alpha, gamma, rho):
    """Return, for each state of a table, a bound of what leaving it out does."""
    weights = attention_weights(constants.beta, gamma, rho, constants.tau, constants.C, constants.D)
    sizes = int(constants.C) + 1
    bounds = np.empty(states.weight.size)
    per_set = np.zeros((sizes, 4))
    totals = np.empty(4)
    for t in range(states.total.size):
        T = abs(states.total[t])
        per_set[:] = 0.0
        for m in range(1, sizes):
            _add_rows(per_set[m], m, 1.0, float(m), T, alpha, weights, constants)
            _add_rows(per_set[m], constants.C - m, 0.0, float(m), T, alpha, weights, constants)
        empty = constants.D - constants.C
        for i in range(states.offset[t], states.offset[t + 1]):
            totals[:] = 0.0
            totals[0] = math.log(2.0)
            _add_rows(totals, constants.C, 1.0, constants.C, T, alpha, weights, constants)
            _add_rows(totals, empty, 0.0, 0.0, T, alpha, weights, constants)
            for j in range(states.start[i], states.start[i + 1]):
                k = states.kind[j]
                totals += states.copies[j] * per_set[int(states.plus[k] + states.minus[k])]
            totals[2] /= constants.D * (constants.C - 1.0)
            totals[3] /= constants.D * (constants.D - constants.C)
            bounds[i] = states.weight[i] * np.max(totals)
    return bounds


@kernel
def group_bounds(neglected, constants, alpha, gamma, rho):
    """Return, for each group, a bound of what leaving it out does to loss and gradient entries."""
    weights = attention_weights(constants.beta, gamma, rho, constants.tau, constants.C, constants.D)
    bounds = np.zeros(neglected.mass.size)
    for i in range(neglected.mass.size):
        if neglected.mass[i] > 0.0:
            bounds[i] = _group_bound(neglected, i, alpha, weights, constants)
    return bounds
