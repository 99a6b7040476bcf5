"""Empirical risk (E) and its exact gradient, the data read from memory once per evaluation."""

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
from dynamics.positional.samples.kernels import (
    descend_at_fixed_scores,
    sums_at_fixed_scores,
    sums_at_fixed_value,
    sums_over_samples,
)
from dynamics.positional.samples.tiles import fresh, lanes

_BLOCK_BYTES = 2**18  # of data that stay in the cache of one core between their two uses
_CACHED_BYTES = 2**23  # of data that may stay in the last cache between evaluations
_GROUP = 64  # samples whose products u, w are kept before they enter the D x D sum
_CHUNKS = 16  # tasks shared out among threads, at most: fixed by the sizes of the data alone,
_FEW_CHUNKS = 4  # so that no sum depends on the number of threads
_SERIAL = 2**18  # entries of X below which there is one chunk
_STRETCH = 2**25  # entries of X that one call looks at, some 20 ms, if it takes many steps
_LARGE = 2**20  # entries of X below which a wait for a busy processor would cost too much


#: What the gradient in A is a view of where A is fixed: D^2 zeros need neither memory nor a look.
_ZERO = np.zeros(())

#: One chunk of samples: its index, first and last sample, and the losses of all chunks.
Task: TypeAlias = tuple[int, int, int, np.ndarray]


class Gradient(NamedTuple):
    """Empirical risk, its gradient in A (D, D) with zero diagonal, and in v (d,)."""

    loss: float
    dA: np.ndarray
    dv: np.ndarray

    @property
    def finite(self) -> bool:
        """Whether nothing overflowed."""
        return (
            math.isfinite(self.loss)
            and bool(np.isfinite(self.dv).all())
            and (self.dA.base is _ZERO or bool(np.isfinite(self.dA).all()))
        )


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
        self.threads = available if threads is None else integer("threads", threads, 1)
        D, d, filled = problem.D, problem.dimension, lanes(X.dtype)
        self.wide = -(-D // filled) * filled
        self.fresh = fresh(d, X.dtype)
        self.rows = self.X.reshape(self.N * D, d)
        if d < filled:  # such rows are few numbers, and are copied
            self.rows = np.zeros((self.N * D, filled), X.dtype)
            self.rows[:, :d] = self.X.reshape(self.N * D, d)
        sample_bytes = X.itemsize * D * d
        self.block = int(min(_GROUP, max(4, _BLOCK_BYTES // sample_bytes // 4 * 4)))
        self.group = _GROUP // self.block * self.block
        self.ahead = int(self.X.nbytes > _CACHED_BYTES)
        tasks = 1 if self.X.size < _SERIAL else _FEW_CHUNKS if self.X.size < _LARGE else _CHUNKS
        length = -(-self.N // (tasks * self.group)) * self.group
        self.chunks = [(a, min(a + length, self.N)) for a in range(0, self.N, length)]

    def gradient(self, A: np.ndarray, v: np.ndarray) -> Gradient:
        """Return loss and gradient; infinities and nan where F overflows."""
        problem = self.problem
        D = problem.D
        S = softmax_rows(A / problem.tau)
        weights, scaled = self.widened(S), self.widened(problem.kappa * S.T)
        value = self.spread(v)
        G, M = np.zeros((len(self.chunks), value.size)), np.zeros((len(self.chunks), D, self.wide))

        def work(tasks: Iterator[Task]) -> None:
            scratch = self.scratch(4)
            for index, first, last, loss in tasks:
                model = self.rows, self.y, value, weights, scaled, problem.p, problem.nu
                share = first, last, self.block, self.group
                loss[index] = sums_over_samples(
                    *model, *share, *scratch, G[index], M[index], self.ahead
                )

        loss = self.shared(work)
        factor = -problem.kappa / self.N
        dA = through_softmax(S, factor * M.sum(axis=0)[:, :D], problem.tau)
        return Gradient(loss, dA, factor * G.sum(axis=0)[self.fresh])

    def widened(self, matrix: np.ndarray) -> np.ndarray:
        """Return a matrix of D columns with rows of whole vectors, in the precision of the data."""
        wide = np.zeros((len(matrix), self.wide), self.X.dtype)
        wide[:, : self.problem.D] = matrix
        return wide

    def spread(self, v: np.ndarray) -> np.ndarray:
        """Return v as it meets the vectors that cover a row of the data, no entry twice."""
        value = np.zeros(self.fresh.size, self.X.dtype)
        value[self.fresh] = v
        return value

    def scratch(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Return working memory of the kernels."""
        height = max(self.group, lanes(self.X.dtype))
        flat = np.ones(self.block * self.problem.D + self.wide + height, self.X.dtype)
        return np.zeros((number, height, self.wide), self.X.dtype), flat

    def shared(self, work: Callable[[Iterator[Task]], None]) -> float:
        """Share the samples out among threads, chunk by chunk; return the mean loss."""
        loss = np.zeros(len(self.chunks))
        waiting = itertools.count()  # next() on it is atomic: every chunk is taken once

        def tasks() -> Iterator[Task]:
            while (index := next(waiting)) < len(self.chunks):
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
    """The risk as a function of v alone, A being fixed: ``S X`` is computed once, as (N, D, d).

    Few samples are one chunk, whose step takes less than a call from Python: many steps are one
    call of a kernel, `descend` (200 with four samples at D = 32 take 1.4 ms, 2.5 one by one).
    """

    def __init__(self, risk: EmpiricalRisk, A: np.ndarray) -> None:
        self.risk = risk
        S = softmax_rows(A / risk.problem.tau).astype(risk.X.dtype)
        rows = risk.rows.reshape(risk.N, risk.problem.D, -1)
        self._mixed = np.matmul(S, rows).reshape(risk.rows.shape)
        self._still = np.broadcast_to(_ZERO, A.shape)
        self._entries = np.flatnonzero(risk.fresh)
        self._value = np.zeros(risk.fresh.size, risk.X.dtype)
        self._kept = risk.scratch(3) if len(risk.chunks) == 1 else None

    def gradient(self, A: np.ndarray, v: np.ndarray) -> Gradient:
        """Return loss and gradient in v; A is not looked at, and its gradient cannot be written."""
        risk = self.risk
        self._value[self._entries] = v
        G = np.zeros((len(risk.chunks), self._value.size))
        if self._kept is not None:
            loss = self._sums(*risk.chunks[0], self._kept, G[0]) / risk.N
        else:

            def work(tasks: Iterator[Task]) -> None:
                scratch = risk.scratch(3)
                for index, first, last, losses in tasks:
                    losses[index] = self._sums(first, last, scratch, G[index])

            loss = risk.shared(work)
        dv = -risk.problem.kappa / risk.N * G.sum(axis=0)[self._entries]
        return Gradient(loss, self._still, dv)

    @property
    def one_chunk(self) -> bool:
        """Whether there is no work to share among threads."""
        return self._kept is not None

    def descend(
        self,
        v: np.ndarray,
        momentum: np.ndarray,
        rates: tuple[float, float],
        before: tuple[float, float],
        most: int,
    ) -> tuple[np.ndarray, np.ndarray, int, float, float]:
        """Return v and its momentum after steps of descent, how many, the last loss and the rise.

        ``rates`` are the share of the momentum kept and the learning rate, ``before`` is the loss
        before the steps and the largest relative rise so far. There are ``most`` steps, a few tens
        of milliseconds at most, and none whose loss or gradient is not finite.
        """
        assert self._kept is not None
        risk, problem = self.risk, self.risk.problem
        state = np.stack([v, momentum])
        model = self._mixed, risk.y, risk.X.dtype.type(problem.kappa), problem.p, problem.nu
        scratch = *self._kept, self._entries, self._value
        scaled_rates = (*rates, -problem.kappa / risk.N)
        steps, loss, rise = descend_at_fixed_scores(
            *model,
            risk.block,
            *scratch,
            state,
            scaled_rates,
            before,
            min(most, 1 + _STRETCH // risk.X.size),
        )
        return state[0], state[1], int(steps), float(loss), float(rise)

    def _sums(
        self, first: int, last: int, scratch: tuple[np.ndarray, np.ndarray], G: np.ndarray
    ) -> float:
        """Return the loss of some samples and add their part of the gradient to ``G``."""
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
    """The risk as a function of A alone, v being fixed: ``y X v`` is computed once, as (N, D)."""

    def __init__(self, risk: EmpiricalRisk, v: np.ndarray) -> None:
        self.risk = risk
        self._projected = risk.widened((risk.X @ v.astype(risk.X.dtype)) * risk.y[:, None])

    def gradient(self, A: np.ndarray, v: np.ndarray) -> Gradient:
        """Return loss and gradient in A; v is not looked at."""
        risk, problem = self.risk, self.risk.problem
        S = softmax_rows(A / problem.tau)
        scaled = risk.widened(problem.kappa * S.T)
        M = np.zeros((len(risk.chunks), problem.D, risk.wide))

        def work(tasks: Iterator[Task]) -> None:
            scratch = risk.scratch(3)
            for index, first, last, loss in tasks:
                loss[index] = sums_at_fixed_value(
                    self._projected, scaled, problem.p, problem.nu, first, last, *scratch, M[index]
                )

        loss = risk.shared(work)
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


def _busy() -> bool:
    """Return whether other programs keep the processors busy (or the system does not tell)."""
    try:
        return os.getloadavg()[0] > (os.cpu_count() or 1) + 0.5
    except (AttributeError, OSError):
        return True


@cache
def _pool(process: int) -> ThreadPoolExecutor:
    """Return the threads of this process (a forked one starts its own)."""
    return ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="samples")
