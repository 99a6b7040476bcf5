"""Statistics of the test errors of transfer runs, with 95 % intervals.

Runs come in `SEEDS` independent groups: run ``number`` belongs to group ``number % SEEDS``. Each
group has its own pre-training data, downstream data and held-out samples. Bootstrap intervals
resample groups, then runs within them; intervals of failure rates are binomial.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats

from dynamics import Problem
from simulations.reproduction.fits import power

#: Independent groups of runs.
SEEDS = 5
#: A test error above this is a failed run: the feature was learned with the wrong sign.
FAILED = 0.5
#: Confidence of every interval.
LEVEL = 0.95
_RESAMPLES = 400
_LEAST = 1e-6


class Interval(NamedTuple):
    """A number with the ends of its 95 % interval."""

    value: float
    low: float
    high: float


class Sweep(NamedTuple):
    """Test errors of a learner on a problem: sizes (n,), errors (n, runs)."""

    learner: str
    problem: Problem
    sizes: tuple[int, ...]
    errors: np.ndarray

    @property
    def mean(self) -> np.ndarray:
        """Mean over runs, (n,)."""
        return np.asarray(self.errors.mean(axis=1))

    def needed(self, threshold: float) -> float:
        """Return the samples from which on the mean error stays at or below a threshold.

        Interpolated on logarithmic scales; the smallest size if it already suffices, infinite if
        the largest does not.
        """
        return crossing(self.sizes, self.mean, threshold)

    def needed_by_seed(self, threshold: float) -> list[float]:
        """Return the same from the runs of each group alone, (SEEDS,)."""
        groups = _groups(self.errors.shape[1])
        return [
            crossing(self.sizes, self.errors[:, group].mean(axis=1), threshold) for group in groups
        ]

    def resampled(self, rng: np.random.Generator) -> np.ndarray:
        """Return mean errors (n, resamples) of groups, and runs within them, drawn again."""
        runs = self.errors.shape[1]
        groups = min(SEEDS, runs)
        members = np.array([len(range(group, runs, groups)) for group in range(groups)])
        chosen = rng.integers(groups, size=(_RESAMPLES, groups, 1))
        draws = rng.random((_RESAMPLES, groups, int(members.max())))
        run = chosen + groups * np.floor(draws * members[chosen]).astype(int)
        return np.asarray(self.errors[:, run].mean(axis=(2, 3)))

    def interval(self, threshold: float, seed: int) -> Interval:
        """Return the samples needed with their bootstrap interval, ends infinite if not reached."""
        again = self.resampled(np.random.default_rng(seed))
        found = [crossing(self.sizes, mean, threshold) for mean in again.T]
        return Interval(self.needed(threshold), *_ends(np.array(found)))

    def error_interval(self, size: int) -> Interval:
        """Return the mean error at a size with an interval that does not trust the bootstrap.

        Failed runs are rare and near 1, so that a sample without any would say 0: their share
        gets a binomial interval, and what is left a normal one over the groups' means.
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
    """Return the mean of independent groups' means with its interval by Student's t."""
    value = float(np.mean(means))
    if means.size < 2:
        return Interval(value, -math.inf, math.inf)
    quantile = stats.t.ppf(0.5 + LEVEL / 2.0, means.size - 1)
    half = float(quantile * np.std(means, ddof=1) / math.sqrt(means.size))
    return Interval(value, value - half, value + half)


def _groups(runs: int) -> list[slice]:
    return [slice(group, None, SEEDS) for group in range(min(SEEDS, runs))]


def _ends(values: np.ndarray) -> tuple[float, float]:
    """Return the ends of the middle 95 % of values that may be infinite."""
    ranked = np.sort(values)
    outside = (1.0 - LEVEL) / 2.0
    first = math.floor(outside * (ranked.size - 1))
    return float(ranked[first]), float(ranked[ranked.size - 1 - first])


def crossing(sizes: Sequence[int], mean: np.ndarray, threshold: float) -> float:
    """Return the size from which on ``mean`` (n,) stays at or below a threshold."""
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
    """Return a share with its interval by Clopper and Pearson: it covers at least 95 %."""
    found = stats.binomtest(count, runs).proportion_ci(LEVEL, method="exact")
    return Interval(count / runs, float(found.low), float(found.high))


def exponent(sizes: Sequence[float], needed: Sequence[float]) -> float:
    """Return the fitted power of D in the samples needed, nan where some are infinite."""
    if not np.isfinite(needed).all():
        return math.nan
    return power(sizes, needed)


def exponent_interval(sweeps: Sequence[Sweep], threshold: float, seed: int) -> Interval:
    """Return the fitted power of D with its bootstrap interval, nan where nothing can be fitted.

    Draws in which some D does not reach the threshold are left out.
    """
    rng = np.random.default_rng(seed)
    D = [sweep.problem.D for sweep in sweeps]
    power = exponent(D, [sweep.needed(threshold) for sweep in sweeps])
    means = [sweep.resampled(rng) for sweep in sweeps]
    again = np.empty(_RESAMPLES)
    for k in range(_RESAMPLES):
        needed = [crossing(one.sizes, mean[:, k], threshold) for one, mean in zip(sweeps, means)]
        again[k] = exponent(D, needed)
    kept = again[np.isfinite(again)]
    if kept.size == 0:
        return Interval(power, math.nan, math.nan)
    return Interval(power, *_ends(kept))


def interval_text(low: float, high: float) -> str:
    """Return the ends of the interval of the samples needed, such as ``1.9 to 2.6``."""
    ends = ("more than tried" if math.isnan(end) else f"{end:.3g}" for end in (low, high))
    return " to ".join(dict.fromkeys(ends))
