"""Compiled kernels of the shallow transformer: outputs, gradients and steps of SGD on counts.

In the reduced model a sample consists of key fractions f, query fractions s and the label y, and
the network depends on its weights through ``A = K^T Q`` (M, M) and ``H = W_O V`` (m, M). The
kernels store H and W_O transposed, (M, m) and (p, m), so that every inner loop runs over the
neurons. They use one thread and release the GIL: independent runs may use one thread each.
"""

import math
from typing import NamedTuple

import numpy as np

from dynamics.core.compiled_gradients import gradient_of
from dynamics.core.jit import REORDER, kernel


class Samples(NamedTuple):
    """Samples of the reduced model.

    Attributes
    ----------
    keys, queries
        Fractions f and s of the tokens and of the queried tokens with each pattern, (N, M).
    labels
        Labels y, +1 or -1, (N,).
    weights
        Weights of the samples, with sum 1, (N,).
    """

    keys: np.ndarray
    queries: np.ndarray
    labels: np.ndarray
    weights: np.ndarray


class GradientData(NamedTuple):
    """Data of the gradient with respect to the order parameters of a symmetric state.

    Attributes
    ----------
    samples
        Samples of label +1.
    indices
        Indices of all samples, (N,).
    W, V, K, Q
        Order parameter of each entry of W_O (2M, M), V (M, M), K and Q (M or 2M, M).
    entries
        Number of matrix entries of each order parameter, (n,).
    a
        Output weight of each row of W_O, summed over its neurons, (2M,).
    copies
        Number of neurons that a row of W_O represents.
    rate
        Learning rate of K and Q relative to that of W_O and V.
    attend, train_value
        Whether the network has attention, and whether V is trained.
    """

    samples: Samples
    indices: np.ndarray
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


@kernel(inner=True, fastmath=REORDER)
def _add(out, factor, row):
    for r in range(out.size):
        out[r] += factor * row[r]


@kernel(inner=True, fastmath=REORDER)
def _dot(left, right):
    total = 0.0
    for r in range(left.size):
        total += left[r] * right[r]
    return total


@kernel(inner=True)
def _probabilities(A, keys, j, attend, P):
    """Write P_{i|j} = f_i e^{A_ij} / sum_k f_k e^{A_kj} to ``P[j]``; f_i without attention."""
    M = keys.size
    if not attend:
        P[j, :] = keys
        return
    top = -np.inf
    for i in range(M):
        if keys[i] > 0.0 and A[i, j] > top:
            top = A[i, j]
    total = 0.0
    for i in range(M):
        P[j, i] = keys[i] * math.exp(A[i, j] - top) if keys[i] > 0.0 else 0.0
        total += P[j, i]
    for i in range(M):
        P[j, i] /= total


@kernel(inner=True)
def _hidden(P, H, z):
    """Write z = H P, the inputs of the ReLUs, for the attention P (M,) of one query."""
    z[:] = 0.0
    for i in range(P.size):
        if P[i] > 0.0:
            _add(z, P[i], H[i])


@kernel(inner=True, fastmath=REORDER)
def _gates(z, a, gate):
    """Write a_r 1[z_r > 0] to ``gate`` and return the sum of a_r [z_r]_+."""
    total = 0.0
    for r in range(z.size):
        g = a[r] if z[r] > 0.0 else 0.0
        gate[r] = g
        total += g * z[r]
    return total


@kernel(inner=True)
def _forward(keys, queries, A, H, a, attend, P, z, gate):
    """Return F = sum_j s_j sum_r a_r [z_rj]_+.

    Write P_{i|j} to ``P[j, i]`` and a_r 1[z_rj > 0] to ``gate[j, r]`` for each queried pattern j.
    """
    F = 0.0
    for j in range(keys.size):
        if queries[j] > 0.0:
            _probabilities(A, keys, j, attend, P)
            _hidden(P[j], H, z)
            F += queries[j] * _gates(z, a, gate[j])
    return F


@kernel(inner=True)
def _attention(queries, label, P):
    """Return sum_j s_j P_{*|j}, where * is the pattern of the label (0 for +1, 1 for -1)."""
    own = 0 if label > 0.0 else 1
    total = 0.0
    for j in range(queries.size):
        if queries[j] > 0.0:
            total += queries[j] * P[j, own]
    return total


@kernel
def gradient(samples, indices, weights, A, H, a, attend, D, G):
    """Write the descent directions D (M, m) and G (M, M); return the weighted hinge loss.

    They are minus the gradients of the loss in H and A, D_ir = sum w chi y a_r sum_j s_j
    1[z_rj > 0] P_{i|j} and G_ij = sum w chi y s_j P_{i|j} (h_ij - hbar_j) with chi = 1{yF < 1}. The
    sums are over the samples ``indices`` (B,) with weights w (B,).
    """
    M, m = H.shape
    P, z, gate, h = np.zeros((M, M)), np.empty(m), np.empty((M, m)), np.empty(M)
    D[:] = 0.0
    G[:] = 0.0
    hinge = 0.0
    for k in range(indices.size):
        n = indices[k]
        keys, queries, y = samples.keys[n], samples.queries[n], samples.labels[n]
        margin = y * _forward(keys, queries, A, H, a, attend, P, z, gate)
        if margin >= 1.0:
            continue
        hinge += weights[k] * (1.0 - margin)
        for j in range(M):
            if queries[j] > 0.0:
                factor, mean = weights[k] * y * queries[j], 0.0
                for i in range(M):
                    if P[j, i] > 0.0:
                        h[i] = _dot(gate[j], H[i])
                        mean += P[j, i] * h[i]
                        _add(D[i], factor * P[j, i], gate[j])
                if attend:
                    for i in range(M):
                        if P[j, i] > 0.0:
                            G[i, j] += factor * P[j, i] * (h[i] - mean)
    return hinge


@kernel
def outputs(samples, A, H, a, attend, F, attention, nearest):
    """Write output, attention on relevant tokens and distance to the nearest kink of each sample.

    The distance is the smallest |z_rj| over neurons r and queries j. The three arrays are (N,).
    """
    M, m = H.shape
    P, z, gate = np.zeros((M, M)), np.empty(m), np.empty((M, m))
    for n in range(F.size):
        keys, queries = samples.keys[n], samples.queries[n]
        F[n] = _forward(keys, queries, A, H, a, attend, P, z, gate)
        attention[n] = _attention(queries, samples.labels[n], P)
        nearest[n] = np.inf
        for j in range(M):
            if queries[j] > 0.0:
                _hidden(P[j], H, z)
                nearest[n] = min(nearest[n], np.min(np.abs(z)))


@kernel
def product(left, right, out):
    """Write left^T right to ``out`` (k, n), with left (b, k) and right (b, n)."""
    out[:] = 0.0
    for b in range(left.shape[0]):
        for i in range(left.shape[1]):
            _add(out[i], left[b, i], right[b])


@kernel(inner=True)
def _move_values(V, W, D, rate, train_value):
    """Add rate D V^T to W_O and rate W_O^T D to V, both from old values.

    Shapes: W (p, m) is W_O transposed, V (p, M), D (M, m).
    """
    change = np.empty(V.shape[1])
    for p in range(V.shape[0]):
        for i in range(V.shape[1]):
            change[i] = _dot(W[p], D[i])
        for i in range(V.shape[1]):
            _add(W[p], rate * V[p, i], D[i])
        if train_value:
            _add(V[p], rate, change)


@kernel(inner=True)
def _move_keys(K, Q, G, rate):
    """Add rate Q G^T to K (b, M) and rate K G to Q (b, M), both from old values."""
    for b in range(K.shape[0]):
        old = K[b].copy()
        for i in range(old.size):
            K[b, i] += rate * _dot(Q[b], G[i])
        for i in range(old.size):
            _add(Q[b], rate * old[i], G[i])


@kernel
def descend(samples, batches, W, V, K, Q, a, rate, rate_KQ, attend, train_value):
    """Take one step for each row of ``batches``, in place; return the number of steps.

    A row contains the indices of a batch, over which the gradient is averaged. A row that begins
    with -1 stands for all samples with their weights. Steps end before a loss that is not finite.
    """
    M, m = V.shape[1], W.shape[1]
    A, H, D, G = np.empty((M, M)), np.empty((M, m)), np.empty((M, m)), np.empty((M, M))
    every, equal = np.arange(samples.labels.size), np.full(batches.shape[1], 1.0)
    equal /= batches.shape[1]
    for step in range(batches.shape[0]):
        product(K, Q, A)
        product(V, W, H)
        if batches[step, 0] < 0:
            hinge = gradient(samples, every, samples.weights, A, H, a, attend, D, G)
        else:
            hinge = gradient(samples, batches[step], equal, A, H, a, attend, D, G)
        if not math.isfinite(hinge):
            return step
        _move_values(V, W, D, rate, train_value)
        if attend and rate_KQ > 0.0:
            _move_keys(K, Q, G, rate_KQ)
    return batches.shape[0]


@kernel(inner=True)
def _matrix(slots, theta):
    """Return the matrix with the entry theta[slots[i, j]] at i, j."""
    out = np.empty(slots.shape)
    for row in range(slots.shape[0]):
        for column in range(slots.shape[1]):
            out[row, column] = theta[slots[row, column]]
    return out


@gradient_of(GradientData)
@kernel
def gradient_within(data, theta, out):
    """Write the gradient at the order parameters ``theta`` (n,) to ``out`` (n,), nan on overflow.

    The gradient of an order parameter is the mean over the matrix entries that it represents.
    """
    W, V = _matrix(data.W, theta), _matrix(data.V, theta)
    K, Q = _matrix(data.K, theta), _matrix(data.Q, theta)
    M, R = V.shape[0], W.shape[0]
    A, H = np.empty((M, M)), np.empty((M, R))
    D, G = np.empty((M, R)), np.empty((M, M))
    product(K, Q, A)
    product(V, W.T.copy(), H)
    samples = data.samples
    loss = gradient(samples, data.indices, samples.weights, A, H, data.a, data.attend, D, G)
    out[:] = 0.0
    if not math.isfinite(loss + np.sum(A) + np.sum(H)):  # a ReLU replaces nan by 0
        out[:] = math.nan
        return True
    for p in range(M):
        for i in range(M):
            for r in range(R):
                out[data.W[r, p]] -= D[i, r] * V[p, i] / data.copies
                if data.train_value:
                    out[data.V[p, i]] -= W[r, p] * D[i, r]
    for b in range(K.shape[0]):
        for i in range(M):
            for j in range(M):
                out[data.K[b, i]] -= data.rate * Q[b, j] * G[i, j]
                out[data.Q[b, j]] -= data.rate * K[b, i] * G[i, j]
    out /= data.entries
    return True
