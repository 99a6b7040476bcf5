r"""A lower bound of the loss on gamma = rho, for every D, C, alpha, beta and odd activation.

"This implies gamma(t) >= rho(t) for all t" (Jelassi et al. 2022, after Lemma 4.3). A run with
gamma > rho cannot return to gamma = rho once its loss is lower than anywhere on this plane.

Lemma. If the activation is odd and increasing, gamma = rho implies ell >= log 2 P[T <= 0], with T =
C + R and R the sum of the coefficients outside the signal set.

Proof. On the plane Xi = Gamma, and a row depends on its own coefficient alone,
c_s = Lambda s + Gamma (T - s). Pair the rows with s = 1 and s = -1: there are T more of the first,
so F is the sum of the pairs, of T rows with s = 1 and of the rows with s = 0 (T >= 0; the image of
opposite coefficients has the opposite F). In prose: act(x) + act(y) has the sign of x + y, as
x > -y implies act(x) > act(-y) = -act(y). Here x + y = 2 Gamma T, c_0 = Gamma T, and
c_1 = Lambda + Gamma (T - 1) > 0 for T >= 1. So F has the sign of alpha T. For alpha >= 0,
log(1 + e^-F) >= log 2 where T <= 0; for alpha < 0 where T >= 0, with at least the same probability:
R is symmetric and C > 0. QED For C = 2 the same is true on rho = beta: there c of a patch is this
formula with Lambda and Gamma exchanged and the coefficient n - s of its partner, and each row is a
partner once.

Corollary. Along the flow ell does not increase: its rate is -|theta'|^2 in the metric diag(1,
D (C-1), D (D-C)). In prose: if at one time gamma > rho and ell < log 2 P[T <= 0], then gamma > rho
at all later times (a path to gamma < rho crosses the plane), and the test error is at most
ell/log 2, as each error costs log 2. By the Cauchy-Schwarz inequality, with the displayed variance
of rho' over a time h, D (D-C) (rho' h)^2 <= h ell: rho < beta lasts at least for the time `until`.

Proved for symbolic D and C, the activation represented by its values; the sign of F from the D x D
model.
"""

import random

import sympy as sp

from symbolic.core.displays import Displays, at_points
from symbolic.core.identity import Identity
from symbolic.core.proof import Proof, ProofBuilder
from symbolic.positional import margins
from symbolic.positional.attention import write_out
from symbolic.positional.full_model import full_model
from symbolic.positional.lemma_4_3 import DIFFERENT, SAME
from symbolic.positional.reduction import first_and_last, full_expectation
from symbolic.positional.symbols import C, Gamma, Lambda, T, beta, gamma, n, rho, s
from symbolic.positional.symmetric_line import COUNTS, N_MINUS, T_OF_COUNTS, LinePoint

CLAIM = "The floor of the loss on gamma = rho"

#: Sizes (D, C, p) at which the sign of F is computed from the D x D model, for every image.
CASES = ((4, 2, 3), (4, 2, 5), (6, 3, 3))

#: act(kappa alpha c_s) for an odd activation, by s.
ACT = {k: sp.Symbol(f"act_{name}") for k, name in {1: "plus", 0: "zero", -1: "minus"}.items()}
#: The gradient of the loss, and the velocities of the flow.
ELL_ALPHA, ELL_GAMMA, ELL_RHO = sp.symbols("ell_alpha ell_gamma ell_rho", real=True)
V_ALPHA, V_GAMMA, V_RHO = sp.symbols("v_alpha v_gamma v_rho", real=True)
VELOCITIES = {V_ALPHA: -ELL_ALPHA, V_GAMMA: -ELL_GAMMA / SAME, V_RHO: -ELL_RHO / DIFFERENT}
#: Time h and initial loss; mean of rho' and of its square over the time.
H, ELL = sp.symbols("h ell", positive=True)
MEAN, SQUARE = sp.symbols("mean mean_square", real=True)


def on_plane(coefficient: sp.Expr | int, total: sp.Expr = T) -> sp.Expr:
    """Return c of a patch with a given coefficient on gamma = rho."""
    return Lambda * coefficient + Gamma * (total - coefficient)


#: Mapping from displayed equations to right-hand sides.
EQUATIONS: dict[str, sp.Expr] = {
    "c_s": on_plane(s),
    "mirrored": -on_plane(s),
    "pair": 2 * Gamma * T,
    "c_zero": Gamma * T,
    "c_plus": Lambda + Gamma * (T - 1),
    "more_plus": T_OF_COUNTS,
    "F": N_MINUS * (ACT[1] + ACT[-1]) + T_OF_COUNTS * ACT[1] + COUNTS[0] * ACT[0],
    "on_rho_beta": Gamma * (n - s) + Lambda * (T - (n - s)),
    "ell_rate": -(V_ALPHA**2 + SAME * V_GAMMA**2 + DIFFERENT * V_RHO**2),
    "variance": SQUARE - MEAN**2,
    "until": DIFFERENT * (beta - rho) ** 2 / ELL,
}


def residual(name: str, right: sp.Expr) -> Identity:
    """Return an identity that holds if the equation holds, from margins and the chain rule."""
    rows = {1: C + COUNTS[1], 0: COUNTS[0], -1: COUNTS[-1]}
    c = on_plane(s)
    exact: dict[str, sp.Expr] = {
        "mirrored": c.subs({s: -s, T: -T}, simultaneous=True),
        "pair": c.subs(s, 1) + c.subs(s, -1),
        "c_zero": c.subs(s, 0),
        "c_plus": c.subs(s, 1),
        "more_plus": rows[1] - rows[-1],
        "F": sum(count * ACT[k] for k, count in rows.items()),
        "variance": sp.expand(SQUARE - 2 * MEAN * MEAN + MEAN**2),
    }
    if name == "c_s":
        return Identity(margins.WEIGHTED_SUM, right).map(lambda x: write_out(x).subs(rho, gamma))
    if name == "on_rho_beta":
        on_line = {rho: beta, C: 2}
        return Identity(margins.WEIGHTED_SUM, right).map(lambda x: write_out(x).subs(on_line))
    if name == "ell_rate":
        chain = ELL_ALPHA * V_ALPHA + ELL_GAMMA * V_GAMMA + ELL_RHO * V_RHO
        return Identity(chain, right).map(lambda x: x.subs(VELOCITIES))
    if name == "until":  # D (D-C) (rho' h)^2 = h ell at its end
        at_end = Identity(DIFFERENT * (MEAN * H) ** 2, H * ELL)
        return at_end.map(lambda x: x.subs(MEAN, (beta - rho) / H).subs(H, right))
    return Identity(exact[name], right)


DISPLAYS = Displays(EQUATIONS, residual, at_points)


def prove(D_: int, C_: int, p_: int = 3, *, seed: int = 0, sign: int = 1) -> Proof:
    """Prove that F of every image of the D x D model has the sign of alpha T.

    Two random rational points with gamma = rho are used per partition, one per sign of alpha.

    Parameters
    ----------
    D_, C_, p_
        Sizes.
    seed
        Seed of the points.
    sign
        -1 makes the proof fail (for tests).
    """
    builder = ProofBuilder(CLAIM, D=D_, C=C_, p=p_)
    rng = random.Random(seed)
    for layout in first_and_last(D_, C_):
        for alpha_sign in (1, -1):
            point = LinePoint(rng)
            point.alpha = alpha_sign * abs(point.alpha)
            full = full_expectation(full_model(D_, p_), layout, point)
            for key, outputs in full.margins.items():
                total = C_ + sum(plus - minus for plus, minus in key)
                signs = {sp.sign(output) for output in outputs}
                expected = {sign * alpha_sign * sp.sign(total)}
                builder.equal("F has the sign of alpha T", signs, expected, (layout, key))
            builder.facts["patterns"] = full.patterns
            builder.points += 1
    return builder.build()


def prove_all() -> list[Proof]:
    """Prove the displayed equations for all sizes, and the sign of F at `CASES`."""
    return [DISPLAYS.prove(CLAIM), *(prove(*case) for case in CASES)]
