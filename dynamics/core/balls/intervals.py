"""Elementwise interval arithmetic on floats with ends rounded outwards.

An infinite end means that there is no bound on that side. The error of NumPy's operations and
functions is less than `ROUNDING` relative to their result, plus `TINY` for products, powers and
functions that underflow. Where a result is undefined for some number of an interval, the result
is `EVERYTHING`. Use ``np.errstate(all="ignore")`` where ends may be infinite.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

ROUNDING, TINY = 2.0**-49, 1e-300
_UNDERFLOW = 1e-290  # smaller results may have lost digits
_MAX = float(np.finfo(float).max)


@dataclass(frozen=True)
class Interval:
    """All numbers from ``low`` to ``high``: scalars or arrays."""

    low: Any
    high: Any

    @property
    def largest(self) -> Any:
        """The largest modulus."""
        return np.maximum(np.abs(self.low), np.abs(self.high))

    @property
    def width(self) -> Any:
        """Width of the interval: the largest difference of two of its numbers."""
        return (self - self).high

    def __neg__(self) -> Interval:
        return Interval(-self.high, -self.low)

    def __add__(self, other: Interval) -> Interval:
        return _outward(self.low + other.low, self.high + other.high)

    def __sub__(self, other: Interval) -> Interval:
        return self + -other

    def __mul__(self, other: Interval) -> Interval:
        def product(x: Any, y: Any) -> Any:
            return np.where((x == 0.0) | (y == 0.0), 0.0, np.multiply(x, y))

        result = _outward(*_corners(product, self, other))
        exact_zero = (self.largest == 0.0) | (other.largest == 0.0)
        return _underflown(result).where(~exact_zero, result)

    def __truediv__(self, other: Interval) -> Interval:
        result = _underflown(_outward(*_corners(np.divide, self, other)))
        return result.where((other.low > 0.0) | (other.high < 0.0), EVERYTHING)

    def __pow__(self, other: Interval) -> Interval:
        """Return a power; negative bases are allowed for exact integer exponents only."""
        low, high = _corners(np.power, self, other)
        whole = (other.low == other.high) & (np.floor(other.low) == other.low)
        across = (self.low < 0.0) & (self.high > 0.0)
        even = whole & (np.mod(other.low, 2.0) == 0.0)
        low = np.where(across & even & (other.low > 0.0), 0.0, low)
        touches = (self.low <= 0.0) & (self.high >= 0.0)
        fraction = (self.low < 0.0) | ((self.low == 0.0) & (other.low <= 0.0))
        undefined = np.where(whole, (other.low < 0.0) & touches, fraction)
        return _underflown(_outward(low, high)).where(~undefined, EVERYTHING)

    def map(self, function: Callable[[Any], Any]) -> Interval:
        """Apply an increasing function."""
        return _underflown(_outward(function(self.low), function(self.high)))

    def log(self) -> Interval:
        """Return the logarithm of the positive numbers of the interval."""
        least = np.nextafter(0.0, 1.0)
        low, high = (np.log(np.maximum(end, least)) for end in (self.low, self.high))
        low = np.where(self.low > 0.0, low, -np.inf)
        return _outward(low, np.where(self.high > 0.0, high, np.inf))

    def sqrt(self) -> Interval:
        """Return the square root of the nonnegative numbers of the interval."""
        low, high = (np.sqrt(np.maximum(end, 0.0)) for end in (self.low, self.high))
        return _outward(low, high).where(self.high >= 0.0, EVERYTHING)

    def abs(self) -> Interval:
        """Return the modulus."""
        across = (self.low <= 0.0) & (self.high >= 0.0)
        least = np.minimum(np.abs(self.low), np.abs(self.high))
        return Interval(np.where(across, 0.0, least), self.largest)

    def where(self, condition: Any, other: Interval) -> Interval:
        """Return this interval where a condition holds, else the other."""
        low = np.where(condition, self.low, other.low)
        return Interval(low, np.where(condition, self.high, other.high))


EVERYTHING = Interval(-np.inf, np.inf)


def _corners(function: Any, left: Interval, right: Interval) -> tuple[Any, Any]:
    """Return the range of a function that is monotone in each argument."""
    ends = [function(x, y) for x in (left.low, left.high) for y in (right.low, right.high)]
    table = np.broadcast_arrays(*ends)
    return np.minimum.reduce(table), np.maximum.reduce(table)


def _outward(low: Any, high: Any) -> Interval:
    """Round the ends outwards; undefined ends and overflow become infinite."""
    low = np.minimum(low - ROUNDING * _size(low), _MAX)
    high = np.maximum(high + ROUNDING * _size(high), -_MAX)
    return Interval(np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high))


def _underflown(x: Interval) -> Interval:
    """Widen ends that are so small that they may have lost digits by underflow."""
    low = np.where(np.abs(x.low) < _UNDERFLOW, x.low - TINY, x.low)
    return Interval(low, np.where(np.abs(x.high) < _UNDERFLOW, x.high + TINY, x.high))


def _size(x: Any) -> Any:
    """Return the modulus, 0 where it is not finite."""
    return np.abs(np.where(np.isfinite(x), x, 0.0))
