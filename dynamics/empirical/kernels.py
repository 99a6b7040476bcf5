"""Compiled sums over samples: the data are read from memory once, block by cache-sized block.

The products with ``S`` are written out here and not left to a BLAS: they are small, must not start
threads of their own, and must give the same bits whatever the number of threads.
"""

from __future__ import annotations

import math

from dynamics._jit import REORDER, kernel
from dynamics.empirical.prefetch import prefetch


@kernel(fastmath=REORDER, inner=True)
def _inner_products(X, first, rows, v, u):
    """Set ``u[r] = <X[first + r], v>`` for ``rows`` rows of X (M, d)."""
    zero = X.dtype.type(0)
    whole = rows - rows % 4
    for r in range(0, whole, 4):
        m = first + r
        a, b, c, e = zero, zero, zero, zero
        for k in range(v.size):
            a += X[m, k] * v[k]
            b += X[m + 1, k] * v[k]
            c += X[m + 2, k] * v[k]
            e += X[m + 3, k] * v[k]
        u[r], u[r + 1], u[r + 2], u[r + 3] = a, b, c, e
    for r in range(whole, rows):
        a = zero
        for k in range(v.size):
            a += X[first + r, k] * v[k]
        u[r] = a


@kernel(fastmath=REORDER, inner=True)
def _weighted_rows(X, first, rows, z, g, ahead):
    """Add ``sum_r z[r] X[first + r]`` to g (d,); prefetch the rows ``ahead`` of them, if any."""
    whole = rows - rows % 4
    line = 64 // X.itemsize
    for r in range(0, whole, 4):
        m = first + r
        if ahead > 0:
            for k in range(0, 4 * g.size, line):
                prefetch(X, m + ahead, k)
        a, b, c, e = z[r], z[r + 1], z[r + 2], z[r + 3]
        for k in range(g.size):
            g[k] += (a * X[m, k] + b * X[m + 1, k]) + (c * X[m + 2, k] + e * X[m + 3, k])
    for r in range(whole, rows):
        for k in range(g.size):
            g[k] += z[r] * X[first + r, k]


@kernel(fastmath=REORDER, inner=True)
def _add_product(a, b, c, rows, inner):
    """Add ``a[:rows, :inner] @ b[:inner]`` to ``c[:rows]``, four rows and four terms at a time."""
    n = c.shape[1]
    whole = inner - inner % 4
    for i in range(0, rows - rows % 4, 4):
        for k in range(0, whole, 4):
            p0, p1, p2, p3 = a[i, k], a[i, k + 1], a[i, k + 2], a[i, k + 3]
            q0, q1, q2, q3 = a[i + 1, k], a[i + 1, k + 1], a[i + 1, k + 2], a[i + 1, k + 3]
            r0, r1, r2, r3 = a[i + 2, k], a[i + 2, k + 1], a[i + 2, k + 2], a[i + 2, k + 3]
            s0, s1, s2, s3 = a[i + 3, k], a[i + 3, k + 1], a[i + 3, k + 2], a[i + 3, k + 3]
            for j in range(n):
                b0, b1, b2, b3 = b[k, j], b[k + 1, j], b[k + 2, j], b[k + 3, j]
                c[i, j] += p0 * b0 + p1 * b1 + p2 * b2 + p3 * b3
                c[i + 1, j] += q0 * b0 + q1 * b1 + q2 * b2 + q3 * b3
                c[i + 2, j] += r0 * b0 + r1 * b1 + r2 * b2 + r3 * b3
                c[i + 3, j] += s0 * b0 + s1 * b1 + s2 * b2 + s3 * b3
        for k in range(whole, inner):
            p0, q0, r0, s0 = a[i, k], a[i + 1, k], a[i + 2, k], a[i + 3, k]
            for j in range(n):
                c[i, j] += p0 * b[k, j]
                c[i + 1, j] += q0 * b[k, j]
                c[i + 2, j] += r0 * b[k, j]
                c[i + 3, j] += s0 * b[k, j]
    for i in range(rows - rows % 4, rows):
        for k in range(inner):
            p0 = a[i, k]
            for j in range(n):
                c[i, j] += p0 * b[k, j]


@kernel(fastmath=REORDER, inner=True)
def _output(o, p, nu, w):
    """Return ``F = sum_i act(o_i)`` and set ``w_i = act'(o_i)``."""
    F = 0.0
    for i in range(o.size):
        w[i] = o[i] * o[i]
    for _ in range((p - 1) // 2 - 1):
        for i in range(o.size):
            w[i] *= o[i] * o[i]
    for i in range(o.size):
        F += float(o[i]) * (float(w[i]) + nu)
        w[i] = p * float(w[i]) + nu
    return F


@kernel(inner=True)
def _residual(F):
    """Return ``e^-|F|``, the logistic sigmoid of ``-F``, and ``max(-F, 0)``, without overflow."""
    if F > 0.0:
        small = math.exp(-F)
        return small, small / (1.0 + small), 0.0
    small = math.exp(F)
    return small, 1.0 / (1.0 + small), -F


@kernel(fastmath=REORDER, nogil=True)
def sums_over_samples(
    X, y, v, S, scaled, p, nu, first, last, block, group, work, m, g, G, M, ahead
):
    """Accumulate over samples first .. last the loss and the two sums behind the gradient.

    ``X`` (N D, d) has the rows of the samples one after another, ``scaled`` is ``kappa S^T``. With
    ``u = y X v``, ``o = kappa S u``, ``w_i = s(-F) act'(o_i)`` per sample,
    ``G += sum y (S^T w) X`` (d,) and ``M += sum w u^T`` (D, D), in double precision whatever the
    type of X. ``work`` (4, group, D), ``m`` (D, D) and ``g`` (d,) are scratch; ``ahead``
    (0 or 1) is how many blocks ahead the data are prefetched.
    """
    D = S.shape[0]
    u, o, w, z = work[0], work[1], work[2], work[3]
    loss = 0.0
    for start in range(first, last, group):
        size = min(group, last - start)
        for begin in range(0, size, block):
            rows = min(block, size - begin)
            sample = start + begin
            flat = u[begin : begin + rows].reshape(rows * D)
            _inner_products(X, sample * D, rows * D, v, flat)
            for b in range(rows):
                for j in range(D):
                    u[begin + b, j] *= y[sample + b]
                    o[b, j] = 0
                    z[b, j] = 0
            _add_product(u[begin:], scaled, o, rows, D)
            excess = 0.0  # prod (1 + e^-|F|) - 1, at most 2^64: one logarithm for a block
            for b in range(rows):
                F = _output(o[b], p, nu, w[begin + b])
                small, s, linear = _residual(F)
                loss += linear
                excess += small + excess * small
                for i in range(D):
                    w[begin + b, i] *= s
            loss += math.log1p(excess)
            _add_product(w[begin:], S, z, rows, D)
            for b in range(rows):
                for j in range(D):
                    z[b, j] *= y[sample + b]
            for k in range(g.size):
                g[k] = 0
            _weighted_rows(X, sample * D, rows * D, z.reshape(z.size), g, block * D * ahead)
            for k in range(g.size):
                G[k] += g[k]
        for i in range(D):
            for j in range(D):
                m[i, j] = 0
        _add_product(w.T, u, m, D, size)
        for i in range(D):
            for j in range(D):
                M[i, j] += m[i, j]
    return loss


@kernel(fastmath=REORDER, nogil=True)
def sums_at_fixed_scores(H, y, v, kappa, p, nu, first, last, block, work, g, G, ahead):
    """Accumulate loss and ``G += sum y w H`` where ``H = S X`` (N D, d) is given.

    ``work`` (2, block, D) and ``g`` (d,) are scratch; ``ahead`` as in `sums_over_samples`.
    """
    o, w = work[0], work[1]
    D = o.shape[1]
    loss = 0.0
    for sample in range(first, last, block):
        rows = min(block, last - sample)
        _inner_products(H, sample * D, rows * D, v, o.reshape(o.size))
        excess = 0.0
        for b in range(rows):
            for i in range(D):
                o[b, i] *= kappa * y[sample + b]
            F = _output(o[b], p, nu, w[b])
            small, s, linear = _residual(F)
            loss += linear
            excess += small + excess * small
            for i in range(D):
                w[b, i] *= s * y[sample + b]
        loss += math.log1p(excess)
        for k in range(g.size):
            g[k] = 0
        _weighted_rows(H, sample * D, rows * D, w.reshape(w.size), g, block * D * ahead)
        for k in range(g.size):
            G[k] += g[k]
    return loss


@kernel(fastmath=REORDER, nogil=True)
def sums_at_fixed_value(U, scaled, p, nu, first, last, group, work, m, M):
    """Accumulate loss and ``M += sum w u^T`` where ``u = y X v``, the rows of U (N, D), is given.

    ``work`` (2, group, D) and ``m`` (D, D) are scratch.
    """
    o, w = work[0], work[1]
    D = U.shape[1]
    loss = 0.0
    for start in range(first, last, group):
        rows = min(group, last - start)
        for b in range(rows):
            for j in range(D):
                o[b, j] = 0
        _add_product(U[start:], scaled, o, rows, D)
        excess = 0.0
        for b in range(rows):
            F = _output(o[b], p, nu, w[b])
            small, s, linear = _residual(F)
            loss += linear
            excess += small + excess * small
            for i in range(D):
                w[b, i] *= s
        loss += math.log1p(excess)
        for i in range(D):
            for j in range(D):
                m[i, j] = 0
        _add_product(w.T, U[start:], m, D, rows)
        for i in range(D):
            for j in range(D):
                M[i, j] += m[i, j]
    return loss
