"""A learner without patch association that recovers the sets from coincidences across samples.

Theorem 5.2 of Jelassi et al. (2022) is about *any* such algorithm; this is one that performs well
on Assumption 1. It estimates the feature by averaging, determines the patches that agree with the
label, and searches for patches that do so in the same samples: the patches of a signal set always
do, others at random. It knows C, but neither sets nor feature, and results in block attention to
the recovered sets. See `dynamics.positional.baselines.set_knowledge` for a lower bound of the error
of all such learners.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynamics.core.checks import require
from dynamics.core.errors import ParameterError
from dynamics.positional.problem import Problem
from dynamics.positional.samples.data import check_data
from dynamics.positional.samples.partitions import same_set

Array = NDArray[np.float64]

#: A patch contains the feature if its component along it exceeds this fraction.
_HALF = 0.5
_ROUNDS = 10
#: Scores within recovered sets, practically infinite; scale of v, so that the power p dominates.
STRENGTH, SCALE = 20.0, 4.0
#: Weight of coincidences in removed samples, which only matters for ties.
_TIE_WEIGHT = 1e-6


class RecoveredSets(NamedTuple):
    """Result of :func:`recover_sets`.

    Attributes
    ----------
    sets
        Patch indices of each set, (L, C).
    feature
        Estimate of w*, (d,).
    A
        Attention scores for these sets, (D, D).
    """

    sets: NDArray[np.intp]
    feature: Array
    A: Array

    @property
    def v(self) -> Array:
        """Value vector (d,)."""
        return SCALE * self.feature


def recover_sets(
    problem: Problem, X: np.ndarray, y: np.ndarray, rng: np.random.Generator
) -> RecoveredSets:
    """Return sets, feature and scores estimated from labelled samples.

    Parameters
    ----------
    problem, X, y
        Constants, data (N, D, d) and labels (N,).
    rng
        Random generator, for ties.

    Raises
    ------
    ParameterError
        If the data have the wrong shape or type.
    """
    check_data(problem, X, y)
    w = find_feature(X, y)
    agree = (X @ w) * y[:, None] > _HALF
    sets = find_sets(agree, problem.C, rng)
    owner = np.empty(problem.D, dtype=np.intp)
    owner[sets] = np.arange(problem.L)[:, None]
    A = np.where(same_set(owner), STRENGTH, 0.0)
    return RecoveredSets(sets, w, A)


def find_feature(X: np.ndarray, y: np.ndarray) -> Array:
    """Return the unit vector (d,) common to the patches, with the sign that agrees with the labels.

    The first estimate is the mean of ``y X_j``, which contains :math:`C w^*` per sample. Then
    patches are weighted by the sign of their component along the current vector if that exceeds
    1/2. The sign of the vector is chosen last, by the majority of all features against the labels.
    """
    w = np.einsum("n,njk->k", y, X)
    w = w / np.linalg.norm(w)
    for _ in range(_ROUNDS):
        along = X @ w
        carried = np.where(np.abs(along) > _HALF, np.sign(along), 0.0)
        if not carried.any():
            break
        w = np.einsum("nj,njk->k", carried, X)
        w = w / np.linalg.norm(w)
    along = X @ w
    carried = np.where(np.abs(along) > _HALF, np.sign(along), 0.0) * y[:, None]
    return np.asarray(-w if carried.sum() < 0.0 else w, dtype=float)


def find_sets(agree: NDArray[np.bool_], C: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return a partition (L, C) of the patches that explains coincidences with the label.

    Two of ``n`` agreeing patches belong to the signal set with probability ``C(C-1)/(n(n-1))``, the
    same for all pairs: this is the weight of their coincidence. The algorithm is greedy: the pair
    of largest total weight is extended, patch by patch, by the patch most coincident with all
    chosen ones (weight ``1/n`` of the remaining patches). The samples of a complete set are then
    removed. The patches are shuffled first, so that ties do not favour neighbouring patches.

    Parameters
    ----------
    agree
        Which patches agree with the label, (N, D).
    C
        Size of a set.
    rng
        Random generator.

    Raises
    ------
    ParameterError
        If ``agree`` is not a matrix, or if C does not divide D.
    """
    agree = np.asarray(agree, dtype=bool)
    if agree.ndim != 2:
        raise ParameterError(
            f"agree of shape {agree.shape} is not allowed: agree must be a table (N, D)"
        )
    N, D = agree.shape
    require(D % C == 0, "D", D, f"a multiple of C = {C}")
    order = rng.permutation(D)
    sets = []
    unexplained = np.ones(N, dtype=bool)
    while order.size:
        here = agree[:, order].astype(float)
        size = here.sum(axis=1)
        counts = unexplained & (size >= C)
        weight = np.where(counts, 1.0 / np.maximum(size * (size - 1.0), 1.0), 0.0)
        pairs = (here * (weight + _TIE_WEIGHT)[:, None]).T @ here
        np.fill_diagonal(pairs, -np.inf)
        chosen = list(divmod(int(np.argmax(pairs)), order.size))
        while len(chosen) < C:
            together = counts & here[:, chosen].all(axis=1)
            share = np.where(together, 1.0 / np.maximum(size - len(chosen), 1.0), 0.0)
            score = share @ here + pairs[chosen].sum(axis=0)
            score[chosen] = -np.inf
            chosen.append(int(np.argmax(score)))
        sets.append(order[chosen])
        unexplained &= ~here[:, chosen].all(axis=1)
        order = np.delete(order, chosen)
    return np.array(sets, dtype=np.intp)
