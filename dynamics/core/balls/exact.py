"""Between floats and Arb: a float is the number it is, and what comes back is rounded outwards."""

from __future__ import annotations

import math
from typing import Any

from flint import arb, fmpq


def exact(value: float) -> arb:
    """Return a finite float as the number it is (exact where it fits the precision)."""
    top, bottom = float(value).as_integer_ratio()
    return arb(fmpq(top, bottom))


def above(x: Any) -> float:
    """Return a float that is not below any number of an Arb ball; inf if there is none.

    The conversion errs by less than a unit in the last place, whichever way it rounds.
    """
    upper = x.upper()
    if not upper.is_finite():
        return math.inf
    return math.nextafter(float(upper), math.inf)


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
