"""SGD of the shallow transformer on token counts, that is on finitely many samples without noise.

The network depends on its weights through ``A = K^T Q`` and ``H = W_O V`` only. A sample is reduced
to its key fractions f, query fractions s and label y.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dynamics.core.checks import finite, integer, require
from dynamics.core.errors import ParameterError
from dynamics.core.trajectory import Status
from dynamics.shallow import kernels
from dynamics.shallow.data import finite_array, validated_samples
from dynamics.shallow.kernels import Samples

_KINK = 1e-13  # distance to a kink, relative to the largest entry of H
_MOST_STEPS = 10**9
_GRADIENTS_PER_CHUNK = 10**5  # some tenths of a second; Ctrl-C is handled between chunks


class History(NamedTuple):
    """Records of a run of SGD, each (n,).

    Attributes
    ----------
    step
        Number of steps.
    hinge, attention
        Means over the training samples: hinge loss, attention on relevant tokens.
    test_hinge, test_error
        Means over the test samples: hinge loss, P[yF <= 0]; NaN if there are none.
    """

    step: np.ndarray
    hinge: np.ndarray
    attention: np.ndarray
    test_hinge: np.ndarray
    test_error: np.ndarray

    @classmethod
    def of(cls, rows: list[tuple[float, ...]]) -> "History":
        """Return the history with the given rows, one tuple per record."""
        history = cls(*np.array(rows, float).T)
        return history._replace(step=history.step.astype(np.int64))


@dataclass(frozen=True, eq=False)
class CountTraining:
    """Result of SGD on counts.

    Attributes
    ----------
    hinge, attention
        Weighted means over the samples at the end: hinge loss, attention on relevant tokens.
    F
        Outputs, (N,).
    A, H
        Products K^T Q (M, M) and W_O V (m, M).
    W_O, V, K, Q
        Weights, (m, p), (p, M), (b, M), (b, M).
    history
        Records along the run.
    status
        `Status.DIVERGED` if the loss or the weights became infinite or NaN.
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


class Options(NamedTuple):
    """Validated options of SGD.

    Attributes
    ----------
    steps
        Number of steps.
    rates
        Learning rates of W_O and V, and of K and Q.
    batches
        Indices of samples, (steps, B), or None.
    attention, train_value
        Whether the network has attention, and whether V is trained.
    records
        Steps to record, in increasing order; the first and the last are included.
    until
        Training ends at the first record with a smaller hinge loss.
    """

    steps: int
    rates: tuple[float, float]
    batches: np.ndarray | None
    attention: bool
    train_value: bool
    records: list[int]
    until: float = 0.0


class Observation(NamedTuple):
    """State of the network on a set of samples.

    Attributes
    ----------
    hinge, attention, error
        Means over the samples: hinge loss, attention on relevant tokens, P[yF <= 0].
    F
        Outputs, (N,).
    nearest
        Smallest distance of the input of a ReLU from its kink.
    """

    hinge: float = np.nan
    attention: float = np.nan
    error: float = np.nan
    F: np.ndarray = np.empty(0)
    nearest: float = np.inf


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
    until: float = 0.0,
) -> CountTraining:
    r"""Run SGD on the hinge loss :math:`\max(0, 1-yF)` of samples given as token counts.

    .. math:: P_{i|j}=\frac{f_ie^{A_{ij}}}{\sum_kf_ke^{A_{kj}}},\quad
       F=\sum_js_j\sum_ra_r[(HP)_{rj}]_+,\quad
       W_O\mathrel{+}=\eta DV^T,\ V\mathrel{+}=\eta W_O^TD,\
       K\mathrel{+}=\eta_{KQ}QG^T,\ Q\mathrel{+}=\eta_{KQ}KG

    with old values on the right, where D and G are minus the gradients of the mean hinge loss of
    a batch in H and A. The derivatives of the ReLU at 0 and of the hinge at yF = 1 are 0. The steps
    are those of the full matrices on tokens, without approximation.

    Parameters
    ----------
    counts, labels
        Tokens per pattern, (N, M) with M >= 3, and labels, +1 or -1, (N,). Patterns 0 and 1 are
        discriminative.
    W_O, V, K, Q, a
        Initial weights in the pattern basis, (m, p), (p, M), (b, M), (b, M), and the fixed output
        weights (m,).
    steps
        Number of steps, 0 to 10^9.
    learning_rate, learning_rate_KQ
        Learning rates eta of W_O and V, and eta_KQ of K and Q; 0 or more.
    batches
        Indices of samples, (steps, B), one row for each step; ``None``: all samples in each step.
    attention
        False: a network without attention, :math:`P_{i|j}=f_i`; K and Q are constant.
    queried
        Queried tokens per pattern, (N, M), at most ``counts``; ``None``: all tokens.
    weights
        Relative weights of the samples in full-batch steps and in means, such as multinomial
        counts, (N,); ``None``: equal. Not allowed together with ``batches``.
    train_value
        Whether V is trained.
    test
        Held-out ``(counts, labels)`` or ``(counts, labels, queried)`` for the history.
    records
        Steps to record in addition to the first and the last.
    until
        Training ends at the first record with a hinge loss below this value.

    Returns
    -------
    CountTraining
        Final weights, means over the samples, and the history.

    Raises
    ------
    ParameterError
        If an argument is outside its domain, shapes do not fit, or initially a neuron is at the
        kink of its ReLU in a sample.
    """
    samples = validated_samples(counts, labels, queried, weights)
    N, M = samples.keys.shape
    a = finite_array("a", a, (None,))
    W = np.ascontiguousarray(finite_array("W_O", W_O, (a.size, None)).T)
    V = finite_array("V", V, (W.shape[0], M))
    K = finite_array("K", K, (None, M))
    Q = finite_array("Q", Q, K.shape)
    require(
        batches is None or weights is None,
        "weights",
        "given with batches",
        "None: a batch is an average over its indices",
    )
    options = validated_options(
        N, steps, learning_rate, learning_rate_KQ, batches, attention, train_value, records
    )._replace(until=finite("until", until))
    held_out = None if test is None else validated_samples(*test)
    if held_out is not None:
        require(held_out.keys.shape[1] == M, "patterns in test", held_out.keys.shape[1], str(M))
    return _train(samples, held_out, (W, V, K, Q), a, options)


def validated_options(
    N: int,
    steps: Any,
    learning_rate: Any,
    learning_rate_KQ: Any,
    batches: Any,
    attention: Any,
    train_value: Any,
    records: Sequence[int],
) -> Options:
    """Return the options of SGD on N samples, or raise ParameterError; see `train_on_counts`."""
    steps = integer("steps", steps, 0, _MOST_STEPS)
    rates = finite("learning_rate", learning_rate), finite("learning_rate_KQ", learning_rate_KQ)
    for name, rate in zip(("learning_rate", "learning_rate_KQ"), rates):
        require(rate >= 0.0, name, rate, "0 or more")
    recorded = {0, steps, *(integer("records", step, 0, steps) for step in records)}
    return Options(
        steps,
        rates,
        None if batches is None else _validated_batches(batches, steps, N),
        bool(attention),
        bool(train_value),
        sorted(recorded),
    )


def _validated_batches(batches: Any, steps: int, N: int) -> np.ndarray:
    """Return batches as indices (steps, B), or raise ParameterError."""
    indices = np.asarray(batches)
    require(
        indices.ndim == 2 and len(indices) == steps and (indices.shape[1] > 0 or not steps),
        "shape of batches",
        indices.shape,
        f"({steps}, B): one row for each step",
    )
    inside = not indices.size or (indices.min() >= 0 and indices.max() < N)
    allowed = indices.dtype.kind in "iu" and inside
    require(allowed, "batches", "an array with other entries", f"indices from 0 to {N - 1}")
    return np.ascontiguousarray(indices, np.int64)


def _train(
    samples: Samples,
    test: Samples | None,
    weights: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
    a: np.ndarray,
    options: Options,
) -> CountTraining:
    """Run SGD from W_O transposed (p, m), V, K and Q, which are overwritten."""
    W, V, K, Q = weights
    rows: list[tuple[float, ...]] = []
    step, status = 0, Status.COMPLETED
    for mark in options.records:
        while step < mark and status is Status.COMPLETED:
            chunk = _chunk(options.batches, step, mark, len(samples.labels))
            done = kernels.descend(
                samples, chunk, *weights, a, *options.rates, options.attention, options.train_value
            )
            step += done
            if done < len(chunk):
                status = Status.DIVERGED
        with np.errstate(over="ignore", invalid="ignore"):
            A, H = K.T @ Q, V.T @ W
            train_now = _observe(samples, A, H, a, options.attention)
            test_now = _observe(test, A, H, a, options.attention)
        if mark == 0 < options.steps:
            check_kinks(train_now.nearest, H)
        if not np.isfinite(train_now.hinge):
            status = Status.DIVERGED
        rows.append((step, train_now.hinge, train_now.attention, test_now.hinge, test_now.error))
        if status is not Status.COMPLETED or train_now.hinge < options.until:
            break
    return CountTraining(
        hinge=float(train_now.hinge),
        attention=float(train_now.attention),
        F=train_now.F,
        A=A,
        H=H.T,
        W_O=W.T,
        V=V,
        K=K,
        Q=Q,
        history=History.of(rows),
        status=status,
    )


def _chunk(batches: np.ndarray | None, step: int, mark: int, N: int) -> np.ndarray:
    """Return the batches of the next steps, at most `_GRADIENTS_PER_CHUNK` gradients of samples."""
    size = N if batches is None else batches.shape[1]
    end = min(mark, step + max(1, _GRADIENTS_PER_CHUNK // size))
    return np.full((end - step, 1), -1) if batches is None else batches[step:end]


def _observe(
    samples: Samples | None, A: np.ndarray, H: np.ndarray, a: np.ndarray, attend: bool
) -> Observation:
    """Return the weighted means over samples, NaN if there are none; H is transposed, (M, m)."""
    if samples is None:
        return Observation()
    F, attention, nearest = (np.empty(len(samples.labels)) for _ in range(3))
    kernels.outputs(samples, A, H, a, attend, F, attention, nearest)
    yF = samples.labels * F
    hinge, mean_attention, error = (
        samples.weights @ values for values in (np.maximum(0.0, 1.0 - yF), attention, yF <= 0.0)
    )
    return Observation(hinge, mean_attention, error, F, nearest.min())


def is_at_kink(nearest: float, H: np.ndarray) -> bool:
    """Return whether a neuron is at the kink of its ReLU, where its derivative is not defined.

    Parameters
    ----------
    nearest
        Smallest absolute input of a neuron over the samples.
    H
        Product W_O V or its transpose.
    """
    largest = np.abs(H).max()
    return bool(np.isfinite(largest) and nearest <= _KINK * largest)


def check_kinks(nearest: float, H: np.ndarray) -> None:
    """Raise ParameterError if a neuron is at the kink of its ReLU; see `is_at_kink`."""
    if is_at_kink(nearest, H):
        raise ParameterError(
            "W_O is not allowed with V: a neuron is at the kink of its ReLU in a sample; "
            "perturb the rows of W_O, for example by normal entries of a hundredth of their size"
        )
