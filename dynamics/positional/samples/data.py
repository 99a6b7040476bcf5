"""Samples of the distribution of Assumption 1, and their labelling function."""

import math
import os
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynamics.core.arrays import unit_vector
from dynamics.core.checks import integer, require
from dynamics.core.errors import ParameterError
from dynamics.positional.labelling import threshold
from dynamics.positional.partition import checked_partition
from dynamics.positional.problem import Problem

_SHARE_OF_MEMORY = 0.8
_BLOCK_BYTES = 2**22
_ROUNDINGS = 64  # error of a coefficient of w* in machine epsilons


def sample(
    problem: Problem,
    N: int,
    rng: np.random.Generator,
    partition: Any = None,
    w_star: ArrayLike | None = None,
    *,
    dtype: Any = np.float64,
    projected: bool = True,
) -> tuple[np.ndarray, np.ndarray]:
    r"""Return N random labelled data points of Assumption 1.

    In the signal set, uniform among the L, :math:`X_j = y w^* + \xi_j`; every other patch has
    :math:`X_j = \delta_j w^* + \xi_j`, :math:`\delta_j = \pm 1` with probability q/2 each, else 0;
    :math:`\xi_j\sim\mathcal N(0,\sigma^2(I-w^*w^{*\top}))`.

    Parameters
    ----------
    problem, N, rng
        Constants, number of samples, and random generator.
    partition
        Sets, (L, C) patch indices; ``None`` means contiguous blocks.
    w_star
        Feature, a unit vector (d,); ``None`` means the first unit vector.
    dtype
        ``float64`` or ``float32``.
    projected
        Whether the noise is orthogonal to w*; otherwise it is ``N(0, sigma^2 I)``.

    Returns
    -------
    X : ndarray, shape (N, D, d)
        Data, of type ``dtype``.
    y : ndarray, shape (N,)
        Labels in {-1, +1}, of type ``dtype``.

    Raises
    ------
    ParameterError
        If an argument is outside its domain, or if the data exceed the memory of this computer.
    """
    dtype = real_dtype(dtype)
    N = integer("N", N, 1)
    w = feature(problem, w_star)
    partition = checked_partition(problem, partition)
    shape = (N, problem.D, problem.dimension)
    require_memory("N", N, math.prod(shape) * dtype.itemsize)
    coefficients, y = draw_coefficients(problem, N, rng, partition)
    X = np.empty(shape, dtype=dtype)
    along, scale = w.astype(dtype), dtype.type(problem.noise)
    block = max(1, _BLOCK_BYTES // X[0].nbytes)
    for first in range(0, N, block):
        part = X[first : first + block]
        rng.standard_normal(out=part, dtype=dtype)
        part *= scale
        if projected:
            inner = part @ along
            part += (coefficients[first : first + block] - inner)[..., None] * along
        else:
            part += coefficients[first : first + block, :, None].astype(dtype) * along
    return X, y.astype(dtype)


def draw_coefficients(
    problem: Problem, N: int, rng: np.random.Generator, partition: NDArray[np.intp]
) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
    """Return random coefficients of w* in every patch, (N, D), and labels, (N,).

    Parameters
    ----------
    problem, N, rng
        Constants, number of samples, and random generator.
    partition
        Sets, (L, C) patch indices.
    """
    y = (2 * rng.integers(0, 2, N) - 1).astype(np.int8)
    signal = rng.integers(0, problem.L, N)
    draws = rng.random((N, problem.D))
    half = problem.q / 2
    coefficients = (draws < half).astype(np.int8)
    coefficients -= ((draws >= half) & (draws < problem.q)).astype(np.int8)
    coefficients[np.arange(N)[:, None], partition[signal]] = y[:, None]
    return coefficients, y


def labelling_function(
    problem: Problem, X: np.ndarray, partition: Any = None, w_star: ArrayLike | None = None
) -> np.ndarray:
    r"""Return the labelling function f* of Assumption 1 for every sample, (N,).

    :math:`f^*(X)=\sum_\ell\mathrm{Threshold}_{0.9C}(\sum_{i\in S_\ell}\langle w^*,X_i\rangle)`,
    where the threshold function replaces sums of modulus at most 0.9 C by 0.

    Parameters
    ----------
    problem
        Constants.
    X
        Data (N, D, d).
    partition
        Sets, (L, C) patch indices; ``None`` means contiguous blocks.
    w_star
        Feature, a unit vector (d,); ``None`` means the first unit vector.
    """
    w = feature(problem, w_star)
    check_data(problem, X)
    inner = X @ w.astype(X.dtype)
    return labels_of_coefficients(problem, inner, checked_partition(problem, partition))


def labels_of_coefficients(
    problem: Problem, coefficients: np.ndarray, partition: NDArray[np.intp]
) -> np.ndarray:
    """Return f* (N,) from the coefficients of w* (N, D); values within rounding of 0 are 0."""
    sums = coefficients[:, partition].sum(axis=2, dtype=np.float64)
    exact = np.issubdtype(coefficients.dtype, np.integer)
    rounding = 0.0 if exact else problem.C * _ROUNDINGS * float(np.finfo(coefficients.dtype).eps)
    counted = np.where(np.abs(sums) > threshold(problem.C) + rounding, sums, 0.0)
    total = counted.sum(axis=1)
    return np.asarray(np.where(np.abs(total) <= problem.L * rounding, 0.0, total))


def disagreement(problem: Problem, X: np.ndarray, y: np.ndarray) -> float:
    """Return the fraction of samples with ``y f*(X) <= 0``, for contiguous sets."""
    return float(np.mean(labelling_function(problem, X) * y <= 0.0))


def feature(problem: Problem, w_star: ArrayLike | None) -> np.ndarray:
    """Return w* as a validated unit vector (d,); ``None`` means the first unit vector."""
    if w_star is None:
        return np.eye(1, problem.dimension)[0]
    return unit_vector("w_star", w_star, problem.dimension)


def random_feature(problem: Problem, rng: np.random.Generator) -> np.ndarray:
    """Return a uniformly distributed unit vector, (d,)."""
    w = rng.standard_normal(problem.dimension)
    w /= np.linalg.norm(w)
    return np.asarray(w / np.linalg.norm(w))


def check_data(problem: Problem, X: np.ndarray, y: np.ndarray | None = None) -> None:
    """Raise ParameterError for data of the wrong shape or type, and for labels not -1 or +1."""
    ok = isinstance(X, np.ndarray) and X.dtype in (np.float64, np.float32)
    if not ok:
        dtype = getattr(X, "dtype", type(X).__name__)
        raise ParameterError(
            f"X of type {dtype} is not allowed: X must be a float64 or float32 array"
        )
    shape = (problem.D, problem.dimension)
    require(
        X.ndim == 3 and X.shape[0] >= 1 and X.shape[1:] == shape,
        "the shape of X",
        X.shape,
        f"(N, {shape[0]}, {shape[1]})",
    )
    if y is not None:
        y = np.asarray(y)
        require(y.shape == X.shape[:1], "the shape of y", y.shape, f"({X.shape[0]},)")
        if not np.all((y == 1) | (y == -1)):
            raise ParameterError("y is not allowed: all labels must be -1 or +1")


def real_dtype(dtype: Any) -> np.dtype[Any]:
    """Return float64 or float32 as a NumPy type; raise ParameterError for other types."""
    try:
        result = np.dtype(dtype)
    except TypeError:
        result = None
    require(result in (np.float64, np.float32), "dtype", dtype, "float64 or float32")
    assert result is not None
    return result


def physical_memory() -> int:
    """Return the physical memory in bytes, or 2**63 if it is unknown."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 2**63


def fits_into_memory(needed: int) -> bool:
    """Return whether arrays of ``needed`` bytes leave a fifth of the physical memory free."""
    return needed <= _SHARE_OF_MEMORY * physical_memory()


def require_memory(name: str, value: Any, needed: int) -> None:
    """Raise ParameterError unless ``needed`` bytes leave a fifth of the physical memory free."""
    if not fits_into_memory(needed):
        memory = physical_memory()
        raise ParameterError(
            f"{name} = {value} is not allowed: the data take {needed / 2**30:.1f} GiB of the "
            f"{memory / 2**30:.1f} GiB of memory of this computer, and at most "
            f"{_SHARE_OF_MEMORY * memory / 2**30:.1f} GiB may be used"
        )
