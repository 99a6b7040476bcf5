"""Tables of scenarios: all counts, a random sample of masks, or mean counts; and the scales."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dynamics.core.errors import ToleranceError
from dynamics.masked.expectation import Scenarios
from dynamics.masked.layout import Areas, Layout
from dynamics.masked.problem import MaskedProblem

MOST_NUMBERS = 2.0**25  # (cell, scenario) pairs of one table: 256 MiB
_MOST_DEVIATIONS = 2.0**26  # numbers in all tables that estimate fluctuations: 512 MiB


class _Cluster(NamedTuple):
    """Areas and cells of one cluster, as in `Layout`."""

    areas: Areas
    size: np.ndarray
    cell_slot: np.ndarray
    area: np.ndarray


def enumerated(problem: MaskedProblem, nodes: int) -> Scenarios:
    """Return all vectors of unmasked counts, with multivariate hypergeometric weights.

    Parameters
    ----------
    problem
        Constants.
    nodes
        Gauss-Legendre nodes for each scale; not used if the scale is fixed.

    Raises
    ------
    ToleranceError
        If a table is larger than `MOST_NUMBERS`.
    """
    layout = problem.layout.expanded()
    counts, weight = all_counts(layout.size[:-1], problem.P - problem.masked)
    counts = np.concatenate([counts, np.zeros((len(counts), 1))], axis=1)
    integrated = [np.full(areas.slot.size, -1) for areas in layout.clusters]
    z, z_weight = _scales(problem, nodes, integrated)
    return _padded(problem, _clusters(layout), counts[None], weight, z, z_weight)


def sampled(problem: MaskedProblem, samples: int, seed: int) -> Scenarios:
    """Return independent random masks and scales for each cluster.

    Raises
    ------
    ToleranceError
        If a table is larger than `MOST_NUMBERS`.
    """
    areas = float(sum(areas.copies.sum() for areas in problem.layout.clusters))
    numbers = float(samples) * problem.K * min(float(problem.P), areas)
    if numbers > MOST_NUMBERS:
        raise ToleranceError(
            f"a table of {numbers:.1e} numbers is too large: use fewer than {samples} samples"
        )
    layout = problem.layout.expanded()
    size = layout.size[:-1].astype(np.int64)
    children = np.random.SeedSequence(seed).spawn(problem.K)
    counts = np.zeros((problem.K, samples, layout.size.size))
    widest = max(areas.slot.size for areas in layout.clusters)
    z = np.full((problem.K, samples, widest), problem.z_low)
    for k, child in enumerate(children):
        rng = np.random.default_rng(child)
        unmasked = problem.P - problem.masked
        counts[k, :, :-1] = rng.multivariate_hypergeometric(size, unmasked, samples)
        if not problem.z_is_fixed:
            z[k] = rng.uniform(problem.z_low, problem.z_top, (samples, widest))
    weight, ones = np.full(samples, 1.0 / samples), np.ones((problem.K, samples))
    return _padded(problem, _clusters(layout), counts, weight, z, ones)._replace(paired=True)


def averaged(problem: MaskedProblem, nodes: int) -> Scenarios:
    """Return the mean-field limit: counts are at their means, equal areas average their scales.

    A group of equal areas is split into one part per quadrature node of the scale. The parts share
    their slots.

    Raises
    ------
    ToleranceError
        If a table is larger than `MOST_NUMBERS`.
    """
    parts = [_split(problem, problem.layout, k, nodes) for k in range(problem.K)]
    clusters = [cluster for cluster, _ in parts]
    counts = np.zeros((problem.K, 1, max(cluster.size.size for cluster in clusters)))
    for k, cluster in enumerate(clusters):
        counts[k, 0, : cluster.size.size - 1] = _rate(problem) * cluster.size[:-1]
    z, z_weight = _scales(problem, nodes, [node for _, node in parts])
    return _padded(problem, clusters, counts, np.ones(1), z, z_weight)


def deviations(problem: MaskedProblem, nodes: int) -> list[list[Scenarios]]:
    """Return groups of scenarios that estimate fluctuations about :func:`averaged`.

    The mean of each group differs from the mean field as fluctuations do, to second order. In the
    first groups the counts are one standard deviation up and down in one direction, a column of a
    root of their hypergeometric covariance; there are as many directions as cells. In the last
    group, groups of equal areas have a larger squared attention for the same attention.

    Raises
    ------
    ToleranceError
        If the tables would be too large; none is created.
    """
    layout, rate, others = problem.layout, _rate(problem), problem.P - 1.0
    n = layout.size[:-1]
    if (numbers := 2.0 * problem.K * n.size**2) > _MOST_DEVIATIONS:
        raise ToleranceError(
            f"the fluctuations of {n.size} cells in K = {problem.K} clusters need tables of "
            f"{numbers:.1e} numbers, too many: use fewer clusters or areas, or sampling"
        )
    middle = averaged(problem, nodes)
    unit = np.sqrt(n / n.sum())
    spread = rate * (1.0 - rate) * others / max(others - 1.0, 1.0)
    root = np.sqrt(spread * n)[:, None] * (np.eye(n.size) - np.outer(unit, unit))
    groups = []
    for direction in root.T:
        pair = []
        for sign in (1.0, -1.0):
            shares = np.zeros(len(layout.names))
            shares[layout.cell_slot[:-1]] = np.clip(rate + sign * direction / n, 0.0, 1.0)
            counts = shares[middle.cell_slot] * middle.size  # p itself: share 0
            pair.append(middle._replace(counts=np.ascontiguousarray(counts[:, None, :])))
        groups.append(pair)
    copies = middle.copies.copy()
    for k, areas in enumerate(layout.clusters):
        for slot, number in zip(areas.slot, areas.copies):
            if number > 1.0:
                patches = layout.size[:-1] @ (areas.slot[layout.area[k, :-1]] == slot)
                relative = (1.0 - rate) / rate * number / patches
                copies[k, middle.area_slot[k] == slot] /= 1.0 + relative
    return [*groups, [middle._replace(copies=copies)]]


def _rate(problem: MaskedProblem) -> float:
    """Return the probability that a patch is unmasked, given that p is masked."""
    return (problem.P - problem.masked) / (problem.P - 1.0)


def all_counts(size: np.ndarray, unmasked: int) -> tuple[np.ndarray, np.ndarray]:
    """Return all vectors of counts of ``unmasked`` patches, and their probabilities.

    Parameters
    ----------
    size
        Number of patches of each cell, (cells,).
    unmasked
        Sum of the counts of each vector.

    Returns
    -------
    counts, probability
        Arrays of shape (R, cells) and (R,). The distribution is multivariate hypergeometric,
        prod_c C(size_c, count_c) / C(sum size, unmasked).

    Raises
    ------
    ToleranceError
        If the table is larger than `MOST_NUMBERS`.
    """
    sizes = [int(n) for n in size]
    left = np.concatenate([np.cumsum(sizes[::-1])[::-1], [0]])
    rows, weight, used = np.zeros((1, 0)), np.ones(1), np.zeros(1)
    for index, n in enumerate(sizes):
        choices = np.arange(n + 1)
        ways = np.array([math.comb(n, int(u)) for u in choices], float)
        total = used[:, None] + choices
        fits = (total <= unmasked) & (total + left[index + 1] >= unmasked)
        row, choice = np.nonzero(fits)
        if row.size * len(sizes) > MOST_NUMBERS:
            raise ToleranceError(
                f"there are more than {row.size:.1e} vectors of counts: use sampling or mean_field"
            )
        rows = np.concatenate([rows[row], choices[choice][:, None]], axis=1)
        weight, used = weight[row] * ways[choice], total[row, choice]
    return rows, weight / math.fsum(weight)


def count_vectors(size: np.ndarray, unmasked: int) -> float:
    """Return the number of vectors that :func:`all_counts` would return."""
    number = np.zeros(unmasked + 1)
    number[0] = 1.0
    for n in size.astype(int):
        sums = np.cumsum(number)
        number = sums - np.concatenate([np.zeros(min(n + 1, unmasked + 1)), sums])[: unmasked + 1]
    return float(number[-1])


def _scales(
    problem: MaskedProblem, nodes: int, node: Sequence[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of scales and their weights, (K, Z, areas) and (K, Z).

    ``node`` contains the quadrature node of each area, for each cluster. Areas with node -1 are
    integrated over the tensor grid of all nodes.
    """
    point, probability = scale_nodes(problem, nodes)
    integrated = [np.flatnonzero(index < 0) for index in node]
    rows, widest = point.size ** max(map(len, integrated)), max(map(len, node))
    if rows * widest > MOST_NUMBERS:
        raise ToleranceError(f"{point.size} nodes for each of {widest} scales are too many")
    z = np.full((problem.K, rows, widest), problem.z_low)
    weight = np.zeros((problem.K, rows))
    for k, (index, free) in enumerate(zip(node, integrated)):
        grid = _grid(point.size, free.size)
        z[k, : len(grid), : index.size] = point[np.maximum(index, 0)]
        z[k][: len(grid), free] = point[grid]
        weight[k, : len(grid)] = np.prod(probability[grid], axis=1)
    return z, weight


def _grid(number: int, width: int) -> np.ndarray:
    """Return all (number^width, width) choices of a node for each scale."""
    digits = np.arange(width - 1, -1, -1)
    return np.arange(number**width)[:, None] // number**digits % number


def scale_nodes(problem: MaskedProblem, nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return Gauss-Legendre nodes and weights of the scale, a single node if it is fixed."""
    if problem.z_is_fixed:
        return np.array([problem.z_low]), np.ones(1)
    x, weight = np.polynomial.legendre.leggauss(nodes)
    middle, half = 0.5 * (problem.z_low + problem.z_top), 0.5 * (problem.z_top - problem.z_low)
    return middle + half * x, 0.5 * weight


def _clusters(layout: Layout) -> list[_Cluster]:
    """Return the clusters of a layout without groups of equal areas."""
    return [
        _Cluster(areas, layout.size, layout.cell_slot, layout.area[k])
        for k, areas in enumerate(layout.clusters)
    ]


def _split(
    problem: MaskedProblem, layout: Layout, k: int, nodes: int
) -> tuple[_Cluster, np.ndarray]:
    """Split each group of equal areas of cluster k into one part per node of the scale.

    Return the cluster and the node of each of its areas, -1 for single areas.
    """
    areas = layout.clusters[k]
    _, probability = scale_nodes(problem, nodes)
    parts = [np.array([1.0]) if n == 1.0 else probability for n in areas.copies]
    start = np.concatenate([[0], np.cumsum([part.size for part in parts])])
    slot = np.concatenate([np.full(part.size, s) for s, part in zip(areas.slot, parts)])
    copies = np.concatenate([n * part for n, part in zip(areas.copies, parts)])
    split = Areas(slot, copies, int(start[areas.own]), int(start[areas.first]))
    size, cell_slot, area = [], [], []
    for c, m in enumerate(layout.area[k]):
        last = c == layout.size.size - 1  # p itself
        pieces = np.ones(1) if last else parts[m]
        size.append(layout.size[c] * pieces)
        cell_slot.append(np.full(pieces.size, layout.cell_slot[c]))
        area.append(start[m] + np.arange(pieces.size))
    node = [
        np.full(1, -1) if n == 1.0 else np.arange(part.size) for n, part in zip(areas.copies, parts)
    ]
    cluster = _Cluster(split, *(np.concatenate(column) for column in (size, cell_slot, area)))
    return cluster, np.concatenate(node)


def _padded(
    problem: MaskedProblem,
    clusters: Sequence[_Cluster],
    counts: np.ndarray,
    weight: np.ndarray,
    z: np.ndarray,
    z_weight: np.ndarray,
) -> Scenarios:
    """Return scenarios with as many cells and areas in each cluster as in the largest.

    p itself is the last cell of each cluster.
    """
    K, cells, widest = problem.K, counts.shape[2], z.shape[2]
    size = np.zeros((K, cells))
    area, cell_slot = np.zeros((K, cells), np.int64), np.zeros((K, cells), np.int64)
    area_slot, copies = np.zeros((K, widest), np.int64), np.ones((K, widest))
    for k, cluster in enumerate(clusters):
        n = cluster.size.size - 1
        for target, source in zip((size, cell_slot, area), cluster[1:]):
            target[k, :n], target[k, -1] = source[:-1], source[-1]
        area_slot[k, : cluster.areas.slot.size] = cluster.areas.slot
        copies[k, : cluster.areas.copies.size] = cluster.areas.copies
    return Scenarios(
        size=size,
        area=area,
        cell_slot=cell_slot,
        area_slot=area_slot,
        copies=copies,
        own=np.array([cluster.areas.own for cluster in clusters], np.int64),
        counts=np.ascontiguousarray(counts, float),
        weight=weight,
        z=np.ascontiguousarray(z),
        z_weight=z_weight,
        paired=False,
        masked_probability=problem.masked / problem.P,
        entries=problem.layout.copies,
    )
