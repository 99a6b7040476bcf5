"""Reference implementation of the shallow transformer of Li et al. (2023), with full matrices.

It shares no code with the reduced dynamics and assumes none of their structure: tokens are
arbitrary vectors, the softmax is over tokens, and each matrix follows the gradient of the hinge
loss of single samples, by the chain rule.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynamics.core.checks import require

Array = NDArray[np.float64]


@dataclass(frozen=True)
class FullWeights:
    """Weights W_O (m, p), W_V (p, d), W_K and W_Q (b, d), a (m,), or a gradient in them."""

    W_O: Array
    W_V: Array
    W_K: Array
    W_Q: Array
    a: Array


def forward(
    weights: FullWeights, X: Array, queried: Sequence[int], attention: bool = True
) -> tuple[float, FullWeights, Array]:
    r"""Return the output of the network for one sample, its gradient and the attention.

    .. math:: F(X)=\frac1{|S|}\sum_{l\in S}a^T\mathrm{relu}
       (W_OW_VX\,\mathrm{softmax}(X^TW_K^TW_Qx_l))

    Parameters
    ----------
    weights
        Weights of the network.
    X
        Tokens, one in each column, (d, L).
    queried
        Indices S of the queried tokens.
    attention
        False: every token has the weight 1/L.

    Returns
    -------
    F : float
        Output.
    gradient : FullWeights
        Gradient of F in each matrix; zero for ``a``.
    P : ndarray
        Attention, (L, queries).
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
    """Return the weights after one step of SGD on the mean hinge loss of a batch.

    Parameters
    ----------
    weights
        Weights before the step.
    batch
        Triples (X, y, queried) of tokens (d, L), label and queried indices.
    rates
        Learning rates of W_O and W_V, and of W_K and W_Q.
    attention, train_value
        Whether the network has attention, and whether W_V is trained.

    Raises
    ------
    ParameterError
        If the batch is empty.
    """
    require(len(batch) > 0, "batch", batch, "at least one sample")
    names = ("W_O", "W_V", "W_K", "W_Q")
    descent = {name: np.zeros_like(getattr(weights, name)) for name in names}
    for X, y, queried in batch:
        F, gradient, _ = forward(weights, X, queried, attention)
        if y * F < 1.0:
            for name in names:
                descent[name] += y * getattr(gradient, name) / len(batch)
    if not train_value:
        descent["W_V"][...] = 0.0
    rate = dict(zip(names, (rates[0], rates[0], rates[1], rates[1])))
    updated = {name: getattr(weights, name) + rate[name] * descent[name] for name in names}
    return FullWeights(**updated, a=weights.a)
