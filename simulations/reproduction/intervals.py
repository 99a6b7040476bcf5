"""Intervals at 95 % for what is measured over a few runs."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from scipy import stats

from simulations.reproduction.fits import power
from simulations.reproduction.predicates import Column

#: Coverage of every interval that states no other.
LEVEL = 0.95
_RESAMPLED = 4000


def of_mean(values: Sequence[float] | np.ndarray, level: float = LEVEL) -> tuple[float, float]:
    """Return Student's interval of the mean of independent values; at least two of them.

    ``level`` is its coverage.
    """
    values = np.asarray(values, dtype=float)
    half = stats.t.ppf(0.5 + level / 2, values.size - 1) * stats.sem(values)
    return float(values.mean() - half), float(values.mean() + half)


def mean_of(values: Sequence[float] | np.ndarray) -> tuple[float, float, float]:
    """Return the mean of independent values and the ends of its interval, NaN for one value."""
    ends = of_mean(values) if len(values) > 1 else (math.nan, math.nan)
    return float(np.mean(values)), *ends


def columns(
    name: str, label: str, unit: str = "", centre: str = ", mean", **options: Any
) -> dict[str, Column]:
    """Return the columns ``NAME``, ``NAME_low`` and ``NAME_high`` of a mean and its interval.

    ``centre`` is added to the label of the mean, or whatever else the interval belongs to;
    ``options`` are those of `Column`.
    """
    return {
        name: Column(f"{label}{centre}", unit, **options),
        f"{name}_low": Column(f"{label}, lower end of its interval", unit, **options),
        f"{name}_high": Column(f"{label}, upper end of its interval", unit, **options),
    }


def cells(name: str, interval: Iterable[float]) -> dict[str, float]:
    """Return the values of these columns: a mean and the ends of its interval, NaN if infinite."""
    finite = (math.nan if math.isinf(value) else value for value in interval)
    return dict(zip((name, f"{name}_low", f"{name}_high"), finite))


def exponent(x: Sequence[float] | np.ndarray, y: np.ndarray) -> float:
    """Return the slope of the mean over runs against ``x`` on logarithmic scales, y (n, runs).

    A nan is a run that is not known; every row needs one that is.
    """
    return power(x, np.nanmean(np.asarray(y, dtype=float), axis=1))


def of_exponent(
    x: Sequence[float] | np.ndarray, y: np.ndarray, *, paired: bool = False, seed: int = 0
) -> tuple[float, float]:
    """Return the interval of `exponent`: runs drawn again with replacement, each x by itself.

    ``paired``: the runs of one column belong together and are drawn as one.
    """
    y = np.asarray(y, dtype=float)
    rng = np.random.default_rng(seed)
    if paired:
        chosen = rng.integers(0, y.shape[1], (_RESAMPLED, y.shape[1]))
        means = np.log(y[:, chosen].mean(axis=2)).T
    else:
        known = [row[np.isfinite(row)] for row in y]
        again = [rng.choice(row, (_RESAMPLED, row.size)).mean(axis=1) for row in known]
        means = np.log(np.stack(again, axis=1))
    centred = np.log(np.asarray(x, dtype=float))
    centred -= centred.mean()
    slopes = means @ centred / (centred @ centred)
    low, high = np.quantile(slopes, [0.5 - LEVEL / 2, 0.5 + LEVEL / 2])
    return float(low), float(high)
