"""Checks of arguments: one clear sentence that names the parameter, its value, what is allowed."""

import math
import numbers
from typing import Any

from dynamics.core.errors import ParameterError


def require(condition: bool, name: str, value: object, allowed: str) -> None:
    """Raise one clear sentence unless the condition holds."""
    if not condition:
        raise ParameterError(f"{name} = {shown(value)} is not allowed: {name} must be {allowed}")


def shown(value: object) -> str:
    """Return a value as a sentence shows it: never longer than a line."""
    if isinstance(value, int) and value.bit_length() > 200:
        return f"(an integer of {int(value.bit_length() * math.log10(2)) + 1} digits)"
    text = str(value)
    return text if len(text) <= 80 else text[:77] + "..."


def finite(name: str, value: Any) -> float:
    """Return ``value`` as a finite float or raise one clear sentence."""
    real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    require(real, name, repr(value) if not real else value, "a real number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    require(math.isfinite(number), name, value, "finite")
    return number


def integer(name: str, value: Any, least: int | None = None, most: int | None = None) -> int:
    """Return ``value`` as an integer, at least or at most another, or raise one clear sentence."""
    allowed = "an integer"
    if most is not None:
        allowed += f" from {least} to {most:g}" if most >= 10**6 else f" from {least} to {most}"
    elif least is not None:
        allowed += f", at least {least}"
    real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    require(real, name, repr(value), allowed)
    exact = isinstance(value, numbers.Integral) or (abs(value) < math.inf and value == int(value))
    within = (least is None or value >= least) and (most is None or value <= most)
    require(exact and within, name, value, allowed)
    return int(value)


def scale(numbers: tuple[float, ...]) -> float:
    """Return max(1, largest modulus): tolerances are absolute for small values, else relative."""
    return max(1.0, *(abs(number) for number in numbers))
