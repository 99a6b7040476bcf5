"""Lemma 4.1: on the invariant manifold the attention matrix has three values.

"There exist beta = sigma_A, gamma, rho such that for all t: A_ii = beta; A_ij = gamma for i, j in
the same set; A_ij = rho for i, j in different sets." (Jelassi et al. 2022, Lemma 4.1.) By induction
over t it is enough that the population gradient at such an A and v = alpha w* has one value on all
same-set entries and one on all others; the diagonal is not trained. Proved for every D and C in
`symbolic.positional.all_sizes`, together with the values,

    dL/dA_ij = (1 / (D (C-1))) d ell/d gamma   (same set),
    dL/dA_ij = (1 / (D (D-C))) d ell/d rho     (different sets),

and checked here independently: the gradient of the full model with numbered entries is summed over
all patterns of the data at small D and C, in exact arithmetic at a random rational point. A false
identity passes at one point with a probability of at most
`symbolic.positional.reduction.error_bound`.
"""

import random
from collections.abc import Sequence

import sympy as sp

from symbolic.core.displays import Displays
from symbolic.core.proof import Proof, ProofBuilder
from symbolic.positional import all_sizes, symmetry
from symbolic.positional.full_model import Pair, full_model
from symbolic.positional.lemma_4_3 import DIFFERENT, SAME
from symbolic.positional.reduction import (
    FullExpectation,
    Layout,
    RationalPoint,
    ReducedExpectation,
    error_bound,
    first_and_last,
    full_expectation,
    layouts,
    reduced_expectation,
)
from symbolic.positional.symbols import C, D, gamma, rho

CLAIM = "Lemma 4.1: three values of A, and the gradient of each"
#: Sizes (D, C, p) at which the full model can be summed over all patterns.
CASES = ((4, 2, 3), (6, 2, 3), (6, 3, 3), (4, 2, 5), (6, 2, 5), (6, 3, 5))
#: Sizes that `prove_all` runs in addition to the proof for all sizes.
CROSS_CHECKS = ((4, 2, 3), (6, 3, 3))

_ELL = sp.Symbol("ell")
_SHARED = {"dL_dA_same": gamma, "dL_dA_different": rho}
#: Mapping from displayed equations to right-hand sides.
EQUATIONS: dict[str, sp.Expr] = {
    "dF_dA_kl": all_sizes.LOGIT_GRADIENT,
    "dL_dA_same": sp.Derivative(_ELL, gamma) / SAME,
    "dL_dA_different": sp.Derivative(_ELL, rho) / DIFFERENT,
}


def residual(name: str, right: sp.Expr) -> sp.Expr:
    """Return an expression that vanishes if the equation holds.

    The entries of an orbit must add up to the derivative of ell.
    """
    if name == "dF_dA_kl":
        return sp.diff(all_sizes.output(), all_sizes.A[all_sizes.k, all_sizes.l]) - right
    slope = sp.Symbol("d_ell")
    entry = right.xreplace({sp.Derivative(_ELL, _SHARED[name]): slope})
    return all_sizes.PAIRS[_SHARED[name]] * entry.subs(D, all_sizes.L * C) - slope


DISPLAYS = Displays(EQUATIONS, residual)


def prove(
    D: int,
    C: int,
    p: int = 3,
    *,
    seed: int = 0,
    partitions: Sequence[Layout] | None = None,
    multiplicities: tuple[int, int] | None = None,
    perturbed_entry: Pair | None = None,
) -> Proof:
    """Prove the lemma at given sizes, at one random rational point per partition.

    Parameters
    ----------
    D, C, p
        Sizes.
    seed
        Seed of the points.
    partitions
        Partitions of the patches into sets; by default all.
    multiplicities
        Numbers of entries with the values gamma and rho; other values make the proof fail (for
        tests).
    perturbed_entry
        Entry of A that is moved off the manifold, which makes the proof fail (for tests).
    """
    counts = multiplicities or (D * (C - 1), D * (D - C))
    chosen = layouts(D, C) if partitions is None else partitions
    builder = ProofBuilder(CLAIM, D=D, C=C, p=p)
    rng = random.Random(seed)
    symmetry.check(builder, D, p, rng)
    for layout in chosen:
        point = RationalPoint(rng)
        full = full_expectation(full_model(D, p), layout, point, perturbed_entry=perturbed_entry)
        reduced = reduced_expectation(D, C, p, point)
        check_outputs(builder, full, reduced)
        _check_entries(builder, layout, full, reduced, counts)
        _count_values(builder, layout, full)
        builder.facts["patterns"] = full.patterns
    builder.points = len(chosen)
    builder.facts["partitions"] = len(chosen)
    builder.facts["Schwartz-Zippel error of one comparison"] = f"{float(error_bound(p)):.1e}"
    return builder.build()


def prove_all(*, quick: bool = False) -> list[Proof]:
    """Prove the lemma for all sizes and at `CROSS_CHECKS`, two partitions each if ``quick``."""
    proofs = [all_sizes.prove_4_1(), DISPLAYS.prove("Lemma 4.1")]
    for case in CROSS_CHECKS:
        proofs.append(prove(*case, partitions=first_and_last(*case[:2]) if quick else None))
    return proofs


def check_outputs(
    builder: ProofBuilder, full: FullExpectation, reduced: ReducedExpectation
) -> None:
    """Compare F of every pattern with the reduced F of its multiset of set types."""
    identity = "F depends on the data only through the types of the sets"
    for key, values in full.margins.items():
        builder.equal(identity, values, {reduced.margins[key]}, key)


def _check_entries(
    builder: ProofBuilder,
    layout: Layout,
    full: FullExpectation,
    reduced: ReducedExpectation,
    counts: tuple[int, int],
) -> None:
    _, d_gamma, d_rho = reduced.gradient
    set_of = {j: index for index, patches in enumerate(layout) for j in patches}
    for (i, j), value in full.mean().dA.items():
        if set_of[i] == set_of[j]:
            identity = "dL/dA_ij, same set = (d ell/d gamma) / (D (C-1))"
            expected = d_gamma / counts[0]
        else:
            identity = "dL/dA_ij, different sets = (d ell/d rho) / (D (D-C))"
            expected = d_rho / counts[1]
        builder.equal(identity, value, expected, (layout, i, j))
    for excess, plain in zip(reduced.excess_gradient, reduced.gradient):
        builder.equal("the excess form gives the same sums", excess, plain)


def _count_values(builder: ProofBuilder, layout: Layout, full: FullExpectation) -> None:
    """Count distinct gradient entries for a given signal set, and averaged over the signal set."""
    set_of = {j: index for index, patches in enumerate(layout) for j in patches}
    for name, gradients in (("given", full.by_signal_set), ("averaged", [full.mean()])):
        for pairs in ("same set", "different sets"):
            for gradient in gradients:
                same = pairs == "same set"
                values = {
                    g for (i, j), g in gradient.dA.items() if (set_of[i] == set_of[j]) == same
                }
                fact = f"distinct dL/dA_ij, {pairs}, signal set {name}"
                builder.facts[fact] = max(builder.facts.get(fact, 0), len(values))
