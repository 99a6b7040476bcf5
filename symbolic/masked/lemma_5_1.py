"""Lemma 5.1: gradients of the feature-position correlations from the raw loss, and their signs.

With p masked, in area n of cluster k, and a_m the unmasked area attentions,
-d loss / d Phi_{p->v_{k,m}} = a_m z_m (gbar - g_m), where g_m = z_m^2 a_m for m != n,
g_n = -z_n^2 (1 - a_n) and gbar = sum over m of a_m g_m; the gradient is zero for all other features
and all rows of Q but p's. For m = n this is
a_n (z_n^3 (1 - a_n)^2 + z_n sum over m != n of z_m^2 a_m^2) >= 0. For m != n the sign is the sign
of gbar - g_m; the correlation with the global area decreases if g_m <= g_1 for all areas but p's.
The expectation over clusters and masks, with the indicator that p is masked, is the lemma's alpha.
The form is proved for every P, any areas and any mask in `symbolic.masked.all_sizes`, and checked
here from the raw loss with numbered entries, at small sizes and random rational points.
"""

import random
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

import sympy as sp

from symbolic.core.identity import Identity
from symbolic.core.proof import Proof, ProofBuilder
from symbolic.core.zero import Point
from symbolic.masked import all_sizes, displays
from symbolic.masked.area_form import AreaForm, identities, symbolic_form
from symbolic.masked.raw_loss import Mask, Partition, RawModel, raw_model

CLAIM = "Lemma 5.1: feature-position gradients of the raw loss in area form"
#: Cases (partitions, number of masked patches) with P = 4, 5, 6 and K = 2, 1, 2.
CASES: tuple[tuple[tuple[Partition, ...], int], ...] = (
    ((((0, 1), (2, 3)), ((0, 2, 3), (1,))), 2),
    ((((0, 1, 2), (3, 4)),), 3),
    ((((0, 1, 2), (3, 4), (5,)), ((0, 3), (1, 4, 5), (2,))), 2),
)


def area_form(model: RawModel, k: int, mask: Mask, p: int, point: Point) -> AreaForm:
    """Return the area form of one image at a point."""
    attention = model.attention(k, mask, p, point)
    areas = model.partitions[k]
    a = [sum((attention[q] for q in area if q not in mask), Fraction(0)) for area in areas]
    return AreaForm([point[model.z[k, m]] for m in range(len(areas))], a, model.area(k, p))


def prove(partitions: Sequence[Partition], masked: int, *, seed: int = 0, points: int = 1) -> Proof:
    """Compare all entries of the gradients, for all clusters, masks and masked patches.

    Parameters
    ----------
    partitions
        Partition of the patches, one per cluster.
    masked
        Number of masked patches.
    seed
        Seed of the random rational points.
    points
        Number of points per image.
    """
    model, rng = raw_model(tuple(partitions)), random.Random(seed)
    builder = ProofBuilder(CLAIM, P=model.P, K=model.K, masked=masked)
    images = 0
    for k in range(model.K):
        for p in range(model.P):
            _check_rows(builder, model, k, p)
            for mask in combinations(range(model.P), masked):
                for _ in range(points if p in mask else 0):
                    images += 1
                    _check_features(builder, model, k, mask, p, model.point(p, rng))
    builder.points = images
    return builder.build()


def _check_rows(builder: ProofBuilder, model: RawModel, k: int, p: int) -> None:
    """Test that the loss depends only on positions and features of the cluster in row p."""
    columns = [
        *range(model.P),
        *(model.feature[k, model.area(k, q)] for q in range(model.P) if q != p),
    ]
    expected = {(p, j) for j in columns}
    builder.equal("the loss depends on row p only", model.dependencies(k, p), expected, (k, p))


def _check_features(
    builder: ProofBuilder, model: RawModel, k: int, mask: Mask, p: int, point: Point
) -> None:
    """Compare the gradient in all features of row p at a point."""
    loss, *derivatives = model.evaluate(k, mask, p, point)
    form = area_form(model, k, mask, p, point)
    where = (k, mask, p)
    builder.equal("twice the loss of p in area form", 2 * loss, form.twice_loss, where)
    for (cluster, m), column in model.feature.items():
        if cluster == k:
            identity = "-d loss / d Phi_m = a_m z_m (gbar - g_m)"
            builder.equal(identity, -derivatives[column], form.feature(m), where)
        else:
            builder.equal("zero for features of other clusters", derivatives[column], 0, where)
    own = -derivatives[model.feature[k, form.own]]
    builder.equal("alpha of p's own area >= 0 at the point", own >= 0, True, where)


def signs() -> Proof:
    """Prove the signs by writing the gradients as sums of nonnegative terms (4 areas)."""
    builder = ProofBuilder("Lemma 5.1: signs")
    form, r = symbolic_form(4)
    n, z, a = form.own, form.z, form.a
    rest = sp.Symbol("rest", positive=True)
    manifest = (
        a[n] * z[n] * (z[n] ** 2 * rest**2 + sum(z[m] ** 2 * a[m] ** 2 for m in range(4) if m != n))
    )
    builder.decide(
        "own correlation, without differences",
        Identity(form.feature(n), manifest.subs(rest, 1 - a[n])),
    )
    _nonnegative(builder, "own correlation grows", manifest)

    g_1, lead = form.g[0], sp.symbols("lead_3:5", nonnegative=True)
    others = (2, 3)
    falls = g_1 * (a[n] + r) + z[n] ** 2 * a[n] * rest
    falls += sum(a[m] * d for m, d in zip(others, lead))
    leads = dict(zip(lead, (g_1 - form.g[m] for m in others)))
    expanded = falls.subs(leads).subs(rest, 1 - a[n])
    total = {r: 1 - sum(a)}  # shares of areas and masked keys sum to 1
    identity = "g_1 - gbar = sum of a_m (g_1 - g_m) + g_1 (a_n + r) + z_n^2 a_n (1 - a_n)"
    builder.decide(identity, Identity(g_1 - form.g_mean, expanded).map(lambda x: x.subs(total)))
    _nonnegative(builder, "global correlation falls if no g_m exceeds g_1", falls)

    rises = AreaForm([1, 1, 1], [sp.Rational(1, 100), sp.Rational(1, 100), sp.Rational(9, 10)], 1)
    builder.equal("it may rise where another area has more attention", rises.feature(0) > 0, True)
    for name, held in identities().items():
        builder.decide(name, held)
    return builder.build()


def _nonnegative(builder: ProofBuilder, identity: str, expression: sp.Expr) -> None:
    """Record whether a polynomial in nonnegative symbols has positive coefficients only."""
    symbols = sorted(expression.free_symbols, key=str)
    positive = all(c > 0 for c in sp.Poly(sp.expand(expression), *symbols).coeffs())
    builder.equal(identity, positive and all(x.is_nonnegative for x in symbols), True)


def prove_all(*, quick: bool = False) -> list[Proof]:
    """Prove the lemma for all sizes, its signs, and all cases (``quick``: not the largest)."""
    return [
        all_sizes.prove_5_1(),
        displays.LEMMA_5_1.prove("Lemma 5.1", areas=displays.AREAS),
        signs(),
        *(prove(*case) for case in (CASES[:-1] if quick else CASES)),
    ]
