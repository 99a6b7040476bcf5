"""Validation of scalar arguments: messages name the parameter, its value and what is allowed."""

import math
import numbers
from typing import Any

from dynamics.core.errors import ParameterError


def require(condition: bool, name: str, value: object, allowed: str) -> None:
    """Raise ParameterError unless the condition holds.

    The message is "NAME = VALUE is not allowed: NAME must be ALLOWED".
    """
    if not condition:
        message = f"{name} = {abbreviated(value)} is not allowed: {name} must be {allowed}"
        raise ParameterError(message)


def abbreviated(value: object) -> str:
    """Return a value as text of at most 80 characters."""
    if isinstance(value, int) and value.bit_length() > 200:
        return f"(an integer of {int(value.bit_length() * math.log10(2)) + 1} digits)"
    text = str(value)
    return text if len(text) <= 80 else text[:77] + "..."


def finite(name: str, value: Any) -> float:
    """Return ``value`` as a finite float, or raise ParameterError."""
    real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    require(real, name, repr(value) if not real else value, "a real number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    require(math.isfinite(number), name, value, "finite")
    return number


def integer(name: str, value: Any, least: int | None = None, most: int | None = None) -> int:
    """Return ``value`` as an integer from ``least`` to ``most``, or raise ParameterError."""
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
    """Return max(1, largest modulus): the factor from relative to absolute tolerance."""
    return max(1.0, *(abs(number) for number in numbers))
