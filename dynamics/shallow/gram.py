"""The Gram form of the dynamics, closed and independent of the widths of all matrices."""

import numpy as np


def gram(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return [[left^T left, left^T right], [right^T left, right^T right]].

    Of (K, Q) it holds S_K, A and S_Q; of (W_O^T, V) it holds S_O, H and S_V.
    """
    both = np.hstack([left, right])
    return np.asarray(both.T @ both)


def step(gamma: np.ndarray, descent: np.ndarray, rate: float) -> np.ndarray:
    """Return (1 + rate Omega) Gamma (1 + rate Omega), Omega = [[0, G], [G^T, 0]].

    ``descent`` is G for (K, Q), and D for (W_O^T, V).
    """
    rows, columns = descent.shape
    move = np.eye(rows + columns)
    move[:rows, rows:] = rate * descent
    move[rows:, :rows] = rate * descent.T
    return move @ gamma @ move


def conserved(gamma: np.ndarray, rows: int) -> tuple[float, float]:
    """Return tr S_1 - tr S_2 and |S_1|^2 + |S_2|^2 - 2 |A|^2, which the flow keeps.

    They are tr(J Gamma) and tr((J Gamma)^2), J = diag(1, -1): the flow keeps the spectrum of
    J Gamma. Steps of a finite rate move them by an amount of second order in the rate.
    """
    signed = gamma.copy()
    signed[rows:] *= -1.0
    return float(np.trace(signed)), float(np.trace(signed @ signed))
