"""Drift on gamma = rho in ball arithmetic: the sum over all images as a polynomial in q.

:mod:`simulations.positional.invariance.certified` states the formulas.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

from dynamics.core.balls.exact import below, exact

Interval = tuple[Fraction, Fraction]

_SPLITS = 10  # largest number of bisections for the bound of a polynomial


@lru_cache(maxsize=512)
def coefficients(
    D: int, C: int, p: int, amplitude: Interval, contrast: Interval, nu: Interval, precision: int
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return lower and upper bounds of the coefficients c_0 .. c_N over a cell.

    F is monotone in kappa alpha and in nu. Its bounds are taken at the corners and combined with
    the sign of the other factor, so that only r is a wide ball. Sums of odd powers are written
    with the factor y_1 + y_{-1} = 2 T r: for T = 0 they vanish exactly.

    Parameters
    ----------
    D, C, p
        Constants.
    amplitude, contrast, nu
        Ends of kappa alpha, of (beta - x)/tau and of nu.
    precision
        Bits of ball arithmetic.
    """
    from flint import arb, ctx

    N = D - C
    with ctx.workprec(precision):
        r = 1 / (exact(contrast[1]).expm1() + D)
        r = r.union(1 / (exact(contrast[0]).expm1() + D))
        powers = [exact(end) ** p for end in amplitude]
        slopes = [exact(end * strength) for end, strength in zip(amplitude, nu)]
        tables = {T: outputs(D, T, r, p) for T in range(C - N, C + N + 1)}
        low, high = [], []
        for k in range(N + 1):
            lower, upper = arb(0), arb(0)
            for plus in range(k + 1):
                T = C + 2 * plus - k
                M, g = state_terms(D, C, k, plus, tables[T])
                g *= math.comb(k, plus)
                least = _least_F(M.lower(), T, powers, slopes)
                most = -_least_F(-M.upper(), -T, powers, slopes)
                weights = _sigmoid(-most), _sigmoid(-least)
                g_low, g_high = g.lower(), g.upper()
                lower += g_low * weights[0 if g_low >= 0 else 1]
                upper += g_high * weights[1 if g_high >= 0 else 0]
            scale = arb(2) ** -k / (N * N)
            low.append(lower * scale)
            high.append(upper * scale)
    return tuple(low), tuple(high)


def _sigmoid(x: Any) -> Any:
    """Return a ball around 1/(1 + e^-x); [0, 1] if e^-x overflows."""
    from flint import arb

    value = 1 / (1 + (-x).exp())
    return value if value.is_finite() else arb(0).union(arb(1))


def _least_F(M: Any, T: int, powers: list[Any], slopes: list[Any]) -> Any:
    """Return a ball around the minimum of a^p M + a nu T over the corners, given M and T."""
    return M * powers[0 if M >= 0 else 1] + T * slopes[0 if T >= 0 else 1]


def state_terms(D: int, C: int, k: int, plus: int, powers: Outputs) -> tuple[Any, Any]:
    r"""Return :math:`\sum_s n_s y_s^p` and the factor of s(-F) at k features, ``plus`` of them +1.

    The factor is the sum over s in :mod:`simulations.positional.invariance.certified`. The powers
    may be balls or any exact numbers.
    """
    N, minus = D - C, k - plus
    R = plus - minus
    # pairs of patches +1 and -1, empty patches, and the remaining |T| patches of one sign
    M = min(plus + C, minus) * powers.pair + (N - k) * powers.empty + abs(C + R) * powers.rest
    g = (N - k) * (N - 1 - R) * powers.against_empty + minus * (N - 2 - R) * powers.against_minus
    return M, g


class Outputs(NamedTuple):
    """Powers of the attention outputs at one T; balls, or any exact numbers."""

    pair: Any  # y_1^p + y_{-1}^p
    empty: Any  # y_0^p
    rest: Any  # y_1^p or, for T < 0, y_{-1}^p
    against_empty: Any  # (y_1^(p-1) - y_0^(p-1))/(y_1 - y_0)
    against_minus: Any  # twice the same with y_{-1}


def outputs(D: int, T: int, r: Any, p: int) -> Outputs:
    """Return the powers; each factor that decides a sign contains r only once."""
    y1, y0, y_1 = 1 - (D - T) * r, T * r, (D + T) * r - 1
    difference = [y1 ** (p - 1 - j) * (-y_1) ** j for j in range(p)]
    evens = [
        sum(y1 ** (p - 3 - 2 * j) * y ** (2 * j) for j in range((p - 1) // 2)) for y in (y0, y_1)
    ]
    return Outputs(
        2 * T * r * sum(difference),
        y0**p,
        (y1 if T > 0 else y_1) ** p,
        (1 - (D - 2 * T) * r) * evens[0],
        4 * T * r * evens[1],
    )


def least_value(
    coefficients: tuple[Any, ...], low: Fraction, high: Fraction
) -> tuple[float, Fraction]:
    """Return a lower bound of a polynomial in Bernstein form on [low, high].

    An interval is bisected if its bound is negative but the values at its ends are not.

    Returns
    -------
    float
        The lower bound.
    Fraction
        A point of the interval that attains it approximately.
    """
    from flint import arb

    pieces = [(_restrict(list(coefficients), low, high), low, high, 0)]
    bound, point = math.inf, low
    while pieces:
        part, left, right, depth = pieces.pop()
        least = min(below(c) for c in part)
        ends = below(part[0]), below(part[-1])
        if least >= 0.0 or min(ends) < 0.0 or depth == _SPLITS or left == right:
            if least < bound:
                bound, point = least, (left if ends[0] <= ends[1] else right)
            continue
        middle = (left + right) / 2
        first, second = _split(part, arb(0.5))
        pieces += [(first, left, middle, depth + 1), (second, middle, right, depth + 1)]
    return bound, point


def _restrict(coefficients: list[Any], low: Fraction, high: Fraction) -> list[Any]:
    """Return the Bernstein coefficients on [low, high], given the ones on [0, 1]."""
    if high < 1:
        coefficients, _ = _split(coefficients, exact(high))
    if low > 0:
        _, coefficients = _split(coefficients, exact(low / high))
    return coefficients


def _split(coefficients: list[Any], t: Any) -> tuple[list[Any], list[Any]]:
    """Return the coefficients on [0, t] and on [t, 1] (de Casteljau)."""
    row, left, right = list(coefficients), [coefficients[0]], [coefficients[-1]]
    s = 1 - t
    for _ in range(len(coefficients) - 1):
        row = [s * x + t * y for x, y in itertools.pairwise(row)]
        left.append(row[0])
        right.append(row[-1])
    return left, right[::-1]
