"""Lemma 4.3: exact increments, and an explicit expression for its polylog(d).

"gamma(t+1) = gamma(t) + eta polylog(d) alpha^p Gamma G^(p-1),
|rho(t+1)| <= |rho(t)| + eta polylog(d) alpha^p (1/D + Gamma G^(p-1) / D)"  (Jelassi et al. 2022).

With one learning rate eta on every entry of A (Lemma 4.1), exactly

    Delta gamma = eta / (D (C-1)) E[ s(-F) (signal set + sum over random sets) ],

and likewise for alpha with 1 and for rho with D (D-C); the increments of Lambda, Gamma, Xi and G
follow (`symbolic.positional.increments`). The leading term is the share of the signal set when the
random sets cancel each other, R = 0. In the form of the lemma, its factor is an explicit expression
(polylog_gamma, polylog_rho). The remainder is measured along a trajectory as the ratio of the exact
to the leading increment. The linear part nu of the activation contributes nothing to gamma and rho:
its shares cancel over the sets. All of it is decided for every number of sets D/C: the summands
agree at a set of any type, for any C, D and T (`symbolic.positional.all_sets`).
"""

from collections.abc import Mapping
from dataclasses import replace

import sympy as sp

from symbolic.core.identity import Identity
from symbolic.core.proof import Proof, decide_all
from symbolic.positional import increments, margins
from symbolic.positional import symbols as sym
from symbolic.positional.all_sets import affine_identities
from symbolic.positional.attention import write_out
from symbolic.positional.increments import DIFFERENT, MODEL, SAME
from symbolic.positional.symbols import (
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
    gamma,
    kappa,
    mean_weight,
    nu,
    p,
    rho,
    tau,
)

#: Contributions of a row to d F/d gamma and d F/d rho, in plain form and in excess form.
_GAMMA, _RHO = margins.row_gradient()[1:]
_GAMMA_EXCESS, _RHO_EXCESS = margins.row_gradient(margins.excess_slope)[1:]

#: Shares of the signal set in the increments, per learning rate and s(-F).
SIGNAL_GAMMA, SIGNAL_RHO = MODEL.signal_set(gamma), MODEL.signal_set(rho)

#: Shares of a random set in excess form: the same sum over all sets, and zero for an empty set.
RANDOM_GAMMA_EXCESS = margins.of_random_set(_GAMMA_EXCESS) / SAME
RANDOM_RHO_EXCESS = margins.of_random_set(_RHO_EXCESS) / DIFFERENT

#: Margin of the signal patches when R = 0.
SIGNAL_MARGIN = kappa * alpha * G / D


def gamma_leading(margin: sp.Expr = SIGNAL_MARGIN, g: sp.Expr = G / D) -> sp.Expr:
    """Return the leading term of the gamma increment, per learning rate and E[s(-F)]."""
    return C * Gamma / tau * kappa / D * alpha * (1 - g) * (p * margin ** (p - 1) + nu)


def rho_leading(margin: sp.Expr = SIGNAL_MARGIN, g: sp.Expr = G / D) -> sp.Expr:
    """Return the leading signal-set term of the rho increment, per learning rate and E[s(-F)]."""
    return -C * Xi / tau * kappa / D * alpha * g * (p * margin ** (p - 1) + nu)


#: nu cancels exactly in the sum over all sets (`identities`). In excess form, where the share of
#: the random sets in this sum is subtracted, the leading terms are closer to the increments.
_SIGNAL_EXCESS = p * (SIGNAL_MARGIN ** (p - 1) - (kappa * alpha * Xi * C) ** (p - 1))
GAMMA_LEADING_EXCESS = C * Gamma / tau * kappa / D * alpha * (1 - G / D) * _SIGNAL_EXCESS
RHO_LEADING_EXCESS = -C * Xi / tau * kappa / D * alpha * (G / D) * _SIGNAL_EXCESS

#: The leading terms in the form of the lemma: factor times alpha^p Gamma G^(p-1), and times
#: alpha^p Gamma G^(p-1) / D for rho. These factors are the polylog(d) of the lemma.
GAMMA_FORM = alpha**p * Gamma * G ** (p - 1)
RHO_FORM = alpha**p * (1 / D + Gamma * G ** (p - 1) / D)
_PER_SLOPE = (1 + nu / (p * SIGNAL_MARGIN ** (p - 1))) * mean_weight
GAMMA_FACTOR = p * C / tau * (kappa / D) ** p * (1 - G / D) * _PER_SLOPE
RHO_FACTOR = -p * C / tau * (kappa / D) ** p * (Xi * G / Gamma) * _PER_SLOPE

#: Leading rho increment over leading gamma increment: small if Gamma exceeds G / D^2.
RHO_OVER_GAMMA = -Xi * G / (Gamma * (D - G))

#: Exact over leading increment, and the factors of the lemma, as measured along a trajectory.
RATIO = delta_gamma / (eta * mean_weight * gamma_leading())
MEASURED_GAMMA_FACTOR = delta_gamma / (eta * GAMMA_FORM)
#: |rho + delta_rho| - |rho| for small delta_rho.
GROWTH_OF_RHO = sp.Piecewise((sp.Abs(delta_rho), sp.Eq(rho, 0)), (sp.sign(rho) * delta_rho, True))
MEASURED_RHO_FACTOR = GROWTH_OF_RHO / (eta * RHO_FORM)

#: Leading terms of a random set with one feature +1, without the term Xi T of all sets. A set with
#: one feature -1 has the opposite share, so only the difference of their weights s(-F) matters.
ISOLATED_GAMMA = (p * (kappa * alpha) ** p * Gamma / (tau * D)) * (
    (Gamma - Xi) ** (p - 1) * (1 - (C - 1) * (Gamma - Xi)) - (Lambda - Xi) ** p
)
ISOLATED_RHO = -(p * (kappa * alpha) ** p * Xi / (tau * DIFFERENT)) * (
    (Lambda - Xi) ** (p - 1) * (1 + (D - C) * (Lambda - Xi))
    + (C - 1) * (Gamma - Xi) ** (p - 1) * (1 + (D - C) * (Gamma - Xi))
)


#: Mapping from displayed equations, including those of the increments, to right-hand sides.
EQUATIONS: dict[str, sp.Expr] = increments.EQUATIONS | {
    "leading_gamma": gamma_leading(),
    "leading_rho": rho_leading(),
    "leading_gamma_excess": GAMMA_LEADING_EXCESS,
    "leading_rho_excess": RHO_LEADING_EXCESS,
    "polylog_gamma": GAMMA_FACTOR,
    "polylog_rho": RHO_FACTOR,
    "leading_rho_over_gamma": RHO_OVER_GAMMA,
    "isolated_gamma": ISOLATED_GAMMA,
    "isolated_rho": ISOLATED_RHO,
    "ratio": RATIO,
    "measured_gamma": MEASURED_GAMMA_FACTOR,
    "measured_rho": MEASURED_RHO_FACTOR,
}


def identities(equations: Mapping[str, sp.Expr] = EQUATIONS) -> dict[str, Identity]:
    """Return the identities of this module.

    Parameters
    ----------
    equations
        The displayed equations; altered ones make the proof fail (for tests).
    """
    claims = factor_identities(equations)
    for name, row, excess in (("gamma", _GAMMA, _GAMMA_EXCESS), ("rho", _RHO, _RHO_EXCESS)):
        linear = sp.diff(row, nu)
        claims |= affine_identities(f"nu moves {name} by nothing", linear)
        claims |= affine_identities(f"excess form, {name}", row - excess)
    return increments.identities(equations) | claims


def factor_identities(equations: Mapping[str, sp.Expr] = EQUATIONS) -> dict[str, Identity]:
    """Return the identities of the leading terms and of the factors of the lemma."""
    claims = _leading_identities(equations) | _isolated_identities(equations)
    claims |= _measured_identities(equations)
    return {name: identity.map(write_out) for name, identity in claims.items()}


def _leading_identities(equations: Mapping[str, sp.Expr]) -> dict[str, Identity]:
    excess = {"gamma": (_GAMMA_EXCESS, SAME), "rho": (_RHO_EXCESS, DIFFERENT)}
    claims = {"1 - G/D = (D - C) Xi": Identity(1 - G / D, (D - C) * Xi)}
    for name, (row, shared) in excess.items():
        signal = MODEL.signal_set(getattr(sym, name)).subs(R, 0)
        over_D = sp.Integer(1) if name == "gamma" else D
        factor = equations[f"polylog_{name}"]
        claims |= {
            f"signal set at R = 0, {name}": Identity(signal, equations[f"leading_{name}"]),
            f"signal set at R = 0, {name}, excess form": Identity(
                margins.of_signal_set(row).subs(T, C) / shared, equations[f"leading_{name}_excess"]
            ),
            f"form of Lemma 4.3, {name}": Identity(
                GAMMA_FORM / over_D * factor, signal * mean_weight
            ),
        }
    of_gamma, of_rho = (MODEL.signal_set(x).subs(R, 0) for x in (gamma, rho))
    claims["leading rho over gamma"] = Identity(
        equations["leading_rho_over_gamma"] * of_gamma, of_rho
    )
    return claims


def _isolated_identities(equations: Mapping[str, sp.Expr]) -> dict[str, Identity]:
    claims, sets = {}, {"gamma": RANDOM_GAMMA_EXCESS, "rho": RANDOM_RHO_EXCESS}
    for name, random_set in sets.items():
        plus, minus = (random_set.subs({a: k, b: 1 - k, T: 0}, simultaneous=True) for k in (1, 0))
        claims[f"isolated random set, {name}"] = Identity(plus, equations[f"isolated_{name}"])
        claims[f"opposite types cancel, {name}"] = Identity(plus, -minus)
    return claims


def _measured_identities(equations: Mapping[str, sp.Expr]) -> dict[str, Identity]:
    """Return the identities of the measured factors, for |rho| while rho keeps its sign."""
    growth, start = sp.symbols("growth start", positive=True)
    lemma = {
        "gamma": Identity(
            delta_gamma, eta * alpha**p * Gamma * G ** (p - 1) * equations["measured_gamma"]
        ),
        "ratio": Identity(
            equations["ratio"] * equations["polylog_gamma"], equations["measured_gamma"]
        ),
    }
    bound = eta * alpha**p * (1 / D + Gamma * G ** (p - 1) / D)
    for sign, case in ((1, "rho > 0"), (-1, "rho < 0")):
        measured = equations["measured_rho"].subs(
            {rho: sign * start, delta_rho: sign * growth}, simultaneous=True
        )
        lemma[f"|rho|, {case}"] = Identity(growth, bound * measured)
    return {f"measured factor of the lemma, {name}": x for name, x in lemma.items()}


#: Why identities of one set decide a sum over any number of sets.
EVERY_NUMBER_OF_SETS = (
    "decided for every D = L C: given T, each set contributes through its own type, so that the"
    " identities outside the sum over the random sets and of one set of any type (a, b) give every"
    " L; C k_0 + n k_1 in each set gives D k_0 + T k_1 in all sets; C, D, T, a, b are free symbols"
)


def prove(points: int = 6, seed: int = 0) -> Proof:
    """Prove the identities of this module, for every number of sets."""
    claim = "Lemma 4.3: increments of gamma and rho and their leading terms"
    proof = decide_all(claim, identities(), points=points, seed=seed)
    return replace(proof, facts={"sums over the sets": EVERY_NUMBER_OF_SETS})
