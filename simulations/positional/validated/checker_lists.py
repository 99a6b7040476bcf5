r"""Images of the independent checker as lists of floats and integers: without FLINT and NumPy.

The same functions as in `checker_images`, in pure Python; the balls are those of `checker_balls`.
F = sum_a m_a c_a is a sum of integers on a common grid: it is exact but for the grid and one
rounding. Sums of floats are trusted to have an error below n u (1 + n u) times the sum of the
moduli, u = 2^-53, and `math.fsum` to round once.
"""

from __future__ import annotations

import math
from fractions import Fraction as fmpq
from functools import cache
from operator import add, mul
from typing import Any, NamedTuple

from simulations.positional.validated.checker_balls import FAR, TINY, UP, ZERO, arb, ctx
from simulations.positional.validated.checker_multisets import Multisets
from simulations.positional.validated.checker_series import arb_mat, arb_poly, arb_series

__all__ = ["Images", "arb", "arb_mat", "arb_poly", "arb_series", "convolved", "ctx", "fmpq"]
__all__ += ["logistic", "precision", "spread"]

U, STEPS, GRID = 2.0**-53, 16, 160  # 1/STEPS: grid of e^x; GRID: bits of the largest function
precision = ctx.workprec


class Balls(NamedTuple):
    """Balls |x - mid| <= rad: rows of floats, one for each term of a series."""

    mid: list[list[float]]
    rad: list[list[float]]


def moduli(a: Balls, n: int) -> tuple[Any, Any, Any]:
    """Return |x|, |x| + rad, and rad + (n + 2) u |x|, by rows."""
    sizes = [[*map(abs, row)] for row in a.mid]
    highs = [[*map(add, *rows)] for rows in zip(sizes, a.rad)]
    share = (n + 2) * U
    return sizes, highs, [[r + share * x for x, r in zip(*rows)] for rows in zip(sizes, a.rad)]


def product(a: Balls, b: Balls) -> tuple[list[float], list[float]]:
    """Return the sum over the rows of products of two balls."""
    sizes = [[*map(abs, row)] for row in a.mid]
    _, highs, errors = moduli(b, len(a.mid))
    rows = zip(*(zip(*x) for x in (sizes, errors, a.rad, highs)))
    rad = [(sum(map(mul, x, e)) + sum(map(mul, r, y))) * UP + TINY for x, e, r, y in rows]
    return [sum(map(mul, x, y)) for x, y in zip(zip(*a.mid), zip(*b.mid))], rad


def scaled(a: Balls, rates: list[float]) -> Balls:
    """Return rows times numbers that are rounded once."""
    mid = [[x * rate for x in row] for row, rate in zip(a.mid, rates)]
    rad = [
        [(r + 2 * U * abs(x)) * abs(rate) * UP + TINY for x, r in zip(*rows)]
        for *rows, rate in zip(a.mid, a.rad, rates)
    ]
    return Balls(mid, rad)


@cache
def power_of_e(k: int) -> float:
    """Return e^(k/16), rounded."""
    with ctx.workprec(80):
        return float((arb(1 if k > 0 else -1) / STEPS).exp() ** abs(k))


def exponential(x: float) -> float:
    """Return e^x for |x| <= 700, with a relative error below 2^-51."""
    # x - k/16 is exact (Sterbenz) and at most 1/32; the truncation error is below 1e-19
    k, total = round(STEPS * x), 1.0
    r = x - k / STEPS
    for j in range(8, 0, -1):
        total = 1.0 + r / j * total
    return power_of_e(k) * total


def first_terms(mid: float, rad: float) -> tuple[float, float, float, float]:
    """Return the balls of s and w for one ball of F."""
    radius = (rad + 2 * U * abs(mid)) * UP  # NaN gives the whole range: it is never larger
    low, high = min(FAR, max(-FAR, mid - radius)), max(-FAR, min(FAR, mid + radius))
    least, most = 1.0 / (1.0 + exponential(high)), 1.0 / (1.0 + exponential(low))
    m, r = (least + most) / 2, ((most - least) / 2 + 8 * U * most) * UP + TINY
    return m, r, m * (1 - m), (r * (abs(1 - 2 * m) + r) + 4 * U * m) * UP + TINY


def logistic(F: Balls) -> tuple[Balls, Balls]:
    """Return s = 1/(1 + e^F) and w = s (1 - s) of series: s' = -F' w, w = s - s^2."""
    m, r, v, e = map(list, zip(*map(first_terms, F.mid[0], F.rad[0])))
    s, w = Balls([m], [r]), Balls([v], [e])
    t = Balls([[1 - 2 * x for x in m]], [[2 * x + U for x in r]])
    for k in range(1, len(F.mid)):
        slope = scaled(Balls(F.mid[1 : k + 1], F.rad[1 : k + 1]), [-j / k for j in range(1, k + 1)])
        for rows, row in zip(s, product(slope, Balls(w.mid[::-1], w.rad[::-1]))):
            rows.append(row)
        here = product(t, Balls(s.mid[k:], s.rad[k:]))
        if k > 1:
            first = Balls(s.mid[1:k], s.rad[1:k])
            pairs = product(first, Balls(first.mid[::-1], first.rad[::-1]))
        else:
            pairs = [0.0] * len(m), [0.0] * len(m)
        w.mid.append([x - y for x, y in zip(here[0], pairs[0])])
        radii = zip(here[1], pairs[1], w.mid[k])
        w.rad.append([(x + y + U * abs(z)) * UP for x, y, z in radii])
    return s, w


def convolved(a: Balls, b: Balls) -> Balls:
    """Return the product of two series."""
    rows = [
        product(Balls(a.mid[:k], a.rad[:k]), Balls(b.mid[k - 1 :: -1], b.rad[k - 1 :: -1]))
        for k in range(1, len(a.mid) + 1)
    ]
    return Balls(*map(list, zip(*rows)))


def spread(centre: Balls, slopes: list[Balls], radii: list[Any]) -> Balls:
    """Enclose a function on the box |e| <= radii, given its derivatives on the box."""
    rad = centre.rad
    for slope, radius in zip(slopes, radii):
        size = float(arb(radius).abs_upper()) * UP
        rad = [
            [z + (abs(x) + y) * size for x, y, z in zip(*rows)]
            for rows in zip(slope.mid, slope.rad, rad)
        ]
    return Balls(centre.mid, [[x * UP for x in row] for row in rad])


class Images(Multisets):
    """All images with at most K features, as lists."""

    def __init__(self, D: int, C: int, p: int, q: arb, K: int) -> None:
        super().__init__(D, C, p, q, K)
        self.integers = [self.monomials(image) for image in self.images]
        self.sizes = [[float(abs(m)) for m in row] for row in self.integers]
        self.weight = [float(x) for x in self.probability]
        self.doubt = [
            float((x - m).abs_upper()) * UP + TINY for x, m in zip(self.probability, self.weight)
        ]

    def monomials(self, image: Any) -> list[int]:
        """Return sum over patches of s^i n^j T^k, and T.

        A patch has feature s, its set the sum n, the image the sum T.
        """
        _, _, T, empty, sets = image
        patches = [(self.C, 1, self.C), (empty * self.C, 0, 0)]  # number, s and n
        for a, b, m in sets:
            patches += [(m * a, 1, a - b), (m * b, -1, a - b), (m * (self.C - a - b), 0, a - b)]
        sums = [
            sum(number * s**i * n**j for number, s, n in patches if number) * T**k
            for i, j, k in self.powers()
        ]
        return [*sums, T]

    def rows(self, count: int) -> list[list[int]]:
        """Return the integers of the first images."""
        return self.integers[:count]

    def series(self, c: list[arb_series], count: int) -> Balls:
        """Return the series sum_a m_a c_a of the first ``count`` images, (terms, images)."""
        mid, rad = [], []
        for k in range(ctx.cap):
            terms = [y[k] for y in c]
            e = max((x.e + x.m.bit_length() for x in terms if x.m), default=0) - GRID
            m = [x.m << x.e - e if x.e >= e else x.m >> e - x.e for x in terms]
            r = [x.radius + (math.ldexp(1.0, e) + TINY if x.e < e else 0.0) for x in terms]
            sums = (sum(map(mul, row, m)) for row in self.integers[:count])
            mid.append([math.ldexp(x, e) for x in sums])
            radii = (sum(map(mul, row, r)) for row in self.sizes[:count])
            rad.append([(x + U * abs(y)) * UP + TINY for x, y in zip(radii, mid[k])])
        return Balls(mid, rad)

    def means(self, x: Balls, factors: list[Balls]) -> list[arb_series]:
        """Return the series E[x y] for each y of ``factors``."""
        count, terms = len(x.mid[0]), len(x.mid)
        weight = Balls([self.weight[:count]], [self.doubt[:count]])
        rows = [product(weight, Balls([m], [r])) for m, r in zip(*x)]
        a = [(m, r, [*map(abs, m)]) for m, r in rows]
        series = []
        for y in factors:
            _, highs, errors = moduli(y, 2)  # products and the final rounding: 2 u |x y| each
            coefficients = []
            for k in range(terms):
                total = ZERO
                for (m, r, size), j in zip(a[: k + 1], range(k, -1, -1)):
                    rad = sum(map(mul, size, errors[j])) + sum(map(mul, r, highs[j]))
                    total = total + arb(math.fsum(map(mul, m, y.mid[j])), rad * UP + TINY)
                coefficients.append(total)
            series.append(arb_series(coefficients))
        return series
