"""Excess form of the attention gradients, equal to the plain form after summation over all sets.

The sum of the margins over all rows is kappa alpha T because the columns of S sum to 1. It does not
depend on gamma and rho, so a constant can be subtracted from act'(O_i) in these derivatives. The
sum over a set of an affine function of (s, n) is an affine function of n, C k_0 + n k_1; the sum
over the D/C sets, whose n sum to T, is D k_0 + T k_1.
"""

import sympy as sp

from symbolic.core.displays import Displays, at_points
from symbolic.core.identity import Identity
from symbolic.core.proof import Proof, decide_all
from symbolic.positional import margins
from symbolic.positional.attention import write_out
from symbolic.positional.symbols import (
    C,
    D,
    O,
    T,
    a,
    alpha,
    b,
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
    claims = {}
    sums = {"margins": (margins.MARGIN, kappa * alpha * T)}
    for parameter, first in ((gamma, margins.d_gamma), (rho, margins.d_rho)):
        sums[f"d margins / d {parameter}"] = (
            kappa * alpha * first(margins.WEIGHTED_SUM),
            sp.Integer(0),
        )
    for label, (row, total) in sums.items():
        per_set = sp.expand(margins.of_random_set(row))
        signal = sp.expand(margins.of_signal_set(row))
        k_0 = row.subs({s: 0, n: 0})
        k_1 = sp.expand(per_set.subs({a: 1, b: 0}) - C * k_0)
        claims[f"{label}, one random set"] = Identity(per_set, C * k_0 + (a - b) * k_1)
        claims[f"{label}, signal set"] = Identity(signal, C * k_0 + C * k_1)
        claims[f"{label}, all sets"] = Identity(D * k_0 + T * k_1, total).map(write_out)
    for index, parameter in ((1, gamma), (2, rho)):
        row = margins.row_gradient(margins.excess_slope)[index]
        claims[f"an empty set adds nothing ({parameter})"] = Identity(row.subs({s: 0, n: 0}))
    claims["excess = slope - slope of the empty set"] = Identity(
        margins.excess_slope(margins.MARGIN),
        margins.activation_slope(margins.MARGIN) - margins.activation_slope(margins.EMPTY_MARGIN),
    )
    return claims


_TYPES = sp.symbols("a_1 b_1 a_2 b_2", integer=True, nonnegative=True)
_TOTAL = C + _TYPES[0] - _TYPES[1] + _TYPES[2] - _TYPES[3]


def _three_sets(row: sp.Expr) -> sp.Expr:
    """Sum a row over the signal set and two random sets of any types, D = 3 C."""
    random_set, total = margins.of_random_set(row), margins.of_signal_set(row)
    for types in (_TYPES[:2], _TYPES[2:]):
        total += random_set.subs(dict(zip((a, b), types)), simultaneous=True)
    return write_out(total.subs(T, _TOTAL)).subs(D, 3 * C)


def residual(name: str, right: sp.Expr) -> Identity:
    """Return an identity that holds if the equation holds for three sets of any types."""
    empty = margins.MARGIN.subs({s: 0, n: 0})
    if name == "sum_of_margins":
        return Identity(_three_sets(margins.MARGIN), right.subs(T, _TOTAL))
    if name == "O_empty":
        return Identity(right, empty)
    slope = margins.activation_slope
    over_empty = slope(margins.MARGIN) - slope(empty)
    if name == "excess":
        return Identity(right.subs({_O_EMPTY: empty, O: margins.MARGIN}), over_empty)
    first = {gamma: margins.d_gamma(margins.WEIGHTED_SUM), rho: margins.d_rho(margins.WEIGHTED_SUM)}
    values = {excess: over_empty, c_gamma: first[gamma], c_rho: first[rho]}
    F = _three_sets(margins.activation(margins.MARGIN))
    shown = _three_sets(right.subs(values, simultaneous=True))
    return Identity(F, shown, {"d_gamma": gamma, "d_rho": rho}[name])


DISPLAYS = Displays(EQUATIONS, residual, at_points)


def prove_all() -> list[Proof]:
    """Prove the identities and the displayed equations."""
    return [decide_all("Excess", identities()), DISPLAYS.prove("Excess, three sets of any size")]
