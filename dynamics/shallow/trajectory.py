"""A run of the shallow transformer's population dynamics, and what the flow conserves."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dynamics.core.trajectory import Trajectory
from dynamics.shallow.gram import conserved, gram

#: What `ShallowTrajectory.conserved` returns, by column.
CONSERVED = (
    "tr S_K - tr S_Q",
    "|S_K|^2 + |S_Q|^2 - 2 |A|^2",
    "tr S_O - tr S_V",
    "|S_O|^2 + |S_V|^2 - 2 |H|^2",
)


@dataclass(frozen=True, eq=False)
class ShallowTrajectory(Trajectory):
    """Order parameters along a run, with attention, margins and test error."""

    observables: ClassVar[tuple[str, ...]] = ("attention", "margin", "least_margin", "test_error")

    @property
    def attention(self) -> np.ndarray:
        """Attention on relevant tokens, (n,)."""
        return self.observation("attention")

    @property
    def margin(self) -> np.ndarray:
        """Mean of yF, (n,)."""
        return self.observation("margin")

    @property
    def least_margin(self) -> np.ndarray:
        """Minimum of yF over the samples that can occur, (n,)."""
        return self.observation("least_margin")

    @property
    def test_error(self) -> np.ndarray:
        """P[yF <= 0], (n,)."""
        return self.observation("test_error")

    def conserved(self) -> np.ndarray:
        """Return the quantities `CONSERVED` at each record, (n, 4).

        The flow keeps them (those of O and V where V is trained); steps of rate eta let them drift
        by an amount that halves with eta at fixed eta x steps.
        """
        rows = []
        for state in self.states:
            _, V, K, Q = self.problem.matrices(state)
            W, _ = self.problem.all_neurons(state)
            M = self.problem.M
            rows.append(conserved(gram(K, Q), M) + conserved(gram(W.T, V), len(W)))
        return np.array(rows)

    def columns(self) -> dict[str, tuple[np.ndarray, str]]:
        """Return what a dataset holds, attention, margins and test error included."""
        return {
            **super().columns(),
            "attention": (self.attention, "attention on relevant tokens"),
            "margin": (self.margin, "mean of yF"),
            "least_margin": (self.least_margin, "minimum of yF over samples"),
            "test_error": (self.test_error, "P[yF <= 0]"),
        }
