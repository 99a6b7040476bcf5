r"""The expectation over masks and scales as compiled sums over scenarios.

A scenario is a number of unmasked patches per cell and a scale per area. With
:math:`\ell_c^u = z\,\Phi + \Upsilon_c` the logit of the unmasked patches of cell c and
:math:`\ell_c^m = \Upsilon_c` that of its masked ones (they remain as keys), the softmax of p's row
gives each area its attention, and the area form (`symbolic.masked.area_form`) the loss and its
derivatives. All K clusters are padded to the same shapes with empty cells.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dynamics._jit import kernel
from dynamics.masked._emitted import correlation_gradient, other_area, own_area


@kernel
def scenario(plan, theta, k, row, draw, keys, areas, out):
    """Evaluate one cluster, one vector of counts and one of scales.

    Fills ``keys`` (2, cells) with the attention to the unmasked and masked patches of each cell and
    ``areas`` (2, areas) with the attention of each area and its gbar - g; adds the derivatives of
    the loss in the slots to ``out``. Returns the loss, gbar and 1 - a of p's own area.
    """
    counts, z = plan.counts[min(k, plan.counts.shape[0] - 1), row], plan.z[k, draw]
    area, slot, size, own = plan.area[k], plan.cell_slot[k], plan.size[k], plan.own[k]
    area_slot, copies = plan.area_slot[k], plan.copies[k]
    top = theta[slot[-1]]
    for c in range(size.size):
        if size[c] > 0.0:
            m = area[c]
            lift = z[m] * theta[area_slot[m]] if counts[c] > 0.0 else 0.0
            top = max(top, theta[slot[c]] + max(0.0, lift))
    Z = 0.0
    for c in range(size.size):
        m = area[c]
        base = theta[slot[c]] - top
        keys[0, c] = 0.0
        if counts[c] > 0.0:
            keys[0, c] = counts[c] * np.exp(base + z[m] * theta[area_slot[m]])
        keys[1, c] = (size[c] - counts[c]) * np.exp(base) if size[c] > 0.0 else 0.0
        Z += keys[0, c] + keys[1, c]
    areas[:] = 0.0
    rest = 0.0
    for c in range(size.size):
        keys[0, c] /= Z
        keys[1, c] /= Z
        areas[0, area[c]] += keys[0, c]
        rest += keys[1, c]
        if area[c] != own:
            rest += keys[0, c]
    twice_loss, g_mean, areas[1, own] = own_area(z[own], areas[0, own], rest)
    for m in range(copies.size):
        if m != own:
            square, areas[1, m] = other_area(z[m], areas[0, m], copies[m])
            twice_loss += square
            g_mean += square
    for m in range(copies.size):
        areas[1, m] = twice_loss if m == own else g_mean - areas[1, m]
        out[area_slot[m]] += correlation_gradient(z[m], areas[0, m], areas[1, m])[0]
    for c in range(size.size):
        unmasked = correlation_gradient(0.0, keys[0, c], areas[1, area[c]])[1]
        out[slot[c]] += unmasked + correlation_gradient(0.0, keys[1, c], g_mean)[1]
    return 0.5 * twice_loss, g_mean, rest


@kernel
def moments(plan, theta, first, second, attention):
    """Sum loss and slot derivatives over the scenarios of each cluster.

    ``first`` and ``second`` (K, 1 + slots) take the means of (loss, derivatives) and of their
    squares, ``attention`` (K, 2, areas) those of each a and, in its second row at p's own area, of
    (1 - a)^2. All given that p is masked.
    """
    cells, areas = plan.size.shape[1], plan.copies.shape[1]
    keys, found = np.empty((2, cells)), np.empty((2, areas))
    out = np.empty(theta.size)
    first[:] = 0.0
    second[:] = 0.0
    attention[:] = 0.0
    for k in range(plan.own.size):
        for row in range(plan.weight.size):
            begin = row if plan.paired else 0
            end = row + 1 if plan.paired else plan.z.shape[1]
            for draw in range(begin, end):
                weight = plan.weight[row] * plan.z_weight[k, draw]
                if weight == 0.0:
                    continue
                out[:] = 0.0
                loss, _, rest = scenario(plan, theta, k, row, draw, keys, found, out)
                first[k, 0] += weight * loss
                second[k, 0] += weight * loss * loss
                for s in range(theta.size):
                    first[k, 1 + s] += weight * out[s]
                    second[k, 1 + s] += weight * out[s] * out[s]
                for m in range(areas):
                    attention[k, 0, m] += weight * found[0, m]
                attention[k, 1, plan.own[k]] += weight * rest * rest


@kernel
def compiled_gradient(plan, theta, out):
    """Write the entrywise gradient of the patch loss; every state is within the tolerance."""
    K, slots = plan.own.size, theta.size
    first, second = np.empty((K, 1 + slots)), np.empty((K, 1 + slots))
    moments(plan, theta, first, second, np.empty((K, 2, plan.copies.shape[1])))
    for s in range(slots):
        out[s] = plan.chance * np.sum(first[:, 1 + s]) / K / plan.entries[s]
    return True


@kernel
def hessian(plan, theta, total):
    r"""Add up the second derivatives of the patch loss in the slots, (slots, slots).

    With weights w_i of the keys, :math:`B_{is}=\partial\ell_i/\partial\theta_s`, the mean
    :math:`y_s=\sum_i w_iB_{is}` and :math:`v_s` the first derivative,

    .. math:: \partial_s\partial_t\,\mathrm{loss} = \sum_i B_{is}B_{it}\,w_i(g_i-\bar g)
       - v_sy_t - y_sv_t + \sum_m \frac{z_m^2}{copies_m}\,\partial_sa_m\,\partial_ta_m .
    """
    cells, areas, slots = plan.size.shape[1], plan.copies.shape[1], theta.size
    keys, found = np.empty((2, cells)), np.empty((2, areas))
    v, y, d_a, one = (
        np.empty(slots),
        np.empty(slots),
        np.empty((areas, slots)),
        np.empty((slots, slots)),
    )
    total[:] = 0.0
    for k in range(plan.own.size):
        for row in range(plan.weight.size):
            begin = row if plan.paired else 0
            end = row + 1 if plan.paired else plan.z.shape[1]
            for draw in range(begin, end):
                weight = plan.weight[row] * plan.z_weight[k, draw]
                if weight == 0.0:
                    continue
                v[:], y[:], d_a[:], one[:] = 0.0, 0.0, 0.0, 0.0
                _, g_mean, _ = scenario(plan, theta, k, row, draw, keys, found, v)
                z = plan.z[k, draw]
                for c in range(cells):
                    m, t = plan.area[k, c], plan.cell_slot[k, c]
                    s = plan.area_slot[k, m]
                    pull, pull_masked = -keys[0, c] * found[1, m], -keys[1, c] * g_mean
                    one[s, s] += z[m] * z[m] * pull
                    one[s, t] += z[m] * pull
                    one[t, s] += z[m] * pull
                    one[t, t] += pull + pull_masked
                    y[s] += z[m] * keys[0, c]
                    y[t] += keys[0, c] + keys[1, c]
                    d_a[m, s] += z[m] * keys[0, c]
                    d_a[m, t] += keys[0, c]
                for m in range(areas):
                    scale = z[m] * z[m] / plan.copies[k, m]
                    for s in range(slots):
                        d_a[m, s] -= found[0, m] * y[s]
                    for s in range(slots):
                        for t in range(slots):
                            one[s, t] += scale * d_a[m, s] * d_a[m, t]
                for s in range(slots):
                    for t in range(slots):
                        one[s, t] -= v[s] * y[t] + y[s] * v[t]
                        total[s, t] += weight * one[s, t]


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

    compiled_gradient = staticmethod(compiled_gradient)

    @property
    def size_in_numbers(self) -> int:
        """How many (cell, scenario) pairs one evaluation visits."""
        draws = 1 if self.paired else self.z.shape[1]
        return int(self.own.size * self.weight.size * draws * self.size.shape[1])
