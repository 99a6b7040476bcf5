"""Lemmas 5.1 and 5.2 for every P, every number of areas, any areas and any mask.

Given the cluster and the mask, u_qm is 1 if patch q lies in area m, else 0, and b_q is 1 if it is
unmasked, else 0. With p masked its token is e_p, so the logit of key q is

    theta_q = Upsilon_q + b_q sum over m of u_qm z_m Phi_m,

and F_p = sum over m of a_m z_m v_m with a_m = sum_q attn_q b_q u_qm. As the v_m are orthonormal and
X_p = z_n v_n, the loss of p is the sum over m of z_m^2 ([m = n] - a_m)^2 / 2. Differentiation with
arrays of symbolic length gives, for any theta, b and u,

    -d loss / d theta_r = attn_r (gbar - b_r sum over m of u_rm g_m),
    g_m = z_m^2 (a_m - [m = n]),   gbar = sum over m of a_m g_m,

and both lemmas follow by the chain rule through theta. theta depends only on the row of p. The
expectation over clusters and masks, with the indicator that p is masked, is linear (prose).
"""

from __future__ import annotations

import sympy as sp

from symbolic.core.proof import Proof, ProofBuilder
from symbolic.core.sums import vanishes

CLAIM = "for every P, any areas and any mask"

P, N = sp.symbols("P N", integer=True, positive=True)
#: Key and area in which the loss is differentiated; p's own area.
r, t, own = sp.symbols("r t n", integer=True)
_q, _m = sp.symbols("q m", integer=True)
theta, z, b, u = (sp.IndexedBase(name) for name in ("theta", "z", "b", "u"))
Phi, Upsilon = sp.IndexedBase("Phi"), sp.IndexedBase("Upsilon")
_delta = sp.KroneckerDelta

_TOTAL = sp.Sum(sp.exp(theta[_q]), (_q, 1, P))


def attention(key: sp.Expr) -> sp.Expr:
    """Return the attention of p to a key, the softmax of theta."""
    return sp.exp(theta[key]) / _TOTAL


def area_attention(m: sp.Expr) -> sp.Expr:
    """Return a_m, the unmasked attention to area m."""
    return sp.Sum(sp.exp(theta[_q]) * b[_q] * u[_q, m], (_q, 1, P)) / _TOTAL


def area_derivative(m: sp.Expr) -> sp.Expr:
    """Return g_m, the derivative of the loss in a_m."""
    return z[m] ** 2 * (area_attention(m) - _delta(m, own))


LOSS = sp.Sum(z[_m] ** 2 * (_delta(_m, own) - area_attention(_m)) ** 2, (_m, 1, N)) / 2
MEAN_DERIVATIVE = sp.Sum(area_attention(_m) * area_derivative(_m), (_m, 1, N))
LOGIT = Upsilon[r] + b[r] * sp.Sum(u[r, _m] * z[_m] * Phi[_m], (_m, 1, N))

#: -d loss / d theta_r, -d loss / d Phi_t and -d loss / d Upsilon_r.
LOGIT_GRADIENT = attention(r) * (
    MEAN_DERIVATIVE - b[r] * sp.Sum(u[r, _m] * area_derivative(_m), (_m, 1, N))
)
FEATURE_GRADIENT = z[t] * area_attention(t) * (MEAN_DERIVATIVE - area_derivative(t))
POSITION_GRADIENT = LOGIT_GRADIENT

#: Another key, for the second derivative of the loss in theta_r and theta_key.
key = sp.Symbol("key", integer=True)


def _area_slope(m: sp.Expr, of: sp.Expr) -> sp.Expr:
    """Return d a_m / d theta of a key."""
    return attention(of) * (b[of] * u[of, m] - area_attention(m))


def _logit_hessian() -> sp.Expr:
    """Return d^2 loss / d theta_r d theta_key."""
    v_r, v_key = -LOGIT_GRADIENT, -LOGIT_GRADIENT.subs(r, key)
    areas = sp.Sum(z[_m] ** 2 * _area_slope(_m, r) * _area_slope(_m, key), (_m, 1, N))
    return _delta(r, key) * v_r - v_r * attention(key) - attention(r) * v_key + areas


LOGIT_HESSIAN = _logit_hessian()


def in_area(gradient: sp.Expr, m: sp.Expr) -> sp.Expr:
    """Return the gradient of key r if it is unmasked and lies in area m only."""
    return gradient.xreplace({b[r]: sp.Integer(1), u[r, _m]: _delta(_m, m)})


def logit_identities(gradient: sp.Expr = LOGIT_GRADIENT) -> dict[str, sp.Expr]:
    """Return the identity of the gradient in the logits, which must vanish."""
    return {
        "-d loss / d theta_r = attn_r (gbar - b_r sum of u_rm g_m)": sp.diff(LOSS, theta[r])
        + gradient
    }


def hessian_identities(hessian: sp.Expr = LOGIT_HESSIAN) -> dict[str, sp.Expr]:
    """Return the identity of the second derivatives in the logits, which must vanish.

    e^theta_q is replaced by an independent unknown W_q; a derivative in theta_q is W_q times a
    derivative in W_q.
    """
    W = sp.IndexedBase("W")
    gradient, claimed = (_in_weights(x, W) for x in (LOGIT_GRADIENT, hessian))
    return {"d2 loss / d theta_r d theta_q": W[key] * sp.diff(gradient, W[key]) + claimed}


def _in_weights(expression: sp.Expr, W: sp.IndexedBase) -> sp.Expr:
    """Replace e^(theta_q + theta_r) by W_q W_r."""

    def product(exponent: sp.Expr) -> sp.Expr:
        pairs = exponent.as_coefficients_dict().items()
        return sp.Mul(*(W[entry.indices[0]] ** number for entry, number in pairs))

    return expression.replace(sp.exp, product)


def feature_identities(gradient: sp.Expr = FEATURE_GRADIENT) -> dict[str, sp.Expr]:
    """Return the identities of Lemma 5.1 by the chain rule, which must vanish.

    d theta_r / d Phi_t = b_r u_rt z_t is z_t for an unmasked key of area t, 0 for all others.
    """
    slope = b[r] * u[r, t] * z[t]
    chain = sp.Sum(slope * in_area(LOGIT_GRADIENT, t), (r, 1, P))
    others = sp.Sum((1 - _delta(_m, own)) * z[_m] ** 2 * area_attention(_m) ** 2, (_m, 1, N))
    manifest = area_attention(own) * (
        z[own] ** 3 * (1 - area_attention(own)) ** 2 + z[own] * others
    )
    return {
        "d theta_r / d Phi_t": sp.diff(LOGIT, Phi[t]) - slope,
        "-d loss / d Phi_m = a_m z_m (gbar - g_m)": chain - gradient,
        "p's own area: a sum of terms that are not negative": gradient.subs(t, own) - manifest,
    }


def position_identities(gradient: sp.Expr = POSITION_GRADIENT) -> dict[str, sp.Expr]:
    """Return the identities of Lemma 5.2 by the chain rule, which must vanish."""
    key = sp.Symbol("key", integer=True)
    chain = sp.Sum(LOGIT_GRADIENT * sp.diff(LOGIT, Upsilon[key]), (r, 1, P))
    unmasked = attention(r) * (MEAN_DERIVATIVE - area_derivative(t))
    return {
        "-d loss / d Upsilon_q, any key": chain - gradient.subs(r, key),
        "unmasked, in area m: attn_q (gbar - g_m)": in_area(gradient, t) - unmasked,
        "masked: attn_q gbar": gradient.subs(b[r], 0) - attention(r) * MEAN_DERIVATIVE,
        "the sum over q is 0": sp.Sum(gradient, (r, 1, P)),
    }


def prove_5_1() -> Proof:
    """Prove the identities behind Lemma 5.1 for all sizes."""
    return _prove(f"Lemma 5.1 {CLAIM}", logit_identities() | feature_identities())


def prove_5_2() -> Proof:
    """Prove the identities behind Lemma 5.2 for all sizes."""
    return _prove(f"Lemma 5.2 {CLAIM}", logit_identities() | position_identities())


def prove_hessian() -> Proof:
    """Prove the second derivatives in the logits for all sizes."""
    return _prove(f"The Hessian {CLAIM}", hessian_identities())


def _prove(claim: str, identities: dict[str, sp.Expr]) -> Proof:
    builder = ProofBuilder(claim)
    for name, expression in identities.items():
        builder.equal(name, vanishes(expression), True)
    return builder.build()
