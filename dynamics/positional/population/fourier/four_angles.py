"""Polynomials in z at four angles at once, their powers, and the transformation to coefficients.

``[z^r] f(z)^N`` is a discrete Fourier transform of ``f^N`` over angles of z on a circle (notebook
``fourier_method``, Section 4).

The angles of the DFT are half-shifted and come in groups of four: theta, -theta, pi - theta and
theta - pi. The polynomials at all four are combinations of the same four sums, of cosines and sines
of the even and of the odd multiples of theta. The data of four angles stay in the first-level cache
during the whole computation, from the polynomial through its power to the coefficients.

Consecutive nodes are the lanes of vector instructions. Arrays are flat, with rows of ``LANES``
entries: compilers vectorize loops over many rows if their distances are constants.
"""

import math
from typing import NamedTuple

import numpy as np

from dynamics.core.jit import REORDER, kernel

#: Length of a row: the largest number of nodes processed together.
LANES = 48

#: Entries of the eight rows (real and imaginary part) of four points.
FOUR = 8 * LANES

#: For more sets a power is computed as ``(1 + x)^N - 1``, so that rounding does not grow with N.
PLAIN_POWER = 16


class Angles(NamedTuple):
    """Tables for a number of half-shifted angles.

    ``cosine``: cosines of all multiples of pi/angles; ``powers[0 or 1, four, m - 1]``: cosine and
    sine of m theta, padded to multiples of four.
    """

    cosine: np.ndarray
    powers: np.ndarray


@kernel(inner=True)
def angle_tables(C, angles):
    """Return the :class:`Angles` of this many half-shifted angles, for sets of C patches."""
    turn, quarter = 2 * angles, angles // 2
    cosine = np.empty(turn)
    tables = np.zeros((2, angles // 4, (C + 3) // 4 * 4))
    for k in range(quarter + 1):
        c = math.cos(math.pi * k / angles) if k < quarter else 0.0
        cosine[k], cosine[angles - k] = c, -c
        cosine[angles + k] = -c
        if k > 0:
            cosine[turn - k] = c
    for j in range(angles // 4):
        k = 0
        for m in range(C):
            k += 2 * j + 1
            if k >= turn:
                k -= turn
            tables[0, j, m], tables[1, j, m] = cosine[k], cosine[k - quarter]
    return Angles(cosine, tables)


@kernel(borrows=True)
def turn_of(r, j, cosine):
    """Return cosine and sine of r times the j-th half-shifted angle."""
    turn = len(cosine)
    k = r * (2 * j + 1) % turn
    return cosine[k], cosine[k - turn // 4]


@kernel(borrows=True, fastmath=REORDER)
def on_four(j, angles, start, poly, lanes, rest, x):
    """Fill the eight rows ``x`` with a polynomial at the j-th group of four angles.

    ``poly`` has four rows for each m: the sum and the difference of the coefficients of z^m and
    z^-m. ``start`` has eight initial rows, the first two with the constant term; ``rest`` is
    scratch.
    """
    cosines, sines = angles.powers[0, j], angles.powers[1, j]
    for g in range(len(cosines) - 4, 0, -4):
        _add_four(cosines[g:], sines[g:], poly[4 * g * LANES :], lanes, start, rest)
        start = rest
    _close_four(cosines, sines, poly, lanes, start, x)


@kernel(borrows=True, fastmath=REORDER)
def _add_four(cosines, sines, poly, lanes, start, rest):
    """Add four powers of z to the four sums."""
    c, d, e, f = cosines[0], cosines[1], cosines[2], cosines[3]
    s, t, u, v = sines[0], sines[1], sines[2], sines[3]
    W = LANES
    for i in range(lanes):
        rest[i] = start[i] + d * poly[8 * W + i] + f * poly[16 * W + i]
        rest[W + i] = start[W + i] + d * poly[9 * W + i] + f * poly[17 * W + i]
        rest[2 * W + i] = start[2 * W + i] + c * poly[4 * W + i] + e * poly[12 * W + i]
        rest[3 * W + i] = start[3 * W + i] + c * poly[5 * W + i] + e * poly[13 * W + i]
        rest[4 * W + i] = start[4 * W + i] + t * poly[10 * W + i] + v * poly[18 * W + i]
        rest[5 * W + i] = start[5 * W + i] + t * poly[11 * W + i] + v * poly[19 * W + i]
        rest[6 * W + i] = start[6 * W + i] + s * poly[6 * W + i] + u * poly[14 * W + i]
        rest[7 * W + i] = start[7 * W + i] + s * poly[7 * W + i] + u * poly[15 * W + i]


@kernel(borrows=True, fastmath=REORDER)
def _close_four(cosines, sines, poly, lanes, start, x):
    """Add the first four powers of z, and combine the four sums into the values."""
    c, d, e, f = cosines[0], cosines[1], cosines[2], cosines[3]
    s, t, u, v = sines[0], sines[1], sines[2], sines[3]
    W = LANES
    for i in range(lanes):
        even_re = start[i] + d * poly[8 * W + i] + f * poly[16 * W + i]
        even_im = start[W + i] + d * poly[9 * W + i] + f * poly[17 * W + i]
        odd_re = start[2 * W + i] + c * poly[4 * W + i] + e * poly[12 * W + i]
        odd_im = start[3 * W + i] + c * poly[5 * W + i] + e * poly[13 * W + i]
        sine_re = start[4 * W + i] + t * poly[10 * W + i] + v * poly[18 * W + i]
        sine_im = start[5 * W + i] + t * poly[11 * W + i] + v * poly[19 * W + i]
        odd_sine_re = start[6 * W + i] + s * poly[6 * W + i] + u * poly[14 * W + i]
        odd_sine_im = start[7 * W + i] + s * poly[7 * W + i] + u * poly[15 * W + i]
        a, b = even_re + odd_re, even_im + odd_im
        g, h = odd_sine_re + sine_re, odd_sine_im + sine_im
        x[i], x[W + i], x[2 * W + i], x[3 * W + i] = a - h, b + g, a + h, b - g
        a, b = even_re - odd_re, even_im - odd_im
        g, h = odd_sine_re - sine_re, odd_sine_im - sine_im
        x[4 * W + i], x[5 * W + i], x[6 * W + i], x[7 * W + i] = a - h, b + g, a + h, b - g


@kernel(borrows=True, fastmath=REORDER)
def take_power(x, N, excess, series, squarings, lanes, z):
    """Fill ``z`` with x^N, or with ``excess`` (1 + x)^N or (1 + x)^N - 1; return 1 for the last.

    The eight rows of x are followed by scratch for x^2 and x^3. Steps alternate between the two
    halves of z because loops in place are not vectorized.
    """
    if excess and squarings >= 0:
        bit = squarings
        source = z[bit % 4 // 2 * FOUR :]
        for k in range(0, FOUR, 2 * LANES):
            _binomial(x[k:], series, lanes, source[k:])
        while bit > 0:
            bit -= 2
            target = z[bit % 4 // 2 * FOUR :]
            for k in range(0, FOUR, 2 * LANES):
                _fourth(source[k:], lanes, target[k:])
            source = target
        return 0.0
    _by_digits(x, N, excess, lanes, z)
    return 1.0 if excess else 0.0


@kernel(borrows=True)
def binomial_series(N, size, series):
    """Fill ``series`` so that (1 + x)^N is its 2^s-th power for |x| <= size; return s, even.

    With n = N / 2^s and n size <= 1/8, (1 + x)^n is its Taylor polynomial of degree 10. Each
    further term is at most half of the previous one, so the remainder is at most twice the next
    term, here below a unit of rounding times n size. Return -1 if that fails, or if N has so few
    binary digits that multiplications are as fast.
    """
    exponent, s = float(N), 0
    while exponent * size > 0.125:
        exponent *= 0.25
        s += 2
    if size > 0.5 or 4.0 * exponent < 8.0:
        return -1
    term = 1.0
    for k in range(len(series)):
        term *= (exponent - k) / (k + 1.0)
        series[k] = term
    k = len(series)
    rest = abs(term * (exponent - k)) / (k + 1.0) * size ** (k + 1)
    return s if 2.0 * rest <= 2.0**-53 * exponent * size else -1


@kernel(borrows=True, fastmath=REORDER)
def _binomial(x, series, lanes, z):
    """Fill 1 + series[0] x + ... + series[9] x^10 with two real operations per term.

    Clenshaw: b_k = c_k + 2 Re(x) b_{k+1} - |x|^2 b_{k+2}, the sum is c_0 + x b_1 - |x|^2 b_2.
    """
    c1, c2, c3, c4, c5 = series[0], series[1], series[2], series[3], series[4]
    c6, c7, c8, c9, c10 = series[5], series[6], series[7], series[8], series[9]
    for i in range(lanes):
        a, b = x[i], x[LANES + i]
        t, s = 2.0 * a, a * a + b * b
        q = c9 + t * c10
        p = c8 + t * q - s * c10
        q = c7 + t * p - s * q
        p = c6 + t * q - s * p
        q = c5 + t * p - s * q
        p = c4 + t * q - s * p
        q = c3 + t * p - s * q
        p = c2 + t * q - s * p
        q = c1 + t * p - s * q
        z[i], z[LANES + i] = 1.0 + (a * q - s * p), b * q


@kernel(borrows=True)
def _by_digits(x, N, excess, lanes, z):
    """Fill ``z = x^N``, or with ``excess`` ``z = (1 + x)^N - 1``, digit by digit in base 4.

    For the excess use (1 + z)^2 - 1 = z (2 + z) and (1 + x)(1 + z) - 1 = z + x + xz.
    """
    if N == 0:
        for k in range(8):
            for i in range(lanes):
                z[k * LANES + i] = 0.0 if excess or k % 2 == 1 else 1.0
        return
    _small_powers(x, excess, lanes)
    bit = 0
    while N >> (bit + 2) > 0:
        bit += 2
    source = x[((N >> bit) - 1) * FOUR :]
    if bit == 0:
        for k in range(8):
            for i in range(lanes):
                z[k * LANES + i] = source[k * LANES + i]
    while bit > 0:
        bit -= 2
        digit = (N >> bit) & 3
        target = z[bit % 4 // 2 * FOUR :]
        for k in range(0, FOUR, 2 * LANES):
            if digit == 0 and excess:
                _fourth_excess(source[k:], lanes, target[k:])
            elif digit == 0:
                _fourth(source[k:], lanes, target[k:])
            elif excess:
                _fourth_times_excess(source[k:], x[(digit - 1) * FOUR + k :], lanes, target[k:])
            else:
                _fourth_times(source[k:], x[(digit - 1) * FOUR + k :], lanes, target[k:])
        source = target


@kernel(borrows=True, fastmath=REORDER)
def _small_powers(x, excess, lanes):
    """Fill x^2 and x^3, or their excess, after x."""
    for k in range(0, FOUR, 2 * LANES):
        row = x[k:]
        if excess:
            for i in range(lanes):
                a, b = row[i], row[LANES + i]
                c, d = a * (2.0 + a) - b * b, 2.0 * b * (1.0 + a)
                row[FOUR + i], row[FOUR + LANES + i] = c, d
                row[2 * FOUR + i] = (a + c) + (a * c - b * d)
                row[2 * FOUR + LANES + i] = (b + d) + (a * d + b * c)
        else:
            for i in range(lanes):
                a, b = row[i], row[LANES + i]
                c, d = a * a - b * b, 2.0 * a * b
                row[FOUR + i], row[FOUR + LANES + i] = c, d
                row[2 * FOUR + i], row[2 * FOUR + LANES + i] = a * c - b * d, a * d + b * c


@kernel(borrows=True, fastmath=REORDER)
def _fourth(source, lanes, z):
    """Fill the fourth power of a number."""
    for i in range(lanes):
        a, b = source[i], source[LANES + i]
        a, b = a * a - b * b, 2.0 * a * b
        z[i], z[LANES + i] = a * a - b * b, 2.0 * a * b


@kernel(borrows=True, fastmath=REORDER)
def _fourth_times(source, factor, lanes, z):
    """Fill the fourth power of a number times a factor."""
    for i in range(lanes):
        a, b, c, d = source[i], source[LANES + i], factor[i], factor[LANES + i]
        a, b = a * a - b * b, 2.0 * a * b
        a, b = a * a - b * b, 2.0 * a * b
        z[i], z[LANES + i] = a * c - b * d, a * d + b * c


@kernel(borrows=True, fastmath=REORDER)
def _fourth_excess(source, lanes, z):
    """Fill the fourth power of a number given by its excess over 1."""
    for i in range(lanes):
        a, b = source[i], source[LANES + i]
        a, b = a * (2.0 + a) - b * b, 2.0 * b * (1.0 + a)
        z[i], z[LANES + i] = a * (2.0 + a) - b * b, 2.0 * b * (1.0 + a)


@kernel(borrows=True, fastmath=REORDER)
def _fourth_times_excess(source, factor, lanes, z):
    """Fill the fourth power of a number times a factor, both given by their excess over 1."""
    for i in range(lanes):
        a, b, c, d = source[i], source[LANES + i], factor[i], factor[LANES + i]
        a, b = a * (2.0 + a) - b * b, 2.0 * b * (1.0 + a)
        a, b = a * (2.0 + a) - b * b, 2.0 * b * (1.0 + a)
        z[i], z[LANES + i] = (a + c) + (a * c - b * d), (b + d) + (a * d + b * c)


@kernel(borrows=True, fastmath=REORDER)
def from_four(r, j, constant, angles, z, lanes, half):
    """Add the part of ``constant + z`` at the j-th four angles to the coefficients of z^(r -+ n).

    They are ``half[4 n] + i half[4 n + 1] +- (half[4 n + 2] + i half[4 n + 3])``.
    """
    cosine, tables = angles.cosine, angles.powers
    turn = len(cosine)
    c0, s0 = turn_of(r, j, cosine)
    c9, s9 = turn_of(r, turn // 4 - 1 - j, cosine)
    scale = 2.0 / turn
    c0, s0, c9, s9 = c0 * scale, s0 * scale, c9 * scale, s9 * scale
    W = LANES
    for m in range(0, tables.shape[2], 4):
        first = 1.0 if m == 0 else 0.0
        c, d, e, f = tables[0, j, m], tables[0, j, m + 1], tables[0, j, m + 2], tables[0, j, m + 3]
        s, t, u, v = tables[1, j, m], tables[1, j, m + 1], tables[1, j, m + 2], tables[1, j, m + 3]
        row = half[4 * m * W :]
        for i in range(lanes):
            a, b = z[i] + z[2 * W + i] + 2.0 * constant, z[W + i] + z[3 * W + i]
            x, y = z[i] - z[2 * W + i], z[W + i] - z[3 * W + i]
            a, b, x, y = a * c0 + y * s0, b * c0 - x * s0, a * s0 - y * c0, b * s0 + x * c0
            g, h = z[4 * W + i] + z[6 * W + i] + 2.0 * constant, z[5 * W + i] + z[7 * W + i]
            k, o = z[4 * W + i] - z[6 * W + i], z[5 * W + i] - z[7 * W + i]
            g, h, k, o = g * c9 + o * s9, h * c9 - k * s9, g * s9 - o * c9, h * s9 + k * c9
            p, q, k, o = a + g, b + h, x - k, y - o  # factors of cos and sin for even n
            a, b, x, y = a - g, b - h, 2.0 * x - k, 2.0 * y - o  # for odd n
            row[i] += first * p
            row[W + i] += first * q
            row[4 * W + i] += c * a
            row[5 * W + i] += c * b
            row[6 * W + i] += s * x
            row[7 * W + i] += s * y
            row[8 * W + i] += d * p
            row[9 * W + i] += d * q
            row[10 * W + i] += t * k
            row[11 * W + i] += t * o
            row[12 * W + i] += e * a
            row[13 * W + i] += e * b
            row[14 * W + i] += u * x
            row[15 * W + i] += u * y
            row[16 * W + i] += f * p
            row[17 * W + i] += f * q
            row[18 * W + i] += v * k
            row[19 * W + i] += v * o


@kernel(borrows=True, fastmath=REORDER)
def pair_sums(r, j, constant, angles, z, series, node, lanes, pairs):
    """Add Re[(constant + z) e^{-i r theta} w / sin(pi w) Y_j Y_k / angles] at the j-th four angles.

    ``series``: eight rows for each of the three Y.
    """
    cosine, W = angles.cosine, LANES
    turn = len(cosine)
    for point in range(4):
        c, s = turn_of(r, j if point < 2 else turn // 4 - 1 - j, cosine)
        c, s = c * 2.0 / turn, s * (2.0 if point % 2 == 0 else -2.0) / turn
        at = 2 * point * W
        row, alpha, gamma, rho = z[at:], series[0, at:], series[1, at:], series[2, at:]
        aa = ag = ar = gg = gr = rr = 0.0
        for i in range(lanes):
            a, b = row[i] + constant, row[W + i]
            a, b = a * c + b * s, b * c - a * s
            x = node[0, 0, i] * node[1, 0, i] - node[0, 1, i] * node[1, 1, i]
            y = node[0, 0, i] * node[1, 1, i] + node[0, 1, i] * node[1, 0, i]
            a, b = a * x - b * y, a * y + b * x
            x, y, g, h, u, v = alpha[i], alpha[W + i], gamma[i], gamma[W + i], rho[i], rho[W + i]
            k, m = x * a - y * b, x * b + y * a
            aa += k * x - m * y
            ag += k * g - m * h
            ar += k * u - m * v
            k, m = g * a - h * b, g * b + h * a
            gg += k * g - m * h
            gr += k * u - m * v
            rr += (u * a - v * b) * u - (u * b + v * a) * v
        for k, total in enumerate((aa, ag, ar, gg, gr, rr)):
            pairs[k] += total
