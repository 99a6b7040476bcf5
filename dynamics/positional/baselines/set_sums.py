"""Exact distributions of statistics that depend on the data through the sums of the sets alone.

Let ``n_l`` be the sum over set ``l`` of the coefficients ``s_j`` of w* (Assumption 1). The signal
set has ``n = y C``; the others are independent. Statistics that add up over the sets, such as the
labelling function or the output of block attention, have a joint distribution that is a convolution
power.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynamics.core.errors import ParameterError
from dynamics.positional.labelling import threshold
from dynamics.positional.random_sets import TRIM, Array

_MAX_ATOMS = 30_000_000


class Law(NamedTuple):
    """Discrete distribution.

    Attributes
    ----------
    values
        Atoms, (m, k).
    probability
        Their probabilities, (m,).
    dropped
        Total probability of the atoms left out.
    """

    values: NDArray[np.int64]
    probability: Array
    dropped: float


def joint_law(single: ArrayLike, statistics: ArrayLike, count: int) -> Law:
    """Return the joint distribution of integer statistics summed over independent units.

    Parameters
    ----------
    single
        Probabilities (m,) of the types of one unit (a set, or a pair of sets).
    statistics
        Integers (m, k): the statistics of each type.
    count
        Number of units.

    Raises
    ------
    ParameterError
        If the sums take too many values.
    """
    steps = np.asarray(statistics, dtype=np.int64)
    reach = count * np.abs(steps).max(axis=0) + 1.0
    base = np.concatenate([[1.0], np.cumprod(2.0 * reach[:-1] + 1.0)])
    if base[-1] * (2.0 * reach[-1] + 1.0) > 2.0**62:
        raise ParameterError(f"sums of {count} sets up to {reach.max():g} overflow an exact law")
    radix = base.astype(np.int64)
    codes, index = np.unique(steps @ radix, return_inverse=True)
    law = np.bincount(index.ravel(), weights=np.asarray(single, dtype=float))
    keys: NDArray[np.int64] = np.zeros(1, dtype=np.int64)
    mass: Array = np.ones(1)
    dropped = 0.0
    for _ in range(count):
        if keys.size * codes.size > _MAX_ATOMS:
            raise ParameterError(
                f"an exact law of {count} sets has too many values: more than {_MAX_ATOMS}"
            )
        terms, weights = (codes[:, None] + keys).ravel(), np.outer(law, mass).ravel()
        likely = weights >= TRIM / weights.size
        dropped += float(weights[~likely].sum())
        terms, weights = terms[likely], weights[likely]
        order = np.argsort(terms, kind="stable")  # one sorted run for each code: a fast merge
        terms = terms[order]
        first = np.flatnonzero(np.diff(terms, prepend=terms[0] - 1))
        keys, mass = terms[first], np.add.reduceat(weights[order], first)
        rare = np.flatnonzero(mass < TRIM)
        rare = rare[np.argsort(mass[rare])]
        rare = rare[: int(np.searchsorted(np.cumsum(mass[rare]), TRIM))]
        dropped += float(mass[rare].sum())
        frequent = np.ones(keys.size, dtype=bool)
        frequent[rare] = False
        keys, mass = keys[frequent], mass[frequent]
    return Law(_decode(keys, radix), mass, dropped)


def _decode(keys: NDArray[np.int64], base: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the integers encoded by mixed-radix keys with balanced digits."""
    values = np.empty((keys.size, base.size), dtype=np.int64)
    rest = keys.copy()
    for k in reversed(range(base.size)):
        values[:, k] = np.floor_divide(rest + base[k] // 2, base[k])
        rest -= values[:, k] * base[k]
    return values


def labelling_statistic(C: int) -> NDArray[np.int64]:
    """Return Threshold_{0.9C} of the sums -C .. C, (2C + 1,)."""
    sums = np.arange(-C, C + 1)
    return np.where(np.abs(sums) > threshold(C), sums, 0)
