"""Test error of a model on fresh samples, from scalar projections instead of d-dimensional data."""

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
_KEPT_BYTES = 2**28
_ROUNDING = 64 * np.finfo(float).eps


class ErrorRate(NamedTuple):
    """``P[y F <= 0]``, the part of it with F = 0, ``P[f* F <= 0]``, and three standard errors."""

    error: float
    ties: float
    disagreement: float
    bound: float


class HeldOut:
    r"""Fresh samples on which a model (A, v) is tested, the same ones at every call.

    The model sees of a patch only :math:`\langle v, X_j\rangle = v_0 s_j + |v_\perp|\sigma g_j`
    with :math:`v_0=\langle v,w^*\rangle`, ``s_j`` the coefficient of w* and ``g_j`` standard
    normal, and nothing else is drawn. F is odd, so that y = +1. Sets that do not fit into a
    quarter of a gibibyte are drawn again, block by block, at every call.

    Parameters
    ----------
    problem, samples, seed, partition
        Constants, number of samples, seed, and sets (L, C), ``None`` for contiguous blocks.
    projected
        ``False`` leaves the noise along w* in, as in `sample`.
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
        keep = 17 * self.samples * problem.D <= _KEPT_BYTES
        self._kept = list(self._draw()) if keep else None

    def _draw(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Yield coefficients of w*, standard normals across it, and f*, by blocks."""
        for index, first in enumerate(range(0, self.samples, _BLOCK)):
            rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(index,)))
            rows = min(_BLOCK, self.samples - first)
            drawn, y = draw_coefficients(self.problem, rows, rng, self.partition)
            s = (drawn * y[:, None]).astype(float)
            across = rng.standard_normal(s.shape)
            if not self.projected:
                s += self.problem.noise * rng.standard_normal(s.shape)
            yield s, across, labels_of_coefficients(self.problem, s, self.partition)

    def error(self, A: ArrayLike, v: ArrayLike, w_star: ArrayLike | None = None) -> ErrorRate:
        """Return the error rates of the model with scores A (D, D) and value vector v (d,).

        F within rounding of 0 counts as an error, as in Theorem 4.1 with ``P[y F <= 0]``.
        """
        problem = self.problem
        A = real_array("A", A, (problem.D, problem.D))
        v = real_array("v", v, (problem.dimension,))
        w = feature(problem, w_star)
        v_0 = float(v @ w)
        spread = float(np.linalg.norm(v - v_0 * w)) * problem.noise
        mixing = np.ascontiguousarray(problem.kappa * softmax_rows(A / problem.tau).T)
        wrong = ties = disagree = 0
        for s, across, label in self._kept if self._kept is not None else self._draw():
            output, tied = _outputs(problem, v_0 * s + spread * across, mixing)
            wrong += int(np.count_nonzero((output < 0.0) | tied))
            ties += int(np.count_nonzero(tied))
            disagree += int(np.count_nonzero((output * label < 0.0) | tied | (label == 0.0)))
        rate = wrong / self.samples
        spread = np.sqrt(max(rate * (1.0 - rate), 1.0 / self.samples) / self.samples)
        return ErrorRate(rate, ties / self.samples, disagree / self.samples, float(3.0 * spread))


def _outputs(problem: Problem, u: np.ndarray, mixing: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return what has the sign of F, and where F is 0 within the rounding of ``kappa S u``.

    F of a sample is divided by the p-th power of its largest O where that exceeds 1: no overflow.
    """
    p = problem.p
    O = u @ mixing  # noqa: E741 - the paper's name
    size = np.maximum(1.0, np.abs(O).max(axis=1, keepdims=True))
    O /= size  # noqa: E741 - the paper's name
    nu = problem.nu * size ** (1.0 - p)
    F = (O * (O ** (p - 1) + nu)).sum(axis=1)
    error = _ROUNDING * problem.kappa * np.abs(u).max(axis=1, keepdims=True) / size
    with np.errstate(over="ignore"):  # where a huge u cancels, an infinite bound says what is true
        most = 1.01 * problem.D * error * (p * (1.0 + error) ** (p - 1) + nu)  # every |O| is <= 1
        tied = np.abs(F) <= most[:, 0]
        reach = np.abs(O[tied]) + error[tied]
        sharper = (error[tied] * (p * reach ** (p - 1) + nu[tied])).sum(axis=1)
    tied[tied] = np.abs(F[tied]) <= sharper
    return F, tied
