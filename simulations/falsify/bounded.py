"""Numbers with error bounds: a value, and an interval that contains the exact value.

The intervals are rounded outwards, so that rounding is never reported as a violation. The numbers
are scalars or arrays over the times of a run. Undefined results (0/0, the logarithm of a negative
number) have the value nan and the interval of all numbers, which decides nothing. Certificates
(``--certify``) use Arb instead.
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
    def error(self) -> Any:
        """Largest distance to the true value; infinite where the value is undefined."""
        return np.nan_to_num(np.fmax(self.high - self.value, self.value - self.low), nan=np.inf)

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
        """Return a power; negative bases are allowed for exact integer exponents only."""
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
        """Replace exact zeros by the smallest positive number, for strict inequalities."""
        return Bounded(
            *(np.where(part == 0.0, _TINY, part) for part in (self.value, self.low, self.high))
        )

    def along(self, which: str) -> Bounded:
        """Return the maximum or minimum over time (``"max"`` or ``"min"``)."""
        over, ignoring = (np.max, np.fmax) if which == "max" else (np.min, np.fmin)
        values = np.atleast_1d(self.value)
        return Bounded(ignoring.reduce(values), over(self.low), over(self.high))

    def at(self, index: int) -> Bounded:
        """Return the number at one time; a scalar is the same at all times."""
        return Bounded(*(np.atleast_1d(part)[index] for part in (self.value, self.low, self.high)))


def pick(which: str, numbers: list[Bounded]) -> Bounded:
    """Return the pointwise maximum or minimum of numbers; nan where one of them is undefined."""
    ends = np.maximum if which == "max" else np.minimum
    parts = [(number.value, number.low, number.high) for number in numbers]
    return Bounded(*(ends.reduce(np.broadcast_arrays(*part)) for part in zip(*parts)))


def joined(which: str, violations: list[Bounded]) -> Bounded:
    """Return the violation of a conjunction (``"max"``) or of a disjunction (``"min"``).

    Where a statement is undefined, the result is that of the others if they decide it: a
    conjunction is false if one of them is, a disjunction is true if one of them is. Otherwise the
    result is nan.
    """
    picked = pick(which, violations)
    middle = np.fmax if which == "max" else np.fmin
    known = middle.reduce(np.broadcast_arrays(*(violation.value for violation in violations)))
    decided = known > 0.0 if which == "max" else known <= 0.0
    return Bounded(np.where(decided, known, picked.value), picked.low, picked.high)
