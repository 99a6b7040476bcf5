"""Further emitted kernels: counts, row sums, second derivatives of the loss, factors of Lemma 4.3.

`identities` compares the kernels with sums over a symbolic number of patches, with derivatives and
with the statement of the lemma.
"""

from collections.abc import Callable

import sympy as sp

from symbolic.core.identity import Identity
from symbolic.core.kernel import Kernel, copysign, powers
from symbolic.core.sums import collapse
from symbolic.positional import all_sizes, lemma_4_3
from symbolic.positional.attention import G_OF_WEIGHTS, row_sum, write_out
from symbolic.positional.full_model import LOSS_SLOPE
from symbolic.positional.increments import MODEL
from symbolic.positional.symbols import (
    C,
    D,
    G,
    Gamma,
    Lambda,
    Xi,
    alpha,
    delta_gamma,
    delta_rho,
    eta,
    gamma,
    p,
    rho,
    weight,
    y,
)

#: The three values of a row, and velocities of gamma and rho.
_OWN, _SAME, _OTHER = sp.symbols("own same other", real=True)
_VELOCITY = {
    delta_gamma: sp.Symbol("gamma_velocity", real=True),
    delta_rho: sp.Symbol("rho_velocity", real=True),
}

#: s(-F), s(F) s(-F), and derivatives of F in one parameter, in another, and in both.
SIGMOID, BEND = sp.symbols("sigmoid sigmoid_slope", positive=True)
F_ONE, F_OTHER, F_BOTH = sp.symbols("F_one F_other F_both", real=True)


def multiplicity() -> Kernel:
    """Return the kernel of the multiplicities of gamma and rho."""
    doc = """Numbers of entries of A with the values gamma and rho: D (C-1), D (D-C) (Lemma 4.1)."""
    results = tuple((str(x), MODEL.shared[x]) for x in (gamma, rho))
    return Kernel("multiplicity", (C, D), (), results, doc)


def sum_of_row() -> Kernel:
    """Return the kernel of the sum of a row."""
    doc = """Sum of a row that contains own once, same C-1 times and other D-C times.

    1 for the softmax, Lambda + (C-1) Gamma + (D-C) Xi; a constant of motion for A when its
    diagonal is trained too, beta + (C-1) gamma + (D-C) rho."""
    result = ("sum", row_sum(_OWN, _SAME, _OTHER))
    return Kernel("row_sum", (_OWN, _SAME, _OTHER, C, D), (), (result,), doc)


def set_mass() -> Kernel:
    """Return the kernel of G."""
    doc = """G = D (Lambda + (C-1) Gamma), the attention to a set times D (Section 4.1)."""
    return Kernel("set_mass", (Lambda, Gamma, C, D), (), (("G", G_OF_WEIGHTS),), doc)


class _sigmoid(sp.Function):
    """s(-F) as an undefined function for the chain rule."""

    def fdiff(self, argindex: int = 1) -> sp.Expr:
        return -_bend(self.args[0])


class _bend(sp.Function):
    """s(F) s(-F)."""


def _second_derivative() -> sp.Expr:
    """Return the derivative of -s(-F) dF/dx in another parameter, in the symbols above."""
    x_1, x_2 = sp.symbols("x_1 x_2", real=True)
    F = sp.Function("F", real=True)(x_1, x_2)
    second = sp.diff(LOSS_SLOPE.subs({y: 1, weight: _sigmoid(F)}) * sp.diff(F, x_1), x_2)
    names = (
        (sp.diff(F, x_1, x_2), F_BOTH),
        (sp.diff(F, x_1), F_ONE),
        (sp.diff(F, x_2), F_OTHER),
        (_sigmoid(F), SIGMOID),
        (_bend(F), BEND),
    )
    for expression, name in names:
        second = second.subs(expression, name)
    return second


#: Second derivative of log(1 + e^{-F}) in two parameters.
LOSS_BEND = _second_derivative()


def loss_hessian() -> Kernel:
    """Return the kernel of the second derivatives of the loss of one image."""
    doc = """Second derivative of log(1 + e^(-F)) in two parameters, given those of F.

    s(F) s(-F) dF/dx dF/dy - s(-F) d2F/dx dy, sigmoid = s(-F), sigmoid_slope = s(F) s(-F)."""
    arguments = (SIGMOID, BEND, F_ONE, F_OTHER, F_BOTH)
    return Kernel("loss_hessian", arguments, (), (("second", LOSS_BEND),), doc)


def lemma_factors() -> Kernel:
    """Return the kernel of the factors polylog(d) in Lemma 4.3."""
    doc = """Factors in place of polylog(d) in Lemma 4.3, given the velocities of gamma and rho.

    For gamma: velocity / (alpha^p Gamma G^(p-1)). For rho, the smallest factor for which the
    inequality holds: the rate of |rho| over alpha^p (1/D + Gamma G^(p-1)/D); the rate is
    sign(rho) velocity, and |velocity| at rho = 0."""
    gamma_form, rho_form, growth = sp.symbols("gamma_form rho_form growth", real=True)
    grows = lemma_4_3.GROWTH_OF_RHO.subs(_VELOCITY)
    steps = (
        (gamma_form, powers(lemma_4_3.GAMMA_FORM)),
        (rho_form, powers(lemma_4_3.RHO_FORM)),
        (growth, grows.subs(sp.sign(rho), copysign(sp.Integer(1), rho))),
    )
    results = (("gamma", _VELOCITY[delta_gamma] / gamma_form), ("rho", growth / rho_form))
    arguments = (alpha, rho, Gamma, G, D, *_VELOCITY.values(), p)
    return Kernel("lemma_factors", arguments, steps, results, doc)


def sizes() -> tuple[Kernel, ...]:
    """Return the kernels that are also emitted as plain Python."""
    return multiplicity(), sum_of_row(), set_mass()


def kernels() -> tuple[Kernel, ...]:
    """Return all kernels of this module, in order."""
    return *sizes(), loss_hessian(), lemma_factors()


def identities(kernel: Kernel, index: int) -> dict[str, Identity]:
    """Return identities of a result of a kernel."""
    return _CLAIMS[kernel.name](kernel, index)


def _of_multiplicity(kernel: Kernel, index: int) -> dict[str, Identity]:
    name = kernel.results[index][0]
    counted = all_sizes.PAIRS[getattr(lemma_4_3, name)].subs(all_sizes.L, D / C)
    return {f"pairs that share {name}, counted": Identity(counted, kernel.expanded(index))}


def _of_row_sum(kernel: Kernel, index: int) -> dict[str, Identity]:
    entry = _OTHER + (_SAME - _OTHER) * all_sizes.SAME_SET + (_OWN - _SAME) * all_sizes.SAME_PATCH
    summed = collapse(all_sizes.over_patches(entry)).subs(all_sizes.L, D / C)
    return {"sum of a row, patch by patch": Identity(summed, kernel.expanded(index))}


def _of_set_mass(kernel: Kernel, index: int) -> dict[str, Identity]:
    of_sum_rule = Identity(kernel.expanded(index), D * (1 - (D - C) * Xi))
    return {"G = D (1 - (D - C) Xi)": of_sum_rule.map(write_out)}


def _of_loss_hessian(kernel: Kernel, index: int) -> dict[str, Identity]:
    """Differentiate log(1 + e^{-F}) for F linear and bilinear in the parameters."""
    x_1, x_2, e_F = sp.symbols("x_1 x_2 e_F", real=True)
    F = F_ONE * x_1 + F_OTHER * x_2 + F_BOTH * x_1 * x_2 + sp.log(e_F)
    exact = sp.diff(sp.log(1 + sp.exp(-F)), x_1, x_2).subs({x_1: 0, x_2: 0})
    named = {SIGMOID: 1 / (1 + e_F), BEND: e_F / (1 + e_F) ** 2}
    return {"second derivative of the loss": Identity(exact, kernel.expanded(index).subs(named))}


def _of_lemma_factors(kernel: Kernel, index: int) -> dict[str, Identity]:
    """Return the identities of the factors of Lemma 4.3, for both signs of rho."""
    name, factor = kernel.results[index][0], eta * kernel.expanded(index)
    if name == "gamma":
        moved = eta * _VELOCITY[delta_gamma]
        return {"measured gamma": Identity(alpha**p * Gamma * G ** (p - 1) * factor, moved)}
    start, speed = sp.symbols("start speed", positive=True)
    velocity = _VELOCITY[delta_rho]
    claims: dict[str, Identity] = {}
    grown = alpha**p * (1 / D + Gamma * G ** (p - 1) / D) * factor
    for sign in (1, -1):
        claims[f"measured rho, sign {sign}"] = Identity(
            grown.subs(rho, sign * start), sign * eta * velocity
        )
        from_zero = grown.subs(rho, 0).subs(velocity, sign * speed)
        claims[f"measured rho from 0, sign {sign}"] = Identity(from_zero, eta * speed)
    return claims


_CLAIMS: dict[str, Callable[[Kernel, int], dict[str, Identity]]] = {
    "multiplicity": _of_multiplicity,
    "row_sum": _of_row_sum,
    "set_mass": _of_set_mass,
    "loss_hessian": _of_loss_hessian,
    "lemma_factors": _of_lemma_factors,
}
