r"""Compiled sums over images: expectations of Taylor series, in balls.

For each total sum T the contribution of a set type to a quantity is tabulated once, relative to an
empty set. A state is a short sparse dot product; 64 states are processed at a time in lanes.
"""

from typing import NamedTuple

import numpy as np

from dynamics.core.balls.scalars import INFLATE, TINY, UNIT
from dynamics.core.balls.series import add_product, logistic, multiply
from dynamics.core.jit import kernel

_LANES = 64


class Tables(NamedTuple):
    """Series of the quantities of sets, with radii.

    Attributes
    ----------
    least
        The smallest T.
    base, base_radius
        Quantities of the image without features in random sets, (sums, quantities, order + 1).
    table, table_radius
        Difference of each type to an empty set, (sums, types, quantities, order + 1).
    linear, linear_radius
        The series that T is multiplied with in F, (order + 1, 1).
    """

    least: int
    base: np.ndarray
    base_radius: np.ndarray
    table: np.ndarray
    table_radius: np.ndarray
    linear: np.ndarray
    linear_radius: np.ndarray


@kernel
def load_states(images, tables, first, count, values, radii, totals, weight, error):
    """Write the quantities of the states from ``first`` on to lanes.

    ``values`` and ``radii`` are (quantities, order + 1, lanes). Lanes of states from ``count`` on
    receive weight 0. A state with m entries is a sum of m + 1 products.
    """
    quantities, terms = tables.base.shape[1], tables.base.shape[2]
    width = quantities * terms
    base = tables.base.reshape((-1, width))
    base_radius = tables.base_radius.reshape((-1, width))
    table = tables.table.reshape((tables.table.shape[0], -1, width))
    table_radius = tables.table_radius.reshape((tables.table.shape[0], -1, width))
    total, radius = np.empty(width), np.empty(width)
    weight[:] = 0.0
    error[:] = 0.0
    for lane in range(min(weight.size, count - first)):
        i = first + lane
        t = images.total[i] - tables.least
        share = (images.start[i + 1] - images.start[i] + 3) * UNIT
        for c in range(width):
            total[c] = base[t, c]
            radius[c] = base_radius[t, c] + share * abs(base[t, c])
        for j in range(images.start[i], images.start[i + 1]):
            row, wide, m = (
                table[t, images.type_index[j]],
                table_radius[t, images.type_index[j]],
                images.copies[j],
            )
            for c in range(width):
                total[c] += m * row[c]
                radius[c] += m * (wide[c] + share * abs(row[c]))
        for q in range(quantities):
            for k in range(terms):
                c = q * terms + k
                values[q, k, lane] = total[c]
                radii[q, k, lane] = radius[c] * INFLATE + TINY
        totals[lane] = images.total[i]
        weight[lane] = images.weight[i]
        error[lane] = images.error[i]


@kernel
def combine(a, ra, factor, b, rb, times, out, rout):
    """Write ``factor`` a + ``times`` b to ``out``, with radii.

    a is a series with lanes and ``factor`` a number; b is a single series and ``times`` (lanes,).
    """
    for k in range(a.shape[0]):
        for lane in range(a.shape[1]):
            first, second = factor * a[k, lane], times[lane] * b[k, 0]
            out[k, lane] = first + second
            rout[k, lane] = (
                factor * ra[k, lane]
                + abs(times[lane]) * rb[k, 0]
                + UNIT * (abs(first) + abs(second) + abs(out[k, lane]))
            ) * INFLATE + TINY


@kernel
def add_mean(x, rx, weight, error, out, rout, share):
    """Add a series, weighted by lane, to accumulators of its shape."""
    for k in range(x.shape[0]):
        add_product(x[k], rx[k], weight, error, out[k], rout[k], share)


@kernel
def over_lanes(values, radii, blocks):
    """Return the sums over lanes of accumulators (means, order + 1, lanes), and their radii."""
    lanes = values.shape[2]
    sums, bounds = np.zeros(values.shape[:2]), np.zeros(values.shape[:2])
    grow = 1.0 + (8.0 * blocks + 4.0 * lanes + 40.0) * UNIT
    for q in range(values.shape[0]):
        for k in range(values.shape[1]):
            size = 0.0
            for lane in range(lanes):
                sums[q, k] += values[q, k, lane]
                bounds[q, k] += radii[q, k, lane]
                size += abs(values[q, k, lane])
            bounds[q, k] = (bounds[q, k] + (lanes + 2) * UNIT * size) * grow * INFLATE + TINY
    return sums, bounds


@kernel
def outputs(images, tables, count):
    """Return the series F = N + ell T of the first ``count`` states, (order + 1, count), and radii.

    ell is the series ``linear`` of the tables.
    """
    quantities, terms = tables.base.shape[1], tables.base.shape[2]
    values = np.zeros((quantities, terms, _LANES))
    radii = np.zeros((quantities, terms, _LANES))
    totals, weight, error = np.zeros(_LANES), np.empty(_LANES), np.empty(_LANES)
    F, rF = np.empty((terms, _LANES)), np.empty((terms, _LANES))
    out, rout = np.empty((terms, count)), np.empty((terms, count))
    for first in range(0, count, _LANES):
        load_states(images, tables, first, count, values, radii, totals, weight, error)
        combine(values[0], radii[0], 1.0, tables.linear, tables.linear_radius, totals, F, rF)
        for lane in range(min(_LANES, count - first)):
            out[:, first + lane] = F[:, lane]
            rout[:, first + lane] = rF[:, lane]
    return out, rout


@kernel
def velocity_means(images, tables, count, p):
    r"""Return E[s(-F) (p N + ell T)], E[s(-F) A], E[s(-F) B], each (order + 1,), with radii.

    The quantities of the tables are N, A, B; F = N + ell T with ell the series ``linear``.
    """
    terms = tables.base.shape[2]
    values, radii = np.zeros((3, terms, _LANES)), np.zeros((3, terms, _LANES))
    totals, weight, error = np.zeros(_LANES), np.empty(_LANES), np.empty(_LANES)
    work = np.empty((10, terms, _LANES))
    F, rF, s, rs, w, rw = work[0], work[1], work[2], work[3], work[4], work[5]
    x, rx, y, ry = work[6], work[7], work[8], work[9]
    means, wide = np.zeros((3, terms, _LANES)), np.zeros((3, terms, _LANES))
    blocks = (count + _LANES - 1) // _LANES
    share = (blocks + 4) * UNIT
    for block in range(blocks):
        load_states(images, tables, block * _LANES, count, values, radii, totals, weight, error)
        combine(values[0], radii[0], 1.0, tables.linear, tables.linear_radius, totals, F, rF)
        logistic(F, rF, s, rs, w, rw, x, rx)
        combine(values[0], radii[0], float(p), tables.linear, tables.linear_radius, totals, y, ry)
        multiply(s, rs, y, ry, x, rx)
        add_mean(x, rx, weight, error, means[0], wide[0], share)
        for q in range(1, 3):
            multiply(s, rs, values[q], radii[q], x, rx)
            add_mean(x, rx, weight, error, means[q], wide[q], share)
    return over_lanes(means, wide, blocks)


@kernel
def linear_means(images, tables, count, p):
    r"""Return E[s T], E[w T (p N + ell T)], E[w T A], E[w T B], each (order + 1,), with radii.

    w = s (1 - s). These are the parts of the derivative of `velocity_means` by ell.
    """
    terms = tables.base.shape[2]
    values, radii = np.zeros((3, terms, _LANES)), np.zeros((3, terms, _LANES))
    totals, weight, error = np.zeros(_LANES), np.empty(_LANES), np.empty(_LANES)
    work = np.empty((10, terms, _LANES))
    F, rF, s, rs, w, rw = work[0], work[1], work[2], work[3], work[4], work[5]
    x, rx, y, ry = work[6], work[7], work[8], work[9]
    means, wide = np.zeros((4, terms, _LANES)), np.zeros((4, terms, _LANES))
    blocks = (count + _LANES - 1) // _LANES
    share = (blocks + 4) * UNIT
    for block in range(blocks):
        load_states(images, tables, block * _LANES, count, values, radii, totals, weight, error)
        combine(values[0], radii[0], 1.0, tables.linear, tables.linear_radius, totals, F, rF)
        logistic(F, rF, s, rs, w, rw, x, rx)
        combine(values[0], radii[0], float(p), tables.linear, tables.linear_radius, totals, y, ry)
        values[0] = y
        radii[0] = ry
        for lane in range(_LANES):  # T is an integer: the products below are rounded once more
            weight[lane] *= totals[lane]
            error[lane] = error[lane] * abs(totals[lane]) + UNIT * abs(weight[lane])
        add_mean(s, rs, weight, error, means[0], wide[0], share)
        for q in range(3):
            multiply(w, rw, values[q], radii[q], x, rx)
            add_mean(x, rx, weight, error, means[q + 1], wide[q + 1], share)
    return over_lanes(means, wide, blocks)


@kernel
def jacobian_means(images, tables, count, p):
    r"""Return the means in the Jacobian, (12, order + 1), with radii.

    In this order: E[s N], E[s A], E[s B], E[s S_aa], E[s S_ab], E[s S_bb], then with
    w = s (1 - s) and M = p N + ell T: E[w M M], E[w M A], E[w M B], E[w A A], E[w A B], E[w B B].
    The quantities of the tables are N, A, B, S_aa, S_ab, S_bb.
    """
    terms = tables.base.shape[2]
    values, radii = np.zeros((6, terms, _LANES)), np.zeros((6, terms, _LANES))
    totals, weight, error = np.zeros(_LANES), np.empty(_LANES), np.empty(_LANES)
    work = np.empty((10, terms, _LANES))
    F, rF, s, rs, w, rw = work[0], work[1], work[2], work[3], work[4], work[5]
    x, rx, y, ry = work[6], work[7], work[8], work[9]
    means, wide = np.zeros((12, terms, _LANES)), np.zeros((12, terms, _LANES))
    blocks = (count + _LANES - 1) // _LANES
    share = (blocks + 4) * UNIT
    for block in range(blocks):
        load_states(images, tables, block * _LANES, count, values, radii, totals, weight, error)
        combine(values[0], radii[0], 1.0, tables.linear, tables.linear_radius, totals, F, rF)
        logistic(F, rF, s, rs, w, rw, x, rx)
        for q in range(6):
            multiply(s, rs, values[q], radii[q], x, rx)
            add_mean(x, rx, weight, error, means[q], wide[q], share)
        combine(values[0], radii[0], float(p), tables.linear, tables.linear_radius, totals, F, rF)
        values[0] = F
        radii[0] = rF
        index = 6
        for q in range(3):
            multiply(w, rw, values[q], radii[q], x, rx)
            for r in range(q, 3):
                multiply(x, rx, values[r], radii[r], y, ry)
                add_mean(y, ry, weight, error, means[index], wide[index], share)
                index += 1
    return over_lanes(means, wide, blocks)
