"""What balls must hold, in Arb at 2600 bits: numbers inside arguments, and functions of them."""

from contextlib import contextmanager
from fractions import Fraction

from flint import arb, arb_series, ctx, fmpq

BITS, CAP = 2600, 10


@contextmanager
def precise():
    """Compute with many bits and coefficients."""
    before = ctx.prec, ctx.cap
    ctx.prec, ctx.cap = BITS, CAP
    try:
        yield
    finally:
        ctx.prec, ctx.cap = before


def number(value):
    """The exact value of a float or a fraction."""
    value = Fraction(value)
    return arb(fmpq(value.numerator, value.denominator))


def inside(mid, rad, place):
    """The number at ``place`` (-1 to 1) of a ball, exactly."""
    return Fraction(float(mid)) + Fraction(float(rad)) * Fraction(place)


def series(mids, rads, places):
    """A series whose coefficients lie at these places of their balls."""
    return arb_series([number(inside(*ends)) for ends in zip(mids, rads, places)])


def holds(mid, rad, exact):
    """Tell whether a ball holds a number that is known far better than the ball is wide."""
    if not exact.is_finite():
        raise ValueError("the reference itself is not finite")
    return bool(abs(exact - number(mid)) <= number(rad))
