"""Lemma 4.3: the increments of gamma and rho, exactly, and what its polylog(d) hides.

"gamma(t+1) = gamma(t) + eta polylog(d) alpha^p Gamma G^(p-1),
|rho(t+1)| <= |rho(t)| + eta polylog(d) alpha^p (1/D + Gamma G^(p-1) / D)"  (Jelassi et al. 2022).

Exactly, with one learning rate eta on every entry of A (Lemma 4.1),

    Delta gamma = eta / (D (C-1)) E[ s(-F) (signal set + sum over random sets) ],

and likewise for rho with D (D-C). A set contributes sum_i act'(O_i) dO_i/dgamma over its patches.
The leading term is that of the signal set when the random sets cancel each other, R = 0. Written in
the form of the lemma its factor is an explicit expression (polylog_gamma, polylog_rho); what it
leaves out is measured along a trajectory as the ratio of the exact to the leading increment. The
linear part nu of the activation moves neither gamma nor rho: its shares cancel over the sets.
"""

from __future__ import annotations

import sympy as sp

from symbolic import margins
from symbolic.attention import write_out
from symbolic.proof import Ledger, Proof
from symbolic.symbols import (
    C,
    D,
    G,
    Gamma,
    Lambda,
    R,
    T,
    Xi,
    a,
    alpha,
    b,
    delta_gamma,
    delta_rho,
    eta,
    kappa,
    mean_weight,
    nu,
    p,
    tau,
    weight,
)
from symbolic.zero import decide

SAME, DIFFERENT = D * (C - 1), D * (D - C)

#: Row contributions to d F/d gamma and d F/d rho: as they are, and in excess form.
_GAMMA, _RHO = margins.row_gradient()[1:]
_GAMMA_EXCESS, _RHO_EXCESS = margins.row_gradient(margins.excess_slope)[1:]

#: What the signal set adds to the increments, per learning rate and s(-F), with T = C + R.
SIGNAL_GAMMA = margins.of_signal_set(_GAMMA).subs(T, C + R) / SAME
SIGNAL_RHO = margins.of_signal_set(_RHO).subs(T, C + R) / DIFFERENT

#: What one random set of type (a, b) adds, per learning rate and s(-F).
RANDOM_GAMMA = margins.of_random_set(_GAMMA) / SAME
RANDOM_RHO = margins.of_random_set(_RHO) / DIFFERENT

#: The same in excess form: equal once summed over all sets, and zero for an empty set.
RANDOM_GAMMA_EXCESS = margins.of_random_set(_GAMMA_EXCESS) / SAME
RANDOM_RHO_EXCESS = margins.of_random_set(_RHO_EXCESS) / DIFFERENT

#: Margin of the signal patches when R = 0.
SIGNAL_MARGIN = kappa * alpha * G / D


def gamma_leading(margin: sp.Expr = SIGNAL_MARGIN, g: sp.Expr = G / D) -> sp.Expr:
    """Leading term of the gamma increment, per learning rate and E[s(-F)]."""
    return C * Gamma / tau * kappa / D * alpha * (1 - g) * (p * margin ** (p - 1) + nu)


def rho_leading(margin: sp.Expr = SIGNAL_MARGIN, g: sp.Expr = G / D) -> sp.Expr:
    """Leading signal-set term of the rho increment, per learning rate and E[s(-F)]."""
    return -C * Xi / tau * kappa / D * alpha * g * (p * margin ** (p - 1) + nu)


#: Exactly nothing of nu survives the sum over all sets (`identities`), so the leading terms are
#: closer to the increments in excess form, where the random sets' share of this is taken off.
_SIGNAL_EXCESS = p * (SIGNAL_MARGIN ** (p - 1) - (kappa * alpha * Xi * C) ** (p - 1))
GAMMA_LEADING_EXCESS = C * Gamma / tau * kappa / D * alpha * (1 - G / D) * _SIGNAL_EXCESS
RHO_LEADING_EXCESS = -C * Xi / tau * kappa / D * alpha * (G / D) * _SIGNAL_EXCESS

#: The leading terms in the form of the lemma: factor times alpha^p Gamma G^(p-1), and times
#: alpha^p Gamma G^(p-1) / D for rho. These factors are what polylog(d) stands for.
GAMMA_FORM = alpha**p * Gamma * G ** (p - 1)
RHO_FORM = alpha**p * (1 / D + Gamma * G ** (p - 1) / D)
_PER_SLOPE = (1 + nu / (p * SIGNAL_MARGIN ** (p - 1))) * mean_weight
GAMMA_FACTOR = p * C / tau * (kappa / D) ** p * (1 - G / D) * _PER_SLOPE
RHO_FACTOR = -p * C / tau * (kappa / D) ** p * (Xi * G / Gamma) * _PER_SLOPE

#: Leading rho over leading gamma increment: small as soon as Gamma exceeds G / D^2.
RHO_OVER_GAMMA = -Xi * G / (Gamma * (D - G))

#: Measured along a trajectory: exact over leading increment, and the lemma's own factors.
RATIO = delta_gamma / (eta * mean_weight * gamma_leading())
MEASURED_GAMMA_FACTOR = delta_gamma / (eta * GAMMA_FORM)
MEASURED_RHO_FACTOR = sp.Abs(delta_rho) / (eta * RHO_FORM)

#: Leading terms of a random set with one feature +1: the influence Xi T of all sets on it dropped.
#: A set with one feature -1 adds the opposite, so only the difference of their weights s(-F) acts.
ISOLATED_GAMMA = (p * (kappa * alpha) ** p * Gamma / (tau * D)) * (
    (Gamma - Xi) ** (p - 1) * (1 - (C - 1) * (Gamma - Xi)) - (Lambda - Xi) ** p
)
ISOLATED_RHO = -(p * (kappa * alpha) ** p * Xi / (tau * DIFFERENT)) * (
    (Lambda - Xi) ** (p - 1) * (1 + (D - C) * (Lambda - Xi))
    + (C - 1) * (Gamma - Xi) ** (p - 1) * (1 + (D - C) * (Gamma - Xi))
)


def exact_increments() -> tuple[sp.Expr, sp.Expr]:
    """Return Delta gamma and Delta rho as expectations, for display."""
    E, h_gamma, h_rho = sp.Function("E"), sp.Function("h_gamma"), sp.Function("h_rho")
    index = sp.Symbol("l", integer=True)
    a_l, b_l = sp.IndexedBase("a")[index], sp.IndexedBase("b")[index]
    return (
        eta * E(weight * (SIGNAL_GAMMA + sp.Sum(h_gamma(a_l, b_l, C + R), (index, 1, D / C - 1)))),
        eta * E(weight * (SIGNAL_RHO + sp.Sum(h_rho(a_l, b_l, C + R), (index, 1, D / C - 1)))),
    )


def identities() -> dict[str, sp.Expr]:
    """Return every identity of this module as an expression that must vanish."""
    one_plus, one_minus, isolated = {a: 1, b: 0}, {a: 0, b: 1}, {T: 0}
    claims = {
        "signal set at R = 0, gamma": SIGNAL_GAMMA.subs(R, 0) - gamma_leading(),
        "signal set at R = 0, rho": SIGNAL_RHO.subs(R, 0) - rho_leading(),
        "signal set at R = 0, gamma, excess form": margins.of_signal_set(_GAMMA_EXCESS).subs(T, C)
        / SAME
        - GAMMA_LEADING_EXCESS,
        "signal set at R = 0, rho, excess form": margins.of_signal_set(_RHO_EXCESS).subs(T, C)
        / DIFFERENT
        - RHO_LEADING_EXCESS,
        "1 - G/D = (D - C) Xi": 1 - G / D - (D - C) * Xi,
        "form of Lemma 4.3, gamma": GAMMA_FORM * GAMMA_FACTOR - gamma_leading() * mean_weight,
        "form of Lemma 4.3, rho": GAMMA_FORM / D * RHO_FACTOR - rho_leading() * mean_weight,
        "leading rho over gamma": RHO_OVER_GAMMA * gamma_leading() - rho_leading(),
        "isolated random set, gamma": RANDOM_GAMMA_EXCESS.subs(one_plus | isolated)
        - ISOLATED_GAMMA,
        "isolated random set, rho": RANDOM_RHO_EXCESS.subs(one_plus | isolated) - ISOLATED_RHO,
        "opposite types cancel, gamma": RANDOM_GAMMA_EXCESS.subs(one_minus | isolated)
        + ISOLATED_GAMMA,
        "opposite types cancel, rho": RANDOM_RHO_EXCESS.subs(one_minus | isolated) + ISOLATED_RHO,
    }
    claims = {what: write_out(expression) for what, expression in claims.items()}
    for name, row, excess in (("gamma", _GAMMA, _GAMMA_EXCESS), ("rho", _RHO, _RHO_EXCESS)):
        linear = sp.diff(row, nu)
        claims[f"nu moves {name} by nothing, summed over three sets"] = _three_sets(linear)
        claims[f"excess form, {name}, summed over three sets"] = _three_sets(row - excess)
    return claims


def _three_sets(row: sp.Expr) -> sp.Expr:
    """Sum a row contribution over the signal set and two random sets of arbitrary type, D = 3 C."""
    a_1, b_1, a_2, b_2 = sp.symbols("a_1 b_1 a_2 b_2", integer=True, nonnegative=True)
    random_set = margins.of_random_set(row)
    total = margins.of_signal_set(row)
    total += random_set.subs({a: a_1, b: b_1}) + random_set.subs({a: a_2, b: b_2})
    return write_out(total.subs(T, C + a_1 - b_1 + a_2 - b_2)).subs(D, 3 * C)


def prove(points: int = 6, seed: int = 0) -> Proof:
    """Decide every identity of this module."""
    ledger = Ledger("Lemma 4.3: increments of gamma and rho and their leading terms")
    for what, expression in identities().items():
        ledger.zero(what, decide(expression, points=points, seed=seed))
    return ledger.close()
