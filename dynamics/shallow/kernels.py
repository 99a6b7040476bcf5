"""One sample-gradient of the shallow transformer, its steps of SGD: compiled, one thread, no GIL.

Names are those of the reduction: a sample is its key fractions f, query fractions s and label y;
``A = K^T Q`` (M, M), ``H = W_O V`` (m, M). Here H and W_O lie transposed, (M, m) and (p, m), so
that every inner loop runs along the neurons. Runs that share nothing may go side by side in
threads.
"""

import math
from typing import NamedTuple

import numpy as np

from dynamics.core.jit import REORDER, kernel


class Samples(NamedTuple):
    """Fractions of keys f and queries s (N, M), labels y = +-1 (N,), weights that sum to 1 (N,)."""

    keys: np.ndarray
    queries: np.ndarray
    labels: np.ndarray
    weights: np.ndarray


@kernel(inner=True, fastmath=REORDER)
def _add(out, factor, row):
    for r in range(out.size):
        out[r] += factor * row[r]


@kernel(inner=True, fastmath=REORDER)
def _dot(one, other):
    total = 0.0
    for r in range(one.size):
        total += one[r] * other[r]
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


@kernel(inner=True, fastmath=REORDER)
def _gates(z, a, gate):
    """Write a_r 1[z_r > 0] and return sum of a_r [z_r]_+."""
    total = 0.0
    for r in range(z.size):
        g = a[r] if z[r] > 0.0 else 0.0
        gate[r] = g
        total += g * z[r]
    return total


@kernel(inner=True)
def _forward(keys, queries, A, H, a, attend, P, z, gate):
    """Return F = sum_j s_j sum_r a_r [z_rj]_+; leave P (j, i) and a_r 1[z_rj > 0] (j, r)."""
    F = 0.0
    for j in range(keys.size):
        if queries[j] > 0.0:
            _probabilities(A, keys, j, attend, P)
            z[:] = 0.0
            for i in range(keys.size):
                if P[j, i] > 0.0:
                    _add(z, P[j, i], H[i])
            F += queries[j] * _gates(z, a, gate[j])
    return F


@kernel(inner=True)
def _attention(queries, label, P):
    """Return sum_j s_j P_{*|j}, * the pattern of the label (0 for +1, 1 for -1)."""
    own = 0 if label > 0.0 else 1
    total = 0.0
    for j in range(queries.size):
        if queries[j] > 0.0:
            total += queries[j] * P[j, own]
    return total


@kernel
def gradient(samples, index, weights, A, H, a, attend, D, G):
    """Fill D (M, m) and G (M, M) over the samples ``index``, weighted; return the hinge loss.

    D_ir = sum w chi y a_r sum_j s_j 1[z_rj > 0] P_{i|j},  G_ij = sum w chi y s_j P_{i|j} (h_ij -
    hbar_j) with chi = 1{yF < 1}: the descent direction, minus the gradient.
    """
    M, m = H.shape
    P, z, gate, h = np.zeros((M, M)), np.empty(m), np.empty((M, m)), np.empty(M)
    D[:] = 0.0
    G[:] = 0.0
    hinge = 0.0
    for place in range(index.size):
        n = index[place]
        keys, queries, y = samples.keys[n], samples.queries[n], samples.labels[n]
        margin = y * _forward(keys, queries, A, H, a, attend, P, z, gate)
        if margin >= 1.0:
            continue
        hinge += weights[place] * (1.0 - margin)
        for j in range(M):
            if queries[j] > 0.0:
                factor, mean = weights[place] * y * queries[j], 0.0
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
    """Write per sample F, the attention on relevant tokens, and the smallest |z_rj| over a kink."""
    M, m = H.shape
    P, z, gate = np.zeros((M, M)), np.empty(m), np.empty((M, m))
    for n in range(F.size):
        keys, queries = samples.keys[n], samples.queries[n]
        F[n] = _forward(keys, queries, A, H, a, attend, P, z, gate)
        attention[n] = _attention(queries, samples.labels[n], P)
        nearest[n] = np.inf
        for j in range(M):
            if queries[j] > 0.0:
                z[:] = 0.0
                for i in range(M):
                    if P[j, i] > 0.0:
                        _add(z, P[j, i], H[i])
                nearest[n] = min(nearest[n], np.min(np.abs(z)))


@kernel
def product(left, right, out):
    """Write left^T right, (k, n) from (b, k) and (b, n), to ``out``."""
    out[:] = 0.0
    for b in range(left.shape[0]):
        for i in range(left.shape[1]):
            _add(out[i], left[b, i], right[b])


@kernel(inner=True)
def _move_values(V, W, D, rate, train_value):
    """W_O += rate D V^T, V += rate W_O^T D, both from old values; W (p, m), V (p, M), D (M, m)."""
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
    """K += rate Q G^T, Q += rate K G, both from old values; K, Q (b, M)."""
    for b in range(K.shape[0]):
        old = K[b].copy()
        for i in range(old.size):
            K[b, i] += rate * _dot(Q[b], G[i])
        for i in range(old.size):
            _add(Q[b], rate * old[i], G[i])


@kernel
def descend(samples, batches, W, V, K, Q, a, rate, rate_KQ, attend, train_value):
    """Take one step a row of ``batches`` in place; return the steps done before a loss not finite.

    A batch is a row of indices, averaged; a row that begins with -1 is all samples with their
    weights.
    """
    M, m = V.shape[1], W.shape[1]
    A, H, D, G = np.empty((M, M)), np.empty((M, m)), np.empty((M, m)), np.empty((M, M))
    everything, share = np.arange(samples.labels.size), np.full(batches.shape[1], 1.0)
    share /= batches.shape[1]
    for step in range(batches.shape[0]):
        product(K, Q, A)
        product(V, W, H)
        if batches[step, 0] < 0:
            hinge = gradient(samples, everything, samples.weights, A, H, a, attend, D, G)
        else:
            hinge = gradient(samples, batches[step], share, A, H, a, attend, D, G)
        if not math.isfinite(hinge):
            return step
        _move_values(V, W, D, rate, train_value)
        if attend and rate_KQ > 0.0:
            _move_keys(K, Q, G, rate_KQ)
    return batches.shape[0]
