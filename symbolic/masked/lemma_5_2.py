"""Lemma 5.2: gradients of the position-position correlations from the raw loss.

With p masked, -d loss / d Upsilon_{p->q} = attn_{p->q} (gbar - g_m) for an unmasked patch q of area
m and attn_{p->q} gbar for a masked one (including p), in the notation of Lemma 5.1. The sum over
all q is zero: positions only shift attention between patches. Upsilon grows for the unmasked
patches of p's own area. Proved for every P, any areas and any mask in `symbolic.masked.all_sizes`,
and checked here from the raw loss with numbered entries, at small sizes and random rational points.
"""

import random
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

from symbolic.core.proof import Proof, ProofBuilder
from symbolic.core.zero import Point
from symbolic.masked import all_sizes, displays
from symbolic.masked.lemma_5_1 import CASES, area_form
from symbolic.masked.raw_loss import Mask, Partition, RawModel, raw_model

CLAIM = "Lemma 5.2: position-position gradients of the raw loss in area form"


def prove(partitions: Sequence[Partition], masked: int, *, seed: int = 0, points: int = 1) -> Proof:
    """Compare the gradient in all positions, for all clusters, masks and masked patches.

    Parameters are those of `symbolic.masked.lemma_5_1.prove`.
    """
    model, rng = raw_model(tuple(partitions)), random.Random(seed)
    builder = ProofBuilder(CLAIM, P=model.P, K=model.K, masked=masked)
    for k in range(model.K):
        for mask in combinations(range(model.P), masked):
            for p in mask:
                for _ in range(points):
                    builder.points += 1
                    _check_positions(builder, model, k, mask, p, model.point(p, rng))
    return builder.build()


def _check_positions(
    builder: ProofBuilder, model: RawModel, k: int, mask: Mask, p: int, point: Point
) -> None:
    """Compare the gradient in all positions of row p at a point."""
    _, *derivatives = model.evaluate(k, mask, p, point)
    form = area_form(model, k, mask, p, point)
    attention = model.attention(k, mask, p, point)
    where = (k, mask, p)
    for q in range(model.P):
        area = None if q in mask else model.area(k, q)
        form_name = "masked: attn gbar" if area is None else "unmasked: attn (gbar - g_area)"
        builder.equal(
            f"-d loss / d Upsilon_q, {form_name}",
            -derivatives[q],
            form.position(attention[q], area),
            where,
        )
        if area == form.own:
            builder.equal(
                "Upsilon grows for unmasked patches of p's area", -derivatives[q] >= 0, True, where
            )
    builder.equal("the sum over q is 0", sum(derivatives[: model.P], Fraction(0)), 0, where)


def prove_all(*, quick: bool = False) -> list[Proof]:
    """Prove the lemma for all sizes and all cases (without the largest if ``quick``)."""
    cases = CASES[:-1] if quick else CASES
    general = [all_sizes.prove_5_2(), displays.LEMMA_5_2.prove("Lemma 5.2", areas=displays.AREAS)]
    return [*general, *(prove(*case) for case in cases)]
