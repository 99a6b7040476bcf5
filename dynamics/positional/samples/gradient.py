"""Empirical risk (E) and its exact gradient. Each evaluation reads the data from memory once."""

import itertools
import math
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from dynamics.core.arrays import real_array
from dynamics.core.checks import integer
from dynamics.positional.problem import Problem
from dynamics.positional.samples.data import check_data
from dynamics.positional.samples.sample_sums import (
    descend_at_fixed_scores,
    sums_at_fixed_scores,
    sums_at_fixed_value,
    sums_over_samples,
)
from dynamics.positional.samples.tiles import unique_entries, vector_size

_BLOCK_BYTES = 2**18  # block of data that stays in the cache of one core between its two uses
_CACHED_BYTES = 2**23  # smaller data may stay in the last-level cache between evaluations
_GROUP = 64  # samples whose products u, w are stored before they enter the D x D sum
# Largest numbers of chunks. They depend on the size of the data alone, so that no sum depends on
# the number of threads.
_CHUNKS = 16
_FEW_CHUNKS = 4
_SERIAL = 2**18  # smaller X (number of entries) are one chunk
_STEPS_SIZE = 2**25  # entries of X that one call with many steps reads, some 20 ms
_LARGE = 2**20  # smaller X (number of entries) use no threads while processors are busy


#: Base of the gradient in A if A is fixed: a read-only view instead of D^2 zeros.
_ZERO = np.zeros(())

#: One chunk of samples: its index, first and last sample, and the losses of all chunks.
Task: TypeAlias = tuple[int, int, int, np.ndarray]


class Gradient(NamedTuple):
    """Empirical risk and its gradient.

    Attributes
    ----------
    loss
        Empirical risk.
    dA
        Gradient in A, (D, D), with zero diagonal.
    dv
        Gradient in v, (d,).
    """

    loss: float
    dA: np.ndarray
    dv: np.ndarray

    @property
    def finite(self) -> bool:
        """Whether all numbers are finite."""
        return (
            math.isfinite(self.loss)
            and bool(np.isfinite(self.dv).all())
            and (self.dA.base is _ZERO or bool(np.isfinite(self.dA).all()))
        )


class EmpiricalRisk:
    r"""Empirical risk (E) of fixed data, for repeated evaluation.

    .. math:: \hat{\mathcal L}(A,v) = \frac1N\sum_n\log(1+e^{-y_nF(X_n)}),\qquad
       F(X)=\sum_i\mathrm{act}\Big(\kappa\sum_jS_{ij}\langle v,X_j\rangle\Big)

    F is odd, so that the label multiplies the projections ``<v, X_j>``. For data in single
    precision, a block of samples is processed in single precision and added up in double precision.

    Parameters
    ----------
    problem, X, y
        Constants; data (N, D, d) of type float64 or float32; labels (N,) in {-1, +1}.
    threads
        Largest number of threads; ``None`` means all processors. The result does not depend on it.

    Raises
    ------
    ParameterError
        If shapes, types or labels are invalid.
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
        self.threads = available if threads is None else integer("threads", threads, 1)
        D, d, size = problem.D, problem.dimension, vector_size(X.dtype)
        self.wide = -(-D // size) * size
        self.unique = unique_entries(d, X.dtype)
        self.rows = self.X.reshape(self.N * D, d)
        if d < size:  # rows shorter than a vector are copied and padded
            self.rows = np.zeros((self.N * D, size), X.dtype)
            self.rows[:, :d] = self.X.reshape(self.N * D, d)
        sample_bytes = X.itemsize * D * d
        self.block = int(min(_GROUP, max(4, _BLOCK_BYTES // sample_bytes // 4 * 4)))
        self.group = _GROUP // self.block * self.block
        self.ahead = int(self.X.nbytes > _CACHED_BYTES)
        tasks = 1 if self.X.size < _SERIAL else _FEW_CHUNKS if self.X.size < _LARGE else _CHUNKS
        length = -(-self.N // (tasks * self.group)) * self.group
        self.chunks = [(a, min(a + length, self.N)) for a in range(0, self.N, length)]

    def gradient(self, A: np.ndarray, v: np.ndarray) -> Gradient:
        """Return loss and gradient, which are not finite if F overflows.

        Parameters
        ----------
        A, v
            Attention scores (D, D) and value vector (d,), both float64.
        """
        problem = self.problem
        D = problem.D
        S = softmax_rows(A / problem.tau)
        weights, scaled = self.padded(S), self.padded(problem.kappa * S.T)
        value = self.packed(v)
        G, M = np.zeros((len(self.chunks), value.size)), np.zeros((len(self.chunks), D, self.wide))

        def work(tasks: Iterator[Task]) -> None:
            scratch = self.scratch(4)
            for index, first, last, loss in tasks:
                model = self.rows, self.y, value, weights, scaled, problem.p, problem.nu
                samples = first, last, self.block, self.group
                loss[index] = sums_over_samples(
                    *model, *samples, *scratch, G[index], M[index], self.ahead
                )

        loss = self.run_tasks(work)
        factor = -problem.kappa / self.N
        dA = through_softmax(S, factor * M.sum(axis=0)[:, :D], problem.tau)
        return Gradient(loss, dA, factor * G.sum(axis=0)[self.unique])

    def padded(self, matrix: np.ndarray) -> np.ndarray:
        """Return a matrix of D columns, padded to whole vectors, in the precision of the data."""
        wide = np.zeros((len(matrix), self.wide), self.X.dtype)
        wide[:, : self.problem.D] = matrix
        return wide

    def packed(self, v: np.ndarray) -> np.ndarray:
        """Return v in the vectors that cover a row of the data, with zeros at repeated entries."""
        value = np.zeros(self.unique.size, self.X.dtype)
        value[self.unique] = v
        return value

    def scratch(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Return ``number`` scratch matrices and a scratch vector for the kernels."""
        height = max(self.group, vector_size(self.X.dtype))
        flat = np.ones(self.block * self.problem.D + self.wide + height, self.X.dtype)
        return np.zeros((number, height, self.wide), self.X.dtype), flat

    def run_tasks(self, work: Callable[[Iterator[Task]], None]) -> float:
        """Process all chunks of samples in parallel threads; return the mean loss."""
        loss = np.zeros(len(self.chunks))
        counter = itertools.count()  # next() is atomic, so that each chunk is processed once

        def tasks() -> Iterator[Task]:
            while (index := next(counter)) < len(self.chunks):
                yield index, *self.chunks[index], loss

        helpers = min(self.threads, len(self.chunks)) - 1
        if helpers and self.X.size < _LARGE and _busy():
            helpers = 0
        futures = [_pool(os.getpid()).submit(lambda: work(tasks())) for _ in range(helpers)]
        try:
            work(tasks())
        finally:
            for future in futures:
                if not future.cancel():
                    future.result()
        return float(loss.sum()) / self.N


class FixedScores:
    """Empirical risk as a function of v for fixed A; ``S X`` (N, D, d) is computed once.

    With few samples a step is faster than a function call from Python. `descend` takes many steps
    in one call: 200 steps with four samples at D = 32 take 1.4 ms instead of 2.5 ms.

    Parameters
    ----------
    risk
        Empirical risk.
    A
        Attention scores (D, D).
    """

    def __init__(self, risk: EmpiricalRisk, A: np.ndarray) -> None:
        self.risk = risk
        S = softmax_rows(A / risk.problem.tau).astype(risk.X.dtype)
        rows = risk.rows.reshape(risk.N, risk.problem.D, -1)
        self._mixed = np.matmul(S, rows).reshape(risk.rows.shape)
        self._dA = np.broadcast_to(_ZERO, A.shape)
        self._entries = np.flatnonzero(risk.unique)
        self._value = np.zeros(risk.unique.size, risk.X.dtype)
        self._scratch = risk.scratch(3) if len(risk.chunks) == 1 else None

    def gradient(self, A: np.ndarray, v: np.ndarray) -> Gradient:
        """Return loss and gradient in v. A is ignored; its gradient is zero and read-only."""
        risk = self.risk
        self._value[self._entries] = v
        G = np.zeros((len(risk.chunks), self._value.size))
        if self._scratch is not None:
            loss = self._sums(*risk.chunks[0], self._scratch, G[0]) / risk.N
        else:

            def work(tasks: Iterator[Task]) -> None:
                scratch = risk.scratch(3)
                for index, first, last, losses in tasks:
                    losses[index] = self._sums(first, last, scratch, G[index])

            loss = risk.run_tasks(work)
        dv = -risk.problem.kappa / risk.N * G.sum(axis=0)[self._entries]
        return Gradient(loss, self._dA, dv)

    @property
    def is_single_chunk(self) -> bool:
        """Whether the samples are one chunk, so that :meth:`descend` can be used."""
        return self._scratch is not None

    def descend(
        self,
        v: np.ndarray,
        momentum: np.ndarray,
        rates: tuple[float, float],
        before: tuple[float, float],
        most: int,
    ) -> tuple[np.ndarray, np.ndarray, int, float, float]:
        """Take several steps of gradient descent in v in one call.

        The number of steps is limited such that a call takes a few tens of milliseconds. It ends
        before a step with a loss or gradient that is not finite.

        Parameters
        ----------
        v, momentum
            Value vector (d,) and its momentum (d,).
        rates
            Momentum coefficient and learning rate.
        before
            Loss of the previous step, and the largest relative rise of the loss so far.
        most
            Largest number of steps.

        Returns
        -------
        tuple
            v, momentum, number of steps, last loss and largest relative rise.
        """
        assert self._scratch is not None
        risk, problem = self.risk, self.risk.problem
        state = np.stack([v, momentum])
        model = self._mixed, risk.y, risk.X.dtype.type(problem.kappa), problem.p, problem.nu
        scratch = *self._scratch, self._entries, self._value
        scaled_rates = (*rates, -problem.kappa / risk.N)
        steps, loss, rise = descend_at_fixed_scores(
            *model,
            risk.block,
            *scratch,
            state,
            scaled_rates,
            before,
            min(most, 1 + _STEPS_SIZE // risk.X.size),
        )
        return state[0], state[1], int(steps), float(loss), float(rise)

    def _sums(
        self, first: int, last: int, scratch: tuple[np.ndarray, np.ndarray], G: np.ndarray
    ) -> float:
        """Return the loss of samples first .. last and add their part of the gradient to ``G``."""
        risk, problem = self.risk, self.risk.problem
        return float(
            sums_at_fixed_scores(
                self._mixed,
                risk.y,
                self._value,
                risk.X.dtype.type(problem.kappa),
                problem.p,
                problem.nu,
                first,
                last,
                risk.block,
                *scratch,
                G,
                risk.ahead,
            )
        )


class FixedValue:
    """Empirical risk as a function of A for fixed v; ``y X v`` (N, D) is computed once.

    Parameters
    ----------
    risk
        Empirical risk.
    v
        Value vector (d,).
    """

    def __init__(self, risk: EmpiricalRisk, v: np.ndarray) -> None:
        self.risk = risk
        self._projected = risk.padded((risk.X @ v.astype(risk.X.dtype)) * risk.y[:, None])

    def gradient(self, A: np.ndarray, v: np.ndarray) -> Gradient:
        """Return loss and gradient in A. v is ignored; its gradient is zero."""
        risk, problem = self.risk, self.risk.problem
        S = softmax_rows(A / problem.tau)
        scaled = risk.padded(problem.kappa * S.T)
        M = np.zeros((len(risk.chunks), problem.D, risk.wide))

        def work(tasks: Iterator[Task]) -> None:
            scratch = risk.scratch(3)
            for index, first, last, loss in tasks:
                loss[index] = sums_at_fixed_value(
                    self._projected, scaled, problem.p, problem.nu, first, last, *scratch, M[index]
                )

        loss = risk.run_tasks(work)
        factor = -problem.kappa / risk.N
        dA = through_softmax(S, factor * M.sum(axis=0)[:, : problem.D], problem.tau)
        return Gradient(loss, dA, np.zeros_like(v))


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
        Attention scores (D, D), including the diagonal, and value vector (d,).

    Returns
    -------
    Gradient
        Loss, gradient in A (D, D) with zero diagonal (it is not trained), and gradient in v (d,).

    Raises
    ------
    ParameterError
        If an argument is invalid.
    """
    A = real_array("A", A, (problem.D, problem.D))
    v = real_array("v", v, (problem.dimension,))
    return EmpiricalRisk(problem, X, y).gradient(A, v)


def softmax_rows(scores: np.ndarray) -> np.ndarray:
    """Return the softmax of each row of a matrix."""
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def through_softmax(S: np.ndarray, dS: np.ndarray, tau: float) -> np.ndarray:
    """Return the gradient in A (D, D), with zero diagonal.

    ``dS`` is the gradient in ``S = softmax(A / tau)``.
    """
    dA = (S / tau) * (dS - (S * dS).sum(axis=1, keepdims=True))
    np.fill_diagonal(dA, 0.0)
    return np.asarray(dA)


def _busy() -> bool:
    """Return whether other programs use all processors, or whether this is unknown."""
    try:
        return os.getloadavg()[0] > (os.cpu_count() or 1) + 0.5
    except (AttributeError, OSError):
        return True


@cache
def _pool(process: int) -> ThreadPoolExecutor:
    """Return the thread pool of a process, given its id: forked processes need their own."""
    return ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="samples")
