"""Reduction of one query's row to few values, with an expectation over counts.

A *cell* is a set of the common refinement of the K partitions and {p}. If Phi_{p->v_{k,m}} is
arbitrary and Upsilon_{p->q} is constant on cells, the population gradient in Upsilon is constant on
cells as well: by induction over t from Q(0) = 0 this is true at all times. The expectation over
masks then depends on the mask only through the numbers u_c of unmasked patches of the cells, which
are multivariate hypergeometric,

    P(u | p masked) = prod_c C(size_c, u_c) / C(P - 1, P - M),

with M masked patches. The loss cannot be reduced where all of p's area is masked, with probability
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
#: Cases (partitions, number of masked patches, query); the first has two different partitions.
CASES: tuple[tuple[tuple[Partition, ...], int, int], ...] = (
    ((((0, 1, 2), (3, 4, 5)), ((0, 1, 4, 5), (2, 3))), 3, 0),
    ((((0, 1, 2, 3), (4, 5)),), 3, 4),
)
Cell = tuple[int, ...]


def cells(model: RawModel, p: int) -> dict[Cell, list[int]]:
    """Return the patches of each cell by their areas in all clusters; p's own cell is ``()``."""
    patches: dict[Cell, list[int]] = {(): [p]}
    for q in range(model.P):
        if q != p:
            patches.setdefault(tuple(model.area(k, q) for k in range(model.K)), []).append(q)
    return patches


def prove(partitions: Sequence[Partition], masked: int, p: int, *, seed: int = 0) -> Proof:
    """Compare the expectation of the raw gradient over all masks with the expectation over counts.

    Parameters
    ----------
    partitions
        Partition of the patches, one per cluster.
    masked
        Number of masked patches.
    p
        The query.
    seed
        Seed of the random rational point.
    """
    model, rng = raw_model(tuple(partitions)), random.Random(seed)
    builder = ProofBuilder(CLAIM, P=model.P, K=model.K, masked=masked)
    by_cell = cells(model, p)
    point = model.point(p, rng)
    for patches in by_cell.values():
        for q in patches:  # Upsilon is constant on cells
            first = point[model.position_exponential(p, patches[0])]
            point[model.position_exponential(p, q)] = first
    masks = [mask for mask in combinations(range(model.P), masked) if p in mask]
    rows = [model.evaluate(k, mask, p, point) for k in range(model.K) for mask in masks]
    weight = Fraction(1, comb(model.P, masked) * model.K)
    raw = [weight * sum(column, Fraction(0)) for column in zip(*rows)]
    loss, features, positions = _over_counts(model, masked, p, point, by_cell)
    builder.equal("patch loss", raw[0], loss)
    for key, column in model.feature.items():
        builder.equal("d L / d Phi over counts", raw[1 + column], features[key], key)
    for cell, patches in by_cell.items():
        for q in patches:
            identity = "d L / d Upsilon_q, the same on a cell, over counts"
            builder.equal(identity, raw[1 + q], positions[cell] / len(patches), (cell, q))
    for k in range(model.K):
        _check_floor(builder, model, masked, p, k, by_cell)
    builder.points = 1
    builder.facts |= {"masks": comb(model.P, masked), "cells": len(by_cell)}
    return builder.build()


def _counts(
    model: RawModel, masked: int, by_cell: dict[Cell, list[int]]
) -> Iterator[tuple[dict[Cell, int], Fraction]]:
    """Yield the numbers of unmasked patches per cell and their probability, given p is masked."""
    others = [cell for cell in by_cell if cell]
    unmasked = model.P - masked
    for counts in product(*(range(len(by_cell[cell]) + 1) for cell in others)):
        if sum(counts) == unmasked:
            ways = prod(comb(len(by_cell[cell]), u) for cell, u in zip(others, counts))
            yield dict(zip(others, counts)), Fraction(ways, comb(model.P - 1, unmasked))


def _over_counts(
    model: RawModel, masked: int, p: int, point: Point, by_cell: dict[Cell, list[int]]
) -> tuple[Fraction, dict[tuple[int, int], Fraction], dict[Cell, Fraction]]:
    """Return the loss of p and its derivatives (in Upsilon: sums over cells) from counts."""
    loss = Fraction(0)
    features = dict.fromkeys(model.feature, Fraction(0))
    positions = dict.fromkeys(by_cell, Fraction(0))
    base = {c: point[model.position_exponential(p, qs[0])] for c, qs in by_cell.items()}
    for k in range(model.K):
        areas = range(len(model.partitions[k]))
        z = [point[model.z[k, m]] for m in areas]
        lift = [point[model.feature_exponential(p, k, m)] for m in areas]
        for counts, probability in _counts(model, masked, by_cell):
            unmasked = {c: u * base[c] * lift[c[k]] for c, u in counts.items()}
            hidden = {c: (len(by_cell[c]) - counts.get(c, 0)) * base[c] for c in by_cell}
            Z = sum(unmasked.values()) + sum(hidden.values())
            a = [sum((x for c, x in unmasked.items() if c[k] == m), Fraction(0)) / Z for m in areas]
            form = AreaForm(z, a, model.area(k, p))
            weight = probability * Fraction(masked, model.P * model.K)
            loss += weight * form.twice_loss / 2
            for m in areas:
                features[k, m] -= weight * form.feature(m)
            for c in by_cell:
                change = form.position(hidden[c] / Z, None)
                change += form.position(unmasked[c] / Z, c[k]) if c else 0
                positions[c] -= weight * change
    return loss, features, positions


def _check_floor(
    builder: ProofBuilder,
    model: RawModel,
    masked: int,
    p: int,
    k: int,
    by_cell: dict[Cell, list[int]],
) -> None:
    """Compare the probability that all of p's area is masked."""
    n = model.area(k, p)
    probability = sum(
        (
            weight
            for counts, weight in _counts(model, masked, by_cell)
            if not any(u for cell, u in counts.items() if cell[k] == n)
        ),
        Fraction(0),
    )
    P, size = model.P, len(model.partitions[k][n])
    expected = Fraction(comb(P - size, masked - size) if masked >= size else 0, comb(P, masked))
    builder.equal("p's whole area is masked", probability * Fraction(masked, P), expected, k)


def prove_all() -> list[Proof]:
    """Run all cases, and prove the displayed equations by counting masks."""
    sizes = {"P": displays.PATCHES, "masked": displays.MASKED}
    return [*(prove(*case) for case in CASES), displays.REDUCTION.prove(CLAIM, **sizes)]
