"""The drift on gamma = rho in ball arithmetic: the sum over all states, and polynomials in q.

The formulas are those of :mod:`simulations.certified`.
"""

from __future__ import annotations

import itertools
import math
from functools import lru_cache
from typing import Any, NamedTuple

Interval = tuple[float, float]

_SPLITS = 10  # halvings of the interval of a polynomial within one bound


def float_below(x: float) -> float:
    """Return the next float below."""
    return math.nextafter(x, -math.inf)


def float_above(x: float) -> float:
    """Return the next float above."""
    return math.nextafter(x, math.inf)


@lru_cache(maxsize=512)
def coefficients(
    D: int, C: int, p: int, amplitude: Interval, contrast: Interval, nu: Interval, precision: int
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return lower and upper bounds of c_0 .. c_N over a cell.

    Bounds of F are taken at the corners of kappa alpha and nu, in which F is monotone, and combined
    with the sign of the other factor; only r is a wide ball. Sums of odd powers are written with
    the factor y_1 + y_{-1} = 2 T r, so that they vanish with T exactly.
    """
    from flint import arb, ctx

    N = D - C
    with ctx.workprec(precision):
        r = 1 / (arb(contrast[1]).expm1() + D)
        r = r.union(1 / (arb(contrast[0]).expm1() + D))
        a = [arb(end) for end in amplitude]
        powers = [end**p for end in a]
        slopes = [end * arb(strength) for end, strength in zip(a, nu)]
        tables = {T: _outputs(D, T, r, p) for T in range(C - N, C + N + 1)}
        low, high = [], []
        for k in range(N + 1):
            lower, upper = arb(0), arb(0)
            for plus in range(k + 1):
                minus = k - plus
                R = plus - minus
                T = C + R
                one = tables[T]
                # the patches +1 and -1 in pairs, the empty ones, and the |T| that are left over
                M = min(plus + C, minus) * one.pair + (N - k) * one.empty + abs(T) * one.rest
                g = (N - k) * (N - 1 - R) * one.against_empty
                g += minus * (N - 2 - R) * one.against_minus
                g *= math.comb(k, plus)
                least = _least_F(M.lower(), T, powers, slopes)
                most = -_least_F(-M.upper(), -T, powers, slopes)
                weights = 1 / (1 + most.exp()), 1 / (1 + least.exp())
                g_low, g_high = g.lower(), g.upper()
                lower += g_low * weights[0 if g_low >= 0 else 1]
                upper += g_high * weights[1 if g_high >= 0 else 0]
            scale = arb(2) ** -k / (N * N)
            low.append(lower * scale)
            high.append(upper * scale)
    return tuple(low), tuple(high)


def _least_F(M: Any, T: int, powers: list[Any], slopes: list[Any]) -> Any:
    """Return a ball around the least of a^p M + a nu T over the corners, M and T given."""
    return M * powers[0 if M >= 0 else 1] + T * slopes[0 if T >= 0 else 1]


class _Outputs(NamedTuple):
    """Powers of the attention outputs at one T; balls."""

    pair: Any  # y_1^p + y_{-1}^p
    empty: Any  # y_0^p
    rest: Any  # y_1^p or, for T < 0, y_{-1}^p
    against_empty: Any  # (y_1^(p-1) - y_0^(p-1))/(y_1 - y_0)
    against_minus: Any  # twice the same with y_{-1}


def _outputs(D: int, T: int, r: Any, p: int) -> _Outputs:
    """Return these with each factor that decides a sign written with one r only."""
    y1, y0, y_1 = 1 - (D - T) * r, T * r, (D + T) * r - 1
    difference = [y1 ** (p - 1 - j) * (-y_1) ** j for j in range(p)]
    evens = [
        sum(y1 ** (p - 3 - 2 * j) * y ** (2 * j) for j in range((p - 1) // 2)) for y in (y0, y_1)
    ]
    return _Outputs(
        2 * T * r * sum(difference),
        y0**p,
        (y1 if T > 0 else y_1) ** p,
        (1 - (D - 2 * T) * r) * evens[0],
        4 * T * r * evens[1],
    )


def least_value(coefficients: tuple[Any, ...], low: float, high: float) -> tuple[float, float]:
    """Return a lower bound of a polynomial in Bernstein form on [low, high], and a place nearby.

    The interval is halved where the bound is below zero while the values at the ends are not.
    """
    from flint import arb

    pieces = [(_restrict(list(coefficients), arb(low), arb(high)), low, high, 0)]
    bound, place = math.inf, low
    while pieces:
        part, left, right, depth = pieces.pop()
        least = min(_below(c) for c in part)
        ends = _below(part[0]), _below(part[-1])
        if least >= 0.0 or min(ends) < 0.0 or depth == _SPLITS or left == right:
            if least < bound:
                bound, place = least, (left if ends[0] <= ends[1] else right)
            continue
        middle = 0.5 * (left + right)
        first, second = _split(part, arb(0.5))
        pieces += [(first, left, middle, depth + 1), (second, middle, right, depth + 1)]
    return bound, place


def _restrict(coefficients: list[Any], low: Any, high: Any) -> list[Any]:
    """Return the Bernstein coefficients on [low, high] of a polynomial given on [0, 1]."""
    if high < 1:
        coefficients, _ = _split(coefficients, high)
    if low > 0:
        _, coefficients = _split(coefficients, low / high)
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


def _below(x: Any) -> float:
    """Return a float that is not above any number of the ball."""
    lower = x.lower()
    if lower >= 0:
        return max(float_below(float(lower)), 0.0)
    return float_below(float(lower))
