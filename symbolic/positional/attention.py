"""Attention weights on the invariant manifold: Lambda, Gamma, Xi, G (Section 4.1).

With A_ii = beta, A_ij = gamma inside a set and rho between sets, every row of S = softmax(A/tau)
contains Lambda once, Gamma C - 1 times and Xi D - C times (Jelassi et al. 2022). Exact for symbolic
C, D and tau.
"""

import sympy as sp

from symbolic.core.identity import Identity
from symbolic.positional.symbols import (
    C,
    D,
    G,
    Gamma,
    Gamma_minus_Xi,
    Lambda,
    Lambda_minus_Gamma,
    Xi,
    beta,
    gamma,
    rho,
    tau,
)


def row_sum(own: sp.Expr, same: sp.Expr, other: sp.Expr) -> sp.Expr:
    """Return the sum of ``own``, C - 1 times ``same`` and D - C times ``other``."""
    return own + (C - 1) * same + (D - C) * other


Z = row_sum(*(sp.exp(x / tau) for x in (beta, gamma, rho)))

#: Attention weights as functions of beta, gamma and rho.
WRITTEN_OUT: dict[sp.Symbol, sp.Expr] = {
    Lambda: sp.exp(beta / tau) / Z,
    Gamma: sp.exp(gamma / tau) / Z,
    Xi: sp.exp(rho / tau) / Z,
}
G_OF_WEIGHTS = D * (Lambda + (C - 1) * Gamma)
_ALL_WRITTEN_OUT = WRITTEN_OUT | {
    symbol: of_weights.xreplace(WRITTEN_OUT)
    for symbol, of_weights in (
        (G, G_OF_WEIGHTS),
        (Lambda_minus_Gamma, Lambda - Gamma),
        (Gamma_minus_Xi, Gamma - Xi),
    )
}

#: Rows of S sum to 1: Lambda + (C-1) Gamma + (D-C) Xi - 1.
SUM_RULE = row_sum(Lambda, Gamma, Xi) - 1

#: First derivatives in terms of the weights; keys are pairs of weight and order parameter.
DERIVATIVES: dict[tuple[sp.Symbol, sp.Symbol], sp.Expr] = {
    (Lambda, gamma): -(C - 1) * Gamma * Lambda / tau,
    (Gamma, gamma): Gamma * (1 - (C - 1) * Gamma) / tau,
    (Xi, gamma): -(C - 1) * Gamma * Xi / tau,
    (Lambda, rho): -(D - C) * Xi * Lambda / tau,
    (Gamma, rho): -(D - C) * Xi * Gamma / tau,
    (Xi, rho): Xi * (1 - (D - C) * Xi) / tau,
    (G, gamma): (C - 1) * Gamma * (D - G) / tau,
    (G, rho): -(D - C) * Xi * G / tau,
}


def write_out(expression: sp.Expr) -> sp.Expr:
    """Replace Lambda, Gamma, Xi, G and the differences by functions of beta, gamma and rho."""
    return expression.xreplace(_ALL_WRITTEN_OUT)


def identities() -> dict[str, Identity]:
    """Return the identities of this module."""
    claims = {"rows of S sum to 1": Identity(write_out(SUM_RULE + 1), sp.S.One)}
    for (weight, parameter), derivative in DERIVATIVES.items():
        claims[f"d {weight} / d {parameter}"] = Identity(
            write_out(weight), write_out(derivative), parameter
        )
    return claims
