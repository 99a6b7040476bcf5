"""Conversion between floats and Arb: exact in one direction, rounded outwards in the other."""

import math
from fractions import Fraction
from typing import Any

from flint import arb, fmpq


def exact(value: float | Fraction) -> arb:
    """Convert a finite float or a fraction to Arb, exactly if the working precision suffices."""
    number = value if isinstance(value, Fraction) else float(value)
    return arb(fmpq(*number.as_integer_ratio()))


def above(x: Any) -> float:
    """Return an upper bound of an Arb ball as a float; inf if there is none.

    The conversion of the upper end errs by less than a unit in the last place and is therefore
    rounded up by one. The bound of a ball without positive numbers is at most 0.
    """
    upper = x.upper()
    if not upper.is_finite():
        return math.inf
    near = math.nextafter(float(upper), math.inf)
    return min(near, 0.0) if upper <= 0 else near


def below(x: Any) -> float:
    """Return a lower bound of an Arb ball as a float; -inf if there is none."""
    return -above(-x)


def ball(x: Any) -> tuple[float, float]:
    """Return middle and radius, as floats, of a ball that contains an Arb ball."""
    middle = float(x.mid())
    return middle, above(abs(x - exact(middle))) if math.isfinite(middle) else math.inf


def from_ball(middle: float, radius: float) -> arb:
    """Return the Arb ball of a middle and a radius; all numbers if they are not finite."""
    if not (math.isfinite(middle) and math.isfinite(radius)):
        return arb(0, math.inf)
    return exact(middle) + arb(0, 1) * exact(radius)
