r"""What the Fourier method knows before it integrates: the law of the sets, and bounds by tilting.

Write ``T = C + R`` for the sum of all patch coefficients and condition on ``R = r``. Given ``r``
the ``L - 1`` random sets contribute independently to ``F``: a set of type ``(a, b)`` (``a`` patches
+1, ``b`` patches -1) adds ``n = a - b`` to ``R`` and ``x(type; r)`` to ``F - base(r)``, where
``base`` is ``F`` of the signal set with all other sets empty. For real ``lam`` and ``u``

.. math:: E[e^{-\lambda F} 1\{R = r\}]
          \le e^{-\lambda\,base - u r} f^{L-1}, \qquad
          f = \sum_{type} P(type)\, e^{-\lambda x + u n},

because all coefficients are positive (Chernoff). The smallest bound sits at the saddle point in
``u``. The same with a factor ``|dF|`` under the expectation. Both bounds are log-convex in
``lam``, so the chord between two values of ``lam`` is again a bound.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dynamics.core.jit import REORDER, kernel
from dynamics.positional.population.fourier.rounding import UNIT
from dynamics.positional.problem import Problem

#: The tilts at which r is bounded; |F| beyond the window is controlled by their extremes.
TILTS = np.array([-1.0, -0.5, -0.25, -0.125, 0.0, 0.125, 0.25, 0.5, 1.0])

#: Index of the tilt 0. Tilts between -1/2 and 1/2 serve only where F ranges far.
UNTILTED = 4

#: Distance to the saddle point at which the search stops.
_NEAR = 0.1

_DEEPEST_TAIL = -230.0  # log-probability beyond which a total R is never visited


class SetLaw(NamedTuple):
    """Law of one random set and of the total R; a function of D, C and q alone.

    ``plus``, ``minus``, ``n``, ``log_p``, ``p``: one entry per non-empty type, ``level = n + C``.
    ``total`` and ``total_less_one`` hold P[R = r] for ``L - 1`` and ``L - 2`` sets at index
    ``r + center``, with relative error ``accuracy`` and absolute error ``noise`` besides;
    ``log_tail[r]`` bounds log P[|R| >= r]. ``share[type, r + limit]`` and
    ``log_probability[r + limit]``, ``limit = len(log_tail) - 1``: the saddle point of ``lam = 0``
    and the Chernoff bound of log P[R = r]. ``log_size`` bounds the terms of every ``log_p``, whose
    error is at most ``4 u log_size``; ``blur`` is for :func:`slack`.
    """

    plus: np.ndarray
    minus: np.ndarray
    n: np.ndarray
    level: np.ndarray
    log_p: np.ndarray
    p: np.ndarray
    log_p_empty: float
    p_empty: float
    total: np.ndarray
    total_less_one: np.ndarray
    center: int
    accuracy: float
    noise: float
    log_size: float
    blur: float
    log_tail: np.ndarray
    share: np.ndarray
    log_probability: np.ndarray


def set_law(problem: Problem) -> SetLaw:
    """Return the law of one random set and of R, the sum over all L - 1 of them."""
    C, L, q = problem.C, problem.L, problem.q
    types = [(a, m - a) for m in range(1, C + 1) for a in range(m + 1)]
    log_zero = math.log1p(-q) if q < 1.0 else -math.inf
    log_p = np.array([_log_probability(a, b, C, q, log_zero) for a, b in types])
    possible = log_p > -math.inf
    plus, minus = np.array(types, dtype=float).T[:, possible]
    log_tail = _log_tail((L - 1) * C, q)
    reach = len(log_tail) + 2 * C
    total, accuracy, noise = _probability_of_sum((L - 1) * C, q, reach)
    less, less_accuracy, less_noise = _probability_of_sum((L - 2) * C, q, reach)
    log_size = float(np.abs(log_p[possible]).max()) + 2.2 * C  # log of the ways: at most 1.1 C
    law = SetLaw(
        plus=plus,
        minus=minus,
        n=plus - minus,
        level=(plus - minus + C).astype(np.int64),
        log_p=log_p[possible],
        p=np.exp(log_p[possible]),
        log_p_empty=C * log_zero,
        p_empty=math.exp(C * log_zero),
        total=total,
        total_less_one=less,
        center=reach,
        accuracy=max(accuracy, less_accuracy),
        noise=max(noise, less_noise),
        log_size=log_size,
        blur=UNIT * (256.0 + 16.0 * log_size + 32.0 * C + 4.0 * len(plus)),
        log_tail=log_tail,
        share=np.empty((len(plus), 2 * len(log_tail) - 1)),
        log_probability=np.empty(2 * len(log_tail) - 1),
    )
    _tilt_totals(law, L, C)
    return law


def totals_of(problem: Problem) -> int:
    """Return about how many totals R the law will hold, from the variance of R."""
    patches = problem.D - problem.C
    spread = math.sqrt(-2.0 * _DEEPEST_TAIL * problem.q * patches)
    return 2 * min(patches, int(spread) + 90) + 1


def _log_probability(a: int, b: int, C: int, q: float, log_zero: float) -> float:
    zeros = C - a - b
    ways = math.comb(C, a) * math.comb(C - a, b)
    return math.log(ways) + (a + b) * math.log(q / 2) + (zeros * log_zero if zeros else 0.0)


def _log_tail(patches: int, q: float) -> np.ndarray:
    """Bound log P[|R| >= r], r = 0, 1, ..., by Chernoff over a grid of tilts, until negligible.

    Rounded outwards: each cumulant is good to 20 u, the difference to u of its parts.
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

    They are a relative one of all and an absolute one. From the derivative of the generating
    function ``(1 - q + q (z + 1/z) / 2)^m``, with positive terms alone,

        (m - r + 1) P[r - 1] = (m + r + 1) P[r + 1] + 2 (1 - q) / q r P[r],

    from r = m down, or from some N < m down with (P[N + 1], P[N]) = (1, 0) and (0, 1): the law
    is a mixture of both solutions with positive weights, so normalised it lies between them.
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
    """Return P[R = r] for 0 <= r <= start, and an absolute error from what is not known beyond."""
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
        if law[r - 1].max() > 1e200:  # what underflows has a probability below 1e-300
            law[r - 1 :] /= law[r - 1].max()
            above = law[r]
    law /= law[0] + 2 * law[1:].sum(axis=0)
    apart = np.abs(law[:, 0] - law[:, -1]) - 2 * _rounding(start) * law[:, -1]
    noise = 0.0 if exact else max(0.0, float(apart.max())) + 1e-99
    return law[:, -1].astype(float), noise


def _rounding(start: int) -> float:
    """Bound the relative error after ``start`` steps down, of 6 roundings each, and a sum."""
    return 8 * float(np.finfo(np.longdouble).eps) * (start + 4)


@kernel
def _tilt_totals(law, L, C):
    """Fill the saddle points of the untilted law; they do not depend on the state."""
    level, rise = np.empty(2 * C + 1), np.empty(2 * C + 1)
    share, zero = np.empty(len(law.n)), np.zeros(len(law.n))
    limit = len(law.log_tail) - 1
    u = 0.0
    for i in range(2 * limit + 1):
        u, log_f, _, _ = tilt(
            0.0, i - limit, law.log_p, law.log_p_empty, law.level, L - 1.0, C, zero, u,
            share, level, rise,
        )  # fmt: skip
        law.share[:, i] = share
        law.log_probability[i] = (L - 1) * log_f - (i - limit) * u
        law.log_probability[i] += slack(law.blur, L - 1.0, log_f, law.log_p_empty, (i - limit) * u)


@kernel(inner=True)
def slack(blur, sets, log_f, log_p_empty, shift):
    """Bound the rounding error of ``sets log_f - shift``, the logarithm of a Chernoff bound.

    Errors of the tilted probabilities move f by ``blur`` times the filled part of it, which is at
    most ``|log f| + |log P(empty)|``. Those of ``lam x`` count among the errors of the tables.
    """
    return blur * (1.0 + sets * (abs(log_f) - max(log_p_empty, -745.0)) + abs(shift))


@kernel(inner=True)
def tilt(lam, r, log_p, log_p_empty, of_type, sets, C, x, u, share, level, rise):
    """Tilt the law of a set by ``exp(-lam x + u n)`` with ``u`` at the saddle point of R = r.

    Fills ``share[type]``, the tilted probabilities, and ``level[n + C]``, their sums over n (with
    the empty type at n = 0); ``rise`` is scratch. The search starts at ``u``. Returns (u, log f,
    share of the empty type, tilted variance of n).
    """
    top = move = f = variance = 0.0
    for _ in range(40):
        top = _shares(lam, u, log_p, log_p_empty, of_type, C, x, share, level)
        move, f, variance = _to_saddle(r, sets, C, level)
        u += move
        if abs(move) < 100.0 / C:
            break
    up, down = math.exp(move), math.exp(-move)
    rise[C] = 1.0 / f
    for m in range(1, C + 1):
        rise[C + m], rise[C - m] = rise[C + m - 1] * up, rise[C - m + 1] * down
    for i in range(2 * C + 1):
        level[i] *= rise[i]
    filled = 0.0
    for k in range(len(x)):
        share[k] *= rise[of_type[k]]
        filled += share[k]
    # f is raised to powers up to D: its small distance to the empty type must keep its digits
    log_f = log_p_empty - math.log1p(-filled) if filled < 0.5 else top + math.log(f)
    return u, log_f, math.exp(log_p_empty - top) / f, variance


@kernel(inner=True)
def _shares(lam, u, log_p, log_p_empty, of_type, C, x, share, level):
    """Fill ``share`` and ``level`` up to a factor; return its logarithm."""
    top = log_p_empty
    for k in range(len(x)):
        share[k] = log_p[k] - lam * x[k] + u * (of_type[k] - C)
        top = max(top, share[k])
    for i in range(2 * C + 1):
        level[i] = 0.0
    level[C] = math.exp(log_p_empty - top)
    for k in range(len(x)):
        share[k] = math.exp(share[k] - top)
        level[of_type[k]] += share[k]
    return top


@kernel(inner=True)
def _to_saddle(r, sets, C, level):
    """Return the change of u, at most 200 / C, from ``level`` to near the saddle point of R = r.

    Also the sum of the levels and the variance of n there. A tenth of a unit off, the bounds are
    hardly larger: by half the variance of R over a hundred, in the logarithm.
    """
    move, low, high = 0.0, -200.0 / C, 200.0 / C
    for _ in range(30):
        f, mean, variance = _moments(level, C, move)
        lacking = r - sets * mean
        step = lacking / max(sets * variance, 1e-3)
        if abs(step) < _NEAR:
            return move, f, variance
        if lacking > 0.0:
            low = move
        else:
            high = move
        move += step
        if not low < move < high:  # in sharp regimes the saddle is far and Newton's step too long
            move = 0.5 * (low + high)
    f, _, variance = _moments(level, C, move)
    return move, f, variance


@kernel(inner=True)
def _moments(level, C, u):
    """Return the sum, the mean and the variance of n under ``level e^(u n)``."""
    z = math.exp(u)
    power = math.exp(-u * C)
    f = mean = square = 0.0
    for i in range(2 * C + 1):
        term = level[i] * power
        n = i - C
        f += term
        mean += n * term
        square += n * n * term
        power *= z
    return f, mean / f, square / f - (mean / f) ** 2


@kernel(inner=True, fastmath=REORDER)
def log_weighted(share, size, base_size, sets):
    """Return ``log(|d base| + sets sum share |y|)``: what |dF| adds to a Chernoff bound."""
    total = 0.0
    for k in range(len(share)):
        total += share[k] * abs(size[k])
    return math.log(abs(base_size) + sets * total + 1e-300)
