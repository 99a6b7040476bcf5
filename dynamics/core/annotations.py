"""Markers of annotated fields: the facts about a parameter (see `dynamics.core.parameters`)."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

_COMPARE = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}
_WORDS = {">": "greater than", ">=": "at least", "<": "less than", "<=": "at most"}


@dataclass(frozen=True)
class Bound:
    """A limit of the allowed values; ``sign`` is one of > >= < <=."""

    sign: str
    limit: float

    def holds(self, value: float) -> bool:
        """Return whether a value is within the limit."""
        return bool(_COMPARE[self.sign](value, self.limit))

    def __str__(self) -> str:
        return f"{_WORDS[self.sign]} {_limit(self.limit)}"


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
    """A condition other than a limit; ``words`` describes the allowed values."""

    holds: Callable[[Any], bool]
    words: str

    def __str__(self) -> str:
        return self.words


@dataclass(frozen=True)
class Doc:
    """Meaning of a parameter.

    ``default`` describes the default that depends on other parameters; ``allowed`` the allowed
    values in the help, where relations to other parameters belong to them.
    """

    meaning: str
    default: str = ""
    allowed: str = ""


@dataclass(frozen=True)
class Choices:
    """The allowed words."""

    words: tuple[str, ...]

    def __init__(self, *words: str) -> None:
        object.__setattr__(self, "words", words)


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
        Whether the logarithm is uniform.
    among
        Values to choose from instead of a range, the simplest first.
    default
        Whether every second draw is the default.
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
    """Name of the option of the command line, where it differs from the field."""

    name: str


@dataclass(frozen=True)
class Unreported:
    """The parameter is not reported among the constants: it does not enter the dynamics."""


@dataclass(frozen=True)
class Text:
    """How a value that is not a number is read from text and written, and the check of its type."""

    read: Callable[[str], Any]
    write: Callable[[Any], str]
    check: Callable[[str, Any], None] | None = None


@dataclass(frozen=True)
class Alias:
    """Another name of a field.

    Attributes
    ----------
    name, doc
        The name and its meaning.
    to_field, from_field
        Value of the field from that of the alias and the other fields, and back; ``None``: equal.
    constant
        Whether the field is reported under this name.
    ticks, draw
        Slider values, and the range of random values; the field itself is then not drawn.
    """

    name: str
    doc: Doc
    to_field: Callable[[float, Mapping[str, Any]], float] | None = None
    from_field: Callable[[float, Mapping[str, Any]], float] | None = None
    constant: bool = False
    ticks: Ticks = Ticks()
    draw: Draw | None = None


def decades(low: float, high: float, each: int = 10) -> tuple[float, ...]:
    """Return round numbers from 10^low to 10^high, ``each`` per decade: 1, 1.3, 1.6, 2, 2.5, ..."""
    powers = range(round(low * each), round(high * each) + 1)
    return tuple(float(f"{10.0 ** (power / each):.1e}") for power in powers)


def evenly(low: float, high: float, step: float) -> tuple[float, ...]:
    """Return low, low + step, ... up to high, without the rounding of the sums."""
    return tuple(round(low + i * step, 10) for i in range(round((high - low) / step) + 1))


def words_of(bounds: Iterable[Bound | Condition], kind: type) -> str:
    """Return the allowed values as in ``in (0, 1]`` or ``odd, at least 3 and at most 99``."""
    limits = [bound for bound in bounds if isinstance(bound, Bound)]
    words = [bound.words for bound in bounds if isinstance(bound, Condition)]
    if kind is float and len(limits) == 2:
        low, high = limits
        left, right = "(["[low.sign == ">="], ")]"[high.sign == "<="]
        words.append(f"in {left}{_limit(low.limit)}, {_limit(high.limit)}{right}")
    elif limits:
        words.append(" and ".join(map(str, limits)))
    return ", ".join(words)


def _limit(limit: float) -> str:
    """Return a limit as text, great powers of ten as in ``10^9``."""
    text = str(limit)
    if isinstance(limit, int) and limit >= 10**6 and text == "1" + "0" * (len(text) - 1):
        return f"10^{len(text) - 1}"
    return as_text(limit)


def as_text(value: Any) -> str:
    """Return a value in as few digits as reproduce it: 1e6, 0.01; words as they are."""
    if isinstance(value, str):
        return value
    exact = (f"{value:.{digits}g}" for digits in (6, 12, 17))
    mantissa, exponent, power = next(t for t in exact if float(t) == value).partition("e")
    return f"{mantissa}e{int(power)}" if exponent else mantissa
