"""The inner loop of the Fourier method: sums over the nodes w = eta + i t and the angles of z."""

from __future__ import annotations

import math

import numpy as np

from dynamics._jit import REORDER, kernel

#: Nodes handled together; consecutive nodes are the lanes of the vector instructions.
LANES = 32

#: Powers above this are taken as ``(1 + x)^N - 1`` so that rounding does not grow with N.
PLAIN_POWER = 16


@kernel
def node_sums(r, base, x, n, share, empty, C, L, eta, step, nodes, angles, sums):
    r"""Add up ``step Re[e^{-i t base} E_type(w) G_{r-n}(w) / sin(pi w)]`` over the nodes.

    ``w = eta + i (k + 1/2) step``, ``E_type = share e^{-i t x}``, and ``G_j`` is the coefficient of
    ``z^j`` in ``(sum_type E_type z^n)^(L-2)``, by a DFT over ``angles`` half-shifted angles.
    Fills ``sums[type]`` (last entry: the empty type) and returns the same sum for the loss (all
    types, weight 1/(w sin(pi w))), and the sums of the absolute weights of either.
    """
    types = len(x)
    sums[:] = 0.0
    loss = weight = loss_weight = 0.0
    phases = np.empty((types, 2 * LANES))
    even = np.empty((C + 1, 2 * LANES))
    odd = np.empty((C + 1, 2 * LANES))
    coefficient = np.empty((2 * C + 1, 2 * LANES))
    node = np.empty((2, 2 * LANES))
    cosine = np.empty(2 * angles)
    for m in range(2 * angles):
        cosine[m] = math.cos(math.pi * m / angles)
    for first in range(0, nodes, LANES):
        lanes = min(LANES, (nodes - first + 3) // 4 * 4)
        t = (first + 0.5) * step
        type_phases(t, step, lanes, x, n, share, empty, C, phases, even, odd)
        total, loss_total = node_weights(t, step, lanes, eta, base, node)
        weight += total
        loss_weight += loss_total
        coefficients(r, C, L - 2, lanes, angles, empty, even, odd, cosine, coefficient)
        loss += _contract(lanes, C, n, phases, even, odd, coefficient, node, empty, sums)
    return loss, weight, loss_weight


@kernel(fastmath=REORDER)
def type_phases(t, step, lanes, x, n, share, empty, C, phases, even, odd):
    """Fill ``share e^{-i t x}`` (real parts, then imaginary parts) and its sums over n and -n."""
    even[:, :] = 0.0
    odd[:, :] = 0.0
    for k in range(len(x)):
        row = phases[k]
        _progression(share[k], -t * x[k], -step * x[k], lanes, row)
        m = int(n[k])
        target, opposite = even[abs(m)], odd[abs(m)]
        sign = 1.0 if m >= 0 else -1.0
        for i in range(2 * lanes):
            target[i] += row[i]
        for i in range(2 * lanes):
            opposite[i] += sign * row[i]


@kernel(fastmath=REORDER)
def _progression(size, angle, step, lanes, row):
    """Fill ``size e^{i (angle + k step)}``: four by the library, the others by rotations.

    With rounding errors of 2 u for the library and 3 u for a rotation, every entry is good to 24 u.
    """
    for i in range(4):
        row[i] = size * math.cos(angle + i * step)
        row[lanes + i] = size * math.sin(angle + i * step)
    done = 4
    c, s = math.cos(4 * step), math.sin(4 * step)
    while done < lanes:
        for i in range(min(done, lanes - done)):
            re, im = row[i], row[lanes + i]
            row[done + i] = re * c - im * s
            row[lanes + done + i] = re * s + im * c
        done *= 2
        if done == 8:
            c, s = math.cos(8 * step), math.sin(8 * step)
        else:
            c, s = c * c - s * s, 2.0 * c * s


@kernel
def node_weights(t, step, lanes, eta, base, node):
    """Fill ``node[0] = step e^{-i t base} / sin(pi w)`` and ``node[1] = node[0] / w``."""
    _progression(step, -t * base, -step * base, lanes, node[0])
    total = loss_total = 0.0
    sine, cosine = math.sin(math.pi * eta), math.cos(math.pi * eta)
    for i in range(lanes):
        time = t + i * step
        grow = math.exp(math.pi * time)
        re, im = sine * (grow + 1 / grow) / 2, cosine * (grow - 1 / grow) / 2
        size = re * re + im * im
        a, b = node[0, i], node[0, lanes + i]
        a, b = (a * re + b * im) / size, (b * re - a * im) / size
        node[0, i], node[0, lanes + i] = a, b
        inverse = step / math.sqrt(size)
        size = eta * eta + time * time
        total += inverse
        loss_total += inverse / math.sqrt(size)
        node[1, i] = (a * eta + b * time) / size
        node[1, lanes + i] = (b * eta - a * time) / size
    return total, loss_total


@kernel(fastmath=REORDER)
def coefficients(r, C, N, lanes, angles, empty, even, odd, cosine, coefficient):
    """Fill ``coefficient[n + C]`` with the coefficient of z^(r - n) of f(z)^N, by DFT.

    The angles come in pairs +-theta: ``f = e +- i o`` with e, o sums of cosines and sines.
    """
    turn = 2 * angles
    quarter = angles // 2
    coefficient[:, :] = 0.0
    e, o = np.empty(2 * lanes), np.empty(2 * lanes)
    value = np.empty((2, 2 * lanes))
    scratch = np.empty((2, 2 * lanes))
    excess = N > PLAIN_POWER
    for j in range(angles // 2):
        phase = 2 * j + 1
        e[:] = even[0, : 2 * lanes]
        o[:] = 0.0
        for m in range(1, C + 1):
            c = cosine[(m * phase) % turn]
            s = cosine[(m * phase - quarter) % turn]
            for i in range(2 * lanes):
                e[i] += c * even[m, i]
            for i in range(2 * lanes):
                o[i] += s * odd[m, i]
        shift = empty - 1.0 if excess else empty
        for i in range(lanes):
            value[0, i] = shift + e[i] - o[lanes + i]
            value[1, i] = e[lanes + i] + o[i]
            value[0, lanes + i] = shift + e[i] + o[lanes + i]
            value[1, lanes + i] = e[lanes + i] - o[i]
        if excess:
            _power_of_one_plus(value, N, 2 * lanes, scratch)
        else:
            _power(value, N, 2 * lanes, scratch)
        c = cosine[(r * phase) % turn] / angles
        s = cosine[(r * phase - quarter) % turn] / angles
        for i in range(lanes):
            a, b = value[0, i], value[1, i]
            g, h = value[0, lanes + i], value[1, lanes + i]
            a, b = a * c + b * s, b * c - a * s
            g, h = g * c - h * s, h * c + g * s
            e[i], e[lanes + i] = a + g, b + h
            o[i], o[lanes + i] = h - b, a - g
        for m in range(C + 1):
            c = cosine[(m * phase) % turn]
            s = cosine[(m * phase - quarter) % turn]
            row, mirror = coefficient[C + m], coefficient[C - m]
            if m == 0:
                for i in range(2 * lanes):
                    row[i] += e[i]
            else:
                for i in range(2 * lanes):
                    row[i] += c * e[i]
                for i in range(2 * lanes):
                    mirror[i] += s * o[i]
    for m in range(1, C + 1):
        for i in range(2 * lanes):
            a, b = coefficient[C + m, i], coefficient[C - m, i]
            coefficient[C + m, i], coefficient[C - m, i] = a + b, a - b


@kernel(fastmath=REORDER)
def _power(value, N, width, scratch):
    """Replace ``value`` by ``value^N`` by repeated squaring."""
    re, im = value[0], value[1]
    x, y = scratch[0], scratch[1]
    for i in range(width):
        x[i], y[i] = re[i], im[i]
        re[i], im[i] = 1.0, 0.0
    while N > 0:
        if N & 1:
            for i in range(width):
                a, b = re[i], im[i]
                re[i] = a * x[i] - b * y[i]
                im[i] = a * y[i] + b * x[i]
        N >>= 1
        if N > 0:
            for i in range(width):
                a, b = x[i], y[i]
                x[i] = a * a - b * b
                y[i] = 2.0 * a * b


@kernel(fastmath=REORDER)
def _power_of_one_plus(value, N, width, scratch):
    """Replace ``v`` by ``(1 + v)^N``, squaring in the form (1 + v)^2 - 1 = v (2 + v)."""
    re, im = value[0], value[1]
    x, y = scratch[0], scratch[1]
    for i in range(width):
        x[i], y[i] = re[i], im[i]
        re[i], im[i] = 0.0, 0.0
    while N > 0:
        if N & 1:
            for i in range(width):
                a, b = re[i], im[i]
                re[i] = a + x[i] + (a * x[i] - b * y[i])
                im[i] = b + y[i] + (a * y[i] + b * x[i])
        N >>= 1
        if N > 0:
            for i in range(width):
                a, b = x[i], y[i]
                x[i] = 2.0 * a + (a * a - b * b)
                y[i] = 2.0 * b + 2.0 * a * b
    for i in range(width):
        re[i] += 1.0


@kernel(fastmath=REORDER)
def _contract(lanes, C, n, phases, even, odd, coefficient, node, empty, sums):
    """Add ``Re[node phase coefficient]`` over the lanes to ``sums``; return the loss part."""
    loss = 0.0
    for i in range(lanes):
        re = im = 0.0
        for m in range(2 * C + 1):
            k = m - C
            if k >= 0:
                a = (even[k, i] + odd[k, i]) / 2 if k > 0 else even[0, i] + empty
                b = (even[k, lanes + i] + odd[k, lanes + i]) / 2 if k > 0 else even[0, lanes + i]
            else:
                a = (even[-k, i] - odd[-k, i]) / 2
                b = (even[-k, lanes + i] - odd[-k, lanes + i]) / 2
            re += a * coefficient[m, i] - b * coefficient[m, lanes + i]
            im += a * coefficient[m, lanes + i] + b * coefficient[m, i]
        loss += node[1, i] * re - node[1, lanes + i] * im
    for m in range(2 * C + 1):
        row = coefficient[m]
        for i in range(lanes):
            a, b = row[i], row[lanes + i]
            row[i] = a * node[0, i] - b * node[0, lanes + i]
            row[lanes + i] = -(a * node[0, lanes + i] + b * node[0, i])
    for k in range(len(n)):
        row, phase = coefficient[int(n[k]) + C], phases[k]
        total = 0.0
        for i in range(2 * lanes):
            total += row[i] * phase[i]
        sums[k] += total
    total = 0.0
    for i in range(lanes):
        total += coefficient[C, i]
    sums[len(n)] += empty * total
    return loss
