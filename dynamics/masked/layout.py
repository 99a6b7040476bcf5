"""Areas of each cluster, the cells of their common refinement, and which entries of Q coincide.

A *cell* is a set of patches other than p that lie in the same area in every cluster. All patches of
a cell have the same position-position correlation with p, and equivalent areas have the same
feature-position correlation. The row ``e_p^T Q`` therefore contains only a few different numbers,
the *slots* of a state: Phi first, then Upsilon, then p's own position (``Upsilon_self``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from dynamics.masked.problem import MaskedProblem


@dataclass(frozen=True)
class Areas:
    """Areas of one cluster.

    Attributes
    ----------
    slot
        Slot of Phi of each area, int (areas,).
    copies
        Number of equal areas that each area represents, float (areas,).
    own, first
        Index of p's area and of the global area.
    """

    slot: np.ndarray
    copies: np.ndarray
    own: int
    first: int

    @property
    def own_slot(self) -> int:
        """Slot of Phi of p's own area."""
        return int(self.slot[self.own])

    @property
    def global_slot(self) -> int:
        """Slot of Phi of the global area."""
        return int(self.slot[self.first])


@dataclass(frozen=True)
class Layout:
    """Slots, clusters and cells; the last cell is p itself and is always masked.

    Attributes
    ----------
    names, copies
        Name of each slot, and number of entries of ``e_p^T Q`` that it represents, (slots,).
    clusters
        Areas of each of the K clusters.
    size, cell_slot
        Number of patches, float (cells,), and slot of Upsilon, int (cells,), of each cell.
    area
        Area of each cell in each cluster, int (K, cells).
    """

    names: tuple[str, ...]
    copies: np.ndarray
    clusters: tuple[Areas, ...]
    size: np.ndarray
    cell_slot: np.ndarray
    area: np.ndarray

    @property
    def phi_slots(self) -> int:
        """Number of slots of Phi; those of Upsilon follow."""
        return int(self.cell_slot.min())

    def expanded(self) -> Layout:
        """Return a layout without groups of equal areas, as finite counts require.

        Equal areas still share their slots. Groups are expanded only if there is a single cluster,
        in which each group is a cell (exponents, K = 1).
        """
        if all(np.all(areas.copies == 1.0) for areas in self.clusters):
            return self
        (areas,) = self.clusters
        repeats = areas.copies.astype(int)
        starts = np.concatenate([[0], np.cumsum(repeats)])
        slot = np.repeat(areas.slot, repeats)
        cell_repeats = np.where(self.cell_slot == self.cell_slot[-1], 1, repeats[self.area[0]])
        first = starts[self.area[0]]
        area = np.concatenate([f + np.arange(r) for f, r in zip(first, cell_repeats)])
        return Layout(
            self.names,
            self.copies,
            (Areas(slot, np.ones(slot.size), int(starts[areas.own]), int(starts[areas.first])),),
            np.repeat(self.size / cell_repeats, cell_repeats),
            np.repeat(self.cell_slot, cell_repeats),
            area[None, :],
        )


def layout_of(problem: MaskedProblem) -> Layout:
    """Return the layout of a problem; exponents determine groups of equal areas."""
    return _from_exponents(problem) if problem.partitions is None else _from_partitions(problem)


def _from_partitions(problem: MaskedProblem) -> Layout:
    """Return a layout in which each area and each cell has a slot of its own."""
    assert problem.partitions is not None
    P, K = problem.P, problem.K
    member = np.empty((K, P), int)
    for k, areas in enumerate(problem.partitions):
        for m, patches in enumerate(areas):
            member[k, list(patches)] = m
    names: list[str] = []
    clusters = []
    for k, areas in enumerate(problem.partitions):
        slots = np.arange(len(names), len(names) + len(areas))
        label = "" if K == 1 else f"{k + 1}_"
        names += [f"Phi_{label}{m + 1}" for m in range(len(areas))]
        clusters.append(Areas(slots, np.ones(len(areas)), int(member[k, problem.patch]), 0))
    others = np.delete(member, problem.patch, axis=1)
    cells, size = np.unique(others, axis=1, return_counts=True)
    area = np.concatenate([cells, member[:, [problem.patch]]], axis=1)
    labels = ["_".join(str(m + 1) for m in column) for column in cells.T]
    slots = len(names) + np.arange(size.size + 1)
    copies = np.concatenate([np.ones(len(names)), size, [1.0]])
    names += [f"Upsilon_{label}" for label in labels] + ["Upsilon_self"]
    return Layout(tuple(names), copies, tuple(clusters), np.append(size, 1.0), slots, area)


def _from_exponents(problem: MaskedProblem) -> Layout:
    """Return a layout with the areas by role (global, own, other) and cells by all roles."""
    K = problem.K
    roles = [_groups(problem, role) for role in problem.roles]
    names: list[str] = []
    copies: list[float] = []
    clusters = []
    for k, groups in enumerate(roles):
        slots = np.arange(len(names), len(names) + len(groups))
        label = "" if K == 1 else f"_{k + 1}"
        names += [f"Phi_{name}{label}" for name, _, _ in groups]
        counts = np.array([count for _, count, _ in groups], float)
        copies += counts.tolist()
        own = next(i for i, (name, _, _) in enumerate(groups) if name == "own")
        clusters.append(Areas(slots, counts, own, 0))
    others = problem.P - 1.0
    size: list[float] = []
    area: list[tuple[int, ...]] = []
    for index in product(*(range(len(groups)) for groups in roles)):
        shares = [roles[k][m][2] / others for k, m in enumerate(index)]
        if (patches := others * math.prod(shares)) > 0.0:
            size.append(patches if K > 1 else roles[0][index[0]][2])
            area.append(index)
    phi = len(names)
    for index in area:
        names.append("Upsilon_" + "_".join(roles[k][m][0] for k, m in enumerate(index)))
    area.append(tuple(areas.own for areas in clusters))
    names.append("Upsilon_self")
    size.append(1.0)
    return Layout(
        tuple(names),
        np.array([*copies, *size]),
        tuple(clusters),
        np.array(size, float),
        phi + np.arange(len(size)),
        np.array(area).T,
    )


def _groups(problem: MaskedProblem, role: str) -> list[tuple[str, int, float]]:
    """Return (name, number of areas, patches other than p) of each group, global area first."""
    large, small, count = problem.sizes
    if role == "global":
        return [("own", 1, large - 1.0), ("other", count, float(count * small))]
    groups = [("global", 1, float(large)), ("own", 1, small - 1.0)]
    return groups + ([("other", count - 1, float((count - 1) * small))] if count > 1 else [])
