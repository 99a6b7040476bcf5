"""Numbers with error bounds: a value, and an interval that contains the true one.

The intervals are rounded outwards, so rounding never passes for a violation. These are arrays over
the times of a run, for a search; a certificate (``--certify``) is made in Arb. What is undefined
(0/0, the logarithm of a negative number) has the value nan and the interval of all numbers: nothing
is decided by it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dynamics.core.balls.intervals import EVERYTHING, Interval

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

    @classmethod
    def of(cls, value: Any, interval: Interval) -> Bounded:
        """Return a number and its interval, that of all numbers where the value is undefined."""
        known = interval.where(~np.isnan(value), EVERYTHING)
        return cls(value, known.low, known.high)

    @property
    def interval(self) -> Interval:
        """The interval of the true value."""
        return Interval(self.low, self.high)

    def __neg__(self) -> Bounded:
        return Bounded(-self.value, -self.high, -self.low)

    def __add__(self, other: Bounded) -> Bounded:
        return Bounded.of(self.value + other.value, self.interval + other.interval)

    def __sub__(self, other: Bounded) -> Bounded:
        return self + -other

    def __mul__(self, other: Bounded) -> Bounded:
        return Bounded.of(self.value * other.value, self.interval * other.interval)

    def __truediv__(self, other: Bounded) -> Bounded:
        value = np.where(other.value == 0.0, np.nan, np.divide(self.value, other.value))
        return Bounded.of(value, self.interval / other.interval)

    def __pow__(self, other: Bounded) -> Bounded:
        """Return a power: any sign of the base for exact integer exponents, else none negative."""
        return Bounded.of(np.power(self.value, other.value), self.interval**other.interval)

    def exp(self) -> Bounded:
        """Return the exponential."""
        return Bounded.of(np.exp(self.value), self.interval.map(np.exp))

    def log(self) -> Bounded:
        """Return the logarithm, undefined for negative numbers."""
        return Bounded.of(np.log(self.value), self.interval.log())

    def sqrt(self) -> Bounded:
        """Return the square root, undefined for negative numbers."""
        return Bounded.of(np.sqrt(self.value), self.interval.sqrt())

    def abs(self) -> Bounded:
        """Return the absolute value."""
        return Bounded.of(np.abs(self.value), self.interval.abs())

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
