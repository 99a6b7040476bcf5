"""Areas of each cluster, the cells of their common refinement, and which entries of Q coincide.

Two patches that lie in the same area in every cluster (a *cell*) and are not p itself have the same
position-position correlation with p, and areas that differ in nothing share their feature-position
correlation: the row ``e_p^T Q`` holds a handful of numbers, the *slots* of a state. Phi comes
first, then Upsilon, then p's own position (``Upsilon_self``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


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
