"""The shallow transformer of Li et al. (2023) on tokens: full matrices, sample by sample.

The oracle for the reduced dynamics. It shares no code with them and assumes none of their
structure: tokens are vectors of any kind, the softmax runs over tokens, and every matrix moves by
the gradient of the hinge loss written out by the chain rule.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynamics.core.checks import require

Array = NDArray[np.float64]


@dataclass(frozen=True)
class FullWeights:
    """W_O (m, p), W_V (p, d), W_K and W_Q (b, d), a (m,)."""

    W_O: Array
    W_V: Array
    W_K: Array
    W_Q: Array
    a: Array


def forward(
    weights: FullWeights, X: Array, queried: Sequence[int], attention: bool = True
) -> tuple[float, FullWeights, Array]:
    r"""Return F, its gradient in every matrix (``a``: nothing) and the attention (L, queries).

    .. math:: F(X)=\frac1{|S|}\sum_{l\in S}a^T\mathrm{relu}
       (W_OW_VX\,\mathrm{softmax}(X^TW_K^TW_Qx_l))

    ``X`` (d, L) holds a token in each column, ``queried`` the indices S. Without ``attention``
    every token has the same weight 1/L.
    """
    w = weights
    gradient = FullWeights(*(np.zeros_like(x) for x in (w.W_O, w.W_V, w.W_K, w.W_Q, w.a)))
    F, columns = 0.0, []
    for query in queried:
        x = X[:, query]
        key_side, query_side = w.W_K @ X, w.W_Q @ x
        logits = query_side @ key_side if attention else np.zeros(X.shape[1])
        p = np.exp(logits - logits.max())
        p = p / p.sum()
        mixed = X @ p
        value = w.W_V @ mixed
        z = w.W_O @ value
        F += w.a @ np.maximum(z, 0.0) / len(queried)
        back = w.a * (z > 0.0) / len(queried)
        to_value = w.W_O.T @ back
        gradient.W_O[...] += np.outer(back, value)
        gradient.W_V[...] += np.outer(to_value, mixed)
        if attention:
            to_p = X.T @ (w.W_V.T @ to_value)
            to_logits = p * (to_p - p @ to_p)
            gradient.W_K[...] += np.outer(query_side, X @ to_logits)
            gradient.W_Q[...] += np.outer(key_side @ to_logits, x)
        columns.append(p)
    return float(F), gradient, np.array(columns).T


def step(
    weights: FullWeights,
    batch: Sequence[tuple[Array, float, Sequence[int]]],
    rates: tuple[float, float],
    *,
    attention: bool = True,
    train_value: bool = True,
) -> FullWeights:
    """Return the weights after one step of SGD on the mean hinge loss of (X, y, queried) triples.

    ``rates`` are those of W_O, W_V and of W_K, W_Q. Raises ParameterError for an empty batch.
    """
    require(len(batch) > 0, "batch", batch, "at least one sample")
    names = ("W_O", "W_V", "W_K", "W_Q")
    moves = {name: np.zeros_like(getattr(weights, name)) for name in names}
    for X, y, queried in batch:
        F, gradient, _ = forward(weights, X, queried, attention)
        if y * F < 1.0:
            for name in names:
                moves[name] += y * getattr(gradient, name) / len(batch)
    if not train_value:
        moves["W_V"][...] = 0.0
    rate = dict(zip(names, (rates[0], rates[0], rates[1], rates[1])))
    moved = {name: getattr(weights, name) + rate[name] * moves[name] for name in names}
    return FullWeights(**moved, a=weights.a)
