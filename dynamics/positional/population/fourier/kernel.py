r"""The inner loop of the Fourier method: sums over the nodes w = eta + i t and the angles of z.

Consecutive nodes are the lanes of the vector instructions; ``quads`` holds what is done at four
angles. The last axis of all arrays of a block of nodes counts the nodes, their first axis is
(real part, imaginary part) unless they are flat.
"""

from __future__ import annotations

import math

import numpy as np

from dynamics.core.jit import REORDER, kernel
from dynamics.positional.population.fourier.quads import (
    FOUR,
    LANES,
    angle_tables,
    binomial_series,
    from_four,
    on_four,
    pair_sums,
    take_power,
)
from dynamics.positional.population.fourier.rounding import PLAIN_POWER

#: Nodes come in multiples of this.
FEW_LANES = 8


@kernel
def node_sums(first, base, x, y, n, share, line, nodes, angles, C, L, second):
    r"""Add up ``step Re[e^{-i t base} E_type(w) G_{r-n}(w) / sin(pi w)]`` over the nodes.

    One row per total ``r = first, first + 1, ...`` (the last axis of base, x and y); rows without
    nodes give 0. ``line`` holds
    (eta, step, share of the empty type), ``w = eta + i (k + 1/2) step``,
    ``E_type = share e^{-i t x}``, and ``G_j`` is the coefficient of ``z^j`` in
    ``(sum_type E_type z^n)^(L-2)``, by a DFT over ``angles`` half-shifted angles, a multiple of
    four. All shares add up to 1.

    Returns ``sums[row, type]`` (last entry: the empty type) and ``weights[row]``: the same sum for
    the loss (all types, weight 1/(w sin(pi w))), the sums of the absolute weights of either, and
    what bounds their errors: see ``node_weights``.
    With ``second`` also ``slopes``, like ``sums`` with weight w / sin(pi w), and ``pairs[row]``:
    with this weight, the sums over two sets with factors ``y_j y_k``, L - 3 sets remaining.
    """
    rows, types = len(nodes), len(n)
    sums, weights = np.zeros((rows, types + 1)), np.zeros((rows, 6))
    slopes, pairs = np.zeros((rows, types + 1)), np.zeros((rows, 6))
    excess = L - 2 > PLAIN_POWER
    ones, series, fewer = np.ones((types, 1))[:, 0], np.empty(10), np.empty(10)
    powers = (C + 3) // 4 * 4 + 1
    turns, phases = np.empty((2, 16 * (types + 1))), np.empty((2, types + 1, LANES))
    start, rest, values, z = np.empty(FOUR), np.empty(FOUR), np.empty(3 * FOUR), np.empty(2 * FOUR)
    poly, half = np.empty(4 * powers * LANES), np.empty(4 * powers * LANES)
    coefficient, node = np.empty((2, 2 * C + 1, LANES)), np.empty((3, 2, LANES))
    polys = np.empty((3 if second else 0, len(poly)))
    starts, slopes_of = np.empty((len(polys), FOUR)), np.empty((len(polys), FOUR))
    cosine, tables = angle_tables(C, 4)
    for i in range(rows):
        if nodes[i] == 0:
            continue
        eta, step, empty = line[i, 0], line[i, 1], line[i, 2]
        shift = -share[i].sum() if excess else empty
        squarings = binomial_series(L - 2, 2.0 * share[i].sum(), series)
        fewer_squarings = binomial_series(L - 3, 2.0 * share[i].sum(), fewer)
        if len(cosine) != 2 * angles[i]:
            cosine, tables = angle_tables(C, angles[i])
        blocks = (nodes[i] + LANES - 1) // LANES
        block = (nodes[i] // FEW_LANES + blocks - 1) // blocks * FEW_LANES
        for done in range(0, nodes[i], block):
            lanes = min(block, nodes[i] - done)
            waves(done + 0.5, step, base[i], x[:, i], share[i], turns, lanes, phases)
            levels(n, ones, shift, phases, lanes, poly, start)
            node_weights(done + 0.5, step, eta, phases, lanes, node, weights[i])
            clear(half)
            for m in range(len(polys)):
                levels(n, y[m, :, i], 0.0, phases, lanes, polys[m], starts[m])
            for j in range(angles[i] // 4):
                on_four(j, tables, start, poly, lanes, rest, values)
                one = take_power(values, L - 2, excess, series, squarings, lanes, z)
                from_four(first + i, j, one, cosine, tables, z, lanes, half)
                if len(polys) > 0 and L > 2:
                    one = take_power(values, L - 3, excess, fewer, fewer_squarings, lanes, z)
                    for m in range(3):
                        on_four(j, tables, starts[m], polys[m], lanes, rest, slopes_of[m])
                    pair_sums(first + i, j, one, cosine, z, slopes_of, node, lanes, pairs[i])
            coefficients(C, half, node[0], lanes, coefficient)
            weights[i, 0] += contract(C, n, phases, coefficient, node[2], empty, lanes, sums[i])
            if second:
                coefficients(C, half, node[0], lanes, coefficient)
                turn_by(node[1], lanes, coefficient)
                contract(C, n, phases, coefficient, node[2], empty, lanes, slopes[i])
    return sums, slopes, weights, pairs


@kernel(inner=True)
def clear(row):
    """Set all entries to 0."""
    for i in range(len(row)):
        row[i] = 0.0


@kernel(inner=True, fastmath=REORDER)
def waves(start, step, base, x, share, turns, lanes, phases):
    """Fill ``share e^{-i t x}``, ``t = (start + lane) step``; the last row is ``e^{-i t base}``.

    A wave at lane 8 k + i is the product of one at lane i and one of 8 k lanes. The angle of either
    is reduced to less than an eighth of a turn, where Taylor polynomials of degree 15 and 16 have
    errors below 1e-16; each entry is good to 10 u besides the error of ``t x``.
    """
    types = len(x)
    for k in range(types + 1):
        rate = (x[k] if k < types else base) * step / (-2.0 * math.pi)
        row = turns[0, 16 * k :]
        for i in range(8):
            row[i] = rate * (start + i)
            row[8 + i] = rate * (8.0 * i)
    cosines_and_sines(turns[0], turns[1])
    for k in range(types + 1):
        size = share[k] if k < types else 1.0
        c, s = turns[0, 16 * k :], turns[1, 16 * k :]
        for m in range(0, lanes, 8):
            a, b = size * c[8 + m // 8], size * s[8 + m // 8]
            re, im = phases[0, k, m:], phases[1, k, m:]
            for i in range(8):
                re[i], im[i] = a * c[i] - b * s[i], a * s[i] + b * c[i]


@kernel(inner=True, fastmath=REORDER)
def cosines_and_sines(turns, sines):
    """Replace turns (angles over 2 pi) by their cosines, and fill the sines."""
    for i in range(len(turns)):
        turn = turns[i]
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
        s = v + v * z * s
        c = -1 / 87178291200 + z / 20922789888000
        c = 1 / 479001600 + z * c
        c = -1 / 3628800 + z * c
        c = 1 / 40320 + z * c
        c = -1 / 720 + z * c
        c = 1 / 24 + z * c
        c = 1 - z * (0.5 - z * c)
        quarter -= 4.0 * math.floor(0.25 * quarter)  # 0, 1, 2, 3
        cosine, sine = abs(quarter - 2.0) - 1.0, 1.0 - abs(quarter - 1.0)
        turns[i] = c * cosine - s * sine
        sines[i] = c * sine + s * cosine


@kernel(inner=True, fastmath=REORDER)
def levels(n, factor, shift, phases, lanes, poly, start):
    """Fill the sums of ``factor phases`` over the types with n and -n, and their differences.

    ``start``: the constant of the polynomial, increased by ``shift``, and six rows of zeros.
    """
    clear(poly)
    clear(start)
    for k in range(len(n)):
        size = factor[k]
        signed = size if n[k] >= 0 else -size
        row = poly[4 * abs(int(n[k])) * LANES :]
        re, im = phases[0, k], phases[1, k]
        for i in range(lanes):
            row[i] += size * re[i]
            row[LANES + i] += size * im[i]
            row[2 * LANES + i] += signed * re[i]
            row[3 * LANES + i] += signed * im[i]
    for i in range(lanes):
        start[i], start[LANES + i] = poly[i] + shift, poly[LANES + i]


@kernel(inner=True, fastmath=REORDER)
def node_weights(start, step, eta, phases, lanes, node, weights):
    """Fill ``node``: step e^{-i t base} / sin(pi w), w, and 1 / w (its conjugate).

    Adds to ``weights`` the sums of |step / sin(pi w)|, of it over |w|, of it times its relative
    error in units of rounding, of it times t, and of the third over |w|. That error is 4 pi t of
    e^(pi t), 5 for each multiplication by ``eight``, twice for its inverse and half again for the
    cancellation in sinh(pi t) >= sinh(1/2), below which there is a series; and what sin and cos of
    pi eta may be off, 8 u, over the least |sin(pi w)|.
    """
    wave = phases[:, phases.shape[1] - 1]
    sine, cosine = math.sin(math.pi * eta), math.cos(math.pi * eta)
    growth, eight = node[1, 0], math.exp(min(8.0 * math.pi * step, 300.0))
    for i in range(min(lanes, 8)):
        growth[i] = math.exp(min(math.pi * step * (start + i), 300.0))
    for m in range(8, lanes, 8):
        before, after = growth[m - 8 :], growth[m:]
        for i in range(8):
            after[i] = min(before[i] * eight, 1e130)
    one = two = three = four = five = 0.0
    constant = 40.0 if eta == 0.0 else 40.0 + 8.0 / abs(sine)
    for i in range(lanes):
        t, grow = step * (start + i), growth[i]
        x = math.pi * t
        z = x * x
        series = 1.0 + z / 156.0 * (1.0 + z / 210.0)
        series = 1.0 + z / 42.0 * (1.0 + z / 72.0 * (1.0 + z / 110.0 * series))
        series = x * (1.0 + z / 6.0 * (1.0 + z / 20.0 * series))
        re = sine * (grow + 1 / grow) / 2
        im = cosine * (series if x < 0.5 else (grow - 1 / grow) / 2)
        size = re * re + im * im
        a, b = wave[0, i], wave[1, i]
        node[0, 0, i] = step * (a * re + b * im) / size
        node[0, 1, i] = step * (b * re - a * im) / size
        node[1, 0, i], node[1, 1, i] = eta, t
        inverse = step / math.sqrt(size)
        error = inverse * (constant + 2.5 * i + 50.0 * t)
        one += inverse
        three += error
        four += inverse * t
        size = eta * eta + t * t
        node[2, 0, i], node[2, 1, i] = eta / size, t / size
        away = 1.0 / math.sqrt(size)
        two += inverse * away
        five += error * away
    weights[1] += one
    weights[2] += two
    weights[3] += three
    weights[4] += four
    weights[5] += five


@kernel(inner=True, fastmath=REORDER)
def coefficients(C, half, weight, lanes, coefficient):
    """Fill ``coefficient[:, n + C]``: the coefficients of z^(r - n), weighted."""
    for m in range(C + 1):
        row = half[4 * m * LANES :]
        re, im = coefficient[0, C + m], coefficient[1, C + m]
        re_opposite, im_opposite = coefficient[0, C - m], coefficient[1, C - m]
        for i in range(lanes):
            a, b = row[i] + row[2 * LANES + i], row[LANES + i] + row[3 * LANES + i]
            c, d = row[i] - row[2 * LANES + i], row[LANES + i] - row[3 * LANES + i]
            x, y = weight[0, i], weight[1, i]
            re[i], im[i] = a * x - b * y, a * y + b * x
            re_opposite[i], im_opposite[i] = c * x - d * y, c * y + d * x


@kernel(inner=True, fastmath=REORDER)
def turn_by(factor, lanes, coefficient):
    """Multiply the coefficients by ``factor``, lane by lane."""
    for m in range(coefficient.shape[1]):
        for i in range(lanes):
            a, b = coefficient[0, m, i], coefficient[1, m, i]
            coefficient[0, m, i] = a * factor[0, i] - b * factor[1, i]
            coefficient[1, m, i] = a * factor[1, i] + b * factor[0, i]


@kernel(inner=True, fastmath=REORDER)
def contract(C, n, phases, coefficient, inverse, empty, lanes, sums):
    """Add ``Re[coefficient phase]`` to ``sums``, by type.

    Returns the sum over all types with the further weight 1 / w.
    """
    rest = loss = 0.0
    for i in range(lanes):
        a, b = coefficient[0, C, i], coefficient[1, C, i]
        rest += a
        loss += empty * (a * inverse[0, i] + b * inverse[1, i])
    sums[len(n)] += empty * rest
    for k in range(len(n)):
        m = C + int(n[k])
        here = part = 0.0
        for i in range(lanes):
            a, b = coefficient[0, m, i], coefficient[1, m, i]
            re = a * phases[0, k, i] - b * phases[1, k, i]
            im = a * phases[1, k, i] + b * phases[0, k, i]
            here += re
            part += re * inverse[0, i] + im * inverse[1, i]
        sums[k] += here
        loss += part
    return loss
