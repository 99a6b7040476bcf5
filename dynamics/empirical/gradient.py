"""Empirical risk (E) and its exact gradient, the data read from memory once per evaluation."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dynamics.empirical.data import check_data, count
from dynamics.empirical.kernels import sums_over_samples
from dynamics.full_expectation import real_array
from dynamics.problem import Problem

_BLOCK_BYTES = 2**18  # of data that stay in the cache of one core between their two uses
_GROUP = 64  # samples whose products u, w are kept before they enter the D x D sum
_CHUNKS = 16  # tasks shared out among threads: fixed, so that sums do not depend on the threads
_SERIAL = 2e6  # entries of X below which a second thread costs more than it brings


class Gradient(NamedTuple):
    """Empirical risk, its gradient in A (D, D) with zero diagonal, and in v (d,)."""

    loss: float
    dA: np.ndarray
    dv: np.ndarray


class EmpiricalRisk:
    r"""The risk of problem (E) on fixed data, for repeated evaluation.

    .. math:: \hat{\mathcal L}(A,v) = \frac1N\sum_n\log(1+e^{-y_nF(X_n)}),\qquad
       F(X)=\sum_i\mathrm{act}\Big(\kappa\sum_jS_{ij}\langle v,X_j\rangle\Big)

    F is odd, so that the label multiplies the projections ``<v, X_j>``. Data in single precision
    are worked on in single precision within a block of samples and summed in double.

    Parameters
    ----------
    problem, X, y
        Constants; data (N, D, d) of type float64 or float32; labels (N,) in {-1, +1}.
    threads
        At most so many threads; ``None`` means all processors. The result does not depend on it.
    """

    def __init__(
        self, problem: Problem, X: np.ndarray, y: ArrayLike, *, threads: int | None = None
    ) -> None:
        labels = np.asarray(y)
        check_data(problem, X, labels)
        self.problem, self.N = problem, X.shape[0]
        self.X = np.ascontiguousarray(X)
        self.y = labels.astype(X.dtype)
        available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
        self.threads = available if threads is None else count("threads", threads)
        sample_bytes = X.itemsize * problem.D * problem.dimension
        self.block = int(min(_GROUP, max(4, _BLOCK_BYTES // sample_bytes // 4 * 4)))
        self.group = _GROUP // self.block * self.block
        chunks = 1 if X.size < _SERIAL else _CHUNKS
        length = -(-self.N // (chunks * self.group)) * self.group
        self.chunks = [(a, min(a + length, self.N)) for a in range(0, self.N, length)]

    def gradient(self, A: np.ndarray, v: np.ndarray) -> Gradient:
        """Return loss and gradient; infinities and nan where F overflows."""
        problem = self.problem
        S = softmax_rows(A / problem.tau)
        loss, M, G = self._sums(S, v)
        factor = -problem.kappa / self.N
        return Gradient(loss / self.N, through_softmax(S, factor * M, problem.tau), factor * G)

    def _sums(self, S: np.ndarray, v: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        problem, kind = self.problem, self.X.dtype
        D, d = problem.D, problem.dimension
        rows = self.X.reshape(self.N * D, d)
        weights = S.astype(kind)
        scaled = np.ascontiguousarray((problem.kappa * S.T).astype(kind))
        value = v.astype(kind)
        loss = np.zeros(len(self.chunks))
        G, M = np.zeros((len(self.chunks), d)), np.zeros((len(self.chunks), D, D))
        waiting = itertools.count()  # next() on it is atomic: every chunk is taken once

        def work() -> None:
            scratch = np.empty((4, self.group, D), kind)
            small = np.empty((D + 1, max(d, D)), kind)
            while (chunk := next(waiting)) < len(self.chunks):
                loss[chunk] = sums_over_samples(
                    rows, self.y, value, weights, scaled, problem.p, problem.nu,
                    *self.chunks[chunk], self.block, self.group, scratch, small,
                    G[chunk], M[chunk],
                )  # fmt: skip

        share(work, min(self.threads, len(self.chunks)))
        return float(loss.sum()), M.sum(axis=0), G.sum(axis=0)


def empirical_gradient(
    problem: Problem, X: np.ndarray, y: ArrayLike, A: ArrayLike, v: ArrayLike
) -> Gradient:
    r"""Return the empirical risk (E) and its gradient.

    .. math:: \frac{\partial\hat{\mathcal L}}{\partial A_{ij}} = -\frac{S_{ij}}{\tau N}\sum_n
       y\,s(-yF)\,\mathrm{act}'(O_i)(\kappa\langle v,X_j\rangle-O_i),\qquad
       \nabla_v\hat{\mathcal L} = -\frac\kappa N\sum_n y\,s(-yF)\sum_i\mathrm{act}'(O_i)
       \sum_jS_{ij}X_j

    Parameters
    ----------
    problem, X, y
        Constants; data (N, D, d), float64 or float32; labels (N,) in {-1, +1}.
    A, v
        Attention scores (D, D), used as given (diagonal too), and value vector (d,).

    Returns
    -------
    loss, dA, dv
        A float, (D, D) with zero diagonal (the diagonal is not trained), and (d,).

    Raises
    ------
    ParameterError
        One sentence on the argument at fault.
    """
    A = real_array("A", A, (problem.D, problem.D))
    v = real_array("v", v, (problem.dimension,))
    return EmpiricalRisk(problem, X, y).gradient(A, v)


def softmax_rows(scores: np.ndarray) -> np.ndarray:
    """Return the softmax of each row."""
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def through_softmax(S: np.ndarray, dS: np.ndarray, tau: float) -> np.ndarray:
    """Return the gradient in A from the one in ``S = softmax(A / tau)``, with zero diagonal."""
    dA = (S / tau) * (dS - (S * dS).sum(axis=1, keepdims=True))
    np.fill_diagonal(dA, 0.0)
    return np.asarray(dA)


def share(work: Callable[[], None], threads: int) -> None:
    """Call ``work`` in this thread and in ``threads - 1`` others, and wait for all."""
    helpers = [_pool(os.getpid()).submit(work) for _ in range(threads - 1)]
    try:
        work()
    finally:
        for helper in helpers:
            if not helper.cancel():
                helper.result()


@cache
def _pool(process: int) -> ThreadPoolExecutor:
    """Return the threads of this process (a forked one starts its own)."""
    return ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="samples")
