"""Markers of annotated fields that describe a parameter (see `dynamics.core.parameters`)."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

_COMPARE = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}
_TEXT = {">": "greater than", ">=": "at least", "<": "less than", "<=": "at most"}


@dataclass(frozen=True)
class Bound:
    """A limit of the allowed values; ``sign`` is ``">"``, ``">="``, ``"<"`` or ``"<="``."""

    sign: str
    limit: float

    def holds(self, value: float) -> bool:
        """Return whether a value is within the limit."""
        return bool(_COMPARE[self.sign](value, self.limit))

    def __str__(self) -> str:
        return f"{_TEXT[self.sign]} {_limit(self.limit)}"


def above(limit: float) -> Bound:
    """Allow values greater than a limit."""
    return Bound(">", limit)


def at_least(limit: float) -> Bound:
    """Allow a limit and greater values."""
    return Bound(">=", limit)


def below(limit: float) -> Bound:
    """Allow values less than a limit."""
    return Bound("<", limit)


def at_most(limit: float) -> Bound:
    """Allow a limit and smaller values."""
    return Bound("<=", limit)


@dataclass(frozen=True)
class Condition:
    """A condition other than a limit; ``text`` describes the allowed values."""

    holds: Callable[[Any], bool]
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Doc:
    """Meaning of a parameter.

    Attributes
    ----------
    meaning
        Description.
    default
        Description of a default that depends on other parameters.
    allowed
        Allowed values for the help, where they depend on other parameters.
    """

    meaning: str
    default: str = ""
    allowed: str = ""


@dataclass(frozen=True)
class Choices:
    """The allowed strings."""

    values: tuple[str, ...]

    def __init__(self, *values: str) -> None:
        object.__setattr__(self, "values", values)


@dataclass(frozen=True)
class Ticks:
    """The values of a slider."""

    values: tuple[float, ...]

    def __init__(self, *values: float) -> None:
        object.__setattr__(self, "values", values)


@dataclass(frozen=True)
class Draw:
    """Range of random values.

    Attributes
    ----------
    low, high
        Ends of the range.
    log
        Whether the logarithm is uniformly distributed.
    among
        Values to choose from instead of a range, the simplest first.
    default
        Whether every second value is the default.
    search
        Whether a search for counterexamples varies the parameter.
    """

    low: float = 0.0
    high: float = 0.0
    log: bool = False
    among: tuple[Any, ...] = ()
    default: bool = False
    search: bool = True


@dataclass(frozen=True)
class Flag:
    """Name of the command-line option, where it differs from the field."""

    name: str


@dataclass(frozen=True)
class Unreported:
    """Marks a parameter that does not affect the dynamics and is no reported constant."""


@dataclass(frozen=True)
class Text:
    """Conversion of a value that is not a number from and to text, and its type check."""

    read: Callable[[str], Any]
    write: Callable[[Any], str]
    check: Callable[[str, Any], None] | None = None


@dataclass(frozen=True)
class Alias:
    """Another name of a field.

    Attributes
    ----------
    name, doc
        Name and meaning.
    to_field, from_field
        Functions of a value and of the other fields: convert the alias to the field and back.
        ``None`` if both have the same value.
    constant
        Whether the field is reported under this name.
    ticks, draw
        Slider values and range of random values, used instead of those of the field.
    """

    name: str
    doc: Doc
    to_field: Callable[[float, Mapping[str, Any]], float] | None = None
    from_field: Callable[[float, Mapping[str, Any]], float] | None = None
    constant: bool = False
    ticks: Ticks = Ticks()
    draw: Draw | None = None


def decades(low: float, high: float, each: int = 10) -> tuple[float, ...]:
    """Return rounded numbers from 10^low to 10^high, ``each`` per decade: 1, 1.3, 1.6, 2, ..."""
    powers = range(round(low * each), round(high * each) + 1)
    return tuple(float(f"{10.0 ** (power / each):.1e}") for power in powers)


def evenly(low: float, high: float, step: float) -> tuple[float, ...]:
    """Return low, low + step, ... up to high, without accumulated rounding."""
    return tuple(round(low + i * step, 10) for i in range(round((high - low) / step) + 1))


def bounds_text(bounds: Iterable[Bound | Condition], dtype: type) -> str:
    """Describe allowed values, as in ``in (0, 1]`` or ``odd, at least 3 and at most 99``."""
    limits = [bound for bound in bounds if isinstance(bound, Bound)]
    parts = [bound.text for bound in bounds if isinstance(bound, Condition)]
    if dtype is float and len(limits) == 2:
        low, high = limits
        left, right = "(["[low.sign == ">="], ")]"[high.sign == "<="]
        parts.append(f"in {left}{_limit(low.limit)}, {_limit(high.limit)}{right}")
    elif limits:
        parts.append(" and ".join(map(str, limits)))
    return ", ".join(parts)


def _limit(limit: float) -> str:
    """Return a limit as text, large powers of ten as in ``10^9``."""
    text = str(limit)
    if isinstance(limit, int) and limit >= 10**6 and text == "1" + "0" * (len(text) - 1):
        return f"10^{len(text) - 1}"
    return as_text(limit)


def as_text(value: Any) -> str:
    """Return the shortest text that reproduces a number, such as 1e6; strings are unchanged."""
    if isinstance(value, str):
        return value
    exact = (f"{value:.{digits}g}" for digits in (6, 12, 17))
    mantissa, exponent, power = next(t for t in exact if float(t) == value).partition("e")
    return f"{mantissa}e{int(power)}" if exponent else mantissa
