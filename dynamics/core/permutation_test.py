"""Permutation tests of statistics that are sums over pairs of patches."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

#: Relative differences below this are rounding.
ROUNDING = 1e-12

#: Entries of maps that are processed at once: 32 MB.
BLOCK = 2**22


@dataclass(frozen=True)
class PairStatistic:
    """The statistic ``finish(sum_k sum_ij left[k, map, i, j] right[k, i, j])`` of several maps.

    Attributes
    ----------
    left
        Arrays (terms, maps, D, D).
    right
        Arrays (terms, D, D), whose rows and columns are permuted.
    finish
        Function of the sums (permutations, maps) that returns the statistic.
    sign
        1.0 if large values are extreme, -1.0 if small values are.
    """

    left: np.ndarray
    right: np.ndarray
    finish: Callable[[np.ndarray], np.ndarray]
    sign: float = 1.0

    def evaluate(self, permutations: np.ndarray) -> np.ndarray:
        """Return the statistic, shape (n, maps), for permutations (n, D) of the patches."""
        right = self.right[:, permutations[:, :, None], permutations[:, None, :]]
        total = np.zeros((len(permutations), self.left.shape[1]))
        for maps, weights in zip(self.left, right):
            total += weights.reshape(len(permutations), -1) @ maps.reshape(len(maps), -1).T
        return self.finish(total)


def permutation_test(statistic: PairStatistic, permutations: np.ndarray) -> list[np.ndarray]:
    """Compare a statistic with its distribution under permutations (n, D) of the patches.

    Returns
    -------
    list of ndarray
        Value, mean and standard deviation of the null, z score and one-sided p value, each of shape
        (maps,).
    """
    value = statistic.evaluate(np.arange(permutations.shape[1])[None])[0]
    at_once = max(1, BLOCK // (4 * permutations.shape[1] ** 2))
    null = np.concatenate(
        [
            statistic.evaluate(permutations[start : start + at_once])
            for start in range(0, len(permutations), at_once)
        ]
    )
    size = np.where(np.isfinite(value), np.maximum(abs(value), 1.0), 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean, sd = null.mean(axis=0), null.std(axis=0, ddof=min(1, len(permutations) - 1))
        z = np.where(sd > ROUNDING * size, (value - mean) / sd, np.nan)
    sign = statistic.sign
    as_extreme = (sign * null >= sign * value - ROUNDING * size).sum(axis=0)
    p = np.where(np.isnan(value), np.nan, (1.0 + as_extreme) / (1.0 + len(permutations)))
    return [value, mean, sd, z, p]
