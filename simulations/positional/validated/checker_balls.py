r"""Ball arithmetic of the checker in pure Python, for a check without FLINT.

A ball has the centre m 2^e, with integers m and e, and a float as radius. Centres are computed with
integers and rounded down to ``ctx.prec`` bits; the radius includes this. Each sum of products of
radii is multiplied by 1 + 2^-30, more than all its roundings, and 1e-290 is added for underflow.
Infinite and NaN radii satisfy no comparison. The names are those of python-flint, as far as the
checker uses them; comparisons are true if they are certain. Nothing of the math library is trusted
except `ldexp`: approximations of a logarithm are corrected by the exponential.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction as fmpq
from functools import cache
from typing import Any

UP, DOWN, TINY = 1.0 + 2.0**-30, 1.0 - 2.0**-30, 1e-290
FAR = 700  # e^-700 < TINY


class Context:
    """Bits of the centres, and the number of terms of a series."""

    prec, cap = 53, 10

    @contextmanager
    def workprec(self, bits: int) -> Iterator[None]:
        """Compute with a number of bits within a block."""
        before, self.prec = self.prec, bits
        try:
            yield
        finally:
            self.prec = before


ctx = Context()


def ball(m: int, e: int, radius: float) -> arb:
    """Return the ball with centre m 2^e, rounded, and a radius."""
    x = object.__new__(arb)
    if (extra := m.bit_length() - ctx.prec) > 0:
        m, e = m >> extra, e + extra
        radius = (radius + math.ldexp(1.0, e)) * UP + TINY
    x.m, x.e, x.radius = m, e, radius
    return x


def as_ball(x: Any) -> Any:
    """Return a number as a ball; NotImplemented for other objects."""
    if x.__class__ is arb:
        return x
    if not isinstance(x, int | float | fmpq):
        return NotImplemented
    n, d = x.as_integer_ratio()
    if d & (d - 1) == 0:
        zeros = max(0, (n & -n).bit_length() - 1)  # so that large numbers are exact
        return ball(n >> zeros, zeros + 1 - d.bit_length(), 0.0)
    return ball(n, 0, 0.0) / ball(d, 0, 0.0)


def end(x: arb, sign: int) -> arb:
    """Return the upper (sign 1) or lower (sign -1) end of a ball, rounded outwards, as a ball."""
    n, d = x.radius.as_integer_ratio()
    e = min(x.e, 1 - d.bit_length())
    m = sign * (x.m << (x.e - e)) + (n << (1 - d.bit_length() - e))
    extra = max(0, m.bit_length() - ctx.prec + 1)
    return ball(sign * -(-m >> extra), e + extra, 0.0)


def hull(low: arb, high: arb) -> arb:
    """Return a ball that contains the numbers between two balls without radius."""
    middle = (low + high) * ball(1, -1, 0.0)
    size = (high - middle).max_size(), (low - middle).max_size()
    return ball(middle.m, middle.e, max(size))


class arb:
    """A ball of real numbers, see the module.

    Parameters
    ----------
    mid
        Centre, a number or a ball.
    rad
        Radius to be added: a number or a ball with any sign.
    """

    __slots__ = ("e", "m", "radius")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, mid: Any = 0, rad: Any = 0) -> None:
        x = as_ball(mid)
        self.m, self.e, self.radius = x.m, x.e, x.radius + as_ball(rad).max_size()
        self.radius *= UP if self.radius else 1.0

    def size(self) -> float:
        """Return the modulus of the centre, up to rounding and underflow."""
        return math.ldexp(abs(self.m), self.e) + TINY if self.m else 0.0

    def max_size(self) -> float:
        """Return an upper bound of the moduli."""
        return (self.size() + self.radius) * UP

    def __add__(self, other: Any) -> Any:
        if other.__class__ is not arb and (other := as_ball(other)) is NotImplemented:
            return other
        shift = self.e - other.e
        m = (self.m << shift) + other.m if shift > 0 else self.m + (other.m << -shift)
        return ball(m, min(self.e, other.e), (self.radius + other.radius) * UP)

    def __mul__(self, other: Any) -> Any:
        if other.__class__ is not arb and (other := as_ball(other)) is NotImplemented:
            return other
        r, s = self.radius, other.radius
        radius = 0.0
        if r or s:
            radius = (self.size() * s + (other.size() + s) * r) * UP + TINY
        return ball(self.m * other.m, self.e + other.e, radius)

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> arb:
        return ball(-self.m, self.e, self.radius)

    def __sub__(self, other: Any) -> Any:
        return NotImplemented if (other := as_ball(other)) is NotImplemented else self + -other

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __truediv__(self, other: Any) -> Any:
        if (other := as_ball(other)) is NotImplemented:
            return other
        least = (other.size() - TINY) * DOWN - other.radius * UP
        if not least > TINY:
            raise ZeroDivisionError("a divisor may be zero")
        shift = max(0, ctx.prec + 1 + other.m.bit_length() - self.m.bit_length())
        m, rest = divmod(self.m << shift, other.m)
        e, radius = self.e - shift - other.e, self.radius
        if rest or radius or other.radius:
            radius = (radius + self.size() / least * other.radius) / least
            radius = (radius + math.ldexp(1.0, e)) * UP + TINY
        return ball(m, e, radius)

    def __rtruediv__(self, other: Any) -> Any:
        return as_ball(other) / self

    def __pow__(self, n: int) -> arb:
        if n < 2:
            return self if n else arb(1)
        return (half := self ** (n // 2)) * half * (self if n % 2 else 1)

    def __abs__(self) -> arb:
        if self.m >= 0 and (self >= 0):
            return self
        return -self if self <= 0 else hull(arb(0), self.abs_upper())

    def positive(self) -> bool:
        """Return whether all numbers of the ball are certainly positive."""
        return self.m > 0 and (not self.radius or self.size() * DOWN - TINY > self.radius * UP)

    def __gt__(self, other: Any) -> bool:
        return (self - other).positive()

    def __lt__(self, other: Any) -> bool:
        return (other - self).positive()

    def __ge__(self, other: Any) -> bool:
        return self == other or self > other

    def __le__(self, other: Any) -> bool:
        return self == other or self < other

    def __eq__(self, other: object) -> bool:
        difference = self - other
        return difference.m == 0 and not difference.radius

    def __float__(self) -> float:
        return math.ldexp(self.m, self.e)

    def mid(self) -> arb:
        """Return the centre."""
        return ball(self.m, self.e, 0.0)

    def upper(self) -> arb:
        """Return an upper bound without radius."""
        return end(self, 1)

    def lower(self) -> arb:
        """Return a lower bound without radius."""
        return end(self, -1)

    def abs_upper(self) -> arb:
        """Return an upper bound of the moduli, without radius."""
        return end(self if self.m >= 0 else -self, 1)

    def union(self, other: arb) -> arb:
        """Return a ball that contains two balls."""
        low, high = (self.lower(), other.lower()), (self.upper(), other.upper())
        return hull(low[low[1] < low[0]], high[high[1] > high[0]])

    def max(self, other: Any) -> arb:
        """Return the larger number."""
        other = as_ball(other)
        if self >= other or other >= self:
            return self if self >= other else other
        low, high = (self.lower(), other.lower()), (self.upper(), other.upper())
        return hull(low[low[1] > low[0]], high[high[1] > high[0]])

    def expm1(self) -> arb:
        """Return e^x - 1."""
        return small_expm1(self) if self.max_size() < 1 / 16 else self.exp() - 1

    def exp(self) -> arb:
        """Return e^x."""
        if self < -FAR:
            return arb(0, TINY)
        if self.radius > 1 / 64:
            return hull(self.lower().exp().lower(), self.upper().exp().upper())
        halvings = max(0, math.frexp(self.max_size())[1] + 5)
        if halvings > 40:
            raise OverflowError("an exponential is too large")
        with ctx.workprec(ctx.prec + halvings + 10):
            result: arb = small_expm1(self * ball(1, -halvings, 0.0)) + 1
            for _ in range(halvings):
                result = result * result
        return ball(result.m, result.e, result.radius)

    def log(self) -> arb:
        """Return the logarithm of positive numbers."""
        if not self > 0:
            raise ArithmeticError("a logarithm of a number that may not be positive")
        if self.radius:
            low = self.lower()
            if not low > 0:
                raise ArithmeticError("a logarithm of a number that may not be positive")
            return hull(low.log().lower(), self.upper().log().upper())
        # log x = y + log (1 + d) for any y, with a series in d
        with ctx.workprec(ctx.prec + 20):
            y = arb(math.log(self.m) + self.e * math.log(2.0))
            d = self * (-y).exp() - 1
            if not d.max_size() < 0.5:
                raise ArithmeticError("a logarithm is too large")
            total, terms = arb(0, 2.0 * d.max_size()), ctx.prec // 30 + 3
            for k in range(terms, 0, -1):
                total = (1 / arb(k) - total) * d
            total = total + y
        return ball(total.m, total.e, total.radius)

    def log1p(self) -> arb:
        """Return log (1 + x)."""
        return (self + 1).log()

    def root(self, n: int) -> arb:
        """Return the positive n-th root of positive numbers."""
        return (self.log() / n).exp()

    @staticmethod
    def const_log2() -> arb:
        """Return log 2."""
        return log2(ctx.prec)


def small_expm1(t: arb) -> arb:
    """Return e^t - 1 for |t| <= 1/16."""
    # c (1 + c/2 (1 + c/3 (...))) at the centre c; the brackets are integers over 2^bits with an
    # error below 4, and the remainder is below |c|^terms / terms!; e^t has a slope below 1.07
    bits, terms = ctx.prec + 16, ctx.prec // 8 + 4
    unit, shift = 1 << bits, bits + t.e
    total, c = unit, t.m << shift if shift >= 0 else t.m >> -shift
    for k in range(terms, 1, -1):
        total = unit + (c * total >> bits) // k
    relative = math.ldexp(1 / math.factorial(terms), -4 * terms) + math.ldexp(4.0, -bits)
    return ball(t.m * total, t.e - bits, (t.size() * relative + 1.07 * t.radius) * UP + TINY)


ZERO = ball(0, 0, 0.0)


@cache
def log2(bits: int) -> arb:
    """Return log 2 with a number of bits."""
    return arb(2).log()
