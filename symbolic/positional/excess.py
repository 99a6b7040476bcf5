"""Excess form of the attention gradients, equal to the plain form after summation over all sets.

The sum of the margins over all rows is kappa alpha T because the columns of S sum to 1. It does not
depend on gamma and rho, so a constant can be subtracted from act'(O_i) in these derivatives. The
sum over a set of an affine function of (s, n) is an affine function of n, C k_0 + n k_1; the sum
over the D/C sets, whose n sum to T, is D k_0 + T k_1 (`symbolic.positional.all_sets`).
"""

import sympy as sp

from symbolic.core.displays import Displays, at_points
from symbolic.core.identity import Identity
from symbolic.core.proof import Proof, decide_all
from symbolic.positional import margins
from symbolic.positional.all_sets import affine_identities
from symbolic.positional.symbols import (
    O,
    T,
    alpha,
    c_gamma,
    c_rho,
    excess,
    gamma,
    kappa,
    n,
    p,
    rho,
    s,
)

_O_EMPTY = sp.Symbol("O_empty")
#: Mapping from displayed equations to right-hand sides.
EQUATIONS: dict[str, sp.Expr] = {
    "sum_of_margins": kappa * alpha * T,
    "O_empty": margins.EMPTY_MARGIN,
    "excess": p * (O ** (p - 1) - _O_EMPTY ** (p - 1)),
    "d_gamma": kappa * alpha * excess * c_gamma,
    "d_rho": kappa * alpha * excess * c_rho,
}


def identities() -> dict[str, Identity]:
    """Return the identities of the excess form."""
    claims: dict[str, Identity] = {}
    sums = {"margins": (margins.MARGIN, kappa * alpha * T)}
    for parameter, first in ((gamma, margins.d_gamma), (rho, margins.d_rho)):
        sums[f"d margins / d {parameter}"] = (
            kappa * alpha * first(margins.WEIGHTED_SUM),
            sp.Integer(0),
        )
    for label, (row, total) in sums.items():
        claims |= affine_identities(label, row, total)
    for index, parameter in ((1, gamma), (2, rho)):
        row = margins.row_gradient(margins.excess_slope)[index]
        claims[f"an empty set adds nothing ({parameter})"] = Identity(row.subs({s: 0, n: 0}))
    claims["excess = slope - slope of the empty set"] = Identity(
        margins.excess_slope(margins.MARGIN),
        margins.activation_slope(margins.MARGIN) - margins.activation_slope(margins.EMPTY_MARGIN),
    )
    return claims


def _all_sets(row: sp.Expr, total: sp.Expr = sp.S.Zero) -> Identity:
    """Return one identity that holds if and only if all `affine_identities` of a row do."""
    claims = affine_identities("", row, total).values()
    markers = sp.symbols(f"marker_:{len(claims)}", real=True)
    return Identity(sum(x * claim.difference for x, claim in zip(markers, claims)))


def residual(name: str, right: sp.Expr) -> Identity:
    """Return an identity that holds if the equation holds, for every number of sets.

    The derivatives of act(O) of a row are proved in `margins`.
    """
    empty = margins.MARGIN.subs({s: 0, n: 0})
    if name == "sum_of_margins":
        return _all_sets(margins.MARGIN, right)
    if name == "O_empty":
        return Identity(right, empty)
    slope = margins.activation_slope
    over_empty = slope(margins.MARGIN) - slope(empty)
    if name == "excess":
        return Identity(right.subs({_O_EMPTY: empty, O: margins.MARGIN}), over_empty)
    first = {gamma: margins.d_gamma(margins.WEIGHTED_SUM), rho: margins.d_rho(margins.WEIGHTED_SUM)}
    values = {excess: over_empty, c_gamma: first[gamma], c_rho: first[rho]}
    plain = dict(zip(("d_alpha", "d_gamma", "d_rho"), margins.row_gradient()))
    return _all_sets(right.subs(values, simultaneous=True) - plain[name])


DISPLAYS = Displays(EQUATIONS, residual, at_points)


def prove_all() -> list[Proof]:
    """Prove the identities and the displayed equations."""
    return [
        decide_all("Excess", identities()),
        DISPLAYS.prove("Excess, any number of sets of any size"),
    ]
