"""Reference for balls in Arb at 2600 bits: numbers inside arguments, and functions of them."""

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
    """Return the exact value of a float or a fraction."""
    value = Fraction(value)
    return arb(fmpq(value.numerator, value.denominator))


def inside(mid, rad, position):
    """Return the number at a position (-1 to 1) of a ball, exactly."""
    return Fraction(float(mid)) + Fraction(float(rad)) * Fraction(position)


def series(mids, rads, positions):
    """Return a series whose coefficients are at these positions of their balls."""
    return arb_series([number(inside(*ends)) for ends in zip(mids, rads, positions)])


def holds(mid, rad, exact):
    """Return whether a ball contains a number that is known to much higher precision."""
    if not exact.is_finite():
        raise ValueError("the reference itself is not finite")
    return bool(abs(exact - number(mid)) <= number(rad))
