"""Training the diagonal: a fourth order parameter, which Simplification 3.1 freezes.

"Without loss of generality" the diagonal A_ii = sigma_A is frozen (Jelassi et al. 2022,
Simplification 3.1). This loses no functions that A can express, because a constant added to a row
of A changes nothing, but it changes the dynamics. With A_ii = beta(t) trained like the other
entries,

    d beta/dt = -(1/D) d ell/d beta = (1/D) (d ell/d gamma + d ell/d rho),

because the derivatives of a softmax in its D scores sum to zero: the row sums of dL/dA vanish. The
same sum of the three velocities makes the row sums of A a constant of motion,

    beta + (C-1) gamma + (D-C) rho = constant (derived).

Proved for symbolic D, C and odd p from the weights, and from the D x D model with all D^2 entries
of A free at small sizes.
"""

import random
from collections.abc import Sequence
from fractions import Fraction

import sympy as sp

from symbolic.core.displays import Displays, at_points
from symbolic.core.identity import Identity
from symbolic.core.proof import Proof, ProofBuilder
from symbolic.core.sums import collapse
from symbolic.positional import all_sizes, margins
from symbolic.positional.attention import row_sum, write_out
from symbolic.positional.full_model import full_model
from symbolic.positional.lemma_4_1 import CASES
from symbolic.positional.lemma_4_3 import DIFFERENT, SAME
from symbolic.positional.reduction import (
    Layout,
    RationalPoint,
    first_and_last,
    full_expectation,
    reduced_expectation,
)
from symbolic.positional.symbols import C, D, Gamma, Lambda, Xi, beta, c, gamma, rho, s, tau
from symbolic.positional.symmetry import random_rational

CLAIM = "The trained diagonal"

#: d ell/d gamma and d ell/d rho as symbols, and the velocities of the flow in terms of them.
ELL_GAMMA, ELL_RHO = sp.symbols("ell_gamma ell_rho", real=True)
ELL_BETA = -(ELL_GAMMA + ELL_RHO)
BETA_VELOCITY = -ELL_BETA / D
GAMMA_VELOCITY, RHO_VELOCITY = -ELL_GAMMA / SAME, -ELL_RHO / DIFFERENT

#: A constant that is added to a row of A, and a short time.
_CONSTANT, _TIME = sp.symbols("constant t", real=True)
#: The constant of motion, a row sum of A.
ROW_SUM = row_sum(beta, gamma, rho)


def d_beta(c: sp.Expr) -> sp.Expr:
    """Return the derivative of the weighted sum ``c`` of a patch in beta, given ``c``."""
    return Lambda / tau * (s - c)


def identities(velocity: sp.Expr = BETA_VELOCITY) -> dict[str, Identity]:
    """Return the identities for symbolic D, C and p.

    Parameters
    ----------
    velocity
        Velocity of beta; another one makes the proof fail (for tests).
    """
    c_of = margins.WEIGHTED_SUM
    claims = {"d c / d beta": residual("c_beta", d_beta(c))}
    for weight in (Lambda, Gamma, Xi):
        claims[f"{weight} is unchanged by a constant added to a row of A"] = Identity(
            _with_constant(weight), variable=_CONSTANT
        )
    claims["the derivatives of c in beta, gamma and rho sum to 0"] = Identity(
        write_out(d_beta(c_of) + margins.d_gamma(c_of)), write_out(-margins.d_rho(c_of))
    )
    act = margins.activation(margins.MARGIN)
    claims["those of act(O) too, so ell_beta = -(ell_gamma + ell_rho)"] = Identity(
        _with_constant(act), variable=_CONSTANT
    )
    velocities = {beta: velocity, gamma: GAMMA_VELOCITY, rho: RHO_VELOCITY}
    moved = {x: x + speed * _TIME for x, speed in velocities.items()}
    claims["a row sum of A is a constant of motion"] = Identity(
        ROW_SUM.subs(moved, simultaneous=True), variable=_TIME
    )
    return claims


def _with_constant(expression: sp.Expr) -> sp.Expr:
    """Return an expression with a constant added to beta, gamma and rho."""
    moved = {x: x + _CONSTANT for x in (beta, gamma, rho)}
    return write_out(expression).subs(moved, simultaneous=True)


#: Mapping from displayed equations to right-hand sides.
EQUATIONS: dict[str, sp.Expr] = {
    "c_beta": d_beta(c),
    "ell_beta": ELL_BETA,
    "dbeta_dt": BETA_VELOCITY,
    "dgamma_dt": GAMMA_VELOCITY,
    "drho_dt": RHO_VELOCITY,
    "row_sum": ROW_SUM,
}


def residual(name: str, right: sp.Expr) -> Identity:
    """Return an identity that holds if the equation holds.

    By linearity, act(O) of a row can represent ell; its derivatives in gamma and rho are proved in
    `margins`.
    """
    if name == "c_beta":
        of_c = right.subs(c, margins.WEIGHTED_SUM)
        return Identity(margins.WEIGHTED_SUM, of_c, beta).map(write_out)
    if name == "row_sum":
        same, own = all_sizes.SAME_SET, all_sizes.SAME_PATCH
        row = all_sizes.over_patches(rho + (gamma - rho) * same + (beta - gamma) * own)
        return Identity(collapse(row).subs(all_sizes.L, D / C), right)
    act = write_out(margins.activation(margins.MARGIN))
    _, of_gamma, of_rho = map(write_out, margins.row_gradient())
    of_row = right.subs({ELL_GAMMA: of_gamma, ELL_RHO: of_rho}, simultaneous=True)
    if name == "ell_beta":
        return Identity(act, of_row, beta)
    x = {"dbeta_dt": beta, "dgamma_dt": gamma, "drho_dt": rho}[name]
    return Identity(-act, of_row * all_sizes.PAIRS[x].subs(all_sizes.L, D / C), x)


DISPLAYS = Displays(EQUATIONS, residual, at_points)


def prove(
    D_: int,
    C_: int,
    p_: int = 3,
    *,
    seed: int = 0,
    entries: int | None = None,
    partitions: Sequence[Layout] | None = None,
) -> Proof:
    """Compare with the gradient of the D x D model with a trained diagonal.

    One random rational point is used per partition, and one with all entries of A free.

    Parameters
    ----------
    D_, C_, p_
        Sizes.
    seed
        Seed of the points.
    entries
        Number of diagonal entries; another one makes the proof fail (for tests).
    partitions
        Partitions of the patches into sets; by default a contiguous and an interleaved one.
    """
    builder = ProofBuilder(CLAIM, D=D_, C=C_, p=p_)
    chosen = first_and_last(D_, C_) if partitions is None else partitions
    rng = random.Random(seed)
    model = full_model(D_, p_, train_diagonal=True)
    _check_rows(builder, D_, p_, rng)
    for layout in chosen:
        point = RationalPoint(rng)
        full = full_expectation(model, layout, point)
        _, d_gamma, d_rho = reduced_expectation(D_, C_, p_, point).gradient
        expected = -(d_gamma + d_rho) / (entries or D_)
        dA = full.mean().dA
        for i in range(D_):
            identity = "dL/dA_ii = -(d ell/d gamma + d ell/d rho) / D"
            builder.equal(identity, dA[i, i], expected, (layout, i))
            row = sum(dA[i, j] for j in range(D_))
            builder.equal("the rows of dL/dA sum to 0", row, 0, (layout, i))
        builder.facts["patterns"] = full.patterns
    builder.points = len(chosen) + 1
    return builder.build()


def prove_all() -> list[Proof]:
    """Prove the identities for all sizes, and compare with the full model at `CASES`."""
    builder = ProofBuilder(f"{CLAIM}, for every D, C and odd p")
    for name, identity in identities().items():
        builder.decide(name, identity)
    return [builder.build(), DISPLAYS.prove(CLAIM), *(prove(*case) for case in CASES)]


def _check_rows(builder: ProofBuilder, D_: int, p_: int, rng: random.Random) -> None:
    """Test that the rows of dF/dA sum to 0 at arbitrary A, v and X."""
    model = full_model(D_, p_, train_diagonal=True)
    free = [[random_rational(rng, signed=False) for _ in range(D_)] for _ in range(D_)]
    value = model.evaluate(
        free,
        [random_rational(rng) for _ in range(model.d)],
        [random_rational(rng) for _ in range(D_)],
        [[random_rational(rng) for _ in range(model.d - 1)] for _ in range(D_)],
        {name: random_rational(rng, signed=False) for name in ("kappa", "nu", "tau")},
    )
    for i in range(D_):
        row = sum((value.dA[i, j] for j in range(D_)), Fraction(0))
        builder.equal("the rows of dF/dA sum to 0 at any A, v and X", row, 0, i)
