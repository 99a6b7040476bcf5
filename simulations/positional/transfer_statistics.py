"""Statistics of the test errors of transfer runs, with 95 % intervals.

Runs come in `SEEDS` independent groups: run ``number`` belongs to group ``number % SEEDS``. Each
group has its own pre-training data, downstream data and held-out samples. Bootstrap intervals
resample groups, then runs within them; intervals of failure rates are binomial.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import xarray
from scipy import stats

from dynamics import Problem
from dynamics.positional.baselines.linear_models import uniform_error
from dynamics.positional.baselines.set_knowledge import coupon_collector, least_error, least_samples
from simulations.reproduction.fits import power
from simulations.reproduction.intervals import LEVEL, of_mean

#: Independent groups of runs.
SEEDS = 5
#: A test error above this is a failed run: the feature was learned with the wrong sign.
FAILED = 0.5
_RESAMPLES = 400
_LEAST = 1e-6


class Interval(NamedTuple):
    """A number with the ends of its 95 % interval."""

    value: float
    low: float
    high: float


class SweepConfig(NamedTuple):
    """A sweep over sample sizes: learner, mean number qD of random features, D, sizes, runs.

    ``runs`` is the number of runs at each of the ``sizes``.
    """

    learner: str
    qD: float
    D: int
    sizes: tuple[int, ...]
    runs: int


class Sweep(NamedTuple):
    """Test errors of a learner on a problem, over sample sizes and runs.

    Attributes
    ----------
    learner, problem
        The learner (`simulations.positional.learners`) and the downstream problem.
    sizes
        Numbers of samples, (n,).
    errors
        Test errors, (n, runs).
    """

    learner: str
    problem: Problem
    sizes: tuple[int, ...]
    errors: np.ndarray

    @property
    def mean(self) -> np.ndarray:
        """Mean test error over runs, (n,)."""
        return np.asarray(self.errors.mean(axis=1))

    def needed(self, threshold: float) -> float:
        """Return the number of samples that keeps the mean error at or below a threshold.

        It is interpolated on logarithmic scales. It is the smallest size if that suffices, and
        infinite if the largest size does not.
        """
        return crossing(self.sizes, self.mean, threshold)

    def needed_by_seed(self, threshold: float) -> list[float]:
        """Return `needed` for each group of runs alone, (SEEDS,)."""
        groups = _groups(self.errors.shape[1])
        return [
            crossing(self.sizes, self.errors[:, group].mean(axis=1), threshold) for group in groups
        ]

    def resampled(self, rng: np.random.Generator) -> np.ndarray:
        """Return bootstrap mean errors, (n, resamples): groups are resampled, then their runs."""
        runs = self.errors.shape[1]
        groups = min(SEEDS, runs)
        counts = np.array([len(range(group, runs, groups)) for group in range(groups)])
        chosen = rng.integers(groups, size=(_RESAMPLES, groups, 1))
        uniform = rng.random((_RESAMPLES, groups, int(counts.max())))
        run = chosen + groups * np.floor(uniform * counts[chosen]).astype(int)
        return np.asarray(self.errors[:, run].mean(axis=(2, 3)))

    def interval(self, threshold: float, seed: int) -> Interval:
        """Return `needed` with its bootstrap interval; an end is infinite if not reached."""
        means = self.resampled(np.random.default_rng(seed))
        needed = [crossing(self.sizes, mean, threshold) for mean in means.T]
        return Interval(self.needed(threshold), *_ends(np.array(needed)))

    def error_interval(self, size: int) -> Interval:
        """Return the mean error at a size with an interval that includes rare failures.

        Failed runs are rare and have errors near 1: a bootstrap of a sample without any would
        ignore them. The interval combines a binomial one for their share with Student's t for the
        group means of the other runs.
        """
        errors = self.errors[self.sizes.index(size)]
        bad = errors > FAILED
        share = binomial_interval(int(bad.sum()), errors.size)
        good = errors[~bad]
        if good.size == 0:
            return Interval(float(errors.mean()), share.low, 1.0)
        means = [errors[group][~bad[group]] for group in _groups(errors.size)]
        middle = group_interval(np.array([part.mean() for part in means if part.size]))
        low = (1.0 - share.low) * max(middle.low, 0.0) + share.low * FAILED
        high = (1.0 - share.high) * min(middle.high, 1.0) + share.high
        return Interval(float(errors.mean()), float(low), float(high))

    def by_group(self, size: int) -> np.ndarray:
        """Return the mean error at a size in each group of runs, (SEEDS,)."""
        errors = self.errors[self.sizes.index(size)]
        return np.array([errors[group].mean() for group in _groups(errors.size)])


def group_interval(means: np.ndarray) -> Interval:
    """Return the mean of independent group means with its interval by Student's t."""
    ends = of_mean(means) if means.size > 1 else (-math.inf, math.inf)
    return Interval(float(np.mean(means)), *ends)


def _groups(runs: int) -> list[slice]:
    return [slice(group, None, SEEDS) for group in range(min(SEEDS, runs))]


def _ends(values: np.ndarray) -> tuple[float, float]:
    """Return the ends of the middle 95 % of values, some of which may be infinite."""
    ranked = np.sort(values)
    outside = (1.0 - LEVEL) / 2.0
    first = math.floor(outside * (ranked.size - 1))
    return float(ranked[first]), float(ranked[ranked.size - 1 - first])


def crossing(sizes: Sequence[int], mean: np.ndarray, threshold: float) -> float:
    """Return the interpolated size above which ``mean`` (n,) stays at or below a threshold."""
    mean = np.maximum(mean, _LEAST)
    above = np.flatnonzero(mean > threshold)
    if above.size == 0:
        return float(sizes[0])
    last = int(above[-1])
    if last == len(sizes) - 1:
        return math.inf
    low, high = np.log(mean[last]), np.log(mean[last + 1])
    share = (low - math.log(threshold)) / (low - high)
    return float(sizes[last] * (sizes[last + 1] / sizes[last]) ** share)


def binomial_interval(count: int, runs: int) -> Interval:
    """Return a share with its interval by Clopper and Pearson, of at least 95 % coverage."""
    interval = stats.binomtest(count, runs).proportion_ci(LEVEL, method="exact")
    return Interval(count / runs, float(interval.low), float(interval.high))


def exponent(sizes: Sequence[float], needed: Sequence[float]) -> float:
    """Return the fitted power of D in the samples needed; NaN if some are infinite."""
    if not np.isfinite(needed).all():
        return math.nan
    return power(sizes, needed)


def exponent_interval(sweeps: Sequence[Sweep], threshold: float, seed: int) -> Interval:
    """Return the fitted power of D with its bootstrap interval; NaN if it cannot be fitted.

    Resamples in which some D does not reach the threshold are left out.
    """
    rng = np.random.default_rng(seed)
    D = [sweep.problem.D for sweep in sweeps]
    power = exponent(D, [sweep.needed(threshold) for sweep in sweeps])
    means = [sweep.resampled(rng) for sweep in sweeps]
    powers = np.empty(_RESAMPLES)
    for k in range(_RESAMPLES):
        needed = [
            crossing(sweep.sizes, mean[:, k], threshold) for sweep, mean in zip(sweeps, means)
        ]
        powers[k] = exponent(D, needed)
    powers = powers[np.isfinite(powers)]
    if powers.size == 0:
        return Interval(power, math.nan, math.nan)
    return Interval(power, *_ends(powers))


def interval_text(low: float, high: float) -> str:
    """Return an interval of the samples needed as text, such as ``1.9 to 2.6``."""
    ends = ("more than tried" if math.isnan(end) else f"{end:.3g}" for end in (low, high))
    return " to ".join(dict.fromkeys(ends))


def learning_curves(
    results: Mapping[SweepConfig, Sweep],
    threshold: float,
    seed: int,
    special: Mapping[float, float] | None = None,
) -> xarray.Dataset:
    """Return the errors of sweeps as a dataset, dims (entry, size, run); NaN for missing runs.

    Parameters
    ----------
    results
        Results of the sweeps.
    threshold
        Mean error at which ``needed`` and its interval are determined.
    seed
        Seed of the bootstrap.
    special
        Thresholds for some qD.

    Returns
    -------
    xarray.Dataset
        ``least`` and ``least_needed`` are the exact bounds for learners that do not know the sets.
    """
    rows = list(results.items())
    sizes = np.full((len(rows), max(len(entry.sizes) for entry, _ in rows)), np.nan)
    errors = np.full((*sizes.shape, max(entry.runs for entry, _ in rows)), np.nan)
    least = np.full_like(sizes, np.nan)
    levels = [(special or {}).get(entry.qD, threshold) for entry, _ in rows]
    for number, (entry, sweep) in enumerate(rows):
        sizes[number, : len(entry.sizes)] = entry.sizes
        errors[number, : len(entry.sizes), : entry.runs] = sweep.errors
        least[number, : len(entry.sizes)] = [least_error(sweep.problem, N) for N in entry.sizes]
    needed = [sweep.interval(level, seed) for (_, sweep), level in zip(rows, levels)]
    return xarray.Dataset(
        {
            "samples": (("entry", "size"), sizes),
            "error": (("entry", "size", "run"), errors),
            "least": (("entry", "size"), least),
            "needed": ("entry", [ends.value for ends in needed]),
            "needed_low": ("entry", [ends.low for ends in needed]),
            "needed_high": ("entry", [ends.high for ends in needed]),
            "least_needed": (
                "entry",
                [least_samples(sweep.problem, level) for (_, sweep), level in zip(rows, levels)],
            ),
            "collected": ("entry", [coupon_collector(sweep.problem.L) for _, sweep in rows]),
            "linear": ("entry", [uniform_error(sweep.problem).coin for _, sweep in rows]),
        },
        coords={
            "learner": ("entry", [entry.learner for entry, _ in rows]),
            "qD": ("entry", [entry.qD for entry, _ in rows]),
            "D": ("entry", [entry.D for entry, _ in rows]),
            "threshold": ("entry", levels),
        },
        attrs={"set_size": rows[0][1].problem.C},
    )
