"""A number that a claim measured: its name, its place, its value."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

Value = float | int | str | bool

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Measured:
    """One number that a claim measured.

    Attributes
    ----------
    name
        Short stable identifier, such as ``"largest_deviation"``.
    label
        What people read, the same for all numbers of the name.
    at
        The problem or regime it belongs to, such as ``{"D": 64, "qD": 2}``; empty if the claim as a
        whole.
    value
        The number, or a word where there is none.
    unit
        Such as ``"flow time"`` or ``"steps"``; empty for a pure number.

    Raises
    ------
    ValueError
        If the name is no identifier.
    """

    name: str
    label: str
    at: Mapping[str, Value]
    value: Value
    unit: str = ""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(
                f"name = {self.name!r}: a measured number is named by letters, digits and _"
            )


#: Name, label and value, then the unit where there is one.
Row = tuple[str, str, Value] | tuple[str, str, Value, str]


def measured_at(at: Mapping[str, Value], *rows: Row) -> list[Measured]:
    """Return the numbers of one place."""
    return [Measured(name, label, at, value, *unit) for name, label, value, *unit in rows]


def interval(name: str, label: str, low: Value, high: Value, unit: str = "") -> list[Row]:
    """Return the rows ``NAME_low`` and ``NAME_high`` of the two ends of an interval."""
    return [
        (f"{name}_low", f"{label}, lower end", low, unit),
        (f"{name}_high", f"{label}, upper end", high, unit),
    ]


def spread(name: str, label: str, found: Iterable[Value], unit: str = "") -> list[Row]:
    """Return the rows of a value and of the two ends of its interval, given in this order."""
    value, low, high = found
    return [(name, label, value, unit), *interval(name, label, low, high, unit)]


def in_words(value: Value, digits: str = ".2g") -> str:
    """Return a number as it is formatted, a word as it is."""
    return value if isinstance(value, str) else format(value, digits)
