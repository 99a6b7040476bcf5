"""Contributions of the keys of a cell to the softmax and to the second derivatives of the loss.

A cell has unmasked keys with the logit Upsilon + z Phi, and masked keys with the logit Upsilon. Let
w_i be the attention to key i, B_is the derivative of its logit in the slot s (a Phi or an Upsilon),
v_s the first derivatives of the loss, y_s = sum_i w_i B_is, and a_m the attention to the unmasked
keys of area m:

    d_s d_t loss = sum_i B_is B_it w_i (g_i - gbar) - v_s y_t - y_s v_t
                   + sum_m (z_m^2 / copies_m) d_s a_m d_t a_m.

`symbolic.masked.all_sizes` proves it in the logits for every P and N. Here the chain rule through
the two logits gives the contribution of each cell, and `identities` tests their sum.
"""

from functools import cache
from itertools import combinations_with_replacement
from typing import NamedTuple

import sympy as sp

from symbolic.core.identity import Identity
from symbolic.core.kernel import Kernel
from symbolic.masked.area_form import AreaForm
from symbolic.masked.symbols import a, advantage, copies, g_mean, z

Phi, Upsilon, top = sp.symbols("phi upsilon top", real=True)
unmasked, masked, count, size = sp.symbols("unmasked masked count size", positive=True)
of_unmasked, of_masked = sp.symbols("of_unmasked of_masked", real=True)
key_sum, mean = sp.symbols("key_sum mean", real=True)
v_s, v_t, y_s, y_t = sp.symbols("v_s v_t y_s y_t", real=True)

LOGITS = (Upsilon + z * Phi, Upsilon)
_SLOTS = (Phi, Upsilon)
#: Attention to unmasked and masked keys of a cell, and derivatives of the loss in their logits.
_SHARES = (unmasked, masked)
_LOGIT_DERIVATIVES = (-unmasked * advantage, -masked * g_mean)


def key_logits() -> Kernel:
    """Return the kernel of the logits of a cell."""
    doc = """Logits of the unmasked and of the masked keys of a cell (equation (2.7))."""
    results = tuple(zip(("unmasked", "masked"), LOGITS))
    return Kernel("key_logits", (Upsilon, z, Phi), (), results, doc)


def key_weights() -> Kernel:
    """Return the kernel of the unnormalized softmax weights of a cell."""
    doc = """Softmax weights of all unmasked and of all masked keys of a cell, before division.

    count e^(logit - top) and (size - count) e^(logit - top), top the largest logit of the row."""
    results = (
        ("unmasked", count * sp.exp(of_unmasked - top)),
        ("masked", (size - count) * sp.exp(of_masked - top)),
    )
    return Kernel("key_weights", (count, size, of_unmasked, of_masked, top), (), results, doc)


def key_slopes() -> Kernel:
    """Return the kernel of the contribution of a cell to y_s."""
    doc = """Contribution of a cell to the mean slope of the logits, in Phi and in Upsilon."""
    results = tuple(
        (f"y in {slot}", sum(w * sp.diff(x, slot) for w, x in zip(_SHARES, LOGITS)))
        for slot in _SLOTS
    )
    return Kernel("key_slopes", (z, unmasked, masked), (), results, doc)


def key_hessian() -> Kernel:
    """Return the kernel of the terms B_is B_it w_i (g_i - gbar) of a cell."""
    doc = """Contribution of a cell to the second derivatives through its own logits.

    In Phi twice, in Phi and Upsilon, in Upsilon twice; advantage = gbar - g of the unmasked."""
    pairs = combinations_with_replacement(_SLOTS, 2)
    results = tuple(
        (
            f"{s} {t}",
            sum(v * sp.diff(x, s) * sp.diff(x, t) for v, x in zip(_LOGIT_DERIVATIVES, LOGITS)),
        )
        for s, t in pairs
    )
    return Kernel("key_hessian", (z, unmasked, masked, advantage, g_mean), (), results, doc)


def area_slope() -> Kernel:
    """Return the kernel of the derivative of an area attention."""
    doc = """d_s a of an area: the sum of w_i B_is over its unmasked keys minus a y_s."""
    result = ("slope", key_sum - a * mean)
    return Kernel("area_slope", (key_sum, a, mean), (), (result,), doc)


def area_curvature() -> Kernel:
    """Return the kernel of the second derivative of the loss in an area attention."""
    loss = copies * (a / copies) ** 2 * z**2 / 2
    doc = """Second derivative of the loss in the attention to equal areas, z^2 / copies."""
    return Kernel("area_curvature", (z, copies), (), (("curvature", sp.diff(loss, a, 2)),), doc)


def mean_hessian() -> Kernel:
    """Return the kernel of the contribution of the softmax normalization."""
    doc = """Share of the normalization in a second derivative of the loss: -v_s y_t - y_s v_t."""
    result = ("share", -v_s * y_t - y_s * v_t)
    return Kernel("mean_hessian", (v_s, v_t, y_s, y_t), (), (result,), doc)


def kernels() -> tuple[Kernel, ...]:
    """Return all kernels of this module, in the order of emission."""
    return (
        key_logits(),
        key_weights(),
        key_slopes(),
        key_hessian(),
        area_slope(),
        area_curvature(),
        mean_hessian(),
    )


#: Area of each cell of `_SmallModel`; the last cell is {p}, which is masked. Area 0 is p's own.
_AREAS = (0, 1, 1, 0)


class _SmallModel(NamedTuple):
    """Model with four cells in two areas, the second of which represents ``copies`` equal areas.

    Attributes
    ----------
    keys
        Attention to the unmasked and to the masked keys of each cell.
    scales
        Scales z of the areas.
    unknowns
        e^(z Phi) of the areas and e^Upsilon of the cells, one for each slot.
    attention
        Attention to the unmasked keys of each area.
    loss
        Loss of p.
    """

    keys: list[tuple[sp.Expr, sp.Expr]]
    scales: list[sp.Expr]
    unknowns: list[sp.Symbol]
    attention: list[sp.Expr]
    loss: sp.Expr

    def chain(self, slot: int) -> sp.Expr:
        """Return d unknown / d slot: z lift for a Phi and e for an Upsilon."""
        return (*self.scales, 1, 1, 1, 1)[slot] * self.unknowns[slot]

    def derivative(self, x: sp.Expr, slot: int) -> sp.Expr:
        """Return the derivative of an expression in the Phi or Upsilon of a slot."""
        return self.chain(slot) * sp.diff(x, self.unknowns[slot])

    def identity(self, x: sp.Expr, slope: sp.Expr, slot: int) -> Identity:
        """Return that an expression has a slope in the Phi or Upsilon of a slot."""
        return Identity(x, slope / self.chain(slot), self.unknowns[slot])

    def advantages(self) -> tuple[list[sp.Expr], sp.Expr]:
        """Return gbar - g of each area, and gbar."""
        form = AreaForm(self.scales, [self.attention[0], self.attention[1] / copies], 0)
        mean_g = form.g_mean + (copies - 1) * self.attention[1] / copies * form.g[1]
        return [mean_g - g for g in form.g], mean_g


@cache
def _small_model() -> _SmallModel:
    """Return the small model; u and h are numbers of unmasked and masked keys of its cells."""
    e = sp.symbols("e_0:4", positive=True)  # e^Upsilon of the cells
    lift = sp.symbols("lift_0:2", positive=True)  # e^(z Phi) of the areas
    u, h = sp.symbols("u_0:3", positive=True), sp.symbols("h_0:4", positive=True)
    weights = [(u[c] * e[c] * lift[m], h[c] * e[c]) for c, m in enumerate(_AREAS[:-1])]
    weights.append((sp.Integer(0), h[3] * e[3]))
    total = sum(sum(pair) for pair in weights)
    keys = [(x / total, y / total) for x, y in weights]
    attention = [sum(x for (x, _), m in zip(keys, _AREAS) if m == area) for area in (0, 1)]
    own, other = scales = sp.symbols("z_0:2", positive=True)
    twice_loss = own**2 * (1 - attention[0]) ** 2 + other**2 * attention[1] ** 2 / copies
    return _SmallModel(keys, [*scales], [*lift, *e], attention, twice_loss / 2)


def _result(kernel: Kernel, index: int, *values: sp.Expr) -> sp.Expr:
    """Return a result of a kernel at given arguments."""
    return kernel.expanded(index).subs(dict(zip(kernel.arguments, values)), simultaneous=True)


def _cell_sums(
    of: dict[str, Kernel], model: _SmallModel
) -> tuple[list[sp.Expr], list[list[sp.Expr]], dict[tuple[int, int], sp.Expr]]:
    """Return the sums over cells: y by slot, w B by area and slot, and key Hessians by slots."""
    y, slopes_by_area = [0] * 6, [[0] * 6, [0] * 6]
    hessian: dict[tuple[int, int], sp.Expr] = {}
    advantages, mean_g = model.advantages()
    for cell, (m, pair) in enumerate(zip(_AREAS, model.keys)):
        s, t = m, 2 + cell
        slopes = [_result(of["key_slopes"], i, model.scales[m], *pair) for i in (0, 1)]
        y[s], y[t] = y[s] + slopes[0], y[t] + slopes[1]
        slopes_by_area[m][s] += slopes[0]
        slopes_by_area[m][t] += pair[0]
        for i, slots in enumerate(((s, s), (s, t), (t, t))):
            x = _result(of["key_hessian"], i, model.scales[m], *pair, advantages[m], mean_g)
            hessian[slots] = hessian.get(slots, 0) + x
    return y, slopes_by_area, hessian


def identities(built: tuple[Kernel, ...]) -> dict[str, Identity]:
    """Return that the sums of all contributions are the derivatives of the loss, by slot.

    The sums are those of the model `_SmallModel`.
    """
    of, model = {kernel.name: kernel for kernel in built}, _small_model()
    y, slopes_by_area, hessian = _cell_sums(of, model)
    number = (sp.Integer(1), copies)
    v = [model.derivative(model.loss, slot) for slot in range(6)]
    d_a = [
        [_result(of["area_slope"], 0, slopes_by_area[m][s], a_m, y[s]) for s in range(6)]
        for m, a_m in enumerate(model.attention)
    ]
    claims = {
        f"slope of the attention to area {m} in slot {s}": model.identity(a_m, d_a[m][s], s)
        for m, a_m in enumerate(model.attention)
        for s in range(6)
    }
    for s, t in combinations_with_replacement(range(6), 2):
        second = hessian.get((s, t), 0) + _result(of["mean_hessian"], 0, v[s], v[t], y[s], y[t])
        for m in (0, 1):
            curvature = _result(of["area_curvature"], 0, model.scales[m], number[m])
            second += curvature * d_a[m][s] * d_a[m][t]
        claims[f"second derivative in slots {s} and {t}"] = model.identity(v[s], second, t)
    return claims | weight_identities(of)


def weight_identities(of: dict[str, Kernel]) -> dict[str, Identity]:
    """Return the identities of the softmax weights."""
    logits = [_result(of["key_logits"], i, Upsilon, z, Phi) for i in (0, 1)]
    number = (count, size - count)
    slopes = {"unmasked": (1, z), "masked": (1, 0)}
    claims = {}
    for i, (key, (of_upsilon, of_phi)) in enumerate(slopes.items()):
        claims[f"{key} logit"] = Identity(logits[i], of_upsilon * Upsilon + of_phi * Phi)
        weight = _result(of["key_weights"], i, count, size, *logits, top)
        claims[f"{key} at top"] = Identity(weight.subs(top, logits[i]), number[i])
        slope = sp.cancel(sp.diff(weight, top) / weight)
        claims[f"{key} slope in top"] = Identity(slope, sp.S.NegativeOne)
    return claims
