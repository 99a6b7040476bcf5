"""Intervals at 95 % for what is measured over a few runs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import stats

#: Coverage of every interval.
LEVEL = 0.95
_RESAMPLED = 4000


def of_mean(values: Sequence[float] | np.ndarray) -> tuple[float, float]:
    """Return Student's interval of the mean of independent values; at least two of them."""
    values = np.asarray(values, dtype=float)
    half = stats.t.ppf(0.5 + LEVEL / 2, values.size - 1) * stats.sem(values)
    return float(values.mean() - half), float(values.mean() + half)


def of_share(successes: int, runs: int) -> tuple[float, float]:
    """Return the interval of Clopper and Pearson of a probability."""
    found = stats.binomtest(successes, runs).proportion_ci(LEVEL, "exact")
    return float(found.low), float(found.high)


def exponent(x: Sequence[float] | np.ndarray, y: np.ndarray) -> float:
    """Return the slope of the mean over runs against ``x`` on logarithmic scales, y (n, runs)."""
    mean = np.asarray(y, dtype=float).mean(axis=1)
    return float(np.polyfit(np.log(x), np.log(mean), 1)[0])


def of_exponent(
    x: Sequence[float] | np.ndarray, y: np.ndarray, seed: int = 0
) -> tuple[float, float]:
    """Return the interval of `exponent`: runs drawn again with replacement, each x by itself."""
    y = np.asarray(y, dtype=float)
    rng = np.random.default_rng(seed)
    chosen = rng.integers(0, y.shape[1], (_RESAMPLED, *y.shape))
    means = np.log(np.take_along_axis(y[None], chosen, axis=2).mean(axis=2))
    centred = np.log(np.asarray(x, dtype=float))
    centred -= centred.mean()
    slopes = means @ centred / (centred @ centred)
    low, high = np.quantile(slopes, [0.5 - LEVEL / 2, 0.5 + LEVEL / 2])
    return float(low), float(high)
