"""Margins of the patches, contributions of a set to F, and derivatives on the invariant manifold.

One formula applies to every patch. With ``s`` its coefficient of w*, ``n`` the sum of s over its
set and ``T`` the sum over all patches,

    c = Lambda s + Gamma (n - s) + Xi (T - n),   O = kappa alpha c,   F = sum_i act(O_i),

act(x) = x^p + nu x. The signal set has s = 1 and n = C. (Label +1; Jelassi et al. 2022, Section
4.1. The closed forms are derived here; the paper states only their leading orders, in Lemma 4.3.)
"""

from collections.abc import Callable

import sympy as sp

from symbolic.core.identity import Identity
from symbolic.positional.attention import write_out
from symbolic.positional.symbols import (
    C,
    D,
    Gamma,
    Gamma_minus_Xi,
    Lambda,
    Lambda_minus_Gamma,
    R,
    T,
    Xi,
    a,
    alpha,
    b,
    gamma,
    kappa,
    n,
    nu,
    p,
    rho,
    s,
    tau,
)

#: Weighted sum of the coefficients in one row, sum_j S_ij s_j.
WEIGHTED_SUM = Lambda * s + Gamma * (n - s) + Xi * (T - n)
MARGIN = kappa * alpha * WEIGHTED_SUM

#: Contribution of a patch's own set, and the weighted sum in terms of it: free of cancellation when
#: Lambda, Gamma and Xi are close, given their differences.
OWN_PART = Lambda_minus_Gamma * s + Gamma_minus_Xi * n
WEIGHTED_SUM_STABLE = OWN_PART + Xi * T

#: Margin of a zero patch in an empty set.
EMPTY_MARGIN = kappa * alpha * Xi * T

#: (s, n) of each type of patch; random sets have type (a, b).
PATCHES: dict[str, tuple[sp.Expr, sp.Expr]] = {
    "signal": (sp.Integer(1), C),
    "plus": (sp.Integer(1), a - b),
    "minus": (sp.Integer(-1), a - b),
    "zero": (sp.Integer(0), a - b),
}


def d_gamma(c: sp.Expr) -> sp.Expr:
    """Return the derivative of the weighted sum ``c`` in gamma, given ``c``."""
    return Gamma / tau * ((n - s) - (C - 1) * c)


def d_rho(c: sp.Expr) -> sp.Expr:
    """Return the derivative of the weighted sum ``c`` in rho, given ``c``."""
    return Xi / tau * ((T - n) - (D - C) * c)


#: Common integer in the stable forms of the two derivatives. They are sums of weights times
#: integers, obtained by writing 1 as Lambda + (C-1) Gamma + (D-C) Xi, and only integers cancel,
#: exactly. In the plain forms 1 - G/D cancels once a set attends to itself, and T - n against
#: (D-C) c for large D.
BALANCE = (D - C) * (n - s) - (C - 1) * (T - n)


def d_gamma_stable(balance: sp.Expr = BALANCE) -> sp.Expr:
    """Return the derivative of the weighted sum in gamma, free of cancellation."""
    return Gamma / tau * (Lambda * (n - C * s) + Xi * balance)


def d_rho_stable(balance: sp.Expr = BALANCE) -> sp.Expr:
    """Return the derivative of the weighted sum in rho, free of cancellation."""
    return Xi / tau * (Lambda * (T - n - (D - C) * s) - Gamma * balance)


def second_derivatives(c_gamma: sp.Expr, c_rho: sp.Expr) -> tuple[sp.Expr, sp.Expr, sp.Expr]:
    """Return the derivatives (gamma gamma, gamma rho, rho rho) of ``c`` given its first ones."""
    same, other = (C - 1) * Gamma, (D - C) * Xi
    return (
        c_gamma * (1 - 2 * same) / tau,
        -(other * c_gamma + same * c_rho) / tau,
        c_rho * (1 - 2 * other) / tau,
    )


def activation(x: sp.Expr) -> sp.Expr:
    """Return act(x) = x^p + nu x, equation (T)."""
    return x**p + nu * x


def activation_slope(x: sp.Expr) -> sp.Expr:
    """Return act'(x) = p x^(p-1) + nu."""
    return p * x ** (p - 1) + nu


def excess_slope(x: sp.Expr) -> sp.Expr:
    """Return act'(x) - act'(margin of a zero patch in an empty set); nu cancels."""
    return p * (x ** (p - 1) - EMPTY_MARGIN ** (p - 1))


def margin_gradient() -> tuple[sp.Expr, ...]:
    """Return the derivatives of the margin O in alpha, gamma and rho."""
    c = WEIGHTED_SUM
    return kappa * c, kappa * alpha * d_gamma(c), kappa * alpha * d_rho(c)


def margin_hessian() -> dict[tuple[sp.Symbol, sp.Symbol], sp.Expr]:
    """Return the second derivatives of the margin O in alpha, gamma and rho."""
    first = d_gamma(WEIGHTED_SUM), d_rho(WEIGHTED_SUM)
    pairs = (gamma, gamma), (gamma, rho), (rho, rho)
    of_alpha = {(alpha, x): kappa * of_x for x, of_x in zip((gamma, rho), first)}
    of_scores = {
        pair: kappa * alpha * second for pair, second in zip(pairs, second_derivatives(*first))
    }
    return {(alpha, alpha): sp.S.Zero} | of_alpha | of_scores


def row_gradient(slope: Callable[[sp.Expr], sp.Expr] = activation_slope) -> tuple[sp.Expr, ...]:
    """Return the derivatives of act(O) of one row in alpha, gamma and rho.

    Parameters
    ----------
    slope
        `activation_slope`, or `excess_slope` for the attention derivatives in excess form, which
        have the same sum over all rows (`symbolic.positional.excess`).
    """
    of_alpha, of_gamma, of_rho = margin_gradient()
    return (
        activation_slope(MARGIN) * of_alpha,
        slope(MARGIN) * of_gamma,
        slope(MARGIN) * of_rho,
    )


def at_patch(expression: sp.Expr, patch: str) -> sp.Expr:
    """Return an expression in (s, n) at a type of patch, with T = C + R."""
    s_value, n_value = PATCHES[patch]
    return expression.subs({s: s_value, n: n_value}, simultaneous=True).subs(T, C + R)


def of_random_set(expression: sp.Expr) -> sp.Expr:
    """Sum an expression in (s, n) over the C patches of a random set of type (a, b)."""
    at = {k: expression.subs(dict(zip((s, n), v)), simultaneous=True) for k, v in PATCHES.items()}
    return a * at["plus"] + b * at["minus"] + (C - a - b) * at["zero"]


def of_signal_set(expression: sp.Expr) -> sp.Expr:
    """Sum an expression in (s, n) over the C patches of the signal set."""
    return C * expression.subs(dict(zip((s, n), PATCHES["signal"])), simultaneous=True)


def identities() -> dict[str, Identity]:
    """Return the identities about single patches.

    The second derivatives of c are derivatives of its first ones.
    """
    c = WEIGHTED_SUM
    first = {gamma: d_gamma(c), rho: d_rho(c)}
    second = dict(
        zip([(gamma, gamma), (gamma, rho), (rho, rho)], second_derivatives(*first.values()))
    )
    claims = {
        "weighted sum through differences": Identity(c, WEIGHTED_SUM_STABLE),
        "stable gamma derivative": Identity(first[gamma], d_gamma_stable()),
        "stable rho derivative": Identity(first[rho], d_rho_stable()),
    }
    for parameter, formula in first.items():
        claims[f"d c / d {parameter}"] = Identity(c, formula, parameter)
    for (x, y), formula in second.items():
        claims[f"d2 c / d {x} d {y}"] = Identity(first[x], formula, y)
    for parameter, formula in zip((alpha, gamma, rho), row_gradient()):
        claims[f"d act(O) / d {parameter}"] = Identity(activation(MARGIN), formula, parameter)
    signal = kappa * alpha * (Lambda + (C - 1) * Gamma + Xi * R)
    return {
        "signal margin": Identity(at_patch(MARGIN, "signal"), signal),
        "slope of the activation": Identity(activation(s), activation_slope(s), s),
        **{name: identity.map(write_out) for name, identity in claims.items()},
    }
