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

from dynamics._emitted import row_gradient
from dynamics._jit import kernel
from dynamics.problem import Problem

#: The tilts at which every r is bounded; |F| beyond the window is controlled by their extremes.
TILTS = np.array([-1.0, -0.5, 0.0, 0.5, 1.0])

_DEEPEST_TAIL = -230.0  # log-probability beyond which a total R is never visited


class SetLaw(NamedTuple):
    """Law of one random set and of the total R; a function of D, C and q alone.

    ``plus``, ``minus``, ``n``, ``log_p``, ``p``: one entry per non-empty type, ``level = n + C``.
    ``total`` and ``total_less_one`` hold P[R = r] for ``L - 1`` and ``L - 2`` sets at index
    ``r + center``, with absolute error ``noise``; ``log_tail[r]`` bounds log P[|R| >= r].
    ``share[r + limit, type]`` and ``log_probability[r + limit]``, ``limit = len(log_tail) - 1``:
    the saddle point of ``lam = 0`` and the Chernoff bound of log P[R = r].
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
    noise: float
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
    total, noise = _probability_of_sum((L - 1) * C, q, reach)
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
        total_less_one=_probability_of_sum((L - 2) * C, q, reach)[0],
        center=reach,
        noise=noise,
        log_tail=log_tail,
        share=np.empty((2 * len(log_tail) - 1, len(plus))),
        log_probability=np.empty(2 * len(log_tail) - 1),
    )
    _tilt_totals(law, L, C)
    return law


def _log_probability(a: int, b: int, C: int, q: float, log_zero: float) -> float:
    zeros = C - a - b
    ways = math.comb(C, a) * math.comb(C - a, b)
    return math.log(ways) + (a + b) * math.log(q / 2) + (zeros * log_zero if zeros else 0.0)


def _log_tail(patches: int, q: float) -> np.ndarray:
    """Bound log P[|R| >= r], r = 0, 1, ..., by Chernoff over a grid of tilts, until negligible."""
    tilt = np.geomspace(1e-4, 60.0, 400)
    cumulant = patches * (np.log1p(q * np.expm1(-tilt) ** 2 * np.exp(tilt) / 2))
    bounds = [0.0]
    while len(bounds) <= patches and bounds[-1] > _DEEPEST_TAIL:
        bounds.append(min(0.0, math.log(2) + float(np.min(cumulant - tilt * len(bounds)))))
    return np.array(bounds)


def _probability_of_sum(patches: int, q: float, reach: int) -> tuple[np.ndarray, float]:
    """Return P[R = r] for |r| <= reach, R a sum of ``patches`` signs, and its rounding error.

    By a DFT long enough that what wraps around lies below the deepest tail.
    """
    length = 2 * reach + 2
    angle = 2 * np.pi * np.arange(length) / length
    drop = 2 * q * np.sin(angle / 2) ** 2  # 1 - E e^{i angle s}
    with np.errstate(divide="ignore"):
        log_size = np.where(drop < 0.5, np.log1p(-np.minimum(drop, 0.5)), np.log(np.abs(1 - drop)))
    log_size = np.maximum(log_size, -1e3)
    size = np.exp(patches * log_size)
    negative = (drop > 1) & (patches % 2 == 1)
    r = np.arange(-reach, reach + 1)
    values = np.fft.ifft(np.where(negative, -size, size)).real[r]
    values[np.abs(r) > patches] = 0.0
    noise = 2.0**-53 * float(np.mean(size * (8 + 4 * patches * np.abs(log_size))))
    return np.maximum(values, 0.0), noise + 2.0**-53 * 8 / math.sqrt(length)


@kernel
def _tilt_totals(law, L, C):
    """Fill the saddle points of the untilted law; they do not depend on the state."""
    level, zero = np.empty(2 * C + 1), np.zeros(len(law.n))
    limit = len(law.log_tail) - 1
    for i in range(2 * limit + 1):
        u, log_f, _, _ = tilt(0.0, i - limit, law, L, C, zero, 0.0, law.share[i], level)
        law.log_probability[i] = (L - 1) * log_f - (i - limit) * u


@kernel
def set_tables(r, law, C, L, constants, power_p, x, y):
    """Fill ``x[type]`` and ``y[3, type]``, the contributions of a set to F and dF given R = r.

    Contributions are in excess of an empty set. Returns F and its three derivatives of the signal
    set with L - 1 empty sets: (base, d_alpha, d_gamma, d_rho).
    """
    alpha, Lambda, Gamma, Xi, LG, GX, D, kappa, tau, nu = constants
    T = r + 1.0 * C
    e = row_gradient(0.0, 0.0, T, alpha, Lambda, Gamma, Xi, LG, GX, C, D, kappa, tau, power_p, nu)
    s = row_gradient(
        1.0, 1.0 * C, T, alpha, Lambda, Gamma, Xi, LG, GX, C, D, kappa, tau, power_p, nu
    )
    for k in range(len(law.n)):
        a, b, n = law.plus[k], law.minus[k], law.n[k]
        z = C - a - b
        P = row_gradient(1.0, n, T, alpha, Lambda, Gamma, Xi, LG, GX, C, D, kappa, tau, power_p, nu)
        M = row_gradient(
            -1.0, n, T, alpha, Lambda, Gamma, Xi, LG, GX, C, D, kappa, tau, power_p, nu
        )
        Z = row_gradient(0.0, n, T, alpha, Lambda, Gamma, Xi, LG, GX, C, D, kappa, tau, power_p, nu)
        x[k] = a * (P[0] - e[0]) + b * (M[0] - e[0]) + z * (Z[0] - e[0])
        y[0, k] = a * (P[1] - e[1]) + b * (M[1] - e[1]) + z * (Z[1] - e[1])
        y[1, k] = a * P[2] + b * M[2] + z * Z[2]
        y[2, k] = a * P[3] + b * M[3] + z * Z[3]
    empties = (L - 1.0) * C
    return (
        C * s[0] + empties * e[0],
        C * s[1] + empties * e[1],
        C * s[2] + empties * e[2],
        C * s[3] + empties * e[3],
    )


#: Largest |u C|: a ratio of two e^(u n), n up to C in modulus, stays within double precision.
_LARGEST_EXPONENT = 300.0


@kernel
def tilt(lam, r, law, L, C, x, u, share, level):
    """Tilt the law of a set by ``exp(-lam x + u n)`` with ``u`` at the saddle point of R = r.

    Fills ``share[type]``, the tilted probabilities, and ``level[n + C]``, their sums over n (with
    the empty type at n = 0). Returns (u, log f, share of the empty type, tilted variance of n).
    """
    top = law.log_p_empty
    for k in range(len(x)):
        share[k] = law.log_p[k] - lam * x[k]
        top = max(top, share[k])
    level[:] = 0.0
    level[C] = math.exp(law.log_p_empty - top)
    for k in range(len(x)):
        share[k] = math.exp(share[k] - top)
        level[law.level[k]] += share[k]
    low, high = -_LARGEST_EXPONENT / C, _LARGEST_EXPONENT / C
    for _ in range(60):
        f, mean, square = _moments(level, C, u)
        variance = square / f - (mean / f) ** 2
        lacking = r - (L - 1.0) * mean / f
        move = lacking / max((L - 1.0) * variance, 1e-3)
        if abs(move) < 0.02:
            break
        if lacking > 0.0:
            low = u
        else:
            high = u
        u += move
        if not low < u < high:  # in sharp regimes the saddle is far and Newton's step too long
            u = 0.5 * (low + high)
    f, mean, square = _moments(level, C, u)
    empty = math.exp(law.log_p_empty - top) / f
    for k in range(len(x)):
        share[k] *= math.exp(u * law.n[k]) / f
    for i in range(2 * C + 1):
        level[i] *= math.exp(u * (i - C)) / f
    return u, top + math.log(f), empty, square / f - (mean / f) ** 2


@kernel
def _moments(level, C, u):
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
    return f, mean, square


@kernel
def log_weighted(share, size, base_size, L):
    """Return ``log(|d base| + (L - 1) sum share |y|)``: what |dF| adds to a Chernoff bound."""
    total = 0.0
    for k in range(len(share)):
        total += share[k] * abs(size[k])
    return math.log(abs(base_size) + (L - 1.0) * total + 1e-300)
