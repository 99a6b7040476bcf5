"""Numbers with error bounds: a value, and an interval that holds the true one.

Intervals are widened by a few units in the last place after each operation, so rounding never
passes for a violation. These are arrays over the times of a run, for a search; a certificate
(``--certify``) is made in Arb. What is undefined (0/0, the logarithm of a negative number) has the
value nan and the interval of all numbers: nothing is decided by it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

_ROUNDING = 8 * np.finfo(float).eps
_TINY = float(np.nextafter(0.0, 1.0))


@dataclass(frozen=True)
class Bounded:
    """``low <= true value <= high``, elementwise; scalars, or arrays over the times of a run."""

    value: Any
    low: Any
    high: Any

    @classmethod
    def exact(cls, value: Any) -> Bounded:
        """Return a number without error."""
        return cls(value, value, value)

    @classmethod
    def within(cls, value: Any, error: Any) -> Bounded:
        """Return a number with an absolute error."""
        return cls(value, value - error, value + error)

    def __neg__(self) -> Bounded:
        return Bounded(-self.value, -self.high, -self.low)

    def __add__(self, other: Bounded) -> Bounded:
        return _outward(self.value + other.value, self.low + other.low, self.high + other.high)

    def __sub__(self, other: Bounded) -> Bounded:
        return self + -other

    def __mul__(self, other: Bounded) -> Bounded:
        return _outward(self.value * other.value, *_corners(np.multiply, self, other))

    def __truediv__(self, other: Bounded) -> Bounded:
        low, high = _corners(np.divide, self, other)
        unknown = (other.low <= 0.0) & (other.high >= 0.0)
        return _outward(
            np.where(other.value == 0.0, np.nan, np.divide(self.value, other.value)),
            np.where(unknown, -np.inf, low),
            np.where(unknown, np.inf, high),
        )

    def __pow__(self, other: Bounded) -> Bounded:
        """Return a power: any sign of the base for exact integer exponents, else none negative."""
        value = np.power(self.value, other.value)
        low, high = _corners(np.power, self, other)
        whole = (other.low == other.high) & (np.floor(other.value) == other.value)
        across = (self.low < 0.0) & (self.high > 0.0)
        even = whole & (np.mod(other.value, 2.0) == 0.0)
        low = np.where(across & even & (other.value > 0.0), 0.0, low)
        unknown = np.where(
            whole,
            (other.value < 0.0) & (self.low <= 0.0) & (self.high >= 0.0),
            (self.low < 0.0) | ((self.low == 0.0) & (other.low <= 0.0)),
        )
        return _outward(value, np.where(unknown, -np.inf, low), np.where(unknown, np.inf, high))

    def map(self, function: Any) -> Bounded:
        """Return an increasing function of the number."""
        return _outward(*(function(part) for part in (self.value, self.low, self.high)))

    def log(self) -> Bounded:
        """Return the logarithm, undefined for negative numbers."""
        high = np.where(self.high > 0.0, np.log(np.maximum(self.high, _TINY)), np.inf)
        low = np.where(self.low > 0.0, np.log(np.maximum(self.low, _TINY)), -np.inf)
        return _outward(np.log(self.value), low, high)

    def sqrt(self) -> Bounded:
        """Return the square root, undefined for negative numbers."""
        high = np.where(self.high >= 0.0, np.sqrt(np.maximum(self.high, 0.0)), np.inf)
        low = np.where(self.high >= 0.0, np.sqrt(np.maximum(self.low, 0.0)), -np.inf)
        return _outward(np.sqrt(self.value), low, high)

    def abs(self) -> Bounded:
        """Return the absolute value."""
        inside = (self.low <= 0.0) & (self.high >= 0.0)
        ends = np.abs(self.low), np.abs(self.high)
        low = np.where(inside, 0.0, np.minimum(*ends))
        return Bounded(np.abs(self.value), low, np.maximum(*ends))

    def positive_at_zero(self) -> Bounded:
        """Return the number with exact zeros replaced by the least positive one (a strict tie)."""
        return Bounded(
            *(np.where(part == 0.0, _TINY, part) for part in (self.value, self.low, self.high))
        )

    def along(self, which: str) -> Bounded:
        """Return the greatest or least over time (``"max"`` or ``"min"``)."""
        over, ignoring = (np.max, np.fmax) if which == "max" else (np.min, np.fmin)
        values = np.atleast_1d(self.value)
        return Bounded(ignoring.reduce(values), over(self.low), over(self.high))

    def at(self, index: int) -> Bounded:
        """Return the number at one time; a scalar is the same at all times."""
        return Bounded(*(np.atleast_1d(part)[index] for part in (self.value, self.low, self.high)))


def pick(which: str, numbers: list[Bounded]) -> Bounded:
    """Return the greatest or least of several numbers, time by time; nan where one is undefined."""
    ends = np.maximum if which == "max" else np.minimum
    parts = [(one.value, one.low, one.high) for one in numbers]
    return Bounded(*(ends.reduce(np.broadcast_arrays(*part)) for part in zip(*parts)))


def joined(which: str, violations: list[Bounded]) -> Bounded:
    """Return the violation of all (``"max"``) or of any (``"min"``) of several statements.

    Where one is undefined the others decide if they can: all are violated if one is, any holds if
    one does; else nothing is decided (nan).
    """
    found = pick(which, violations)
    middle = np.fmax if which == "max" else np.fmin
    known = middle.reduce(np.broadcast_arrays(*(one.value for one in violations)))
    decided = known > 0.0 if which == "max" else known <= 0.0
    return Bounded(np.where(decided, known, found.value), found.low, found.high)


def _corners(function: Any, left: Bounded, right: Bounded) -> tuple[Any, Any]:
    """Return the range of a function that is monotone in each argument."""
    ends = [function(x, y) for x in (left.low, left.high) for y in (right.low, right.high)]
    return np.minimum.reduce(np.broadcast_arrays(*ends)), np.maximum.reduce(
        np.broadcast_arrays(*ends)
    )


def _outward(value: Any, low: Any, high: Any) -> Bounded:
    """Widen by the rounding of the ends themselves; undefined ends (nan) become infinite."""
    most = np.maximum(_size(value), np.maximum(_size(low), _size(high)))
    low = np.where(np.isnan(low), -np.inf, low - _ROUNDING * most)
    high = np.where(np.isnan(high), np.inf, high + _ROUNDING * most)
    return Bounded(value, low, high)


def _size(x: Any) -> Any:
    """Return the modulus, 0 where it is not finite."""
    return np.abs(np.where(np.isfinite(x), x, 0.0))
