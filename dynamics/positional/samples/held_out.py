"""Test error of a model on held-out samples, computed from scalar projections of the patches."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dynamics.core.arrays import real_array
from dynamics.core.checks import integer
from dynamics.positional.partition import checked_partition
from dynamics.positional.problem import Problem
from dynamics.positional.samples.data import (
    draw_coefficients,
    feature,
    labels_of_coefficients,
)
from dynamics.positional.samples.gradient import softmax_rows

_BLOCK = 4096
_STORED_BYTES = 2**28
_ROUNDING = 64 * np.finfo(float).eps


class ErrorRate(NamedTuple):
    """Error rates of a model on held-out samples.

    Attributes
    ----------
    error
        Fraction with ``y F <= 0``.
    ties
        Fraction with ``F = 0``, contained in ``error``.
    disagreement
        Fraction with ``f* F <= 0``.
    bound
        Three standard errors of ``error``.
    """

    error: float
    ties: float
    disagreement: float
    bound: float


class HeldOut:
    r"""Held-out samples for the test error of a model (A, v), the same ones at every call.

    The model depends on a patch through :math:`\langle v, X_j\rangle = v_0 s_j +
    |v_\perp|\sigma g_j` with :math:`v_0=\langle v,w^*\rangle`, ``s_j`` the coefficient of w* and
    ``g_j`` standard normal. Only ``s_j`` and ``g_j`` are sampled. F is odd, so that y = +1 is
    enough. Samples above 256 MiB are generated again, block by block, at every call.

    Parameters
    ----------
    problem, samples, seed, partition
        Constants, number of samples, seed, and sets (L, C), ``None`` for contiguous blocks.
    projected
        Whether the noise is orthogonal to w*, as in `sample`.
    """

    def __init__(
        self,
        problem: Problem,
        samples: int = 50_000,
        seed: int = 0,
        partition: Any = None,
        *,
        projected: bool = True,
    ) -> None:
        self.problem, self.projected = problem, projected
        self.samples, self.seed = integer("samples", samples, 1), integer("seed", seed, 0)
        self.partition = checked_partition(problem, partition)
        store = 17 * self.samples * problem.D <= _STORED_BYTES
        self._blocks = list(self._generate()) if store else None

    def _generate(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Yield coefficients of w*, standard normals orthogonal to it, and f*, by blocks."""
        for index, first in enumerate(range(0, self.samples, _BLOCK)):
            rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(index,)))
            rows = min(_BLOCK, self.samples - first)
            coefficients, y = draw_coefficients(self.problem, rows, rng, self.partition)
            s = (coefficients * y[:, None]).astype(float)
            across = rng.standard_normal(s.shape)
            if not self.projected:
                s += self.problem.noise * rng.standard_normal(s.shape)
            yield s, across, labels_of_coefficients(self.problem, s, self.partition)

    def error(self, A: ArrayLike, v: ArrayLike, w_star: ArrayLike | None = None) -> ErrorRate:
        """Return the error rates of a model.

        F within rounding of 0 counts as an error, as in Theorem 4.1 with ``P[y F <= 0]``.

        Parameters
        ----------
        A, v
            Attention scores (D, D) and value vector (d,).
        w_star
            Feature, a unit vector (d,); ``None`` means the first unit vector.
        """
        problem = self.problem
        A = real_array("A", A, (problem.D, problem.D))
        v = real_array("v", v, (problem.dimension,))
        w = feature(problem, w_star)
        v_0 = float(v @ w)
        spread = float(np.linalg.norm(v - v_0 * w)) * problem.noise
        mixing = np.ascontiguousarray(problem.kappa * softmax_rows(A / problem.tau).T)
        wrong = ties = disagree = 0
        for s, across, label in self._generate() if self._blocks is None else self._blocks:
            output, tied = _outputs(problem, v_0 * s + spread * across, mixing)
            wrong += int(np.count_nonzero((output < 0.0) | tied))
            ties += int(np.count_nonzero(tied))
            disagree += int(np.count_nonzero((output * label < 0.0) | tied | (label == 0.0)))
        rate = wrong / self.samples
        spread = np.sqrt(max(rate * (1.0 - rate), 1.0 / self.samples) / self.samples)
        return ErrorRate(rate, ties / self.samples, disagree / self.samples, float(3.0 * spread))


def _outputs(problem: Problem, u: np.ndarray, mixing: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers with the signs of F, and where F is 0 within the rounding of ``kappa S u``.

    To avoid overflow, F of a sample is divided by the p-th power of its largest O if that exceeds
    1. The shapes are (n, D) for ``u`` and (D, D) for ``mixing``.
    """
    p = problem.p
    O = u @ mixing  # noqa: E741 - the paper's name
    size = np.maximum(1.0, np.abs(O).max(axis=1, keepdims=True))
    O /= size  # noqa: E741 - the paper's name
    nu = problem.nu * size ** (1.0 - p)
    F = (O * (np.square(O) ** ((p - 1) // 2) + nu)).sum(axis=1)  # a square is fast, O ** 4 slow
    error = _ROUNDING * problem.kappa * np.abs(u).max(axis=1, keepdims=True) / size
    with np.errstate(over="ignore"):  # an infinite bound is correct where a huge u cancels
        bound = 1.01 * problem.D * error * (p * (1.0 + error) ** (p - 1) + nu)  # every |O| is <= 1
        tied = np.abs(F) <= bound[:, 0]
        largest_O = np.abs(O[tied]) + error[tied]
        sharper = (error[tied] * (p * largest_O ** (p - 1) + nu[tied])).sum(axis=1)
    tied[tied] = np.abs(F[tied]) <= sharper
    return F, tied
