"""Compiled sums over samples: the data are read from memory once, block by cache-sized block.

The products with ``S`` are written out here and not left to a BLAS: they are small, must not start
threads of their own, and must give the same bits whatever the number of threads.
"""

from __future__ import annotations

import math

from dynamics._jit import REORDER, kernel


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
def _weighted_rows(X, first, rows, z, g):
    """Add ``sum_r z[r] X[first + r]`` to g (d,)."""
    whole = rows - rows % 8
    for r in range(0, whole, 8):
        m = first + r
        z0, z1, z2, z3 = z[r], z[r + 1], z[r + 2], z[r + 3]
        z4, z5, z6, z7 = z[r + 4], z[r + 5], z[r + 6], z[r + 7]
        for k in range(g.size):
            g[k] += (
                (z0 * X[m, k] + z1 * X[m + 1, k])
                + (z2 * X[m + 2, k] + z3 * X[m + 3, k])
                + (z4 * X[m + 4, k] + z5 * X[m + 5, k])
                + (z6 * X[m + 6, k] + z7 * X[m + 7, k])
            )
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
    """Return ``log(1 + e^-F)`` and the logistic sigmoid of ``-F``, without overflow."""
    if F > 0.0:
        small = math.exp(-F)
        return math.log1p(small), small / (1.0 + small)
    small = math.exp(F)
    return math.log1p(small) - F, 1.0 / (1.0 + small)


@kernel(fastmath=REORDER, nogil=True)
def sums_over_samples(X, y, v, S, scaled, p, nu, first, last, block, group, work, small, G, M):
    """Accumulate over samples first .. last the loss and the two sums behind the gradient.

    ``X`` (N D, d) has the rows of the samples one after another, ``scaled`` is ``kappa S^T``. With
    ``u = y X v``, ``o = kappa S u``, ``w_i = s(-F) act'(o_i)`` per sample,
    ``G += sum y (S^T w) X`` (d,) and ``M += sum w u^T`` (D, D), in double precision whatever the
    type of X. ``work`` (4, group, D) and ``small`` (D + 1, d or D) are scratch.
    """
    D = S.shape[0]
    u, o, w, z = work[0], work[1], work[2], work[3]
    g, m = small[0, : v.size], small[1:, :D]
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
            for b in range(rows):
                F = _output(o[b], p, nu, w[begin + b])
                risk, s = _residual(F)
                loss += risk
                for i in range(D):
                    w[begin + b, i] *= s
            _add_product(w[begin:], S, z, rows, D)
            for b in range(rows):
                for j in range(D):
                    z[b, j] *= y[sample + b]
            for k in range(g.size):
                g[k] = 0
            _weighted_rows(X, sample * D, rows * D, z.reshape(z.size), g)
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
