"""The drift of gamma - rho on the line gamma = rho, for every D, C and odd p.

"This implies gamma(t) >= rho(t) for all t" (Jelassi et al. 2022, after Lemma 4.3): the half plane
gamma >= rho is forward invariant if and only if the drift is not negative on its boundary. There
Gamma = Xi = r and Lambda = 1 - (D-1) r, so the margin of a patch is kappa alpha y_s,

    y_s = r T + (1 - D r) s,

independent of its set, and F depends on the image only through the numbers N_+ and N_- of features
among the N = D - C patches outside the signal set. The share of a patch in d(gamma - rho)/dt is
linear in the sum n over its set. Given N_+ and N_- the random patches are exchangeable, so the
C - 1 others of its set have the mean (C-1)(R-s)/(N-1). This gives (derived)

    d(gamma - rho)/dt = E[ s(-F) p (kappa alpha)^p C r (1 - D r) / (tau D N (N-1))
        sum over s = 0, -1 of N_s (1-s) (N-1-R+s) (y_1^(p-1) - y_s^(p-1)) / (y_1 - y_s) ].

Proved from the reduced gradients for symbolic D, C and odd p, the mean by enumeration, and the
complete formula from the D x D model at small sizes.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations
from math import factorial
from typing import Any

import sympy as sp

from symbolic.core.displays import Displays, at_points
from symbolic.core.identity import Identity
from symbolic.core.proof import Proof, ProofBuilder
from symbolic.core.zero import evaluate, rationalize
from symbolic.positional import margins
from symbolic.positional.attention import write_out
from symbolic.positional.full_model import LOSS_SLOPE, full_model
from symbolic.positional.lemma_4_1 import CASES
from symbolic.positional.lemma_4_3 import DIFFERENT, SAME
from symbolic.positional.reduction import (
    FullExpectation,
    Layout,
    Multiset,
    RationalPoint,
    first_and_last,
    full_expectation,
)
from symbolic.positional.symbols import (
    C,
    D,
    Gamma,
    T,
    alpha,
    gamma,
    kappa,
    n,
    nu,
    p,
    rho,
    s,
    slope,
    tau,
    weight,
    y,
)

CLAIM = "gamma = rho: the drift of gamma - rho"

#: Numbers of features +1 and -1 outside the signal set, and R and T in terms of them.
N_PLUS, N_MINUS = sp.symbols("N_plus N_minus", integer=True, nonnegative=True)
N = D - C
R_OF_COUNTS = N_PLUS - N_MINUS
T_OF_COUNTS = C + R_OF_COUNTS
#: Number of patches outside the signal set with the coefficient s, by s.
COUNTS: dict[int, sp.Expr] = {1: N_PLUS, 0: N - N_PLUS - N_MINUS, -1: N_MINUS}


def output(coefficient: sp.Expr | int) -> sp.Expr:
    """Return y_s, the margin of a patch with a given coefficient over kappa alpha; Gamma is r."""
    return Gamma * T_OF_COUNTS + (1 - D * Gamma) * coefficient


def factor(coefficient: int) -> sp.Expr:
    """Return N_s (1-s) (N-1-R+s) (y_1^(p-1) - y_s^(p-1)) / (y_1 - y_s) for s in {0, -1}."""
    y_1, y_s = output(1), output(coefficient)
    slopes = (y_1 ** (p - 1) - y_s ** (p - 1)) / (y_1 - y_s)
    weight = (1 - coefficient) * (N - 1 - R_OF_COUNTS + coefficient)
    return COUNTS[coefficient] * weight * slopes


#: Share of an image in d(gamma - rho)/dt over s(-F), given the numbers of features. The sign of the
#: sum of the two factors is certified on boxes elsewhere.
FACTORS = factor(0) + factor(-1)
SCALE = p * (kappa * alpha) ** p * C * Gamma / (tau * D * N * (N - 1))
DRIFT = SCALE * (1 - D * Gamma) * FACTORS

#: F in terms of these numbers; the signal set adds C patches with s = 1.
SUM_OF_POWERS = (
    sum(count * output(coefficient) ** p for coefficient, count in COUNTS.items())
    + C * output(1) ** p
)
F_ON_LINE = (kappa * alpha) ** p * SUM_OF_POWERS + kappa * alpha * nu * T_OF_COUNTS

#: Mean of n over the arrangements of the features, for a patch outside with coefficient s.
MEAN_N = s + (C - 1) * (R_OF_COUNTS - s) / (N - 1)

_E, _DRIFT = sp.Function("E"), sp.Symbol("drift")
#: Mapping from displayed equations to right-hand sides.
EQUATIONS: dict[str, sp.Expr] = {
    "R": R_OF_COUNTS,
    "y_plus": output(1),
    "y_zero": output(0),
    "y_minus": output(-1),
    "F": F_ON_LINE,
    "mean_n": MEAN_N,
    "drift": DRIFT,
    "velocity": _E(weight * _DRIFT),
}


def on_line(expression: sp.Expr) -> sp.Expr:
    """Return an expression at gamma = rho in beta, gamma and the numbers of features."""
    return write_out(expression.subs(T, T_OF_COUNTS)).subs(rho, gamma)


def _row(row_slope: sp.Expr | None = None) -> sp.Expr:
    """Return the share of a patch in d(gamma - rho)/dt over s(-F), from the reduced gradients.

    Gradients per entry are those of Lemma 4.1; d loss = -s(-F) dF.
    """
    of_slope = margins.activation_slope if row_slope is None else (lambda margin: row_slope)
    _, of_gamma, of_rho = margins.row_gradient(of_slope)
    return of_gamma / SAME - of_rho / DIFFERENT


def identities(drift: sp.Expr = DRIFT) -> dict[str, Identity]:
    """Return the identities of the derivation for symbolic D, C and p.

    Parameters
    ----------
    drift
        Drift of an image over s(-F); another one makes the proof fail (for tests).
    """
    linear = ((n - s) / (C - 1) - (T - n) / N) * kappa * alpha * Gamma / (tau * D) * slope
    mean = on_line(linear.subs(n, MEAN_N))
    no_set = on_line(kappa * alpha * Gamma / (tau * D) * slope * C / N)
    return {
        "margin of a patch = kappa alpha y_s": Identity(
            margins.MARGIN, kappa * alpha * output(s)
        ).map(on_line),
        "one patch, linear in n": Identity(_row(slope), linear).map(on_line),
        "one patch of a random set, on average": Identity(
            mean, -no_set * (1 - (R_OF_COUNTS - s) / (N - 1))
        ),
        "one patch of the signal set": Identity(
            on_line(linear).subs({s: 1, n: C}, simultaneous=True), no_set / C * (N - R_OF_COUNTS)
        ),
        "all patches = d(gamma - rho)/dt": Identity(_all_patches(), on_line(drift)),
        "F in the numbers of features": residual("F", F_ON_LINE),
    }


def _all_patches() -> sp.Expr:
    """Return the share of an image in d(gamma - rho)/dt over s(-F), with n replaced by its mean."""
    row = on_line(_row())
    outside = (count * row.subs(n, MEAN_N).subs(s, k) for k, count in COUNTS.items())
    return C * row.subs({s: 1, n: C}, simultaneous=True) + sum(outside)


def residual(name: str, right: sp.Expr) -> Identity:
    """Return an identity that holds if the equation holds, from margins and gradients."""
    if name == "R":
        return Identity(right, sum(k * count for k, count in COUNTS.items()))
    if name in _AT:
        return Identity(margins.MARGIN.subs(s, _AT[name]), kappa * alpha * right).map(on_line)
    if name == "F":
        numbers = {**COUNTS, 1: COUNTS[1] + C}
        F = (m * margins.activation(kappa * alpha * output(k)) for k, m in numbers.items())
        return Identity(sum(F), right).map(on_line)
    if name == "mean_n":
        return Identity(sum((mean - exact) ** 2 for mean, exact, _ in _means(6, 2, right)))
    if name == "drift":
        return Identity(_all_patches(), on_line(right))
    velocity = right.replace(_E, lambda x: x).subs(_DRIFT, DRIFT)
    return Identity(on_line(velocity), -LOSS_SLOPE.subs(y, 1) * _all_patches())


_AT = {"y_plus": 1, "y_zero": 0, "y_minus": -1}
DISPLAYS = Displays(EQUATIONS, residual, at_points)


@dataclass
class LinePoint(RationalPoint):
    """A rational point with gamma = rho; s(-F) depends on the numbers of features only."""

    def __post_init__(self) -> None:
        super().__post_init__()
        beta, gamma, _ = self.scores
        self.scores = (beta, gamma, gamma)

    def weight(self, key: Multiset) -> Fraction:
        """Return s(-F) of a multiset, a random number per pair of numbers of features."""
        return super().weight((_counts(key),))


def _counts(key: Multiset) -> tuple[int, int]:
    return sum(a for a, _ in key), sum(b for _, b in key)


def prove(
    D_: int,
    C_: int,
    p_: int = 3,
    *,
    seed: int = 0,
    drift: sp.Expr = DRIFT,
    partitions: Sequence[Layout] | None = None,
) -> Proof:
    """Compare with the gradient of the D x D model, and the mean of n with all arrangements.

    Parameters
    ----------
    D_, C_, p_
        Sizes.
    seed
        Seed of the random rational points, one per partition.
    drift
        Drift of an image over s(-F); another one makes the proof fail (for tests).
    partitions
        Partitions of the patches into sets; by default a contiguous and an interleaved one.
    """
    builder = ProofBuilder(CLAIM, D=D_, C=C_, p=p_)
    chosen = first_and_last(D_, C_) if partitions is None else partitions
    rng = random.Random(seed)
    for layout in chosen:
        point = LinePoint(rng)
        full = full_expectation(full_model(D_, p_), layout, point)
        _check_gradients(builder, layout, full, point, drift)
        builder.facts["patterns"] = full.patterns
    _check_means(builder, D_, C_)
    builder.points = len(chosen)
    return builder.build()


def prove_all() -> list[Proof]:
    """Prove the identities for all sizes, and compare with the full model at `CASES`."""
    builder = ProofBuilder(f"{CLAIM}, for every D, C and odd p")
    for name, identity in identities().items():
        builder.decide(name, identity)
    return [builder.build(), DISPLAYS.prove(CLAIM), *(prove(*case) for case in CASES)]


def _check_gradients(
    builder: ProofBuilder, layout: Layout, full: FullExpectation, point: LinePoint, drift: sp.Expr
) -> None:
    """Compare the drift and F with the full model at one point."""
    C_ = len(layout[0])
    outside = C_ * (len(layout) - 1)
    beta, gamma, _ = point.scores
    size = {D: Fraction(outside + C_), C: Fraction(C_)}
    values = size | {
        p: Fraction(builder.parameters["p"]),
        alpha: point.alpha,
        Gamma: gamma / (beta + (outside + C_ - 1) * gamma),
        kappa: point.constants["kappa"],
        nu: point.constants["nu"],
        tau: point.constants["tau"],
    }
    outputs, drifts = rationalize(F_ON_LINE), rationalize(drift)
    total = Fraction(0)
    for counts in sorted({_counts(key) for key in full.margins}):
        at = values | dict(zip((N_PLUS, N_MINUS), map(Fraction, counts)))
        mass = _patterns(outside, *counts) * point.probability((counts,), outside)
        total += mass * point.weight((counts,)) * evaluate(drifts, at)
        outputs_of_model = [full.margins[key] for key in full.margins if _counts(key) == counts]
        identity = "F depends on the data only through the numbers of features"
        builder.equal(identity, set().union(*outputs_of_model), {evaluate(outputs, at)}, counts)
    set_of = {j: index for index, patches in enumerate(layout) for j in patches}
    dA = full.mean().dA
    in_same_set: dict[bool, list[Fraction]] = {True: [], False: []}
    for (i, j), value in dA.items():
        in_same_set[set_of[i] == set_of[j]].append(value)
    for same in in_same_set[True]:
        for different in in_same_set[False]:
            identity = "dL/dA_ij (different sets) - dL/dA_ij (same set) = d(gamma - rho)/dt"
            builder.equal(identity, different - same, total, layout)


def _patterns(outside: int, plus: int, minus: int) -> int:
    """Return the number of arrangements of the features."""
    rest = outside - plus - minus
    return factorial(outside) // (factorial(plus) * factorial(minus) * factorial(rest))


def _check_means(builder: ProofBuilder, D_: int, C_: int) -> None:
    """Compare the mean of n with all arrangements of given features outside the signal set."""
    for expected, mean, where in _means(D_, C_, MEAN_N):
        builder.equal("mean of n over the arrangements of the features", mean, expected, where)


def _means(D_: int, C_: int, formula: sp.Expr) -> Iterator[tuple[Fraction, Fraction, Any]]:
    """Yield the mean of n by a formula and by enumeration, for all numbers of features."""
    outside = D_ - C_
    for plus in range(outside + 1):
        for minus in range(outside + 1 - plus):
            signs = [1] * plus + [-1] * minus + [0] * (outside - plus - minus)
            for coefficient in set(signs):
                rows = [x for x in set(permutations(signs)) if x[0] == coefficient]
                mean = Fraction(sum(sum(x[:C_]) for x in rows), len(rows))
                at = {D: D_, C: C_, N_PLUS: plus, N_MINUS: minus, s: coefficient}
                expected = evaluate(formula, {x: Fraction(value) for x, value in at.items()})
                yield expected, mean, (plus, minus, coefficient)
