"""Sums over pairs of patches, where these are and where they are put at random."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

#: Relative: what differs by less is equal but for rounding.
ROUNDING = 1e-12

#: Entries of maps that are measured at once: 32 MB.
BLOCK = 2**22


@dataclass(frozen=True)
class Form:
    """A measure as ``finish(sum_k sum_ij left[k, map, i, j] right[k, place i, place j])``."""

    left: np.ndarray
    right: np.ndarray
    finish: Callable[[np.ndarray], np.ndarray]
    sign: float = 1.0

    def at(self, places: np.ndarray) -> np.ndarray:
        """Return the measure (draws, maps) when draw n puts patch i at ``places[n, i]``."""
        right = self.right[:, places[:, :, None], places[:, None, :]]
        total = np.zeros((len(places), self.left.shape[1]))
        for one, other in zip(self.left, right):
            total += other.reshape(len(places), -1) @ one.reshape(len(one), -1).T
        return self.finish(total)


def against(form: Form, places: np.ndarray) -> list[np.ndarray]:
    """Return the fields of a measure where the patches are, beside where they are put."""
    value = form.at(np.arange(places.shape[1])[None])[0]
    at_once = max(1, BLOCK // (4 * places.shape[1] ** 2))
    drawn = np.concatenate(
        [form.at(places[start : start + at_once]) for start in range(0, len(places), at_once)]
    )
    size = np.where(np.isfinite(value), np.maximum(abs(value), 1.0), 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean, sd = drawn.mean(axis=0), drawn.std(axis=0, ddof=min(1, len(places) - 1))
        z = np.where(sd > ROUNDING * size, (value - mean) / sd, np.nan)
    as_local = (form.sign * drawn >= form.sign * value - ROUNDING * size).sum(axis=0)
    p = np.where(np.isnan(value), np.nan, (1.0 + as_local) / (1.0 + len(places)))
    return [value, mean, sd, z, p]
