r"""Expectation over masks and scales, as compiled sums over scenarios.

A scenario is a number of unmasked patches for each cell and a scale for each area. The unmasked
patches of cell c have the logit :math:`\ell_c^u = z\,\Phi + \Upsilon_c`. Its masked patches
remain as keys, with the logit :math:`\ell_c^m = \Upsilon_c`. The softmax of p's row determines the
attention to each area, and the area form (`symbolic.masked.area_form`) determines the loss and its
derivatives. All K clusters are padded to the same shapes with empty cells.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dynamics.core.compiled_gradients import gradient_of
from dynamics.core.jit import kernel
from dynamics.masked._emitted import (
    area_curvature,
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


class Scenarios(NamedTuple):
    """Scenarios of all K clusters, with R rows of counts and Z rows of scales.

    Attributes
    ----------
    size
        Patches of each cell, (K, cells); the last cell is p itself.
    area
        Area of each cell, int (K, cells).
    cell_slot, area_slot
        Slot of Upsilon of each cell, int (K, cells), and of Phi of each area, int (K, areas).
    copies
        Number of equal areas that each area represents, (K, areas).
    own
        Index of p's own area, int (K,).
    counts
        Unmasked patches of each cell, (K, R, cells), or (1, R, cells) if the clusters share them.
    weight
        Weight of each row of counts, (R,).
    z, z_weight
        Scale of each area, (K, Z, areas), and weight of each row of scales, (K, Z).
    paired
        Whether row r of the counts belongs to row r of the scales; otherwise all pairs are summed.
    masked_probability
        Probability that p is masked.
    entries
        Number of entries of e_p^T Q for each slot, (slots,).
    """

    size: np.ndarray
    area: np.ndarray
    cell_slot: np.ndarray
    area_slot: np.ndarray
    copies: np.ndarray
    own: np.ndarray
    counts: np.ndarray
    weight: np.ndarray
    z: np.ndarray
    z_weight: np.ndarray
    paired: bool
    masked_probability: float
    entries: np.ndarray


@kernel(inner=True)
def _scale_rows(scenarios, row):
    """Return first and last index (exclusive) of the scales that belong to a row of counts."""
    if scenarios.paired:
        return row, row + 1
    return 0, scenarios.z.shape[1]


@kernel(inner=True)
def _evaluate(scenarios, theta, k, row, draw, keys, areas, out):
    """Evaluate the scenario of row ``row`` of the counts and row ``draw`` of the scales.

    Write the attention to the unmasked and masked patches of each cell to ``keys`` (2, cells), and
    the attention to each area and its gbar - g to ``areas`` (2, areas). Add the derivatives of the
    loss in the slots to ``out`` (slots,). Return the loss, gbar, and 1 - a of p's own area.
    """
    cells, own = scenarios.size.shape[1], scenarios.own[k]
    shared = min(k, scenarios.counts.shape[0] - 1)
    top = -math.inf
    for c in range(cells):
        m = scenarios.area[k, c]
        keys[0, c] = keys[1, c] = -math.inf
        if scenarios.size[k, c] > 0.0:
            of_unmasked, keys[1, c] = key_logits(
                theta[scenarios.cell_slot[k, c]],
                scenarios.z[k, draw, m],
                theta[scenarios.area_slot[k, m]],
            )
            if scenarios.counts[shared, row, c] > 0.0:
                keys[0, c] = of_unmasked
            top = max(top, keys[0, c], keys[1, c])
    Z = 0.0
    for c in range(cells):
        count = scenarios.counts[shared, row, c]
        keys[0, c], keys[1, c] = key_weights(
            count, scenarios.size[k, c], keys[0, c], keys[1, c], top
        )
        Z += keys[0, c] + keys[1, c]
    for m in range(scenarios.copies.shape[1]):
        areas[0, m] = areas[1, m] = 0.0
    rest = 0.0
    for c in range(cells):
        keys[0, c] /= Z
        keys[1, c] /= Z
        areas[0, scenarios.area[k, c]] += keys[0, c]
        rest += keys[1, c] if scenarios.area[k, c] == own else keys[0, c] + keys[1, c]
    twice_loss, g_mean, _ = own_area(scenarios.z[k, draw, own], areas[0, own], rest)
    for m in range(scenarios.copies.shape[1]):
        if m != own:
            square, areas[1, m] = other_area(
                scenarios.z[k, draw, m], areas[0, m], scenarios.copies[k, m]
            )
            twice_loss += square
            g_mean += square
    for m in range(scenarios.copies.shape[1]):
        areas[1, m] = twice_loss if m == own else g_mean - areas[1, m]
        slope, _ = correlation_gradient(scenarios.z[k, draw, m], areas[0, m], areas[1, m])
        out[scenarios.area_slot[k, m]] += slope
    for c in range(cells):
        _, unmasked = correlation_gradient(0.0, keys[0, c], areas[1, scenarios.area[k, c]])
        _, masked = correlation_gradient(0.0, keys[1, c], g_mean)
        out[scenarios.cell_slot[k, c]] += unmasked + masked
    return 0.5 * twice_loss, g_mean, rest


@kernel
def _add_moments(scenarios, theta, first, second, attention):
    """Add means over the scenarios of each cluster, given that p is masked, to three arrays.

    ``first`` and ``second`` (K, 1 + slots) receive the means of (loss, derivatives) and of their
    squares. ``attention`` (K, 2, areas) receives the mean of each a and, in its second row at p's
    own area, the mean of (1 - a)^2.
    """
    slots, areas = theta.size, scenarios.copies.shape[1]
    keys, values = np.empty((2, scenarios.size.shape[1])), np.empty((2, areas))
    out = np.empty(slots)
    for k in range(scenarios.own.size):
        for row in range(scenarios.weight.size):
            first_scale, end = _scale_rows(scenarios, row)
            for draw in range(first_scale, end):
                weight = scenarios.weight[row] * scenarios.z_weight[k, draw]
                for s in range(slots):
                    out[s] = 0.0
                loss, _, rest = _evaluate(scenarios, theta, k, row, draw, keys, values, out)
                first[k, 0] += weight * loss
                second[k, 0] += weight * loss * loss
                for s in range(slots):
                    first[k, 1 + s] += weight * out[s]
                    second[k, 1 + s] += weight * out[s] * out[s]
                for m in range(areas):
                    attention[k, 0, m] += weight * values[0, m]
                attention[k, 1, scenarios.own[k]] += weight * rest * rest


@gradient_of(Scenarios)
@kernel
def gradient_within(scenarios, theta, out):
    """Write the gradient of the patch loss per entry of Q; return True (no state is rejected)."""
    keys = np.empty((2, scenarios.size.shape[1]))
    values = np.empty((2, scenarios.copies.shape[1]))
    gradient = np.empty(theta.size)
    for s in range(theta.size):
        out[s] = 0.0
    for k in range(scenarios.own.size):
        for row in range(scenarios.weight.size):
            first_scale, end = _scale_rows(scenarios, row)
            for draw in range(first_scale, end):
                weight = scenarios.weight[row] * scenarios.z_weight[k, draw]
                for s in range(theta.size):
                    gradient[s] = 0.0
                _evaluate(scenarios, theta, k, row, draw, keys, values, gradient)
                for s in range(theta.size):
                    out[s] += weight * gradient[s]
    for s in range(theta.size):
        out[s] *= scenarios.masked_probability / (scenarios.own.size * scenarios.entries[s])
    return True


@kernel
def hessian(scenarios, theta, total):
    r"""Add the second derivatives of the patch loss in the slots to ``total`` (slots, slots).

    With the attention w_i to key i, :math:`B_{is}=\partial\ell_i/\partial\theta_s`, the mean
    :math:`y_s=\sum_i w_iB_{is}` and the first derivatives :math:`v_s`,

    .. math:: \partial_s\partial_t\,\mathrm{loss} = \sum_i B_{is}B_{it}\,w_i(g_i-\bar g)
       - v_sy_t - y_sv_t + \sum_m \frac{z_m^2}{copies_m}\,\partial_sa_m\,\partial_ta_m .
    """
    cells, areas, slots = scenarios.size.shape[1], scenarios.copies.shape[1], theta.size
    keys, values = np.empty((2, cells)), np.empty((2, areas))
    v, y, d_a = np.zeros(slots), np.zeros(slots), np.zeros((areas, slots))
    for k in range(scenarios.own.size):
        for row in range(scenarios.weight.size):
            first_scale, end = _scale_rows(scenarios, row)
            for draw in range(first_scale, end):
                weight = scenarios.weight[row] * scenarios.z_weight[k, draw]
                for s in range(slots):
                    v[s] = y[s] = 0.0
                    for m in range(areas):
                        d_a[m, s] = 0.0
                _, g_mean, _ = _evaluate(scenarios, theta, k, row, draw, keys, values, v)
                for c in range(cells):
                    m, t = scenarios.area[k, c], scenarios.cell_slot[k, c]
                    s, z = scenarios.area_slot[k, m], scenarios.z[k, draw, m]
                    of_phi, of_both, of_upsilon = key_hessian(
                        z, keys[0, c], keys[1, c], values[1, m], g_mean
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
                    scale = weight * area_curvature(scenarios.z[k, draw, m], scenarios.copies[k, m])
                    for s in range(slots):
                        d_a[m, s] = area_slope(d_a[m, s], values[0, m], y[s])
                    for s in range(slots):
                        for t in range(slots):
                            total[s, t] += scale * d_a[m, s] * d_a[m, t]
                for s in range(slots):
                    for t in range(slots):
                        total[s, t] += weight * mean_hessian(v[s], v[t], y[s], y[t])


class Moments(NamedTuple):
    """Means over the scenarios of each cluster, given that p is masked.

    Attributes
    ----------
    first, second
        Means of (loss, derivatives in the slots) and of their squares, (K, 1 + slots).
    attention
        Mean attention to each area and, in the second row at p's own area, mean of (1 - a)^2,
        (K, 2, areas).
    """

    first: np.ndarray
    second: np.ndarray
    attention: np.ndarray


def moments(scenarios: Scenarios, theta: np.ndarray) -> Moments:
    """Return the means over the scenarios at a state."""
    K, areas = scenarios.copies.shape
    first, second = np.zeros((2, K, 1 + theta.size))
    means = Moments(first, second, np.zeros((K, 2, areas)))
    _add_moments(scenarios, theta, *means)
    return means


def loss_and_gradient(scenarios: Scenarios, theta: np.ndarray) -> np.ndarray:
    """Return the loss and its gradient per entry of Q at a state, (1 + slots,)."""
    return per_entry(scenarios, moments(scenarios, theta).first)


def per_entry(scenarios: Scenarios, first: np.ndarray) -> np.ndarray:
    """Return the mean over the clusters of `Moments.first`, derivatives per entry of Q."""
    mean = scenarios.masked_probability * first.mean(axis=0)
    mean[1:] /= scenarios.entries
    return mean


def difference(coarse: Scenarios, fine: Scenarios, theta: np.ndarray) -> float:
    """Return the largest difference of loss and gradient, relative to the largest of them."""
    rough, exact = (loss_and_gradient(scenarios, theta) for scenarios in (coarse, fine))
    return float(np.max(np.abs(rough - exact)) / np.max(np.abs(exact)))


@dataclass(frozen=True)
class ErrorEstimate:
    """Estimate of what a method neglects, from scenarios that differ from those of the method.

    The estimated error is ``factor`` times the largest entry of the sum over groups of
    `abs(mean of the group - middle)`, the entries being the loss and its gradient.

    Attributes
    ----------
    middle
        Scenarios of the method.
    groups
        Groups of other scenarios.
    factor
        Safety factor.
    """

    middle: Scenarios
    groups: list[list[Scenarios]]
    factor: float = 1.0

    def evaluate(self, theta: np.ndarray) -> float:
        """Return the estimated error of loss and gradient at a state."""
        middle, total = loss_and_gradient(self.middle, theta), np.zeros(1 + theta.size)
        for group in self.groups:
            mean = np.mean([loss_and_gradient(member, theta) for member in group], axis=0)
            total += np.abs(mean - middle)
        return self.factor * float(np.max(total))
