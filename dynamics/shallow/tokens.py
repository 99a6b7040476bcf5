"""Samples as tokens with noise, their sparsification, and SGD on them (tau > 0).

The network sees its weights through ``A = W_K^T W_Q`` and ``H = W_O W_V`` on tokens of dimension d.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from dynamics.core.checks import finite, integer, require
from dynamics.core.trajectory import Status
from dynamics.shallow.data import numbers, sample
from dynamics.shallow.problem import ShallowProblem
from dynamics.shallow.training import History, checked_batches, off_the_kink

_BLOCK = 40_000  # entries of P at a time in means over samples
REMOVABLE = ("irrelevant", "noisiest", "random", "relevant")


class Tokens(NamedTuple):
    """Samples X (N, L, d), labels (N,), pattern, norm of the noise and whether queried (N, L)."""

    X: np.ndarray
    labels: np.ndarray
    pattern: np.ndarray
    noise: np.ndarray
    queried: np.ndarray

    @property
    def relevant(self) -> np.ndarray:
        """Which tokens carry the pattern of the label, (N, L)."""
        return self.pattern == np.where(self.labels > 0.0, 0, 1)[:, None]


def draw_tokens(
    problem: ShallowProblem,
    N: int,
    rng: np.random.Generator,
    *,
    patterns: Any = None,
    noise: Any = 0.0,
) -> Tokens:
    """Draw N samples: each token a pattern plus noise of a given norm in a random direction.

    Parameters
    ----------
    patterns
        Orthonormal columns (d, M); ``None``: the first M unit vectors of dimension 2M.
    noise
        Norm tau of every token's noise, or one for each (N, L); 0 or more.

    Raises
    ------
    ParameterError
        If the patterns are not orthonormal, or a norm is negative.
    """
    N, M, L = integer("N", N, 1, 10**7), problem.M, problem.L
    U = np.eye(2 * M, M) if patterns is None else numbers("patterns", patterns, (None, M))
    require(
        np.abs(U.T @ U - np.eye(M)).max() < 1e-9,
        "patterns",
        "an array with other columns",
        "orthonormal",
    )
    norms = np.broadcast_to(np.asarray(noise, float), (N, L)) if np.ndim(noise) == 0 else noise
    norms = numbers("noise", norms, (N, L))
    require(bool((norms >= 0.0).all()), "noise", "an array with a negative entry", "0 or more")
    drawn = sample(problem, N, rng)
    kinds = np.array([np.repeat(np.arange(M), row) for row in drawn.counts])
    queried = np.ones((N, L), bool)
    if problem.queried not in (None, L):
        asked = [np.repeat(np.arange(M), row) for row in drawn.queried]
        for n, pattern in product(range(N), range(M)):
            places = np.flatnonzero(kinds[n] == pattern)
            queried[n, places[np.sum(asked[n] == pattern) :]] = False
    directions = rng.normal(size=(N, L, len(U)))
    directions /= np.linalg.norm(directions, axis=2, keepdims=True)
    X = U.T[kinds] + norms[:, :, None] * directions
    return Tokens(X, drawn.labels, kinds, norms, queried)


def sparsified(tokens: Tokens, number: int, which: str, rng: np.random.Generator) -> Tokens:
    """Return every sample without ``number`` of its tokens, queries among them.

    ``which``: ``"irrelevant"``, ``"relevant"``, ``"noisiest"`` or ``"random"`` ones. Raises
    ParameterError where a sample has fewer of them, or keeps no queried token.
    """
    N, L = tokens.pattern.shape
    require(which in REMOVABLE, "which", repr(which), " or ".join(map(repr, REMOVABLE)))
    number = integer("number", number, 0, L - 1)
    order = rng.random((N, L))
    if which == "noisiest":
        order = -tokens.noise + 1e-12 * order
    elif which != "random":
        among = tokens.relevant if which == "relevant" else tokens.pattern >= 2
        fewest = int(among.sum(axis=1).min())
        require(
            number <= fewest, "number", number, f"at most {fewest}, the {which} tokens there are"
        )
        order = order + ~among
    kept = np.sort(np.argsort(order, axis=1)[:, number:], axis=1)
    rows = np.arange(N)[:, None]
    left = Tokens(tokens.X[rows, kept], tokens.labels, *(x[rows, kept] for x in tokens[2:]))
    require(bool(left.queried.any(axis=1).all()), "number", number, "such that a query is left")
    return left


@dataclass(frozen=True, eq=False)
class TokenTraining:
    """Where SGD on tokens ended; the fields are those of `CountTraining` on full matrices."""

    hinge: float
    attention: float
    F: np.ndarray
    W_O: np.ndarray
    W_V: np.ndarray
    W_K: np.ndarray
    W_Q: np.ndarray
    history: History
    status: Status


class _Pass(NamedTuple):
    """F (B,), P (B, keys, queries), P X (B, L, d), neurons' inputs and gates times a (B, L, m)."""

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
) -> TokenTraining:
    """Run SGD on the hinge loss of noisy tokens; arguments as in `train_on_counts`.

    ``W_O`` (m, p), ``W_V`` (p, d), ``W_K`` and ``W_Q`` (b, d). Without noise it is
    `train_on_counts` in the basis of the patterns. Raises ParameterError if an argument is outside
    its domain, or the start is a tie: a neuron at the kink of its ReLU in a sample.
    """
    N, _, d = tokens.X.shape
    a = numbers("a", a, (None,))
    W = numbers("W_O", W_O, (a.size, None))
    V, K = numbers("W_V", W_V, (W.shape[1], d)), numbers("W_K", W_K, (None, d))
    Q = numbers("W_Q", W_Q, K.shape)
    steps = integer("steps", steps, 0, 10**9)
    rate, rate_KQ = (
        finite("learning_rate", learning_rate),
        finite("learning_rate_KQ", learning_rate_KQ),
    )
    require(rate >= 0.0, "learning_rate", rate, "0 or more")
    require(rate_KQ >= 0.0, "learning_rate_KQ", rate_KQ, "0 or more")
    plan = None if batches is None else checked_batches(batches, steps, N)
    marks = {0, steps, *(integer("records", step, 0, steps) for step in records)}
    rows, status = [], Status.COMPLETED
    for step in range(steps + 1):
        with np.errstate(over="ignore", invalid="ignore"):
            A, H = K.T @ Q, W @ V
            if not np.isfinite(A).all() or not np.isfinite(H).all():
                status = Status.DIVERGED
            if step in marks or status is not Status.COMPLETED:
                (hinge, seen, _), F, nearest = _means(tokens, A, H, a, attention)
                (test_hinge, _, error), _, _ = _means(test, A, H, a, attention)
                if step == 0 < steps:
                    off_the_kink(nearest, H)
                rows.append((step, hinge, seen, test_hinge, error))
            if step == steps or status is not Status.COMPLETED:
                break
            batch = tokens if plan is None else Tokens(*(x[plan[step]] for x in tokens))
            D, G = _descent(batch, A, H, a, attention)
            W, V = W + rate * D @ V.T, V + rate * W.T @ D if train_value else V
            if attention:
                K, Q = K + rate_KQ * Q @ G.T, Q + rate_KQ * K @ G
    history = History(*np.array(rows, float).T)
    return TokenTraining(
        float(history.hinge[-1]),
        float(history.attention[-1]),
        F,
        W,
        V,
        K,
        Q,
        history._replace(step=history.step.astype(np.int64)),
        status,
    )


def _forward(tokens: Tokens, A: np.ndarray, H: np.ndarray, a: np.ndarray, attend: bool) -> _Pass:
    X = tokens.X
    if attend:
        logits = (X @ A) @ X.transpose(0, 2, 1)
        P = np.exp(logits - logits.max(axis=1, keepdims=True))
        P /= P.sum(axis=1, keepdims=True)
    else:
        P = np.full((len(X), X.shape[1], X.shape[1]), 1.0 / X.shape[1])
    mixed = P.transpose(0, 2, 1) @ X
    z = mixed @ H.T
    gates = np.where(z > 0.0, a, 0.0)
    share = tokens.queried / tokens.queried.sum(axis=1, keepdims=True)
    return _Pass(np.sum(share * np.sum(gates * z, axis=2), axis=1), P, mixed, z, gates)


def _descent(
    tokens: Tokens, A: np.ndarray, H: np.ndarray, a: np.ndarray, attend: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return minus the gradients of the mean hinge loss in H (m, d) and A (d, d)."""
    F, P, mixed, _, gates = _forward(tokens, A, H, a, attend)
    y = tokens.labels
    weight = y * ((y * F) < 1.0) / len(y)
    share = tokens.queried / tokens.queried.sum(axis=1, keepdims=True)
    back = (weight[:, None] * share)[:, :, None] * gates
    D = back.reshape(-1, len(a)).T @ mixed.reshape(-1, A.shape[0])
    if not attend:
        return D, np.zeros_like(A)
    to_P = tokens.X @ (back @ H).transpose(0, 2, 1)
    to_logits = P * (to_P - np.sum(P * to_P, axis=1, keepdims=True))
    G = np.sum(tokens.X.transpose(0, 2, 1) @ to_logits @ tokens.X, axis=0)
    return D, G


def _means(
    tokens: Tokens | None, A: np.ndarray, H: np.ndarray, a: np.ndarray, attend: bool
) -> tuple[tuple[float, float, float], np.ndarray, float]:
    """Return mean hinge loss, attention of queries on relevant tokens, P[yF <= 0]; F; |z| at least.

    The last is the distance of the inputs of neurons at queried tokens from the kink.
    """
    if tokens is None:
        return (np.nan,) * 3, np.empty(0), np.inf
    N, L = tokens.pattern.shape
    F, on_relevant, block = np.empty(N), np.empty(N), max(1, _BLOCK // L**2)
    nearest = np.inf
    for first in range(0, N, block):
        here = slice(first, first + block)
        part = Tokens(*(x[here] for x in tokens))
        F[here], P, _, z, _ = _forward(part, A, H, a, attend)
        nearest = min(nearest, float(np.abs(z[part.queried]).min()))
        share = part.queried / part.queried.sum(axis=1, keepdims=True)
        keys = np.sum(P * part.relevant[:, :, None], axis=1)
        on_relevant[here] = np.sum(share * keys, axis=1)
    yF, attention = tokens.labels * F, float(on_relevant.mean())
    hinge = float(np.maximum(0.0, 1.0 - yF).mean())
    return (hinge, attention, float(np.mean(yF <= 0.0))), F, nearest
