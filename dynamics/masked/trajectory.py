"""Trajectory of the correlations of a query patch, with invariants of every run."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dynamics.core.invariants import Invariant, loss_non_increasing
from dynamics.core.trajectory import Trajectory


def _own_falls(run: Any) -> np.ndarray:
    return -np.diff(run.phi_own, axis=0).min(axis=1)


def _sum_of_positions(run: Any) -> np.ndarray:
    layout = run.problem.layout
    return np.abs(run.states[:, layout.phi_slots :] @ layout.copies[layout.phi_slots :])


def _sum_noise(run: Any) -> float:
    layout = run.problem.layout
    return run.resolution * float(layout.copies[layout.phi_slots :].sum())


own_correlation_grows = Invariant(
    "own correlation grows",
    "Phi_{p->v_{k,n}} never decreases; n is the area of p in cluster k",
    "Lemma 5.1, item 1",
    _own_falls,
    lambda run: run.resolution,
)
positions_sum_to_zero = Invariant(
    "positions sum to zero",
    "sum over q of Upsilon_{p->q} = 0 at all times",
    "Lemma 5.2, derived",
    _sum_of_positions,
    _sum_noise,
)
MASKED_INVARIANTS = (own_correlation_grows, positions_sum_to_zero, loss_non_increasing)


@dataclass(frozen=True, eq=False)
class MaskedTrajectory(Trajectory):
    """Correlations along a run, one column per order parameter of the problem."""

    observables: ClassVar[tuple[str, ...]] = ("own_attention", "shortfall", "floor")

    @property
    def invariants(self) -> tuple[Invariant, ...]:
        """Invariants of Lemmas 5.1 and 5.2."""
        return MASKED_INVARIANTS

    @property
    def phi_own(self) -> np.ndarray:
        """Phi of p's own area in each cluster, (n, K)."""
        slots = [areas.own_slot for areas in self.problem.layout.clusters]
        return self.states[:, slots]

    @property
    def phi_global(self) -> np.ndarray:
        """Phi of the global area in each cluster, (n, K)."""
        slots = [areas.global_slot for areas in self.problem.layout.clusters]
        return self.states[:, slots]

    @property
    def upsilon(self) -> np.ndarray:
        """Position correlations, (n, cells + 1)."""
        return self.states[:, self.problem.layout.phi_slots :]

    @property
    def own_attention(self) -> np.ndarray:
        """Mean unmasked attention to p's own area in each cluster, (n, K)."""
        return self.observation("own_attention")

    @property
    def shortfall(self) -> np.ndarray:
        """Mean of (1 - attention)^2 in each cluster, without masks that hide the area, (n, K)."""
        return self.observation("shortfall")

    @property
    def floor(self) -> np.ndarray:
        """Loss that no state removes, (n,); all entries are equal."""
        return self.observation("floor")

    @property
    def excess(self) -> np.ndarray:
        """Loss above its floor, (n,)."""
        return self.loss - self.floor

    def columns(self) -> dict[str, tuple[np.ndarray, str]]:
        """Return a mapping from the columns of a dataset to (values, description)."""
        own = {
            f"own_attention_{k + 1}": (column, f"attention to p's own area, cluster {k + 1}")
            for k, column in enumerate(self.own_attention.T)
        }
        return {**super().columns(), **own, "excess": (self.excess, "loss above its floor")}
