"""A learner without patch association that looks for the sets: coincidences across samples.

Theorem 5.2 of Jelassi et al. (2022) is about *any* such algorithm, so here is one that does its
best on Assumption 1. It finds the feature by averaging, reads off which patches agree with the
label, and looks for patches that do so together: those of a signal set all do, others by chance.
Knowing C, but neither sets nor feature, it ends with block attention to the sets found. What no
such learner can do is in `dynamics.positional.baselines.set_knowledge`.
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

#: A patch holds the feature where its part along it exceeds half of the feature.
_HALF = 0.5
_ROUNDS = 10
#: Scores within found sets, as good as infinite; scale of v, so that the power p dominates.
STRENGTH, SCALE = 20.0, 4.0
#: Share of coincidences in explained samples in the weight of a pair: decides ties only.
_FAINT = 1e-6


class Found(NamedTuple):
    """The sets (L, C) and the feature (d,) that were found, and the scores A (D, D) they give."""

    sets: NDArray[np.intp]
    feature: Array
    A: Array

    @property
    def v(self) -> Array:
        """Value vector (d,)."""
        return SCALE * self.feature


def look_for_sets(
    problem: Problem, X: np.ndarray, y: np.ndarray, rng: np.random.Generator
) -> Found:
    """Return sets, feature and model found from labelled samples X (N, D, d), y (N,).

    Raises
    ------
    ParameterError
        Data of the wrong shape or type.
    """
    check_data(problem, X, y)
    w = find_feature(X, y)
    agree = (X @ w) * y[:, None] > _HALF
    sets = find_sets(agree, problem.C, rng)
    owner = np.empty(problem.D, dtype=np.intp)
    owner[sets] = np.arange(problem.L)[:, None]
    A = np.where(same_set(owner), STRENGTH, 0.0)
    return Found(sets, w, A)


def find_feature(X: np.ndarray, y: np.ndarray) -> Array:
    r"""Return the unit vector (d,) that the patches share, with the sign that agrees with y.

    From the mean of ``y X_j`` on, which holds :math:`C w^*` per sample, patches are weighted by
    the sign of their part along the current vector where that exceeds 1/2. Only then is the sign
    of the vector chosen: by the majority of all features against the labels.
    """
    w = np.einsum("n,njk->k", y, X)
    w = w / np.linalg.norm(w)
    for _ in range(_ROUNDS):
        along = X @ w
        held = np.where(np.abs(along) > _HALF, np.sign(along), 0.0)
        if not held.any():
            break
        w = np.einsum("nj,njk->k", held, X)
        w = w / np.linalg.norm(w)
    along = X @ w
    held = np.where(np.abs(along) > _HALF, np.sign(along), 0.0) * y[:, None]
    return np.asarray(-w if held.sum() < 0.0 else w, dtype=float)


def find_sets(agree: NDArray[np.bool_], C: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return a partition (L, C) of the patches that explains which agree with the label, (N, D).

    Of ``n`` agreeing patches two belong to the signal set with probability ``C(C-1)/(n(n-1))``, all
    pairs being alike: the weight of their coincidence. Greedy: the pair of largest total weight is
    extended, patch by patch, by the one most coincident with all chosen so far (weight ``1/n`` of
    the patches left). Its samples are then explained and count no more. The patches are shuffled
    first, so that ties do not favour neighbours.

    Raises
    ------
    ParameterError
        Unless ``agree`` is a table whose D columns C divides.
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
        pairs = (here * (weight + _FAINT)[:, None]).T @ here
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
