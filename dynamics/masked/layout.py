"""Areas of each cluster, the cells of their common refinement, and which entries of Q coincide.

Two patches that lie in the same area in every cluster (a *cell*) and are not p itself have the same
position-position correlation with p, and areas that differ in nothing share their feature-position
correlation: the row ``e_p^T Q`` holds a handful of numbers, the *slots* of a state. Phi comes
first, then Upsilon, then p's own position (``Upsilon_self``).
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
    """The areas of one cluster: slot of each, how many equal areas it stands for, which is p's."""

    slot: np.ndarray  # int (areas,)
    copies: np.ndarray  # float (areas,)
    own: int
    first: int  # the global area

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

    ``names`` and ``copies`` (entries of ``e_p^T Q`` per slot) describe the state; ``size`` and
    ``cell_slot`` the cells, ``area[k]`` the area of each cell in cluster k.
    """

    names: tuple[str, ...]
    copies: np.ndarray
    clusters: tuple[Areas, ...]
    size: np.ndarray  # float (cells,)
    cell_slot: np.ndarray  # int (cells,)
    area: np.ndarray  # int (K, cells)

    @property
    def phi_slots(self) -> int:
        """Number of slots of Phi; those of Upsilon follow."""
        return int(self.cell_slot.min())

    def expanded(self) -> Layout:
        """Return the same areas one by one: what finite counts need. Slots stay shared.

        Only where each area group of the one cluster is one cell (exponents, K = 1).
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
    """Return the layout of a problem, areas of equal role grouped where exponents give them."""
    return _from_exponents(problem) if problem.partitions is None else _from_partitions(problem)


def _from_partitions(problem: MaskedProblem) -> Layout:
    """Every area has its own slot, every cell too."""
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
    """Areas by role: global, p's own, the others; cells by the roles in all clusters."""
    K = problem.K
    roles = [_roles(problem, role) for role in problem.roles]  # (name, areas, patches without p)
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


def _roles(problem: MaskedProblem, role: str) -> list[tuple[str, int, float]]:
    """Return (name, number of areas, patches other than p) of each group, the global area first."""
    large, small, count = problem.sizes
    if role == "global":
        return [("own", 1, large - 1.0), ("other", count, float(count * small))]
    groups = [("global", 1, float(large)), ("own", 1, small - 1.0)]
    return groups + ([("other", count - 1, float((count - 1) * small))] if count > 1 else [])
