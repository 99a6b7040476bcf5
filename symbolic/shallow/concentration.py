"""Two-equation model of the concentration of attention: a gap, a logit and a first integral.

Without confusion tokens, with p (p_r below) the attention of an irrelevant query on relevant keys,
h the gap of the output between relevant and other keys and l the logit,

    h' = c_h p,    l' = c_l p (1 - p) h,    p = 1 / (1 + (1/alpha - 1) e^(-l)),

from h = l = 0 until the hinge stops training at p h = 1. With rho = c_l / c_h, the trajectory
depends on rho only: g(p) = log(p/(1-p)) + 1/(1-p) obeys g(p) - rho h^2 / 2 = g(alpha). The odds
x = p/(1-p) solve x + log x = g(alpha) - 1 + rho h^2 / 2, whose solution is Wright's omega function,
so p is known in closed form along h, and the time is an integral over h. While p is small, x is
alpha e^(rho h^2/2), so the time tends to T_small for small alpha. Without attention p = alpha.
"""

import sympy as sp

from symbolic.core.identity import Identity
from symbolic.core.proof import Proof, ProofBuilder, decide_all

p, alpha, h, rho, c_h, c_l = sp.symbols("p_r alpha h rho c_h c_l", positive=True)
odds, decay, delta = sp.symbols("odds decay delta", positive=True)

P_OF_DECAY = 1 / (1 + (1 / alpha - 1) * decay)  # decay = e^-l
H_DOT = c_h * p
L_DOT = c_l * p * (1 - p) * h
P_DOT = c_l * p**2 * (1 - p) ** 2 * h
G = sp.log(p / (1 - p)) + 1 / (1 - p)
#: rho as a function of the final p.
RHO = 2 * p**2 * (G - G.subs(p, alpha))
#: x + log x for the odds x, as a function of h.
OMEGA_OF = G.subs(p, alpha) - 1 + rho * h**2 / 2
#: dt / dh in terms of the odds; the final time without attention, and for small alpha.
CLOCK = (1 + 1 / odds) / c_h
T_WITHOUT = 1 / (c_h * alpha**2)
T_SMALL = sp.sqrt(sp.pi / (2 * rho)) / (c_h * alpha)


def identities() -> dict[str, Identity]:
    """Return the identities; logarithms enter through derivatives only."""
    slope = -decay * sp.diff(P_OF_DECAY, decay)  # dp/dl
    at = {decay: alpha * (1 - p) / (p * (1 - alpha))}
    of_odds = odds / (1 + odds)
    gap = sp.Symbol("g_p", real=True) - sp.Symbol("g_alpha", real=True)
    names = {G: sp.Symbol("g_p", real=True), G.subs(p, alpha): sp.Symbol("g_alpha", real=True)}
    return {
        "decay as a function of p": Identity(P_OF_DECAY.subs(at), p),
        "p' = c_l p^2 (1-p)^2 h": Identity(slope.subs(at) * L_DOT, P_DOT),
        "g(p) - rho h^2/2 is constant": Identity(sp.diff(G, p) * P_DOT, (c_l / c_h) * h * H_DOT),
        "stopped at p h = 1": Identity(RHO.subs(names), (2 * gap / h**2).subs(h, 1 / p)),
        "g = log x + 1 + x": Identity(
            sp.diff(G.subs(p, of_odds), odds), sp.diff(sp.log(odds) + odds, odds)
        ),
        "d(x + log x)/dh = rho h": Identity(sp.diff(OMEGA_OF, h), rho * h),
        "dx/dg = p": Identity(1 / sp.diff(sp.log(odds) + odds, odds), of_odds),
        "dt/dh": Identity(1 / H_DOT.subs(p, of_odds), CLOCK),
        "without attention": Identity(
            c_h * alpha * T_WITHOUT, 1 / alpha
        ),  # h' T = h at alpha h = 1
    }


def limits() -> dict[str, tuple[sp.Expr, sp.Expr]]:
    """Return pairs of a computed and an expected limit, such as 1 - p ~ 2/rho."""
    near_one = RHO.subs(p, 1 - delta)
    half = sp.Rational(1, 2)
    constant = G.subs(p, half) - 2  # log 1 + 1 + 1
    slow = sp.integrate(sp.exp(-rho * h**2 / 2), (h, 0, sp.oo)) / (c_h * alpha)
    return {
        "time at small odds": (T_SMALL, slow),
        "rho (1 - p) -> 2": (sp.limit(sp.expand_log(near_one * delta, force=True), delta, 0), 2),
        "rho = 0 at p = alpha": (RHO.subs(p, alpha), sp.S.Zero),
        "x + log x = g(alpha) - 1 at h = 0": (OMEGA_OF.subs(h, 0), G.subs(p, alpha) - 1),
        "g = log x + 1 + x at x = 1": (constant, sp.S.Zero),
    }


def prove() -> list[Proof]:
    """Prove the identities at random points, and the limits."""
    builder = ProofBuilder("Two equations: limits")
    for name, (limit, expected) in limits().items():
        builder.equal(name, sp.simplify(limit - expected), 0)
    return [decide_all("Two equations", identities()), builder.build()]
