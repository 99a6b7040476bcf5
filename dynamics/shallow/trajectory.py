"""Trajectories of the population dynamics, the Gram form, and what the flow conserves.

The Gram matrix of a pair of factors, (K, Q) or (W_O^T, V), evolves in closed form: its step depends
neither on the width of the factors nor on the factors themselves.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dynamics.core.trajectory import Trajectory

#: Names of the columns of `ShallowTrajectory.conserved`.
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
        """Return the conserved quantities `CONSERVED` at each record, (n, 4).

        The flow conserves them, those of O and V if V is trained. Descent with learning rate eta
        changes them by an amount of order eta over a given time eta x steps.
        """
        rows = []
        for state in self.states:
            _, V, K, Q = self.problem.matrices(state)
            W, _ = self.problem.all_neurons(state)
            M = self.problem.M
            rows.append(conserved(gram(K, Q), M) + conserved(gram(W.T, V), len(W)))
        return np.array(rows)

    def columns(self) -> dict[str, tuple[np.ndarray, str]]:
        """Return the columns of a dataset, with attention, margins and test error."""
        return {
            **super().columns(),
            "attention": (self.attention, "attention on relevant tokens"),
            "margin": (self.margin, "mean of yF"),
            "least_margin": (self.least_margin, "minimum of yF over samples"),
            "test_error": (self.test_error, "P[yF <= 0]"),
        }


def gram(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the Gram matrix [[left^T left, left^T right], [right^T left, right^T right]].

    Its blocks are S_K, A and S_Q for (K, Q), and S_O, H and S_V for (W_O^T, V).

    Parameters
    ----------
    left, right
        Factors with the same number of rows, (b, m) and (b, n).
    """
    both = np.hstack([left, right])
    return np.asarray(both.T @ both)


def gram_step(gamma: np.ndarray, descent: np.ndarray, rate: float) -> np.ndarray:
    """Return the Gram matrix after a step, (1 + rate Omega) Gamma (1 + rate Omega).

    Parameters
    ----------
    gamma
        Gram matrix, (m + n, m + n).
    descent
        Descent direction (m, n): G for (K, Q), D for (W_O^T, V). Omega is [[0, G], [G^T, 0]].
    rate
        Learning rate, the same for both factors.
    """
    rows, columns = descent.shape
    move = np.eye(rows + columns)
    move[:rows, rows:] = rate * descent
    move[rows:, :rows] = rate * descent.T
    return move @ gamma @ move


def conserved(gamma: np.ndarray, rows: int) -> tuple[float, float]:
    """Return tr S_1 - tr S_2 and |S_1|^2 + |S_2|^2 - 2 |A|^2 of a Gram matrix.

    They are tr(J Gamma) and tr((J Gamma)^2) with J = diag(1, -1). The flow conserves the spectrum
    of J Gamma; a step changes it in second order in the learning rate.

    Parameters
    ----------
    gamma
        Gram matrix, (m + n, m + n).
    rows
        Size m of its first block.
    """
    signed = gamma.copy()
    signed[rows:] *= -1.0
    return float(np.trace(signed)), float(np.trace(signed @ signed))
