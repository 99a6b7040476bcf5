r"""The inner loop of the Fourier method: sums over the nodes w = eta + i t and the angles of z.

Consecutive nodes are the lanes of the vector instructions: the last axis of the arrays of a block
of nodes. Their first axis is (real part, imaginary part). The angles come in pairs +-theta, where a
polynomial is ``e +- i o``, ``e`` a sum of cosines and ``o`` a sum of sines. Loops touch few arrays
at a time: compilers give up vectors when more than eight pairs of arrays might overlap.
"""

from __future__ import annotations

import math

import numpy as np

from dynamics._jit import REORDER, kernel

#: Nodes come in multiples of this.
FEW_LANES = 8

#: Most nodes handled together.
LANES = 32

#: Powers above this are taken as ``(1 + x)^N - 1`` so that rounding does not grow with N.
PLAIN_POWER = 16


@kernel
def node_sums(first, base, x, y, n, share, line, nodes, angles, C, L, second):
    r"""Add up ``step Re[e^{-i t base} E_type(w) G_{r-n}(w) / sin(pi w)]`` over the nodes.

    One row per total ``r = first, first + 1, ...``; rows without nodes give 0. ``line`` holds
    (eta, step, share of the empty type), ``w = eta + i (k + 1/2) step``,
    ``E_type = share e^{-i t x}``, and ``G_j`` is the coefficient of ``z^j`` in
    ``(sum_type E_type z^n)^(L-2)``, by a DFT over ``angles`` half-shifted angles. All shares add up
    to 1.

    Returns ``sums[row, type]`` (last entry: the empty type) and ``weights[row]``: the same sum for
    the loss (all types, weight 1/(w sin(pi w))), and the sums of the absolute weights of either.
    With ``second`` also ``slopes``, like ``sums`` with weight w / sin(pi w), and ``pairs[row]``:
    with this weight, the sums over two sets with factors ``y_j y_k``, L - 3 sets remaining.
    """
    rows, types = len(nodes), len(n)
    sums, weights = np.zeros((rows, types + 1)), np.zeros((rows, 3))
    slopes, pairs = np.zeros((rows, types + 1)), np.zeros((rows, 6))
    excess = L - 2 > PLAIN_POWER
    ones = np.ones(len(n))
    lanes, many = FEW_LANES, 2
    cosine, tables, back = angle_tables(C, many)
    phases, even, odd, value, power, coefficient, node = buffers(types, C, many // 2, lanes)
    for i in range(rows):
        if nodes[i] == 0:
            continue
        eta, step, empty = line[i, 0], line[i, 1], line[i, 2]
        shift = -share[i].sum() if excess else empty
        if len(cosine) != 2 * angles[i]:
            cosine, tables, back = angle_tables(C, angles[i])
        blocks = (nodes[i] + LANES - 1) // LANES
        block = (nodes[i] // FEW_LANES + blocks - 1) // blocks * FEW_LANES
        for done in range(0, nodes[i], block):
            if min(block, nodes[i] - done) != lanes or angles[i] != many:
                lanes, many = min(block, nodes[i] - done), angles[i]
                phases, even, odd, value, power, coefficient, node = buffers(
                    types, C, many // 2, lanes
                )
            waves(done + 0.5, step, base[i], x[i], share[i], phases)
            levels(n, ones, phases, even, odd)
            node_weights(done + 0.5, step, eta, phases, node, weights[i])
            on_circle(shift, tables, even, odd, value)
            take_power(value.reshape(2, -1), L - 2, excess, power.reshape(2, -1))
            turn_back(first + i, 1.0 * excess, cosine, power)
            coefficients(C, back, power, odd, coefficient)
            weights[i, 0] += contract(C, n, phases, coefficient, node[0], node[2], empty, sums[i])
            if second:
                contract(C, n, phases, coefficient, node[1], node[2], empty, slopes[i])
                if L > 2:
                    take_power(value.reshape(2, -1), L - 3, excess, power.reshape(2, -1))
                    weigh(first + i, 1.0 * excess, cosine, node, value, power)
                    pair_sums(n, y[i], phases, tables, even, odd, power, pairs[i])
    return sums, slopes, weights, pairs


@kernel(inner=True)
def clear(row):
    """Set all entries to 0."""
    for i in range(len(row)):
        row[i] = 0.0


@kernel(inner=True)
def buffers(types, C, pairs, lanes):
    """Allocate the arrays of a block of nodes; powers of z and pairs are padded to fours."""
    fours = (pairs + 3) // 4 * 4
    return (
        np.empty((2, types + 1, lanes)),  # phases
        np.zeros((2, (C + 3) // 4 * 4 + 1, lanes)),  # even
        np.zeros((2, (C + 3) // 4 * 4 + 1, lanes)),  # odd
        np.zeros((2, 2, fours, lanes)),  # value: part, sign of the angle, pair, lane
        np.zeros((2, 2, fours, lanes)),  # power
        np.empty((2, 2 * C + 1, lanes)),  # coefficient
        np.empty((3, 2, lanes)),  # node
    )


@kernel(inner=True)
def angle_tables(C, angles):
    """Return the cosines of all multiples of pi/angles, and tables to and from powers of z.

    ``tables[0 or 1, pair, m - 1]``: cosine and sine of m theta; ``back[0 or 1, m, pair]``: the same
    over ``angles``. Padded by zeros to multiples of four columns.
    """
    turn, pairs = 2 * angles, angles // 2
    cosine = np.empty(turn)
    tables = np.zeros((2, pairs, (C + 3) // 4 * 4))
    back = np.zeros((2, C + 1, (pairs + 3) // 4 * 4))
    for k in range(pairs + 1):
        c = math.cos(math.pi * k / angles)
        cosine[k], cosine[angles - k] = c, -c
        cosine[(angles + k) % turn], cosine[(turn - k) % turn] = -c, c
    for j in range(pairs):
        for m in range(C + 1):
            k = m * (2 * j + 1)
            c, s = cosine[k % turn], cosine[(k - pairs) % turn]
            back[0, m, j], back[1, m, j] = c / angles, s / angles
            if m > 0:
                tables[0, j, m - 1], tables[1, j, m - 1] = c, s
    return cosine, tables, back


@kernel(inner=True, fastmath=REORDER)
def waves(start, step, base, x, share, phases):
    """Fill ``share e^{-i t x}``, ``t = (start + lane) step``; the last row is ``e^{-i t base}``.

    The angle is reduced to less than an eighth of a turn, where Taylor polynomials of degree 15
    and 16 have errors below 1e-16; each entry is good to 4 u besides the error of ``t x``.
    """
    for k in range(phases.shape[1]):
        size = share[k] if k < len(x) else 1.0
        turns = (x[k] if k < len(x) else base) * step / (-2.0 * math.pi)
        for i in range(phases.shape[2]):
            turn = turns * (start + i)
            turn -= math.floor(turn + 0.5)
            quarter = math.floor(4.0 * turn + 0.5)
            v = (turn - 0.25 * quarter) * (2.0 * math.pi)
            z = v * v
            s = 1 / 6227020800 - z / 1307674368000
            s = -1 / 39916800 + z * s
            s = 1 / 362880 + z * s
            s = -1 / 5040 + z * s
            s = 1 / 120 + z * s
            s = -1 / 6 + z * s
            s = (v + v * z * s) * size
            c = -1 / 87178291200 + z / 20922789888000
            c = 1 / 479001600 + z * c
            c = -1 / 3628800 + z * c
            c = 1 / 40320 + z * c
            c = -1 / 720 + z * c
            c = 1 / 24 + z * c
            c = (1 - z * (0.5 - z * c)) * size
            quarter -= 4.0 * math.floor(0.25 * quarter)  # 0, 1, 2, 3
            cosine, sine = abs(quarter - 2.0) - 1.0, 1.0 - abs(quarter - 1.0)
            phases[0, k, i] = c * cosine - s * sine
            phases[1, k, i] = c * sine + s * cosine


@kernel(inner=True, fastmath=REORDER)
def levels(n, factor, phases, even, odd):
    """Fill the sums of ``factor phases`` over the types with n and -n, and their differences."""
    for part in range(2):
        for m in range(even.shape[1]):
            for i in range(even.shape[2]):
                even[part, m, i] = odd[part, m, i] = 0.0
        for k in range(len(n)):
            m, size = abs(int(n[k])), factor[k]
            signed = size if n[k] >= 0 else -size
            for i in range(even.shape[2]):
                even[part, m, i] += size * phases[part, k, i]
                odd[part, m, i] += signed * phases[part, k, i]


@kernel(inner=True, fastmath=REORDER)
def node_weights(start, step, eta, phases, node, weights):
    """Fill ``node``: step e^{-i t base} / sin(pi w), w, and 1 / w (its conjugate)."""
    wave = phases[:, phases.shape[1] - 1]
    sine, cosine = math.sin(math.pi * eta), math.cos(math.pi * eta)
    for i in range(node.shape[2]):
        t = step * (start + i)
        grow = math.exp(min(math.pi * t, 300.0))
        re, im = sine * (grow + 1 / grow) / 2, cosine * (grow - 1 / grow) / 2
        size = re * re + im * im
        a, b = wave[0, i], wave[1, i]
        node[0, 0, i] = step * (a * re + b * im) / size
        node[0, 1, i] = step * (b * re - a * im) / size
        node[1, 0, i], node[1, 1, i] = eta, t
        inverse = step / math.sqrt(size)
        weights[1] += inverse
        size = eta * eta + t * t
        node[2, 0, i], node[2, 1, i] = eta / size, t / size
        weights[2] += inverse / math.sqrt(size)


@kernel(inner=True, fastmath=REORDER)
def add_rows(weights, rows, result):
    """Add ``sum_m weights[j, m] rows[m]`` to ``result[j]``, eight or four rows at a time."""
    many, lanes = weights.shape[1], rows.shape[1]
    eights = many // 8 * 8
    for j in range(len(weights)):
        w, target = weights[j], result[j]
        for m in range(0, eights, 8):
            a, b, c, d = w[m], w[m + 1], w[m + 2], w[m + 3]
            e, f, g, h = w[m + 4], w[m + 5], w[m + 6], w[m + 7]
            p, q, r, s = rows[m], rows[m + 1], rows[m + 2], rows[m + 3]
            t, u, v, x = rows[m + 4], rows[m + 5], rows[m + 6], rows[m + 7]
            for i in range(lanes):
                target[i] += (a * p[i] + b * q[i] + c * r[i] + d * s[i]) + (
                    e * t[i] + f * u[i] + g * v[i] + h * x[i]
                )
        for m in range(eights, many, 4):
            a, b, c, d = w[m], w[m + 1], w[m + 2], w[m + 3]
            p, q, r, s = rows[m], rows[m + 1], rows[m + 2], rows[m + 3]
            for i in range(lanes):
                target[i] += (a * p[i] + b * q[i]) + (c * r[i] + d * s[i])


@kernel(inner=True, fastmath=REORDER)
def on_circle(shift, tables, even, odd, value):
    """Fill ``shift + sum_m even_m cos(m theta) +- i odd_m sin(m theta)``."""
    for part in range(2):
        start = shift if part == 0 else 0.0
        for j in range(tables.shape[1]):
            for i in range(even.shape[2]):
                value[part, 0, j, i] = start + even[part, 0, i]
                value[part, 1, j, i] = 0.0
        add_rows(tables[0], even[part, 1:], value[part, 0])
        add_rows(tables[1], odd[1 - part, 1:], value[part, 1])
        # the product by i is - odd in the real part and + odd in the imaginary part
        sign = 1.0 if part == 1 else -1.0
        plus, minus = value[part, 0].reshape(-1), value[part, 1].reshape(-1)
        for i in range(len(plus)):
            a, b = plus[i], sign * minus[i]
            plus[i], minus[i] = a + b, a - b


@kernel(inner=True, fastmath=REORDER)
def take_power(x, N, excess, z):
    """Fill ``z = x^N``, or with ``excess`` ``z = (1 + x)^N - 1``, from the leading bit of N.

    The excess squares and multiplies as (1 + z)^2 - 1 = z (2 + z), (1 + x)(1 + z) - 1 = z + x + xz.
    """
    one = 1.0 if excess else 0.0
    x_re, x_im, re, im = x[0], x[1], z[0], z[1]
    for i in range(len(re)):
        re[i] = x_re[i] if N > 0 else 1.0 - one
        im[i] = x_im[i] if N > 0 else 0.0
    bit = 1
    while 2 * bit <= N:
        bit *= 2
    while bit > 1:
        bit //= 2
        if N & bit:
            for i in range(len(re)):
                a, b, c, d = re[i], im[i], x_re[i], x_im[i]
                a, b = 2.0 * one * a + (a * a - b * b), 2.0 * b * (a + one)
                re[i] = one * (a + c) + (a * c - b * d)
                im[i] = one * (b + d) + (a * d + b * c)
        else:
            for i in range(len(re)):
                a, b = re[i], im[i]
                re[i] = 2.0 * one * a + (a * a - b * b)
                im[i] = 2.0 * b * (a + one)


@kernel(inner=True, fastmath=REORDER)
def turn_back(r, one, cosine, power):
    """Turn ``f = one + power`` by ``e^{-+i r theta}`` and fill what ``cos`` and ``sin`` multiply.

    The coefficients of z^(r - n) are sums over the angles of ``f e^{-+i (r - n) theta}``, that is
    of ``cos(n theta) A + sin(n theta) B``; A replaces the entries at + theta, B those at - theta.
    """
    turn = len(cosine)
    pairs = turn // 4
    for j in range(pairs):
        k = r * (2 * j + 1)
        c, s = cosine[k % turn], cosine[(k - pairs) % turn]
        p, q, u, v = power[0, 0, j], power[1, 0, j], power[0, 1, j], power[1, 1, j]
        for i in range(power.shape[3]):
            a, b = p[i] + u[i] + 2.0 * one, q[i] + v[i]
            g, h = p[i] - u[i], q[i] - v[i]
            p[i], q[i] = a * c + h * s, b * c - g * s
            u[i], v[i] = a * s - h * c, b * s + g * c


@kernel(inner=True, fastmath=REORDER)
def coefficients(C, back, power, mirror, coefficient):
    """Fill ``coefficient[:, n + C]`` with the coefficient of z^(r - n); overwrites ``mirror``."""
    for part in range(2):
        clear(coefficient[part].reshape(-1))
        clear(mirror[part].reshape(-1))
        add_rows(back[0], power[part, 0], coefficient[part, C:])
        add_rows(back[1], power[part, 1], mirror[part])
        for m in range(1, C + 1):
            row, opposite, other = (
                coefficient[part, C + m],
                coefficient[part, C - m],
                mirror[part, m],
            )
            for i in range(len(row)):
                a, b = row[i], other[i]
                row[i], opposite[i] = a + b, a - b


@kernel(inner=True, fastmath=REORDER)
def contract(C, n, phases, coefficient, weight, inverse, empty, sums):
    """Weight the coefficients and add ``Re[coefficient phase]`` to ``sums``, by type.

    Returns the sum over all types with the further weight 1 / w.
    """
    lanes = weight.shape[1]
    rest = loss = 0.0
    for m in range(2 * C + 1):
        for i in range(lanes):
            a, b = coefficient[0, m, i], coefficient[1, m, i]
            coefficient[0, m, i] = a * weight[0, i] - b * weight[1, i]
            coefficient[1, m, i] = a * weight[1, i] + b * weight[0, i]
    for i in range(lanes):
        a, b = coefficient[0, C, i], coefficient[1, C, i]
        rest += a
        loss += empty * (a * inverse[0, i] + b * inverse[1, i])
    sums[len(n)] += empty * rest
    for k in range(len(n)):
        m = C + int(n[k])
        here = 0.0
        for i in range(lanes):
            a, b = coefficient[0, m, i], coefficient[1, m, i]
            re = a * phases[0, k, i] - b * phases[1, k, i]
            im = a * phases[1, k, i] + b * phases[0, k, i]
            here += re
            loss += re * inverse[0, i] + im * inverse[1, i]
        sums[k] += here
    return loss


@kernel(inner=True, fastmath=REORDER)
def weigh(r, one, cosine, node, turned, power):
    """Replace ``power`` by ``(one + power) e^{-i r theta} w / sin(pi w)`` over the angles."""
    turn = len(cosine)
    pairs = turn // 4
    a, b, c, d = node[0, 0], node[0, 1], node[1, 0], node[1, 1]
    clear(turned.reshape(-1))
    for j in range(pairs):
        k = r * (2 * j + 1)
        x, y = cosine[k % turn] * (2.0 / turn), cosine[(k - pairs) % turn] * (2.0 / turn)
        for sign in range(2):
            for i in range(power.shape[3]):
                g, h = a[i] * c[i] - b[i] * d[i], a[i] * d[i] + b[i] * c[i]
                turned[0, sign, j, i] = g * x + h * y
                turned[1, sign, j, i] = h * x - g * y
            y = -y
    re, im = power[0].reshape(-1), power[1].reshape(-1)
    turned_re, turned_im = turned[0].reshape(-1), turned[1].reshape(-1)
    for i in range(len(re)):
        g, h = re[i] + one, im[i]
        re[i] = g * turned_re[i] - h * turned_im[i]
        im[i] = g * turned_im[i] + h * turned_re[i]


@kernel(inner=True, fastmath=REORDER)
def pair_sums(n, y, phases, tables, even, odd, weight, pairs):
    """Add Re[weight Y_j Y_k] over all angles, Y_j = sum_type share y_j e^{-itx} z^n."""
    series = np.zeros((3, *weight.shape))
    for j in range(3):
        levels(n, y[j], phases, even, odd)
        on_circle(0.0, tables, even, odd, series[j])
    re, im = weight[0].reshape(-1), weight[1].reshape(-1)
    m = 0
    for j in range(3):
        a, b = series[j, 0].reshape(-1), series[j, 1].reshape(-1)
        for k in range(j, 3):
            c, d = series[k, 0].reshape(-1), series[k, 1].reshape(-1)
            total = 0.0
            for i in range(len(re)):
                total += (a[i] * c[i] - b[i] * d[i]) * re[i] - (a[i] * d[i] + b[i] * c[i]) * im[i]
            pairs[m] += total
            m += 1
