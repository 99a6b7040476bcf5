"""The gradient in the numbers of a symmetric state, compiled for the descent loop."""

import math
from typing import NamedTuple

import numpy as np

from dynamics.core.compiled_gradients import gradient_of
from dynamics.core.jit import kernel
from dynamics.shallow.kernels import Samples, gradient, product


class ShallowPlan(NamedTuple):
    """Samples of label +1, slots of the entries of W_O (2M, M), V, K and Q, entries in each slot.

    A row of W_O stands for ``copies`` neurons; ``a`` (2M,) are their output weights, added up.
    """

    samples: Samples
    everything: np.ndarray
    W: np.ndarray
    V: np.ndarray
    K: np.ndarray
    Q: np.ndarray
    entries: np.ndarray
    a: np.ndarray
    copies: float
    rate: float
    attend: bool
    train_value: bool


@kernel(inner=True)
def _filled(slots, theta):
    out = np.empty(slots.shape)
    for row in range(slots.shape[0]):
        for column in range(slots.shape[1]):
            out[row, column] = theta[slots[row, column]]
    return out


@gradient_of(ShallowPlan)
@kernel
def gradient_within(plan, theta, out):
    """Write minus the direction of each number (nan on overflow): a mean over its entries."""
    W, V = _filled(plan.W, theta), _filled(plan.V, theta)
    K, Q = _filled(plan.K, theta), _filled(plan.Q, theta)
    M, R = V.shape[0], W.shape[0]
    A, H = np.empty((M, M)), np.empty((M, R))
    D, G = np.empty((M, R)), np.empty((M, M))
    product(K, Q, A)
    product(V, W.T.copy(), H)
    loss = gradient(
        plan.samples, plan.everything, plan.samples.weights, A, H, plan.a, plan.attend, D, G
    )
    out[:] = 0.0
    if not math.isfinite(loss + np.sum(A) + np.sum(H)):  # a ReLU replaces nan by 0
        out[:] = math.nan
        return True
    for p in range(M):
        for i in range(M):
            for r in range(R):
                out[plan.W[r, p]] -= D[i, r] * V[p, i] / plan.copies
                if plan.train_value:
                    out[plan.V[p, i]] -= W[r, p] * D[i, r]
    for b in range(K.shape[0]):
        for i in range(M):
            for j in range(M):
                out[plan.K[b, i]] -= plan.rate * Q[b, j] * G[i, j]
                out[plan.Q[b, j]] -= plan.rate * K[b, i] * G[i, j]
    out /= plan.entries
    return True
