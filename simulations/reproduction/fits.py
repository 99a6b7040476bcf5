"""Power laws: fitted exponents, and exponents in the limit of a large parameter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

#: Smallest uncertainty: relative accuracy of the runs over a logarithmic step.
NOISE = 1e-7


def power(x: Sequence[float] | np.ndarray, y: Sequence[float] | np.ndarray) -> float:
    """Return the least-squares slope of log y against log x, both positive."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


@dataclass(frozen=True)
class Exponent:
    """Local exponents of consecutive pairs of sizes, and an interval for their limit.

    The interval contains the last local exponent and its extrapolations to infinite size: by
    Aitken's rule, which is exact if corrections are a power of the size, and linearly in
    1 / log(size) from the last two pairs of local exponents, for logarithmic corrections. Its width
    is the distance of extrapolation: an estimate of the uncertainty, not a bound.

    Attributes
    ----------
    local
        Exponents between consecutive sizes.
    low, high
        Ends of the interval.
    """

    local: tuple[float, ...]
    low: float
    high: float

    @property
    def last(self) -> float:
        """Local exponent between the two largest sizes."""
        return self.local[-1]


def allows(t: pd.DataFrame) -> pd.Series[bool]:
    """Return whether each interval contains its predicted exponent.

    The columns are ``exponent_low``, ``exponent_high`` and ``predicted``.
    """
    return (t.exponent_low <= t.predicted) & (t.predicted <= t.exponent_high)


def resolves(t: pd.DataFrame, share: float) -> pd.Series[bool]:
    """Return whether half the width of each interval is at most a share of the prediction."""
    return 0.5 * (t.exponent_high - t.exponent_low) <= share * t.predicted.abs()


def exponent(sizes: np.ndarray, values: np.ndarray, *, log: bool = True) -> Exponent:
    """Return the exponent of ``values`` in the limit of large sizes.

    Parameters
    ----------
    sizes
        At least four sizes in equal ratios, ascending, shape (n,).
    values
        Measured quantity at each size, shape (n,).
    log
        Whether ``values`` are powers of the size; otherwise they are linear in its logarithm, and
        the result is their slope.

    Raises
    ------
    ValueError
        If there are fewer sizes, other ratios, or values that are not finite.
    """
    x = np.log(np.asarray(sizes, float))
    y = np.log(values) if log else np.asarray(values, float)
    if x.size < 4 or not np.all(np.isfinite(y)) or not np.allclose(np.diff(x), x[1] - x[0]):
        raise ValueError("an exponent needs finite values at four sizes in equal ratios, or more")
    local, middle = np.diff(y) / np.diff(x), 0.5 * (x[1:] + x[:-1])
    linear = np.diff(middle * local) / np.diff(middle)
    first, second = np.diff(local[-3:])
    limits = [local[-1], linear[-1], linear[-2]]
    if abs(second) < abs(first):
        limits.append(local[-1] + second * second / (first - second))
    else:  # the exponents do not converge yet: the drift is the uncertainty
        limits += [local[-1] + 2.0 * second, local[-1] - 2.0 * second]
    return Exponent(tuple(local.tolist()), float(min(limits)) - NOISE, float(max(limits)) + NOISE)
