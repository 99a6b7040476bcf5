r"""The expectation over masks and scales as compiled sums over scenarios.

A scenario is a number of unmasked patches per cell and a scale per area. With
:math:`\ell_c^u = z\,\Phi + \Upsilon_c` the logit of the unmasked patches of cell c and
:math:`\ell_c^m = \Upsilon_c` that of its masked ones (they remain as keys), the softmax of p's row
gives each area its attention, and the area form (`symbolic.masked.area_form`) the loss and its
derivatives. All K clusters are padded to the same shapes with empty cells.
"""

import math
from typing import NamedTuple

import numpy as np

from dynamics.core.compiled_gradients import gradient_of
from dynamics.core.jit import kernel
from dynamics.masked._emitted import (
    area_bend,
    area_slope,
    correlation_gradient,
    key_hessian,
    key_logits,
    key_slopes,
    key_weights,
    mean_hessian,
    other_area,
    own_area,
)


class ScenarioPlan(NamedTuple):
    """Scenarios of all clusters, for the kernels; shapes with K clusters, R rows, Z draws.

    Counts are shared by the clusters where ``counts`` has length 1. With ``paired`` row r goes with
    draw r, otherwise all pairs are summed.
    """

    size: np.ndarray  # (K, cells), without p; the last cell is p itself
    area: np.ndarray  # int (K, cells)
    cell_slot: np.ndarray  # int (K, cells)
    area_slot: np.ndarray  # int (K, areas)
    copies: np.ndarray  # (K, areas)
    own: np.ndarray  # int (K,)
    counts: np.ndarray  # (1 or K, R, cells), unmasked patches
    weight: np.ndarray  # (R,)
    z: np.ndarray  # (K, Z, areas)
    z_weight: np.ndarray  # (K, Z)
    paired: bool
    chance: float  # that p is masked
    entries: np.ndarray  # (slots,), entries of e_p^T Q per slot


@kernel(inner=True)
def scenario(plan, theta, k, row, draw, keys, areas, out):
    """Evaluate one cluster, one vector of counts and one of scales.

    Fills ``keys`` (2, cells) with the attention to the unmasked and masked patches of each cell and
    ``areas`` (2, areas) with the attention of each area and its gbar - g; adds the derivatives of
    the loss in the slots to ``out``. Returns the loss, gbar and 1 - a of p's own area.
    """
    cells, own = plan.size.shape[1], plan.own[k]
    shared = min(k, plan.counts.shape[0] - 1)
    top = -math.inf
    for c in range(cells):
        m = plan.area[k, c]
        keys[0, c] = keys[1, c] = -math.inf
        if plan.size[k, c] > 0.0:
            of_unmasked, keys[1, c] = key_logits(
                theta[plan.cell_slot[k, c]], plan.z[k, draw, m], theta[plan.area_slot[k, m]]
            )
            if plan.counts[shared, row, c] > 0.0:
                keys[0, c] = of_unmasked
            top = max(top, keys[0, c], keys[1, c])
    Z = 0.0
    for c in range(cells):
        count = plan.counts[shared, row, c]
        keys[0, c], keys[1, c] = key_weights(count, plan.size[k, c], keys[0, c], keys[1, c], top)
        Z += keys[0, c] + keys[1, c]
    for m in range(plan.copies.shape[1]):
        areas[0, m] = areas[1, m] = 0.0
    rest = 0.0
    for c in range(cells):
        keys[0, c] /= Z
        keys[1, c] /= Z
        areas[0, plan.area[k, c]] += keys[0, c]
        rest += keys[1, c] if plan.area[k, c] == own else keys[0, c] + keys[1, c]
    twice_loss, g_mean, _ = own_area(plan.z[k, draw, own], areas[0, own], rest)
    for m in range(plan.copies.shape[1]):
        if m != own:
            square, areas[1, m] = other_area(plan.z[k, draw, m], areas[0, m], plan.copies[k, m])
            twice_loss += square
            g_mean += square
    for m in range(plan.copies.shape[1]):
        areas[1, m] = twice_loss if m == own else g_mean - areas[1, m]
        slope, _ = correlation_gradient(plan.z[k, draw, m], areas[0, m], areas[1, m])
        out[plan.area_slot[k, m]] += slope
    for c in range(cells):
        _, unmasked = correlation_gradient(0.0, keys[0, c], areas[1, plan.area[k, c]])
        _, masked = correlation_gradient(0.0, keys[1, c], g_mean)
        out[plan.cell_slot[k, c]] += unmasked + masked
    return 0.5 * twice_loss, g_mean, rest


@kernel
def moments(plan, theta, first, second, attention):
    """Sum loss and slot derivatives over the scenarios of each cluster.

    ``first`` and ``second`` (K, 1 + slots) take the means of (loss, derivatives) and of their
    squares, ``attention`` (K, 2, areas) those of each a and, in its second row at p's own area, of
    (1 - a)^2, all added to what they hold and given that p is masked.
    """
    slots, areas = theta.size, plan.copies.shape[1]
    keys, found = np.empty((2, plan.size.shape[1])), np.empty((2, areas))
    out = np.empty(slots)
    for k in range(plan.own.size):
        for row in range(plan.weight.size):
            begin = row if plan.paired else 0
            end = row + 1 if plan.paired else plan.z.shape[1]
            for draw in range(begin, end):
                weight = plan.weight[row] * plan.z_weight[k, draw]
                for s in range(slots):
                    out[s] = 0.0
                loss, _, rest = scenario(plan, theta, k, row, draw, keys, found, out)
                first[k, 0] += weight * loss
                second[k, 0] += weight * loss * loss
                for s in range(slots):
                    first[k, 1 + s] += weight * out[s]
                    second[k, 1 + s] += weight * out[s] * out[s]
                for m in range(areas):
                    attention[k, 0, m] += weight * found[0, m]
                attention[k, 1, plan.own[k]] += weight * rest * rest


@gradient_of(ScenarioPlan)
@kernel
def gradient_within(plan, theta, out):
    """Write the entrywise gradient of the patch loss; every state is within the tolerance."""
    keys = np.empty((2, plan.size.shape[1]))
    found = np.empty((2, plan.copies.shape[1]))
    one = np.empty(theta.size)
    for s in range(theta.size):
        out[s] = 0.0
    for k in range(plan.own.size):
        for row in range(plan.weight.size):
            begin = row if plan.paired else 0
            end = row + 1 if plan.paired else plan.z.shape[1]
            for draw in range(begin, end):
                weight = plan.weight[row] * plan.z_weight[k, draw]
                for s in range(theta.size):
                    one[s] = 0.0
                scenario(plan, theta, k, row, draw, keys, found, one)
                for s in range(theta.size):
                    out[s] += weight * one[s]
    for s in range(theta.size):
        out[s] *= plan.chance / (plan.own.size * plan.entries[s])
    return True


@kernel
def hessian(plan, theta, total):
    r"""Add the second derivatives of the patch loss in the slots to ``total``, (slots, slots).

    With weights w_i of the keys, :math:`B_{is}=\partial\ell_i/\partial\theta_s`, the mean
    :math:`y_s=\sum_i w_iB_{is}` and :math:`v_s` the first derivative,

    .. math:: \partial_s\partial_t\,\mathrm{loss} = \sum_i B_{is}B_{it}\,w_i(g_i-\bar g)
       - v_sy_t - y_sv_t + \sum_m \frac{z_m^2}{copies_m}\,\partial_sa_m\,\partial_ta_m .
    """
    cells, areas, slots = plan.size.shape[1], plan.copies.shape[1], theta.size
    keys, found = np.empty((2, cells)), np.empty((2, areas))
    v, y, d_a = np.zeros(slots), np.zeros(slots), np.zeros((areas, slots))
    for k in range(plan.own.size):
        for row in range(plan.weight.size):
            begin = row if plan.paired else 0
            end = row + 1 if plan.paired else plan.z.shape[1]
            for draw in range(begin, end):
                weight = plan.weight[row] * plan.z_weight[k, draw]
                for s in range(slots):
                    v[s] = y[s] = 0.0
                    for m in range(areas):
                        d_a[m, s] = 0.0
                _, g_mean, _ = scenario(plan, theta, k, row, draw, keys, found, v)
                for c in range(cells):
                    m, t = plan.area[k, c], plan.cell_slot[k, c]
                    s, z = plan.area_slot[k, m], plan.z[k, draw, m]
                    of_phi, of_both, of_upsilon = key_hessian(
                        z, keys[0, c], keys[1, c], found[1, m], g_mean
                    )
                    total[s, s] += weight * of_phi
                    total[s, t] += weight * of_both
                    total[t, s] += weight * of_both
                    total[t, t] += weight * of_upsilon
                    in_phi, in_upsilon = key_slopes(z, keys[0, c], keys[1, c])
                    y[s] += in_phi
                    y[t] += in_upsilon
                    d_a[m, s] += in_phi
                    d_a[m, t] += keys[0, c]
                for m in range(areas):
                    scale = weight * area_bend(plan.z[k, draw, m], plan.copies[k, m])
                    for s in range(slots):
                        d_a[m, s] = area_slope(d_a[m, s], found[0, m], y[s])
                    for s in range(slots):
                        for t in range(slots):
                            total[s, t] += scale * d_a[m, s] * d_a[m, t]
                for s in range(slots):
                    for t in range(slots):
                        total[s, t] += weight * mean_hessian(v[s], v[t], y[s], y[t])
