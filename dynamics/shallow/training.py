"""Finite-sample SGD of the shallow transformer on counts of tokens, without token noise (tau = 0).

The reduction: ``A = K^T Q`` and ``H = W_O V`` are all that the network sees of its weights, and a
sample is its key fractions f, query fractions s and label y.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dynamics.core.checks import finite, integer, require
from dynamics.core.errors import ParameterError
from dynamics.core.trajectory import Status
from dynamics.shallow import kernels
from dynamics.shallow.data import checked, numbers
from dynamics.shallow.kernels import Samples

_TIE = 1e-13  # of the largest entry of H
_MOST_STEPS = 10**9
_GRADIENTS_A_CHUNK = 10**5  # some tenths of a second: Ctrl-C is served in between


class History(NamedTuple):
    """Records along a run, shape (n,): the step, means over the samples, and over held-out ones.

    ``test_hinge`` and ``test_error`` (P[yF <= 0]) are nan where no test samples were given.
    """

    step: np.ndarray
    hinge: np.ndarray
    attention: np.ndarray
    test_hinge: np.ndarray
    test_error: np.ndarray


@dataclass(frozen=True, eq=False)
class CountTraining:
    """Where SGD ended, means over the samples, and what was recorded on the way.

    ``F`` (N,), ``A = K^T Q`` (M, M), ``H = W_O V`` (m, M); ``hinge`` and ``attention`` are weighted
    means at the end; ``status`` is `Status.DIVERGED` where the loss stopped being finite.
    """

    hinge: float
    attention: float
    F: np.ndarray
    A: np.ndarray
    H: np.ndarray
    W_O: np.ndarray
    V: np.ndarray
    K: np.ndarray
    Q: np.ndarray
    history: History
    status: Status


def train_on_counts(
    counts: Any,
    labels: Any,
    *,
    W_O: Any,
    V: Any,
    K: Any,
    Q: Any,
    a: Any,
    steps: int,
    learning_rate: float = 0.2,
    learning_rate_KQ: float = 2.0,
    batches: Any = None,
    attention: bool = True,
    queried: Any = None,
    weights: Any = None,
    train_value: bool = True,
    test: Any = None,
    records: Sequence[int] = (),
) -> CountTraining:
    r"""Run SGD on the hinge loss, :math:`\max(0, 1-yF)`, exactly as on the full matrices.

    .. math:: P_{i|j}=\frac{f_ie^{A_{ij}}}{\sum_kf_ke^{A_{kj}}},\quad
       F=\sum_js_j\sum_ra_r[(HP)_{rj}]_+,\quad
       W_O\mathrel{+}=\eta DV^T,\ V\mathrel{+}=\eta W_O^TD,\
       K\mathrel{+}=\eta_{KQ}QG^T,\ Q\mathrel{+}=\eta_{KQ}KG

    with old values on the right, where D and G are minus the gradients of the mean hinge loss of
    a batch in H and A. The derivative of the ReLU at 0 is 0, that of the hinge at yF = 1 too.

    Parameters
    ----------
    counts, labels
        Tokens per pattern (N, M), M >= 3, patterns 0 and 1 discriminative; labels +-1 (N,).
    W_O, V, K, Q, a
        Weights at the start in the pattern basis: (m, p), (p, M), (b, M), (b, M) and the fixed
        output weights (m,).
    steps, learning_rate, learning_rate_KQ
        Number of steps (0 to 10^9) and the two rates, 0 or more.
    batches
        Indices of samples (steps, B), each row a batch; ``None``: all samples in every step.
    attention
        False: the network without attention, :math:`P_{i|j}=f_i`; K and Q stay.
    queried
        Queried tokens per pattern (N, M), at most ``counts``; ``None``: all of them.
    weights
        Relative weight of each sample in full-batch steps and means, such as multinomial counts
        (N,); ``None``: equal. Not together with ``batches``.
    train_value
        False: V stays.
    test
        Held-out ``(counts, labels)``, or with queried counts as a third, for the history.
    records
        Steps to record beside the first and the last.

    Raises
    ------
    ParameterError
        If an argument is outside its domain, shapes do not fit, or the start is a tie: a neuron
        at the kink of its ReLU in a sample.
    """
    samples = checked(counts, labels, queried, weights)
    M, a = samples.keys.shape[1], numbers("a", a, (None,))
    W = np.ascontiguousarray(numbers("W_O", W_O, (a.size, None)).T)
    V = numbers("V", V, (W.shape[0], M))
    K = numbers("K", K, (None, M))
    Q = numbers("Q", Q, K.shape)
    steps = integer("steps", steps, 0, _MOST_STEPS)
    rates = finite("learning_rate", learning_rate), finite("learning_rate_KQ", learning_rate_KQ)
    for name, rate in zip(("learning_rate", "learning_rate_KQ"), rates):
        require(rate >= 0.0, name, rate, "0 or more")
    require(
        batches is None or weights is None,
        "weights",
        "given with batches",
        "None: a batch is an average over its indices",
    )
    plan = None if batches is None else checked_batches(batches, steps, len(samples.labels))
    held_out = None if test is None else checked(*test)
    if held_out is not None:
        require(held_out.keys.shape[1] == M, "patterns in test", held_out.keys.shape[1], str(M))
    marks = np.unique([0, steps, *(integer("records", step, 0, steps) for step in records)])

    rows, step, status = [], 0, Status.COMPLETED
    for mark in marks.tolist():
        while step < mark and status is Status.COMPLETED:
            chunk = _chunk(plan, step, mark, len(samples.labels))
            done = kernels.descend(
                samples, chunk, W, V, K, Q, a, *rates, bool(attention), bool(train_value)
            )
            step += done
            if done < len(chunk):
                status = Status.DIVERGED
        with np.errstate(over="ignore", invalid="ignore"):
            ends = [_observe(x, W, V, K, Q, a, attention) for x in (samples, held_out)]
        if mark == 0 < steps:
            off_the_kink(ends[0][6], ends[0][5])
        if not np.isfinite(ends[0][0]):
            status = Status.DIVERGED
        rows.append((step, *ends[0][:2], ends[1][0], ends[1][2]))
        if status is not Status.COMPLETED:
            break
    history = History(*np.array(rows, float).T)
    F, A, H = ends[0][3:6]
    return CountTraining(
        float(history.hinge[-1]),
        float(history.attention[-1]),
        F,
        A,
        H.T,
        W.T,
        V,
        K,
        Q,
        history._replace(step=history.step.astype(np.int64)),
        status,
    )


def checked_batches(batches: Any, steps: int, N: int) -> np.ndarray:
    """Return batches as indices (steps, B), or raise ParameterError."""
    plan = np.asarray(batches)
    require(
        plan.ndim == 2 and len(plan) == steps and (plan.shape[1] > 0 or not steps),
        "shape of batches",
        plan.shape,
        f"({steps}, B): one row a step",
    )
    inside = plan.dtype.kind in "iu" and (not plan.size or (plan.min() >= 0 and plan.max() < N))
    require(inside, "batches", "an array with other entries", f"indices from 0 to {N - 1}")
    return np.ascontiguousarray(plan, np.int64)


def _chunk(plan: np.ndarray | None, step: int, mark: int, N: int) -> np.ndarray:
    """Return the batches of the next steps, at most some tenths of a second of them."""
    size = N if plan is None else plan.shape[1]
    last = min(mark, step + max(1, _GRADIENTS_A_CHUNK // size))
    return np.full((last - step, 1), -1) if plan is None else plan[step:last]


def _observe(
    samples: Samples | None, W: Any, V: Any, K: Any, Q: Any, a: Any, attend: bool
) -> tuple[Any, ...]:
    """Return mean hinge, attention and error, F, A and H (M, m), and the distance to a kink."""
    if samples is None:
        return (np.nan,) * 7
    A, H = K.T @ Q, V.T @ W
    F, attention, nearest = (np.empty(len(samples.labels)) for _ in range(3))
    kernels.outputs(samples, A, H, a, bool(attend), F, attention, nearest)
    yF = samples.labels * F
    means = (samples.weights @ x for x in (np.maximum(0.0, 1.0 - yF), attention, yF <= 0.0))
    return (*means, F, A, H, nearest.min())


def off_the_kink(nearest: float, H: np.ndarray) -> None:
    """Raise ParameterError where a ReLU stands at its kink: its derivative is not defined.

    ``nearest`` is the smallest absolute input of a neuron over the samples.
    """
    largest = np.abs(H).max()
    if np.isfinite(largest) and nearest <= _TIE * largest:
        raise ParameterError(
            "W_O is not allowed with V: a neuron stands at the kink of its ReLU in a sample; "
            "perturb the rows of W_O, say by normal entries of a hundredth of their size"
        )
