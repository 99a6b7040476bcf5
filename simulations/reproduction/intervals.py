"""Confidence intervals at 95 % of quantities that are measured in a few runs."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from scipy import stats

from simulations.reproduction.fits import power
from simulations.reproduction.predicates import Column

#: Default coverage of an interval.
LEVEL = 0.95
#: Number of bootstrap samples.
_RESAMPLED = 4000


def of_mean(values: Sequence[float] | np.ndarray, level: float = LEVEL) -> tuple[float, float]:
    """Return Student's interval of the mean of independent values.

    Parameters
    ----------
    values
        At least two values, shape (n,).
    level
        Coverage.
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

    Parameters
    ----------
    name, label, unit
        Name, label and unit of the quantity.
    centre
        Suffix of the label of ``NAME``.
    options
        Other fields of `Column`.
    """
    return {
        name: Column(f"{label}{centre}", unit, **options),
        f"{name}_low": Column(f"{label}, lower end of its interval", unit, **options),
        f"{name}_high": Column(f"{label}, upper end of its interval", unit, **options),
    }


def cells(name: str, interval: Iterable[float]) -> dict[str, float]:
    """Return the values of `columns`: a mean and the ends of its interval, NaN if infinite."""
    finite = (math.nan if math.isinf(value) else value for value in interval)
    return dict(zip((name, f"{name}_low", f"{name}_high"), finite))


def exponent(x: Sequence[float] | np.ndarray, y: np.ndarray) -> float:
    """Return the slope of the mean over runs on logarithmic scales.

    Parameters
    ----------
    x
        Abscissas, positive, shape (n,).
    y
        Ordinates, positive, shape (n, runs); NaN if missing, at least one per row is not.
    """
    return power(x, np.nanmean(np.asarray(y, dtype=float), axis=1))


def of_exponent(
    x: Sequence[float] | np.ndarray, y: np.ndarray, *, paired: bool = False, seed: int = 0
) -> tuple[float, float]:
    """Return the bootstrap interval of `exponent`.

    Parameters
    ----------
    x, y
        As for `exponent`.
    paired
        Resample the columns of ``y``, because the runs of a column depend on each other; by default
        resample the runs of each row.
    seed
        Seed of the bootstrap samples.
    """
    y = np.asarray(y, dtype=float)
    rng = np.random.default_rng(seed)
    if paired:
        chosen = rng.integers(0, y.shape[1], (_RESAMPLED, y.shape[1]))
        means = np.log(y[:, chosen].mean(axis=2)).T
    else:
        known = [row[np.isfinite(row)] for row in y]
        resampled = [rng.choice(row, (_RESAMPLED, row.size)).mean(axis=1) for row in known]
        means = np.log(np.stack(resampled, axis=1))
    centred = np.log(np.asarray(x, dtype=float))
    centred -= centred.mean()
    slopes = means @ centred / (centred @ centred)
    low, high = np.quantile(slopes, [0.5 - LEVEL / 2, 0.5 + LEVEL / 2])
    return float(low), float(high)
