"""Between floats and Arb: a float is the number it is, and what comes back is rounded outwards."""

import math
from fractions import Fraction
from typing import Any

from flint import arb, fmpq


def exact(value: float | Fraction) -> arb:
    """Return a finite float or a fraction as the number it is (exact where the precision does)."""
    given = value if isinstance(value, Fraction) else float(value)
    return arb(fmpq(*given.as_integer_ratio()))


def above(x: Any) -> float:
    """Return a float that is not below any number of an Arb ball; inf if there is none.

    The conversion errs by less than a unit in the last place, whichever way it rounds; a ball of
    no positive number has no positive bound.
    """
    upper = x.upper()
    if not upper.is_finite():
        return math.inf
    near = math.nextafter(float(upper), math.inf)
    return min(near, 0.0) if upper <= 0 else near


def below(x: Any) -> float:
    """Return a float that is not above any number of an Arb ball; -inf if there is none."""
    return -above(-x)


def ball(x: Any) -> tuple[float, float]:
    """Return middle and radius, floats, of a ball that holds an Arb ball."""
    middle = float(x.mid())
    return middle, above(abs(x - exact(middle))) if math.isfinite(middle) else math.inf


def from_ball(middle: float, radius: float) -> arb:
    """Return the Arb ball of a middle and a radius; nothing is known where they are not finite."""
    if not (math.isfinite(middle) and math.isfinite(radius)):
        return arb(0, math.inf)
    return exact(middle) + arb(0, 1) * exact(radius)
