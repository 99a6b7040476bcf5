"""Lemma 4.2: the value vector stays in the span of w*.

"For all t there exists alpha such that v = alpha w*." (Jelassi et al. 2022, Lemma 4.2.) By
induction over t it is enough that at v = alpha w* on the manifold of Lemma 4.1 the population
gradient in every direction orthogonal to w* vanishes. F and all its other derivatives do not
contain the noise, and dF/dv_k is odd in the noise for k orthogonal to w*; since s(-F) is then
independent of the noise, whose law is symmetric, the expectation is zero. Along w* the gradient is
d ell/d alpha. Proved for every D and d and any A in `symbolic.positional.all_sizes`, and checked
here independently: the full model with numbered entries, at small sizes and random rational points
(for the error probability see `symbolic.positional.lemma_4_1`).
"""

import random
from collections.abc import Sequence
from fractions import Fraction

import sympy as sp

from symbolic.core.displays import Displays
from symbolic.core.proof import Proof, ProofBuilder
from symbolic.positional import all_sizes
from symbolic.positional.full_model import LOSS_SLOPE, FullModel, full_model
from symbolic.positional.lemma_4_1 import CROSS_CHECKS, check_outputs
from symbolic.positional.reduction import (
    Layout,
    RationalPoint,
    first_and_last,
    full_expectation,
    reduced_expectation,
)
from symbolic.positional.symbols import alpha
from symbolic.positional.symmetry import random_rational

CLAIM = "Lemma 4.2: v stays in span(w*), and the gradient of alpha"
NOISE_DIMENSIONS = 2

_SLOPE = sp.Derivative(sp.Symbol("ell"), alpha)
#: Mapping from displayed equations to right-hand sides.
EQUATIONS: dict[str, sp.Expr] = {
    "dF_dv_t": all_sizes.VALUE_GRADIENT,
    "dL_dv_parallel": _SLOPE,
    "dL_dv_perp": sp.Integer(0),
}


def residual(name: str, right: sp.Expr) -> sp.Expr:
    """Return an expression that vanishes if the equation holds.

    It compares dL/dv of one image, averaged over xi and -xi. On the span <v, X_j> = alpha s_j; a
    direction enters through the components of X_j.
    """
    if name == "dF_dv_t":
        return sp.diff(all_sizes.output(all_sizes.PROJECTION), all_sizes.v[all_sizes.t]) - right
    on_span = all_sizes.value_gradient_on_span
    if name == "dL_dv_parallel":
        of_alpha = LOSS_SLOPE * sp.diff(all_sizes.OUTPUT_ON_SPAN, alpha)
        along = LOSS_SLOPE * on_span(lambda j: all_sizes.s_of[j])
        return along - right.xreplace({_SLOPE: of_alpha})
    noise, t = all_sizes.xi, all_sizes.t
    both = on_span(lambda j: noise[j, t]) + on_span(lambda j: -noise[j, t])
    return LOSS_SLOPE * both / 2 - right


DISPLAYS = Displays(EQUATIONS, residual)


def prove(
    D: int,
    C: int,
    p: int = 3,
    *,
    seed: int = 0,
    partitions: Sequence[Layout] | None = None,
    off_span: Fraction = Fraction(0),
) -> Proof:
    """Prove the lemma at given sizes, at one random rational point per partition.

    Parameters
    ----------
    D, C, p
        Sizes.
    seed
        Seed of the points.
    partitions
        Partitions of the patches into sets; by default a contiguous and an interleaved one.
    off_span
        Component of v orthogonal to w*; nonzero values make the proof fail (for tests).
    """
    chosen = first_and_last(D, C) if partitions is None else partitions
    builder = ProofBuilder(CLAIM, D=D, C=C, p=p)
    rng = random.Random(seed)
    for layout in chosen:
        point = RationalPoint(rng)
        _check_noise(builder, full_model(D, p, 1 + NOISE_DIMENSIONS), layout, point, off_span)
        full = full_expectation(full_model(D, p), layout, point, off_span=off_span)
        reduced = reduced_expectation(D, C, p, point)
        check_outputs(builder, full, reduced)
        builder.equal(
            "dL/dv along w* = d ell/d alpha", full.mean().dv[0], reduced.gradient[0], layout
        )
        builder.facts["patterns"] = full.patterns
    builder.points = len(chosen)
    builder.facts["partitions"] = len(chosen)
    return builder.build()


def prove_all() -> list[Proof]:
    """Prove the lemma for all sizes and at the `CROSS_CHECKS` of Lemma 4.1."""
    general = [all_sizes.prove_4_2(), DISPLAYS.prove("Lemma 4.2")]
    return [*general, *(prove(*case) for case in CROSS_CHECKS)]


def _check_noise(
    builder: ProofBuilder,
    model: FullModel,
    layout: Layout,
    point: RationalPoint,
    off_span: Fraction,
) -> None:
    """Compare noise xi, -xi and 0 at arbitrary rational coefficients s_j."""
    rng = point.rng
    signs = [random_rational(rng) for _ in range(model.D)]
    noise = [[random_rational(rng) for _ in range(model.d - 1)] for _ in range(model.D)]
    v = [point.alpha, off_span, *[Fraction(0)] * (model.d - 2)]
    plus, minus, none = (
        model.evaluate(
            point.score_matrix(layout),
            v,
            signs,
            [[sign * xi for xi in row] for row in noise],
            point.constants,
        )
        for sign in (1, -1, 0)
    )
    for noisy in (plus, minus):
        identity = "F, dF/dA_ij and dF/dv along w* do not contain the noise"
        builder.equal(identity, noisy.F, none.F, "(F)")
        builder.equal(identity, noisy.dv[0], none.dv[0], "(v)")
        for pair in model.pairs:
            builder.equal(identity, noisy.dA[pair], none.dA[pair], pair)
    for k in range(1, model.d):
        identity = "dF/dv orthogonal to w* is odd in the noise"
        builder.equal(identity, plus.dv[k], -minus.dv[k], k)
        builder.equal("noise moves dF/dv orthogonal to w*", plus.dv[k] != 0, True, k)
