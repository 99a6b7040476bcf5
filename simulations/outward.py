"""Proved bounds as text, rounded to the side on which they remain true.

Subnormal numbers (below 2.2e-308) are not rounded correctly.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal


def up(x: float, digits: int = 6) -> str:
    """Return the smallest decimal number with these significant digits that is at least x."""
    return _text(x, digits, ROUND_CEILING)


def down(x: float, digits: int = 6) -> str:
    """Return the largest decimal number with these significant digits that is at most x."""
    return _text(x, digits, ROUND_FLOOR)


def _text(x: float, digits: int, rounding: str) -> str:
    rounded = Context(digits, rounding).create_decimal_from_float(float(x))
    return f"{float(rounded):.{digits}g}"


def interval(low: float, high: float, digits: int = 6) -> str:
    """Return an interval that contains [low, high]."""
    return f"[{down(low, digits)}, {up(high, digits)}]"


def within(low: float, high: float) -> str:
    """Return an interval of decimal times inside [low, high]: "from ... to ...".

    Times have six digits, or as many as are needed to separate the ends.
    """
    digits = next((n for n in range(6, 15) if float(up(low, n)) < float(down(high, n))), 15)
    return f"from {up(low, digits)} to {down(high, digits)}"


def ball(low: float, high: float) -> str:
    """Return the middle of an interval and a radius, such that the ball contains the interval."""
    middle = f"{0.5 * (low + high):.10g}"
    context = Context(2, ROUND_CEILING)
    ends = Decimal(high), Decimal(low)
    radius = max(
        context.subtract(ends[0], Decimal(middle)), context.subtract(Decimal(middle), ends[1])
    )
    return f"{middle} +- {float(radius):.1e}"
