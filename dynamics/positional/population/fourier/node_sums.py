"""Sums over the nodes w = eta + i t and the angles of z.

They are the trapezoidal rule of ``e^{-wF} / sin(pi w)`` along a line, for the coefficient of
``z^r`` in the power of the tilted distribution of a set (notebook ``fourier_method``, Sections 4
and 5). Consecutive nodes are the lanes of vector instructions; ``four_angles`` contains the
computation at four angles. The last axis of all arrays of a block of nodes is the node; the first
axis is (real part, imaginary part) unless the arrays are flat.
"""

import math
from typing import NamedTuple

import numpy as np

from dynamics.core.jit import REORDER, kernel
from dynamics.positional.population.fourier.four_angles import (
    FOUR,
    LANES,
    PLAIN_POWER,
    angle_tables,
    binomial_series,
    from_four,
    on_four,
    pair_sums,
    take_power,
)

#: The number of nodes is a multiple of this.
FEW_LANES = 8


class NodeSums(NamedTuple):
    """Sums over the nodes, by total R; each weight includes the factor ``step``.

    Attributes
    ----------
    by_type
        With weight 1/sin(pi w), (totals, types + 1); the last entry is the empty type.
    loss
        All types with weight 1/(w sin(pi w)), (totals,).
    slopes
        As ``by_type`` with weight w / sin(pi w).
    pairs
        With this weight, sums over two sets with factors ``y_j y_k``, (totals, 6); L - 3 sets
        remain.
    size, size_over_w, size_times_t
        Sums of the absolute weights 1/|sin(pi w)|, divided by |w|, and multiplied by t.
    error, error_over_w
        Sums of the errors of the absolute weights, in units of rounding.
    """

    by_type: np.ndarray
    loss: np.ndarray
    slopes: np.ndarray
    pairs: np.ndarray
    size: np.ndarray
    size_over_w: np.ndarray
    size_times_t: np.ndarray
    error: np.ndarray
    error_over_w: np.ndarray


@kernel
def node_sums(n, C, L, tables, lines, nodes, second):
    r"""Add up ``step Re[e^{-i t base} E_type(w) G_{r-n}(w) / sin(pi w)]`` over the nodes.

    ``w = eta + i (k + 1/2) step``, k = 0 ... nodes[total] - 1 (totals without nodes give 0),
    ``E_type = share e^{-i t x}``, and ``G_j`` is the coefficient of ``z^j`` in
    ``(sum_type E_type z^n)^(L-2)``, by a DFT over half-shifted angles, a multiple of four. All
    shares add up to 1. Returns :class:`NodeSums`; slopes and pairs are 0 unless ``second``.
    """
    rows, types = len(nodes), len(n)
    weight_sums = np.zeros((6, rows))
    sums = NodeSums(
        np.zeros((rows, types + 1)),
        weight_sums[0],
        np.zeros((rows, types + 1)),
        np.zeros((rows, 6)),
        weight_sums[1],
        weight_sums[2],
        weight_sums[3],
        weight_sums[4],
        weight_sums[5],
    )
    base, x, y, angles = tables.base[0], tables.x, tables.y, lines.angles
    excess = L - 2 > PLAIN_POWER
    ones, series, fewer = np.ones((types, 1))[:, 0], np.empty(10), np.empty(10)
    powers = (C + 3) // 4 * 4 + 1
    turns, phases = np.empty((2, 16 * (types + 1))), np.empty((2, types + 1, LANES))
    start, rest, values, z = np.empty(FOUR), np.empty(FOUR), np.empty(3 * FOUR), np.empty(2 * FOUR)
    poly, half = np.empty(4 * powers * LANES), np.empty(4 * powers * LANES)
    coefficient, node = np.empty((2, 2 * C + 1, LANES)), np.empty((3, 2, LANES))
    polys = np.empty((3 if second else 0, len(poly)))
    starts, slopes_of = np.empty((len(polys), FOUR)), np.empty((len(polys), FOUR))
    of_z = angle_tables(C, 4)
    for i in range(rows):
        if nodes[i] == 0:
            continue
        r, eta, step, empty = tables.first + i, lines.eta[i], lines.step[i], lines.empty[i]
        share = lines.share[i]
        shift = -share.sum() if excess else empty
        squarings = binomial_series(L - 2, 2.0 * share.sum(), series)
        fewer_squarings = binomial_series(L - 3, 2.0 * share.sum(), fewer)
        if len(of_z.cosine) != 2 * angles[i]:
            of_z = angle_tables(C, angles[i])
        blocks = (nodes[i] + LANES - 1) // LANES
        block = (nodes[i] // FEW_LANES + blocks - 1) // blocks * FEW_LANES
        for done in range(0, nodes[i], block):
            lanes = min(block, nodes[i] - done)
            waves(done + 0.5, step, base[i], x[:, i], share, turns, lanes, phases)
            levels(n, ones, shift, phases, lanes, poly, start)
            node_weights(i, done + 0.5, step, eta, phases, lanes, node, sums)
            clear(half)
            for m in range(len(polys)):
                levels(n, y[m, :, i], 0.0, phases, lanes, polys[m], starts[m])
            for j in range(angles[i] // 4):
                on_four(j, of_z, start, poly, lanes, rest, values)
                constant = take_power(values, L - 2, excess, series, squarings, lanes, z)
                from_four(r, j, constant, of_z, z, lanes, half)
                if len(polys) > 0 and L > 2:
                    constant = take_power(values, L - 3, excess, fewer, fewer_squarings, lanes, z)
                    for m in range(3):
                        on_four(j, of_z, starts[m], polys[m], lanes, rest, slopes_of[m])
                    pair_sums(r, j, constant, of_z, z, slopes_of, node, lanes, sums.pairs[i])
            coefficients(C, half, node[0], lanes, coefficient)
            sums.loss[i] += contract(
                C, n, phases, coefficient, node[2], empty, lanes, sums.by_type[i]
            )
            if second:
                coefficients(C, half, node[0], lanes, coefficient)
                turn_by(node[1], lanes, coefficient)
                contract(C, n, phases, coefficient, node[2], empty, lanes, sums.slopes[i])
    return sums


@kernel(borrows=True)
def clear(row):
    """Set all entries to 0."""
    for i in range(len(row)):
        row[i] = 0.0


@kernel(borrows=True, fastmath=REORDER)
def waves(start, step, base, x, share, turns, lanes, phases):
    """Fill ``share e^{-i t x}``, ``t = (start + lane) step``; the last row is ``e^{-i t base}``.

    A wave at lane 8 k + i is the product of waves at lane i and over 8 k lanes. Both angles are
    reduced to an eighth of a turn, where Taylor polynomials of degree 15 and 16 have errors below
    1e-16. Each entry has an error of 10 u in addition to the error of ``t x``.
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
            re, im, whole = phases[0, k, m:], phases[1, k, m:], min(8, lanes - m)
            for i in range(whole):  # unrolled if the number is constant
                re[i], im[i] = a * c[i] - b * s[i], a * s[i] + b * c[i]


@kernel(borrows=True, fastmath=REORDER)
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


@kernel(borrows=True, fastmath=REORDER)
def levels(n, factor, shift, phases, lanes, poly, start):
    """Fill the sums of ``factor phases`` over the types with n and -n, and their differences.

    ``start`` receives the constant term plus ``shift``, and six rows of zeros.
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


@kernel(borrows=True, fastmath=REORDER)
def node_weights(i, start, step, eta, phases, lanes, node, sums):
    """Fill ``node``: step e^{-i t base} / sin(pi w), w, and 1 / w (its conjugate).

    Add the absolute weights of R number i and their errors to ``sums``. The error consists of 4 pi
    t of e^(pi t); 5 for each multiplication by ``eight``, twice for its inverse and half for the
    cancellation in sinh(pi t) >= sinh(1/2), below which a series is used; and 8 u for sin and cos
    of pi eta, over the smallest |sin(pi w)|.
    """
    wave = phases[:, phases.shape[1] - 1]
    sine, cosine = math.sin(math.pi * eta), math.cos(math.pi * eta)
    growth, eight = node[1, 0], math.exp(min(8.0 * math.pi * step, 300.0))
    for m in range(min(lanes, 8)):
        growth[m] = math.exp(min(math.pi * step * (start + m), 300.0))
    for m in range(8, lanes, 8):
        before, after = growth[m - 8 :], growth[m:]
        for k in range(8):
            after[k] = min(before[k] * eight, 1e130)
    sum_inverse = sum_over_w = sum_error = sum_times_t = sum_error_over_w = 0.0
    constant = 40.0 if eta == 0.0 else 40.0 + 8.0 / abs(sine)
    for m in range(lanes):
        t, grow = step * (start + m), growth[m]
        x = math.pi * t
        z = x * x
        series = 1.0 + z / 156.0 * (1.0 + z / 210.0)
        series = 1.0 + z / 42.0 * (1.0 + z / 72.0 * (1.0 + z / 110.0 * series))
        series = x * (1.0 + z / 6.0 * (1.0 + z / 20.0 * series))
        re = sine * (grow + 1 / grow) / 2
        im = cosine * (series if x < 0.5 else (grow - 1 / grow) / 2)
        size = re * re + im * im
        a, b = wave[0, m], wave[1, m]
        node[0, 0, m] = step * (a * re + b * im) / size
        node[0, 1, m] = step * (b * re - a * im) / size
        node[1, 0, m], node[1, 1, m] = eta, t
        inverse = step / math.sqrt(size)
        error = inverse * (constant + 2.5 * m + 50.0 * t)
        sum_inverse += inverse
        sum_error += error
        sum_times_t += inverse * t
        size = eta * eta + t * t
        node[2, 0, m], node[2, 1, m] = eta / size, t / size
        away = 1.0 / math.sqrt(size)
        sum_over_w += inverse * away
        sum_error_over_w += error * away
    sums.size[i] += sum_inverse
    sums.size_over_w[i] += sum_over_w
    sums.error[i] += sum_error
    sums.size_times_t[i] += sum_times_t
    sums.error_over_w[i] += sum_error_over_w


@kernel(borrows=True, fastmath=REORDER)
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


@kernel(borrows=True, fastmath=REORDER)
def turn_by(factor, lanes, coefficient):
    """Multiply the coefficients by ``factor``, lane by lane."""
    for m in range(coefficient.shape[1]):
        for i in range(lanes):
            a, b = coefficient[0, m, i], coefficient[1, m, i]
            coefficient[0, m, i] = a * factor[0, i] - b * factor[1, i]
            coefficient[1, m, i] = a * factor[1, i] + b * factor[0, i]


@kernel(borrows=True, fastmath=REORDER)
def contract(C, n, phases, coefficient, inverse, empty, lanes, sums):
    """Add ``Re[coefficient phase]`` to ``sums``, by type; return the sum with weight 1 / w."""
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
