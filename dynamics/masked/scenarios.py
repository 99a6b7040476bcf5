"""Tables of scenarios: every count exactly, a random sample, or the mean counts; and the scales."""

import math
from collections.abc import Sequence

import numpy as np

from dynamics.core.errors import ToleranceError
from dynamics.masked.expectation import ScenarioPlan
from dynamics.masked.layout import Areas, Layout
from dynamics.masked.problem import MaskedProblem

MOST_NUMBERS = 2.0**25  # (cell, scenario) pairs of one table: 256 MiB
_MOST_DEVIATIONS = 2.0**26  # numbers in all tables that estimate fluctuations: 512 MiB


def enumerated(problem: MaskedProblem, nodes: int) -> ScenarioPlan:
    """Return every vector of unmasked counts with its multivariate hypergeometric weight."""
    layout = problem.layout.expanded()
    counts, weight = all_counts(layout.size[:-1], problem.P - problem.masked)
    counts = np.concatenate([counts, np.zeros((len(counts), 1))], axis=1)
    return _plan(problem, layout, counts[None], weight, *_all_scales(problem, layout, nodes))


def sampled(problem: MaskedProblem, samples: int, seed: int) -> ScenarioPlan:
    """Return independent masks and scales, drawn anew for each cluster."""
    numbers = (
        float(samples)
        * problem.K
        * min(float(problem.P), float(sum(areas.copies.sum() for areas in problem.layout.clusters)))
    )
    if numbers > MOST_NUMBERS:
        raise ToleranceError(
            f"a table of {numbers:.1e} numbers is too large: ask for fewer than {samples} samples"
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
    weight = np.full(samples, 1.0 / samples)
    ones = np.ones((problem.K, samples))
    return _plan(problem, layout, counts, weight, z, ones, paired=True)


def averaged(problem: MaskedProblem, nodes: int) -> ScenarioPlan:
    """Return the mean-field limit: counts are their means, equal areas average their scales.

    A group of equal areas is split by the nodes of the quadrature, each part with its scale, and
    joined again by its slots.
    """
    views = [_split(problem, problem.layout, k, nodes) for k in range(problem.K)]
    counts = np.zeros((problem.K, 1, max(view.size.size for view in views)))
    for k, view in enumerate(views):
        counts[k, 0, : view.size.size - 1] = _rate(problem) * view.size[:-1]
    return _joined(problem, views, counts, nodes)


def deviations(problem: MaskedProblem, nodes: int) -> list[list[ScenarioPlan]]:
    """Return groups of plans whose mean differs from :func:`averaged` as fluctuations do.

    To second order: the counts one standard deviation up and down in each of as many directions as
    there are cells, the columns of a root of their hypergeometric covariance; and in groups of
    equal areas, more attention squared for the same attention. Raises ToleranceError before it
    makes tables that are too large.
    """
    layout, rate, others = problem.layout, _rate(problem), problem.P - 1.0
    n = layout.size[:-1]
    if (numbers := 2.0 * problem.K * n.size**2) > _MOST_DEVIATIONS:
        raise ToleranceError(
            f"the fluctuations of {n.size} cells in K = {problem.K} clusters need tables of "
            f"{numbers:.1e} numbers, too many: ask for fewer clusters or areas, or for sampling"
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
                held = layout.size[:-1] @ (areas.slot[layout.area[k, :-1]] == slot)
                relative = (1.0 - rate) / rate * number / held
                copies[k, middle.area_slot[k] == slot] /= 1.0 + relative
    return [*groups, [middle._replace(copies=copies)]]


def _rate(problem: MaskedProblem) -> float:
    """Chance that a patch is unmasked, given that p is masked."""
    return (problem.P - problem.masked) / (problem.P - 1.0)


def all_counts(size: np.ndarray, unmasked: int) -> tuple[np.ndarray, np.ndarray]:
    """Return all (R, cells) ways to draw ``unmasked`` patches from cells, and their chances.

    Multivariate hypergeometric: prod_c C(size_c, count_c) / C(sum size, unmasked).
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
                f"there are more than {row.size:.1e} ways to unmask patches cell by cell"
            )
        rows = np.concatenate([rows[row], choices[choice][:, None]], axis=1)
        weight, used = weight[row] * ways[choice], total[row, choice]
    return rows, weight / math.fsum(weight)


def count_vectors(size: np.ndarray, unmasked: int) -> float:
    """Return how many vectors :func:`all_counts` would return, without making them."""
    number = np.zeros(unmasked + 1)
    number[0] = 1.0
    for n in size.astype(int):
        sums = np.cumsum(number)
        number = sums - np.concatenate([np.zeros(min(n + 1, unmasked + 1)), sums])[: unmasked + 1]
    return float(number[-1])


def _all_scales(
    problem: MaskedProblem, layout: Layout, nodes: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the tensor grid of Gauss-Legendre nodes over the scales of all areas of a cluster."""
    widths = [areas.slot.size for areas in layout.clusters]
    point, chance = scale_nodes(problem, nodes)
    draws = point.size ** max(widths)
    if draws * max(widths) > MOST_NUMBERS:
        raise ToleranceError(f"{point.size} nodes for each of {max(widths)} scales are too many")
    z = np.full((problem.K, draws, max(widths)), problem.z_low)
    weight = np.zeros((problem.K, draws))
    for k, width in enumerate(widths):
        chosen = _grid(point.size, width)
        z[k, : len(chosen), :width] = point[chosen]
        weight[k, : len(chosen)] = np.prod(chance[chosen], axis=1)
    return z, weight


def _grid(number: int, width: int) -> np.ndarray:
    """Return all (number^width, width) ways to choose one of so many nodes for each scale."""
    digits = np.arange(width - 1, -1, -1)
    return np.arange(number**width)[:, None] // number**digits % number


def scale_nodes(problem: MaskedProblem, nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return Gauss-Legendre nodes and weights of the scale, one node where it is fixed."""
    if problem.z_is_fixed:
        return np.array([problem.z_low]), np.ones(1)
    x, weight = np.polynomial.legendre.leggauss(nodes)
    middle, half = 0.5 * (problem.z_low + problem.z_top), 0.5 * (problem.z_top - problem.z_low)
    return middle + half * x, 0.5 * weight


class _View:
    """One cluster with its groups of equal areas split by scale."""

    def __init__(self, areas: Areas, size: np.ndarray, cell_slot: np.ndarray, area: np.ndarray):
        self.areas, self.size, self.cell_slot, self.area = areas, size, cell_slot, area
        self.scale: np.ndarray  # node of the scale of each area, -1 where it is integrated


def _split(problem: MaskedProblem, layout: Layout, k: int, nodes: int) -> _View:
    """Split the groups of equal areas of cluster k into one part per node of the scale."""
    areas = layout.clusters[k]
    _, chance = scale_nodes(problem, nodes)
    parts = [np.array([1.0]) if n == 1.0 else chance for n in areas.copies]
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
    view = _View(split, np.concatenate(size), np.concatenate(cell_slot), np.concatenate(area))
    view.scale = np.concatenate(
        [[-1] if n == 1.0 else np.arange(part.size) for n, part in zip(areas.copies, parts)]
    )
    return view


def _joined(
    problem: MaskedProblem, views: Sequence[_View], counts: np.ndarray, nodes: int
) -> ScenarioPlan:
    """Pad the clusters to one shape and integrate the scales of the single areas."""
    point, chance = scale_nodes(problem, nodes)
    cells, widest = counts.shape[2], max(view.areas.slot.size for view in views)
    single = [np.flatnonzero(view.scale < 0) for view in views]
    draws = point.size ** max(index.size for index in single)
    if draws * widest > MOST_NUMBERS:
        raise ToleranceError(f"{point.size} nodes for each of the scales are too many")
    z = np.full((problem.K, draws, widest), problem.z_low)
    z_weight = np.zeros((problem.K, draws))
    for k, (view, index) in enumerate(zip(views, single)):
        chosen = _grid(point.size, index.size)
        number = len(chosen)
        z[k, :number, : view.scale.size] = point[np.maximum(view.scale, 0)]
        z[k][:number, index] = point[chosen]
        z_weight[k, :number] = np.prod(chance[chosen], axis=1)
    layouts = [(view.areas, view.size, view.cell_slot, view.area) for view in views]
    weight = np.zeros(counts.shape[1])
    weight[0] = 1.0
    return _padded(problem, layouts, cells, widest, counts, weight, z, z_weight, False)


def _plan(
    problem: MaskedProblem,
    layout: Layout,
    counts: np.ndarray,
    weight: np.ndarray,
    z: np.ndarray,
    z_weight: np.ndarray,
    paired: bool = False,
) -> ScenarioPlan:
    """Return the plan of a layout whose areas all stand alone."""
    layouts = [
        (areas, layout.size, layout.cell_slot, layout.area[k])
        for k, areas in enumerate(layout.clusters)
    ]
    return _padded(
        problem, layouts, layout.size.size, z.shape[2], counts, weight, z, z_weight, paired
    )


def _padded(
    problem: MaskedProblem,
    layouts: Sequence[tuple[Areas, np.ndarray, np.ndarray, np.ndarray]],
    cells: int,
    widest: int,
    counts: np.ndarray,
    weight: np.ndarray,
    z: np.ndarray,
    z_weight: np.ndarray,
    paired: bool,
) -> ScenarioPlan:
    """Give every cluster as many cells and areas as the largest; p itself stays the last cell."""
    K = problem.K
    size = np.zeros((K, cells))
    area, cell_slot = np.zeros((K, cells), np.int64), np.zeros((K, cells), np.int64)
    area_slot, copies = np.zeros((K, widest), np.int64), np.ones((K, widest))
    for k, (areas, sizes, slots, members) in enumerate(layouts):
        n = sizes.size - 1
        for target, source in ((size, sizes), (cell_slot, slots), (area, members)):
            target[k, :n], target[k, -1] = source[:-1], source[-1]
        area_slot[k, : areas.slot.size] = areas.slot
        copies[k, : areas.copies.size] = areas.copies
    return ScenarioPlan(
        size=size,
        area=area,
        cell_slot=cell_slot,
        area_slot=area_slot,
        copies=copies,
        own=np.array([areas.own for areas, *_ in layouts], np.int64),
        counts=np.ascontiguousarray(counts, float),
        weight=weight,
        z=np.ascontiguousarray(z),
        z_weight=z_weight,
        paired=paired,
        chance=problem.masked / problem.P,
        entries=problem.layout.copies,
    )
