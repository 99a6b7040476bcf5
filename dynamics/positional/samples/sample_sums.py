"""Compiled sums over samples. The data are read from memory once, in cache-sized blocks.

The products with ``S`` do not use a BLAS: they are small, must not start threads, and must not
depend on the number of threads. The rows of matrices with D columns are padded with zeros to whole
vectors; their length is ``wide``.
"""

import math

import numpy as np

from dynamics.core.jit import REORDER, kernel
from dynamics.positional.samples.tiles import LINE, add_tile, dot_rows

_PART = 64  # rows of the data that stay in the first-level cache


@kernel(inner=True)
def _inner_products(X, first, rows, v, u):
    """Set ``u[r] = <X[first + r], v>`` for ``rows`` rows of X (M, d); v is packed."""
    count = LINE // X.itemsize
    whole = rows - rows % count
    for r in range(0, whole, count):
        dot_rows(X, first + r, v, u, r)
    last = X.shape[1] - count
    for r in range(whole, rows):
        a = X.dtype.type(0)
        for k in range(0, v.size, count):
            for n in range(count):
                a += X[first + r, min(k, last) + n] * v[k + n]
        u[r] = a


@kernel(inner=True)
def _weighted_rows(X, first, rows, z, G, ahead):
    """Add ``sum_r z[r] X[first + r]`` to the packed vector G, for ``rows`` rows of X (M, d).

    Rows are prefetched ``ahead`` rows in advance, if that is not 0.
    """
    count = LINE // X.itemsize
    data, a, c = X[first : first + rows], z[:rows].reshape(1, rows), G.reshape(1, G.size)
    last = X.shape[1] - count
    for begin in range(0, rows, _PART):
        end = min(begin + _PART, rows)
        middle = end - (end - begin) % 8
        k = 0
        while k + 4 * count <= X.shape[1]:
            add_tile(a, data, c, 0, k, k, begin, middle, 1, 4, 2, ahead)
            k += 4 * count
        for j in range(k, G.size, count):
            add_tile(a, data, c, 0, min(j, last), j, begin, middle, 1, 1, 8, ahead)
        if middle < end:
            for j in range(0, G.size, count):
                add_tile(a, data, c, 0, min(j, last), j, middle, end, 1, 1, 1, 0)


@kernel(inner=True)
def _clear(a, rows):
    """Set ``rows`` rows to 0."""
    for i in range(rows):
        for j in range(a.shape[1]):
            a[i, j] = 0


@kernel(inner=True)
def _scale(a, rows, y, sample):
    """Multiply ``rows`` rows by the labels of the samples from ``sample`` on."""
    for i in range(rows):
        label = y[sample + i]
        for j in range(a.shape[1]):
            a[i, j] *= label


@kernel(inner=True)
def _add_product(a, b, c, rows, inner):
    """Add ``a[:rows, :inner] @ b[:inner]`` to ``c[:rows]``, in tiles of four rows."""
    count = LINE // b.itemsize
    whole, pairs = rows - rows % 4, b.shape[1] - b.shape[1] % (2 * count)
    for j in range(0, pairs, 2 * count):
        for i in range(0, whole, 4):
            add_tile(a, b, c, i, j, j, 0, inner, 4, 2, 1, 0)
    for j in range(pairs, b.shape[1], count):
        for i in range(0, whole, 4):
            add_tile(a, b, c, i, j, j, 0, inner, 4, 1, 1, 0)
    for i in range(whole, rows):
        for j in range(0, b.shape[1], count):
            add_tile(a, b, c, i, j, j, 0, inner, 1, 1, 1, 0)


@kernel(fastmath=REORDER, inner=True)
def _act(outputs, rows, p, nu, slopes, values):
    """Set ``values = act(outputs)`` and ``slopes = act'(outputs)`` in ``rows`` rows."""
    o, w, f = (
        outputs.reshape(outputs.size),
        slopes.reshape(slopes.size),
        values.reshape(values.size),
    )
    size = rows * outputs.shape[1]
    for k in range(size):
        w[k] = o[k] * o[k]
    for _ in range((p - 1) // 2 - 1):
        for k in range(size):
            w[k] *= o[k] * o[k]
    for k in range(size):
        f[k] = o[k] * (w[k] + nu)
        w[k] = p * w[k] + nu


@kernel(inner=True)
def _residual(F):
    """Return ``e^-|F|``, the logistic sigmoid of ``-F``, and ``max(-F, 0)`` without overflow."""
    small = math.exp(-abs(F))
    return small, (small if F > 0.0 else 1.0) / (1.0 + small), max(-F, 0.0)


@kernel(fastmath=REORDER, inner=True)
def _residuals(f, rows, ones, F, w):
    """Return the sum of ``log(1 + e^-F)`` over ``rows`` rows of f, and multiply w by s(-F).

    ``F`` receives the sums of the rows, rounded up to a multiple of the vector size.
    """
    for b in range(0, rows, LINE // f.itemsize):
        dot_rows(f, b, ones, F, b)
    loss, excess = 0.0, 0.0  # prod (1 + e^-|F|) - 1, at most 2^64: one logarithm for a block
    for b in range(rows):
        small, s, linear = _residual(float(F[b]))
        loss += linear
        excess += small + excess * small
        scale = f.dtype.type(s)
        for i in range(w.shape[1]):
            w[b, i] *= scale
    return loss + math.log1p(excess)


@kernel(fastmath=REORDER)
def sums_over_samples(
    X, y, v, S, scaled, p, nu, first, last, block, group, work, flat, G, M, ahead
):
    """Return the loss of samples first .. last, and add to the two sums of the gradient.

    For each sample let ``u = y X v``, ``o = kappa S u`` and ``w_i = s(-F) act'(o_i)``. The sums are
    ``G += sum y (S^T w) X`` (d) and ``M += sum w u^T`` (D, wide), both in double precision.

    Parameters
    ----------
    X, y
        Rows of all samples (N D, d), and labels (N,).
    v
        Packed value vector.
    S, scaled
        Padded matrices (D, wide) of the attention S and of ``kappa S^T``.
    p, nu
        Constants of the activation.
    first, last, block, group
        Range of samples; samples per block of X and per update of M.
    work, flat
        Scratch: zeros (4, group, wide), and a vector (block D + wide + group).
    G, M
        Packed vector, and padded matrix (D, wide); they are updated.
    ahead
        Number of blocks, 0 or 1, by which the data are prefetched.
    """
    D = S.shape[0]
    packed = S.shape[1] > D  # whether padded rows have to be copied without gaps
    u, o, w, z = work[0], work[1], work[2], work[3]
    ones, F, t = flat[: S.shape[1]], flat[S.shape[1] : -block * D], flat[-block * D :]
    loss = 0.0
    for start in range(first, last, group):
        size = min(group, last - start)
        for begin in range(0, size, block):
            rows = min(block, size - begin)
            sample = start + begin
            part = u[begin:]
            flat_u = t if packed else part.reshape(part.size)
            _inner_products(X, sample * D, rows * D, v, flat_u)
            if packed:
                for b in range(rows):
                    for j in range(D):
                        part[b, j] = t[b * D + j]
            _scale(part, rows, y, sample)
            _clear(o, rows)
            _add_product(part, scaled, o, rows, D)
            part = w[begin:]
            _act(o, rows, p, nu, part, z)
            loss += _residuals(z, rows, ones, F, part)
            _clear(z, rows)
            _add_product(part, S, z, rows, D)
            _scale(z, rows, y, sample)
            if packed:
                for b in range(rows):
                    for j in range(D):
                        t[b * D + j] = z[b, j]
            flat_z = t if packed else z.reshape(z.size)
            _weighted_rows(X, sample * D, rows * D, flat_z, G, block * D * ahead)
        _add_product(w.T, u, M, D, size)
    return loss


@kernel(fastmath=REORDER)
def sums_at_fixed_scores(H, y, v, kappa, p, nu, first, last, block, work, flat, G, ahead):
    """Return the loss and add ``sum y w H`` to G, given ``H = S X`` (N D, d).

    ``work`` (3, group, wide) contains zeros; the other arguments are those of `sums_over_samples`.
    """
    o, w, f = work[0], work[1], work[2]
    wide = o.shape[1]
    D = (flat.size - wide - o.shape[0]) // block
    ones, F, t = flat[:wide], flat[wide : -block * D], flat[-block * D :]
    loss = 0.0
    for sample in range(first, last, block):
        rows = min(block, last - sample)
        _inner_products(H, sample * D, rows * D, v, t)
        for b in range(rows):
            for i in range(D):
                o[b, i] = kappa * y[sample + b] * t[b * D + i]
        _act(o, rows, p, nu, w, f)
        loss += _residuals(f, rows, ones, F, w)
        for b in range(rows):
            for i in range(D):
                t[b * D + i] = y[sample + b] * w[b, i]
        _weighted_rows(H, sample * D, rows * D, t, G, block * D * ahead)
    return loss


@kernel
def descend_at_fixed_scores(
    H, y, kappa, p, nu, block, work, flat, entries, value, state, rates, before, most
):
    """Take at most ``most`` steps of descent in v; return their number, the loss and its rise.

    It ends before a step with a loss or gradient that is not finite. The other arguments are those
    of `sums_at_fixed_scores`.

    Parameters
    ----------
    entries, value
        Indices of the entries of v in the packed vector, and this vector.
    state
        v and its momentum, (2, d); updated.
    rates
        Momentum coefficient, learning rate, and ratio of the gradient to the computed sum.
    before
        Loss of the previous step, and largest relative rise of the loss so far.
    most
        Largest number of steps.
    """
    v, push = state[0], state[1]
    momentum, rate, scale = rates
    loss, rise = before
    G = np.zeros(value.size)
    for step in range(most):
        for k in range(v.size):
            value[entries[k]] = v[k]
        G[:] = 0.0
        new = (
            sums_at_fixed_scores(H, y, value, kappa, p, nu, 0, y.size, block, work, flat, G, 0)
            / y.size
        )
        finite = math.isfinite(new)
        for k in range(v.size):
            finite &= math.isfinite(G[entries[k]])
        if not finite:
            return step, loss, rise
        for k in range(v.size):
            push[k] = momentum * push[k] - rate * (scale * G[entries[k]])
            v[k] += push[k]
        if math.isfinite(loss) and new > loss:
            rise = max(rise, (new - loss) / loss if loss > 0.0 else np.inf)
        loss = new
    return most, loss, rise


@kernel(fastmath=REORDER)
def sums_at_fixed_value(U, scaled, p, nu, first, last, work, flat, M):
    """Return the loss and add ``sum w u^T`` to M, given ``u = y X v`` as padded rows U (N, wide).

    ``work`` (3, group, wide) contains zeros; the other arguments are those of `sums_over_samples`.
    """
    o, w, f = work[0], work[1], work[2]
    group, wide = o.shape
    ones, F = flat[:wide], flat[wide:]
    loss = 0.0
    for start in range(first, last, group):
        rows = min(group, last - start)
        _clear(o, rows)
        _add_product(U[start:], scaled, o, rows, scaled.shape[0])
        _act(o, rows, p, nu, w, f)
        loss += _residuals(f, rows, ones, F, w)
        _add_product(w.T, U[start:], M, scaled.shape[0], rows)
    return loss
