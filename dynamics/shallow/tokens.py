"""Samples of noisy tokens (tau > 0), their sparsification, and SGD on them.

The network depends on its weights through ``A = W_K^T W_Q`` (d, d) and ``H = W_O W_V`` (m, d) only,
for tokens of dimension d.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from dynamics.core.checks import finite, integer, require
from dynamics.core.trajectory import Status
from dynamics.shallow.data import finite_array, sample
from dynamics.shallow.problem import ShallowProblem
from dynamics.shallow.training import (
    History,
    Observation,
    Options,
    check_kinks,
    validated_options,
)

_BLOCK = 40_000  # attention probabilities that are stored at a time
#: Selections of tokens that `sparsified` removes.
REMOVABLE = ("irrelevant", "noisiest", "random", "relevant")


class Tokens(NamedTuple):
    """Samples of tokens.

    Attributes
    ----------
    X
        Tokens, (N, L, d).
    labels
        Labels, +1 or -1, (N,).
    pattern, noise, queried
        Pattern of each token, norm of its noise, and whether it is queried, (N, L).
    """

    X: np.ndarray
    labels: np.ndarray
    pattern: np.ndarray
    noise: np.ndarray
    queried: np.ndarray

    @property
    def relevant(self) -> np.ndarray:
        """Whether each token has the pattern of the label, (N, L)."""
        return self.pattern == np.where(self.labels > 0.0, 0, 1)[:, None]


def draw_tokens(
    problem: ShallowProblem,
    N: int,
    rng: np.random.Generator,
    *,
    patterns: Any = None,
    noise: Any = 0.0,
) -> Tokens:
    """Return N random samples: each token is a pattern plus noise in a random direction.

    Parameters
    ----------
    problem
        Constants of the data.
    N
        Number of samples, 1 to 10^7.
    rng
        Random generator.
    patterns
        Orthonormal columns, (d, M); ``None``: the first M unit vectors of dimension 2M.
    noise
        Norm tau of the noise of all tokens, or of each token (N, L); 0 or more.

    Raises
    ------
    ParameterError
        If N is not allowed, the patterns are not orthonormal, or a norm is negative.
    """
    N, M, L = integer("N", N, 1, 10**7), problem.M, problem.L
    U = np.eye(2 * M, M) if patterns is None else finite_array("patterns", patterns, (None, M))
    require(
        np.abs(U.T @ U - np.eye(M)).max() < 1e-9,
        "patterns",
        "an array with other columns",
        "orthonormal",
    )
    norms = np.broadcast_to(np.asarray(noise, float), (N, L)) if np.ndim(noise) == 0 else noise
    norms = finite_array("noise", norms, (N, L))
    require(bool((norms >= 0.0).all()), "noise", "an array with a negative entry", "0 or more")
    samples = sample(problem, N, rng)
    pattern = np.array([np.repeat(np.arange(M), row) for row in samples.counts])
    queried = np.ones((N, L), bool)
    if problem.queried not in (None, L):
        for n, i in product(range(N), range(M)):
            indices = np.flatnonzero(pattern[n] == i)
            queried[n, indices[samples.queried[n, i] :]] = False
    directions = rng.normal(size=(N, L, len(U)))
    directions /= np.linalg.norm(directions, axis=2, keepdims=True)
    X = U.T[pattern] + norms[:, :, None] * directions
    return Tokens(X, samples.labels, pattern, norms, queried)


def sparsified(tokens: Tokens, number: int, which: str, rng: np.random.Generator) -> Tokens:
    """Return the samples without some of their tokens, which are not queried any more.

    Parameters
    ----------
    tokens
        Samples of L tokens.
    number
        Number of tokens to remove from each sample.
    which
        ``"irrelevant"``, ``"relevant"`` or ``"random"``: random tokens among these or all;
        ``"noisiest"``: those with the largest noise.
    rng
        Random generator.

    Raises
    ------
    ParameterError
        If a sample has fewer such tokens, or no queried token is left.
    """
    N, L = tokens.pattern.shape
    require(which in REMOVABLE, "which", repr(which), " or ".join(map(repr, REMOVABLE)))
    number = integer("number", number, 0, L - 1)
    order = rng.random((N, L))
    if which == "noisiest":
        order = -tokens.noise + 1e-12 * order
    elif which != "random":
        candidates = tokens.relevant if which == "relevant" else tokens.pattern >= 2
        fewest = int(candidates.sum(axis=1).min())
        require(
            number <= fewest, "number", number, f"at most {fewest}, the {which} tokens there are"
        )
        order = order + ~candidates
    remaining = np.sort(np.argsort(order, axis=1)[:, number:], axis=1)
    rows = np.arange(N)[:, None]
    sparse = Tokens(
        tokens.X[rows, remaining], tokens.labels, *(x[rows, remaining] for x in tokens[2:])
    )
    require(bool(sparse.queried.any(axis=1).all()), "number", number, "such that a query is left")
    return sparse


@dataclass(frozen=True, eq=False)
class TokenTraining:
    """Result of SGD on tokens.

    Attributes
    ----------
    hinge, attention
        Means over the samples at the end: hinge loss, attention on relevant tokens.
    F
        Outputs, (N,).
    W_O, W_V, W_K, W_Q
        Weights, (m, p), (p, d), (b, d), (b, d).
    history
        Records along the run.
    status
        `Status.DIVERGED` if the weights became infinite or NaN.
    """

    hinge: float
    attention: float
    F: np.ndarray
    W_O: np.ndarray
    W_V: np.ndarray
    W_K: np.ndarray
    W_Q: np.ndarray
    history: History
    status: Status


class _Distinct(NamedTuple):
    """Samples in which identical tokens are merged, padded by copies with number 0 to n tokens.

    Attributes
    ----------
    X
        Tokens, (N, n, d).
    labels
        Labels, +1 or -1, (N,).
    number
        Number of tokens of the sample that are equal to each one, (N, n).
    share
        Weight of each query in the output: the fraction of queried tokens equal to it, (N, n).
    relevant
        Whether each token has the pattern of the label, (N, n).
    """

    X: np.ndarray
    labels: np.ndarray
    number: np.ndarray
    share: np.ndarray
    relevant: np.ndarray

    @classmethod
    def of(cls, tokens: Tokens) -> "_Distinct":
        """Return the samples with tokens of the same pattern merged if they have no noise."""
        N, L = tokens.pattern.shape
        rows, each = np.arange(N)[:, None], np.arange(L)
        pattern = np.where(tokens.noise == 0.0, tokens.pattern, -1 - each)
        first = np.argmax(pattern[:, :, None] == pattern[:, None, :], axis=2)
        first = np.where((tokens.X[rows, first] == tokens.X).all(axis=2), first, each)
        number, queries = (
            np.bincount((first + L * rows).ravel(), weights, N * L).reshape(N, L)
            for weights in (None, tokens.queried.ravel())
        )
        most = int((number > 0).sum(axis=1).max())
        order = np.argsort(number == 0, axis=1, kind="stable")[:, :most]
        X, number, queries, relevant = (
            x[rows, order] for x in (tokens.X, number, queries, tokens.relevant)
        )
        share = queries / queries.sum(axis=1, keepdims=True)
        return cls(X, tokens.labels, number.astype(float), share, relevant)

    def chosen(self, index: Any) -> "_Distinct":
        """Return some of the samples."""
        return _Distinct(*(x[index] for x in self))


class _Pass(NamedTuple):
    """Forward pass of a batch of B samples.

    Attributes
    ----------
    F
        Outputs, (B,).
    P
        Attention, (B, keys, queries).
    mixed
        Attention-weighted means of the tokens, (B, queries, d).
    inputs
        Inputs of the neurons, (B, queries, m).
    gates
        Output weights of the active neurons, 0 for the others, (B, queries, m).
    """

    F: np.ndarray
    P: np.ndarray
    mixed: np.ndarray
    inputs: np.ndarray
    gates: np.ndarray


def train_on_tokens(
    tokens: Tokens,
    *,
    W_O: Any,
    W_V: Any,
    W_K: Any,
    W_Q: Any,
    a: Any,
    steps: int,
    learning_rate: float = 0.2,
    learning_rate_KQ: float = 2.0,
    batches: Any = None,
    attention: bool = True,
    train_value: bool = True,
    test: Tokens | None = None,
    records: Sequence[int] = (),
    until: float = 0.0,
) -> TokenTraining:
    """Run SGD on the hinge loss of noisy tokens.

    Without noise the result is that of `train_on_counts` in the basis of the patterns.

    Parameters
    ----------
    tokens
        Training samples.
    W_O, W_V, W_K, W_Q, a
        Initial weights, (m, p), (p, d), (b, d), (b, d), and the fixed output weights (m,).
    steps, learning_rate, learning_rate_KQ, batches, attention, train_value, records, until
        As in `train_on_counts`.
    test
        Held-out samples for the history.

    Raises
    ------
    ParameterError
        If an argument is outside its domain, shapes do not fit, or initially a neuron is at the
        kink of its ReLU in a sample.
    """
    N, _, d = tokens.X.shape
    a = finite_array("a", a, (None,))
    W = finite_array("W_O", W_O, (a.size, None))
    V = finite_array("W_V", W_V, (W.shape[1], d))
    K = finite_array("W_K", W_K, (None, d))
    Q = finite_array("W_Q", W_Q, K.shape)
    options = validated_options(
        N, steps, learning_rate, learning_rate_KQ, batches, attention, train_value, records
    )._replace(until=finite("until", until))
    held_out = None if test is None else _Distinct.of(test)
    return _train(_Distinct.of(tokens), held_out, (W, V, K, Q), a, options)


def _train(
    tokens: _Distinct,
    test: _Distinct | None,
    weights: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
    a: np.ndarray,
    options: Options,
) -> TokenTraining:
    """Run SGD from W_O, W_V, W_K and W_Q."""
    W, V, K, Q = weights
    rate, rate_KQ = options.rates
    recorded = set(options.records)
    rows: list[tuple[float, ...]] = []
    status = Status.COMPLETED
    for step in range(options.steps + 1):
        with np.errstate(over="ignore", invalid="ignore"):
            A, H = K.T @ Q, W @ V
            if not np.isfinite(A).all() or not np.isfinite(H).all():
                status = Status.DIVERGED
            if step in recorded or status is not Status.COMPLETED:
                train_now = _observe(tokens, A, H, a, options.attention)
                test_now = _observe(test, A, H, a, options.attention)
                if step == 0 < options.steps:
                    check_kinks(train_now.nearest, H)
                rows.append(
                    (step, train_now.hinge, train_now.attention, test_now.hinge, test_now.error)
                )
                if train_now.hinge < options.until:
                    break
            if step == options.steps or status is not Status.COMPLETED:
                break
            batch = tokens
            if options.batches is not None:
                batch = tokens.chosen(options.batches[step])
            D, G = _descent(batch, A, H, a, options.attention)
            W, V = W + rate * D @ V.T, V + rate * W.T @ D if options.train_value else V
            if options.attention:
                K, Q = K + rate_KQ * Q @ G.T, Q + rate_KQ * K @ G
    return TokenTraining(
        train_now.hinge, train_now.attention, train_now.F, W, V, K, Q, History.of(rows), status
    )


def _forward(tokens: _Distinct, A: np.ndarray, H: np.ndarray, a: np.ndarray, attend: bool) -> _Pass:
    """Return the forward pass of all distinct tokens as queries."""
    X = tokens.X
    if attend:
        P = (X @ A) @ X.transpose(0, 2, 1)
        P -= P.max(axis=1, keepdims=True)
        np.exp(P, out=P)
        P *= tokens.number[:, :, None]
        P /= P.sum(axis=1, keepdims=True)
    else:
        keys = tokens.number / tokens.number.sum(axis=1, keepdims=True)
        P = np.repeat(keys[:, :, None], X.shape[1], axis=2)
    mixed = P.transpose(0, 2, 1) @ X
    z = (mixed.reshape(-1, mixed.shape[2]) @ H.T).reshape(*mixed.shape[:2], len(a))
    gates = (z > 0.0) * a
    F = np.sum(tokens.share * np.einsum("nqr,nqr->nq", gates, z), axis=1)
    return _Pass(F, P, mixed, z, gates)


def _descent(
    tokens: _Distinct, A: np.ndarray, H: np.ndarray, a: np.ndarray, attend: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return minus the gradients of the mean hinge loss in H (m, d) and A (d, d)."""
    F, P, mixed, _, gates = _forward(tokens, A, H, a, attend)
    N, active = len(F), tokens.labels * F < 1.0
    if not active.all():
        tokens, P, mixed, gates = tokens.chosen(active), P[active], mixed[active], gates[active]
    X, d = tokens.X, A.shape[0]
    back = (tokens.labels[:, None] * tokens.share / N)[:, :, None] * gates
    D = back.reshape(-1, len(a)).T @ mixed.reshape(-1, d)
    if not attend:
        return D, np.zeros_like(A)
    to_P = X @ (back @ H).transpose(0, 2, 1)
    to_P -= np.einsum("nkq,nkq->nq", P, to_P)[:, None]
    to_P *= P
    return D, X.reshape(-1, d).T @ (to_P @ X).reshape(-1, d)


def _observe(
    tokens: _Distinct | None, A: np.ndarray, H: np.ndarray, a: np.ndarray, attend: bool
) -> Observation:
    """Return means over all samples, computed in blocks; NaN if ``tokens`` is None.

    The distance from a kink is that of the queried tokens.
    """
    if tokens is None:
        return Observation()
    N, n = tokens.number.shape
    F, on_relevant = np.empty(N), np.empty(N)
    nearest, size = np.inf, max(1, _BLOCK // n**2)
    for first in range(0, N, size):
        block = slice(first, first + size)
        part = tokens.chosen(block)
        F[block], P, _, z, _ = _forward(part, A, H, a, attend)
        nearest = min(nearest, float(np.abs(z[part.share > 0.0]).min()))
        keys = np.sum(P * part.relevant[:, :, None], axis=1)
        on_relevant[block] = np.sum(part.share * keys, axis=1)
    yF = tokens.labels * F
    hinge = float(np.maximum(0.0, 1.0 - yF).mean())
    return Observation(hinge, float(on_relevant.mean()), float(np.mean(yF <= 0.0)), F, nearest)
