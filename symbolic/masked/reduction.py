"""The row of one query keeps few values, and its expectation runs over counts only.

A *cell* is what the K partitions and p itself cut the patches into. If Phi_{p->v_{k,m}} are any
numbers and Upsilon_{p->q} is constant on cells, the population gradient in Upsilon is constant on
cells as well: by induction over t from Q(0) = 0 it stays so. The expectation over masks then
depends on the mask only through the number u_c of unmasked patches of each cell, which are
multivariate hypergeometric,

    P(u | p masked) = prod_c C(size_c, u_c) / C(P - 1, P - M),

M masked patches. What cannot be removed is the loss where all of p's area is masked, probability
C(P - C_n, M - C_n) / C(P, M).
"""

import random
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations, product
from math import comb, prod

from symbolic.core.proof import Proof, ProofBuilder
from symbolic.core.zero import Point
from symbolic.masked import displays
from symbolic.masked.area_form import AreaForm
from symbolic.masked.raw_loss import Partition, RawModel, raw_model

CLAIM = "Reduction: one Upsilon per cell, expectation over counts"
#: (partitions, masked patches, query): the two partitions of the first differ, as do the cells.
CASES: tuple[tuple[tuple[Partition, ...], int, int], ...] = (
    ((((0, 1, 2), (3, 4, 5)), ((0, 1, 4, 5), (2, 3))), 3, 0),
    ((((0, 1, 2, 3), (4, 5)),), 3, 4),
)
Cell = tuple[int, ...]


def cells(model: RawModel, p: int) -> dict[Cell, list[int]]:
    """Return the patches of each cell by their areas in all clusters; p's own cell is ``()``."""
    found: dict[Cell, list[int]] = {(): [p]}
    for q in range(model.P):
        if q != p:
            found.setdefault(tuple(model.area(k, q) for k in range(model.K)), []).append(q)
    return found


def prove(partitions: Sequence[Partition], masked: int, p: int, *, seed: int = 0) -> Proof:
    """Compare the expectation over all masks of the raw gradient with that over counts."""
    model, rng = raw_model(tuple(partitions)), random.Random(seed)
    builder = ProofBuilder(CLAIM, P=model.P, K=model.K, masked=masked)
    found = cells(model, p)
    point = model.point(p, rng)
    for members in found.values():
        for q in members:  # Upsilon constant on cells
            first = point[model.position_exponential(p, members[0])]
            point[model.position_exponential(p, q)] = first
    masks = [mask for mask in combinations(range(model.P), masked) if p in mask]
    rows = [model.evaluate(k, mask, p, point) for k in range(model.K) for mask in masks]
    weight = Fraction(1, comb(model.P, masked) * model.K)
    raw = [weight * sum(column, Fraction(0)) for column in zip(*rows)]
    loss, features, positions = _over_counts(model, masked, p, point, found)
    builder.equal("patch loss", raw[0], loss)
    for key, column in model.feature.items():
        builder.equal("d L / d Phi over counts", raw[1 + column], features[key], key)
    for cell, members in found.items():
        for q in members:
            what = "d L / d Upsilon_q, the same on a cell, over counts"
            builder.equal(what, raw[1 + q], positions[cell] / len(members), (cell, q))
    for k in range(model.K):
        _check_floor(builder, model, masked, p, k, found)
    builder.points = 1
    builder.facts |= {"masks": comb(model.P, masked), "cells": len(found)}
    return builder.build()


def _counts(
    model: RawModel, masked: int, found: dict[Cell, list[int]]
) -> Iterator[tuple[dict[Cell, int], Fraction]]:
    """Yield numbers of unmasked patches per cell and their probability, p masked."""
    others = [cell for cell in found if cell]
    unmasked = model.P - masked
    for counts in product(*(range(len(found[cell]) + 1) for cell in others)):
        if sum(counts) == unmasked:
            ways = prod(comb(len(found[cell]), u) for cell, u in zip(others, counts))
            yield dict(zip(others, counts)), Fraction(ways, comb(model.P - 1, unmasked))


def _over_counts(
    model: RawModel, masked: int, p: int, point: Point, found: dict[Cell, list[int]]
) -> tuple[Fraction, dict[tuple[int, int], Fraction], dict[Cell, Fraction]]:
    """Return patch loss and its derivatives (Upsilon: cell totals) from the counts."""
    loss = Fraction(0)
    features = dict.fromkeys(model.feature, Fraction(0))
    positions = dict.fromkeys(found, Fraction(0))
    base = {c: point[model.position_exponential(p, members[0])] for c, members in found.items()}
    for k in range(model.K):
        areas = range(len(model.partitions[k]))
        z = [point[model.z[k, m]] for m in areas]
        lift = [point[model.feature_exponential(p, k, m)] for m in areas]
        for counts, chance in _counts(model, masked, found):
            seen = {c: u * base[c] * lift[c[k]] for c, u in counts.items()}
            hidden = {c: (len(found[c]) - counts.get(c, 0)) * base[c] for c in found}
            Z = sum(seen.values()) + sum(hidden.values())
            a = [sum((x for c, x in seen.items() if c[k] == m), Fraction(0)) / Z for m in areas]
            form = AreaForm(z, a, model.area(k, p))
            weight = chance * Fraction(masked, model.P * model.K)
            loss += weight * form.twice_loss / 2
            for m in areas:
                features[k, m] -= weight * form.feature(m)
            for c in found:
                change = form.position(hidden[c] / Z, None)
                change += form.position(seen[c] / Z, c[k]) if c else 0
                positions[c] -= weight * change
    return loss, features, positions


def _check_floor(
    builder: ProofBuilder,
    model: RawModel,
    masked: int,
    p: int,
    k: int,
    found: dict[Cell, list[int]],
) -> None:
    n = model.area(k, p)
    chance = sum(
        (
            c
            for counts, c in _counts(model, masked, found)
            if not any(u for cell, u in counts.items() if cell[k] == n)
        ),
        Fraction(0),
    )
    P, size = model.P, len(model.partitions[k][n])
    expected = Fraction(comb(P - size, masked - size) if masked >= size else 0, comb(P, masked))
    builder.equal("p's whole area is masked", chance * Fraction(masked, P), expected, k)


def prove_all() -> list[Proof]:
    """Run every case, and count masks for what is displayed."""
    sizes = {"P": displays.PATCHES, "masked": displays.MASKED}
    return [*(prove(*case) for case in CASES), displays.REDUCTION.prove(CLAIM, **sizes)]
