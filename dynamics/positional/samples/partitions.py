"""Partitions of the patches into L sets of C, and the patch association of scores with them."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynamics.core.checks import require
from dynamics.core.jit import kernel
from dynamics.positional.partition import checked_partition
from dynamics.positional.problem import Problem

Partition = NDArray[np.intp]


def contiguous(problem: Problem) -> Partition:
    """Return blocks of C consecutive patches, (L, C)."""
    return checked_partition(problem)


def squares(problem: Problem) -> Partition:
    """Return square blocks of C patches in a square grid of D patches (Figure 1b-1), (L, C).

    Patches are numbered row by row.

    Raises
    ------
    ParameterError
        If C or D is not a square number, or if sqrt(C) does not divide sqrt(D).
    """
    side, width = math.isqrt(problem.C), math.isqrt(problem.D)
    require(side**2 == problem.C, "C", problem.C, "the square of an integer for square sets")
    require(width**2 == problem.D, "D", problem.D, "the square of an integer for a square grid")
    require(width % side == 0, "D", problem.D, f"a grid whose side is a multiple of {side}")
    grid = np.arange(problem.D, dtype=np.intp).reshape(width // side, side, width // side, side)
    return grid.transpose(0, 2, 1, 3).reshape(problem.L, problem.C)


def random_partition(problem: Problem, rng: np.random.Generator) -> Partition:
    """Return a uniformly random partition of the patches, (L, C)."""
    return rng.permutation(problem.D).astype(np.intp).reshape(problem.L, problem.C)


def set_of(problem: Problem, partition: Any = None) -> Partition:
    """Return the index of the set of each patch, (D,); a partition of ``None`` is contiguous."""
    owner = np.empty(problem.D, dtype=np.intp)
    for index, patches in enumerate(checked_partition(problem, partition)):
        owner[patches] = index
    return owner


def same_set(owner: Partition) -> NDArray[np.bool_]:
    """Return whether two patches belong to the same set, boolean (D, D).

    ``owner`` (D,) contains the set of each patch, from :func:`set_of`.
    """
    return np.asarray(owner[:, None] == owner)


def three_valued(owner: Partition, own: float, other: float, diagonal: float) -> np.ndarray:
    """Return a matrix (D, D) with three values as in Lemma 4.1.

    Parameters
    ----------
    owner
        Set of each patch, (D,).
    own, other, diagonal
        Values for pairs within a set, for pairs across sets, and for i = j.
    """
    A = np.where(same_set(owner), own, other)
    np.fill_diagonal(A, diagonal)
    return A


def patch_association(A: np.ndarray, owner: Partition) -> float:
    """Return the fraction of rows i with ``Top_C(A_i) = S_l(i)`` (Definition 2.2).

    The diagonal is included. A tie between an entry of the own set and one of another set counts as
    a failure.

    Parameters
    ----------
    A
        Attention scores (D, D).
    owner
        Set of each patch, (D,).
    """
    return float(_association_and_gap(A, owner)[0])


def association_gap(A: np.ndarray, owner: Partition) -> float:
    """Return the smallest off-diagonal ``A_ij`` within sets minus the largest across sets.

    Parameters
    ----------
    A
        Attention scores (D, D).
    owner
        Set of each patch, (D,).
    """
    return float(_association_and_gap(A, owner)[1])


@kernel
def _association_and_gap(A, owner):
    """Return `patch_association` and `association_gap`, which training records at every step."""
    D = owner.size
    associated, least, greatest = 0, np.inf, -np.inf
    for i in range(D):
        inside, outside = np.inf, -np.inf  # smallest A in the own set, greatest in the others
        for j in range(D):
            if owner[j] != owner[i]:
                outside = max(outside, A[i, j])
            elif i != j:
                inside = min(inside, A[i, j])
        associated += min(inside, A[i, i]) > outside
        least, greatest = min(least, inside), max(greatest, outside)
    return associated / D, least - greatest
