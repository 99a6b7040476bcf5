"""The distribution of one random set and of the total R, independent of the state.

A set of type ``(a, b)`` (``a`` patches +1, ``b`` patches -1) has the sum ``n = a - b`` and the
probability ``C! / (a! b! (C-a-b)!) (q/2)^(a+b) (1-q)^(C-a-b)`` (notebook ``fourier_method``,
Section 1); ``R`` is the sum of ``n`` over the L - 1 random sets.
"""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from dynamics.core.jit import kernel
from dynamics.positional.population.fourier.errors import UNIT
from dynamics.positional.population.fourier.tilts import (
    MAX_LANES,
    R,
    U,
    allocate_tilting,
    slack,
    tilt_totals,
)
from dynamics.positional.problem import Problem
from dynamics.positional.random_sets import log_probability

#: Totals R with a smaller log-probability are never visited.
_DEEPEST_TAIL = -230.0


class SetLaw(NamedTuple):
    """Distribution of one random set and of the total R; a function of D, C and q alone.

    Attributes
    ----------
    plus, minus, n, level_index
        Numbers of +1 and -1, their difference, and n + C, by non-empty type.
    log_p, p, log_p_empty, p_empty
        Probabilities of the types and of the empty type, and their logarithms.
    p_total, p_less_one, center
        P[R = r] for ``L - 1`` and ``L - 2`` sets at index ``r + center``.
    accuracy, noise
        Relative and additional absolute error of these probabilities.
    log_size
        Bound of the terms of every ``log_p``, whose error is at most ``4 u log_size``.
    roundings
        See :func:`~dynamics.positional.population.fourier.tilts.slack`.
    log_tail
        Bounds of log P[|R| >= r].
    share, log_probability
        Tilted probabilities at the saddle point for ``lam = 0``, and Chernoff bounds of log P[R =
        r], at index ``r + len(log_tail) - 1``.
    C, L
        Size and number of the sets.
    """

    plus: np.ndarray
    minus: np.ndarray
    n: np.ndarray
    level_index: np.ndarray
    log_p: np.ndarray
    p: np.ndarray
    log_p_empty: float
    p_empty: float
    p_total: np.ndarray
    p_less_one: np.ndarray
    center: int
    accuracy: float
    noise: float
    log_size: float
    roundings: float
    log_tail: np.ndarray
    share: np.ndarray
    log_probability: np.ndarray
    C: int
    L: int


def set_law(problem: Problem) -> SetLaw:
    """Return the distribution of one random set and of R, the sum over all L - 1 of them.

    It is cached because problems of a sweep often have the same data.
    """
    return _set_law(problem.C, problem.L, problem.q)


@lru_cache(maxsize=2)
def _set_law(C: int, L: int, q: float) -> SetLaw:
    """Return the distribution for sets of C patches."""
    types = [(a, m - a) for m in range(1, C + 1) for a in range(m + 1)]
    log_p = np.array([log_probability(a, b, C, q) for a, b in types])
    possible = log_p > -math.inf
    plus, minus = np.array(types, dtype=float).T[:, possible]
    log_tail = _log_tail((L - 1) * C, q)
    reach = len(log_tail) + 2 * C
    total, accuracy, noise = _probability_of_sum((L - 1) * C, q, reach)
    less, less_accuracy, less_noise = _probability_of_sum((L - 2) * C, q, reach)
    # the logarithm of the number of arrangements is at most 1.1 C
    log_size = float(np.abs(log_p[possible]).max()) + 2.2 * C
    law = SetLaw(
        plus=plus,
        minus=minus,
        n=plus - minus,
        level_index=(plus - minus + C).astype(np.int64),
        log_p=log_p[possible],
        p=np.exp(log_p[possible]),
        log_p_empty=log_probability(0, 0, C, q),
        p_empty=math.exp(log_probability(0, 0, C, q)),
        p_total=total,
        p_less_one=less,
        center=reach,
        accuracy=max(accuracy, less_accuracy),
        noise=max(noise, less_noise),
        log_size=log_size,
        roundings=UNIT * (256.0 + 16.0 * log_size + 32.0 * C + 4.0 * len(plus)),
        log_tail=log_tail,
        share=np.empty((len(plus), 2 * len(log_tail) - 1)),
        log_probability=np.empty(2 * len(log_tail) - 1),
        C=C,
        L=L,
    )
    _tilt_all(law, _saddles((L - 1) * C, q, len(log_tail) - 1))
    return law


def totals_of(problem: Problem) -> int:
    """Return the approximate number of totals R in the tables, from the variance of R."""
    patches = problem.D - problem.C
    spread = math.sqrt(-2.0 * _DEEPEST_TAIL * problem.q * patches)
    return 2 * min(patches, int(spread) + 90) + 1


def _log_tail(patches: int, q: float) -> np.ndarray:
    """Return bounds of log P[|R| >= r], r = 0, 1, ..., until negligible: Chernoff on a grid.

    They are rounded outwards: each cumulant has an error of 20 u, the difference of u of its parts.
    """
    tilt = np.geomspace(1e-4, 60.0, 400)
    cumulant = patches * (np.log1p(q * np.expm1(-tilt) ** 2 * np.exp(tilt) / 2))
    bounds = [0.0]
    while len(bounds) <= patches and bounds[-1] > _DEEPEST_TAIL:
        r = len(bounds)
        least = np.min(cumulant - tilt * r + 32 * UNIT * (cumulant + tilt * r))
        bounds.append(min(0.0, math.log(2) + float(least) + 1e-13))
    return np.array(bounds)


def _probability_of_sum(patches: int, q: float, reach: int) -> tuple[np.ndarray, float, float]:
    """Return P[R = r] for |r| <= reach, R a sum of ``patches`` signs, and its errors.

    The errors are a relative and an absolute one. The derivative of the generating function ``(1 -
    q + q (z + 1/z) / 2)^m`` gives a recurrence with positive terms,

        (m - r + 1) P[r - 1] = (m + r + 1) P[r + 1] + 2 (1 - q) / q r P[r],

    from r = m downwards, or from some N < m with (P[N + 1], P[N]) = (1, 0) and (0, 1). The
    distribution is a mixture of both solutions with positive weights, so that it lies between the
    normalized solutions.
    """
    start = min(patches, reach + reach // 2 + 40)
    while True:
        law, noise = _downwards(patches, q, start)
        if start == patches or noise < 1e-60:
            break
        start = min(patches, 2 * start)
    values = np.zeros(2 * reach + 1)
    width = min(reach, start) + 1
    values[reach : reach + width] = law[:width]
    values[reach - width + 1 : reach + 1] = law[:width][::-1]
    return values, 2 * UNIT + 4 * _rounding(start), noise


def _downwards(patches: int, q: float, start: int) -> tuple[np.ndarray, float]:
    """Return P[R = r] for 0 <= r <= start, and an absolute error from unknown values beyond."""
    exact = start == patches
    ratio = 2 * (np.longdouble(1) - np.longdouble(q)) / np.longdouble(q)
    law = np.zeros((start + 1, 1 if exact else 2), dtype=np.longdouble)
    law[start, -1] = 1
    above = np.zeros(law.shape[1], dtype=np.longdouble)
    if not exact:
        above[0] = 1
    for r in range(start, 0, -1):
        law[r - 1] = ((patches + r + 1) * above + ratio * r * law[r]) / (patches - r + 1)
        above = law[r]
        if law[r - 1].max() > 1e200:  # probabilities that underflow are below 1e-300
            law[r - 1 :] /= law[r - 1].max()
            above = law[r]
    law /= law[0] + 2 * law[1:].sum(axis=0)
    apart = np.abs(law[:, 0] - law[:, -1]) - 2 * _rounding(start) * law[:, -1]
    noise = 0.0 if exact else max(0.0, float(apart.max())) + 1e-99
    return law[:, -1].astype(float), noise


def _rounding(start: int) -> float:
    """Return the relative error after ``start`` steps of 6 roundings each, and a sum."""
    return 8 * float(np.finfo(np.longdouble).eps) * (start + 4)


def _saddles(patches: int, q: float, limit: int) -> np.ndarray:
    """Return u with E[R e^(uR)] = r E[e^(uR)] for |r| <= limit: a quadratic equation for e^u."""
    r = np.arange(1.0, limit + 1.0)
    half, remaining = r * (1 - q), np.maximum(patches - r, 0.5)
    root = np.sqrt(half**2 + q * q * remaining * (patches + r))
    u = np.log((half + root) / remaining) - math.log(q)
    return np.concatenate([-u[::-1], [0.0], u])


@kernel
def _tilt_all(law, start):
    """Tilt every total to its saddle point, which differs from ``start`` by rounding only."""
    tilting, x = allocate_tilting(law), np.zeros(law.share.shape)
    rows, limit, sets = tilting.rows, len(law.log_tail) - 1, law.L - 1.0
    for first in range(0, len(start), MAX_LANES):
        lanes = min(MAX_LANES, len(start) - first)
        for lane in range(lanes):
            rows[U * MAX_LANES + lane] = start[first + lane]
            rows[R * MAX_LANES + lane] = first + lane - limit
        tilt_totals(first, lanes, law, x, tilting)
        for lane in range(lanes):
            for k in range(len(law.n)):
                law.share[k, first + lane] = tilting.share[k * MAX_LANES + lane]
            log_f, shift = (
                tilting.log_f[lane],
                rows[R * MAX_LANES + lane] * rows[U * MAX_LANES + lane],
            )
            law.log_probability[first + lane] = sets * log_f - shift + slack(law, log_f, shift)
