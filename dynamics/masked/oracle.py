"""Full d x d model of Huang et al. (2024): raw masked loss, its gradient and gradient descent.

This is the reference implementation of the reduced dynamics. It shares no code with them and does
not use their structure: Q is a dense matrix, all masks are enumerated, and the gradient is the
gradient of the raw reconstruction loss. The coordinates are the positions e_0 .. e_{P-1}, followed
by the features v_{k,m} in order.
"""

from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynamics.core.checks import finite, integer, require
from dynamics.core.errors import ParameterError
from dynamics.masked.problem import MaskedProblem

Array = NDArray[np.float64]
MAX_NUMBERS = 2**24  # in the tensor of all masked images: 128 MiB


class FullMaskedModel:
    r"""Loss over all masked images of a problem with explicit partitions and a fixed scale.

    .. math:: L(Q) = \tfrac12\,E\sum_{p\ \mathrm{masked}}\|X_p-F_p\|^2,\quad
       F_p=\sum_q\mathrm{softmax}_q(\tilde X_p^TQ\tilde X_q)\,M(X)_q,\quad \tilde X=M(X)+E

    (equations (2.5) to (2.8)).

    Raises
    ------
    ParameterError
        If the problem has no explicit partitions, a random scale, or too many masks.
    """

    def __init__(self, problem: MaskedProblem) -> None:
        if problem.partitions is None or not problem.z_is_fixed:
            raise ParameterError(
                "problem is not allowed: the full model needs explicit partitions and a fixed z"
            )
        self.problem = problem
        P = problem.P
        self.dimension = d = P + sum(len(areas) for areas in problem.partitions)
        masks = comb(P, problem.masked)
        require(
            problem.K * masks * P * d <= MAX_NUMBERS,
            "P",
            P,
            f"small enough to enumerate all masks (here {masks} masks)",
        )
        visible = np.ones((masks, P))
        for row, masked in enumerate(combinations(range(P), problem.masked)):
            visible[row, list(masked)] = 0.0
        images, feature = [], P
        for areas in problem.partitions:
            image = np.zeros((P, d))
            for area in areas:
                image[list(area), feature] = problem.z_low
                feature += 1
            images.append(image)
        self.target = np.concatenate([np.broadcast_to(x, (masks, P, d)) for x in images])
        self.hidden = np.concatenate([1.0 - visible] * problem.K)  # (images, P)
        self.values = self.target * (1.0 - self.hidden)[:, :, None]
        self.tokens = self.values + np.eye(P, d)

    def evaluate(self, Q: ArrayLike) -> tuple[Array, Array]:
        """Return the loss of each query patch, (P,), and dL/dQ, (d, d); L is the sum of the losses.

        Raises
        ------
        ParameterError
            If ``Q`` is not a finite (d, d) matrix.
        """
        Q = np.array(Q, float)
        if Q.shape != (self.dimension,) * 2 or not np.isfinite(Q).all():
            raise ParameterError(
                f"Q is not allowed: it must be a finite matrix of shape {(self.dimension,) * 2}"
            )
        X = self.tokens
        logits = X @ Q @ X.transpose(0, 2, 1)
        weights = np.exp(logits - logits.max(axis=2, keepdims=True))
        weights /= weights.sum(axis=2, keepdims=True)
        residual = (self.target - weights @ self.values) * self.hidden[:, :, None]
        images = len(X)
        losses = 0.5 * np.einsum("bpd,bpd->p", residual, residual) / images
        pull = -residual @ self.values.transpose(0, 2, 1) / images
        slope = weights * (pull - np.sum(weights * pull, axis=2, keepdims=True))
        return losses, np.einsum("bpd,bpe->de", X, slope @ X, optimize=True)

    def correlations(self, Q: ArrayLike) -> dict[str, float]:
        """Return a mapping from the names of the order parameters to their values.

        Upsilon is averaged over each cell; :meth:`spread` returns the deviation from this average.
        """
        return {name: float(np.mean(row)) for name, row in self._entries(np.asarray(Q)).items()}

    def spread(self, Q: ArrayLike) -> float:
        """Return the largest difference between two entries of a cell in the query's row."""
        return float(max(np.ptp(row) for row in self._entries(np.asarray(Q)).values()))

    def _entries(self, Q: Array) -> dict[str, Array]:
        partitions, P = self.problem.partitions, self.problem.P
        assert partitions is not None
        row = Q[self.problem.patch]
        entries: dict[str, list[float]] = {}
        column = P
        for k, areas in enumerate(partitions, 1):
            for m in range(1, len(areas) + 1):
                label = f"{m}" if len(partitions) == 1 else f"{k}_{m}"
                entries[f"Phi_{label}"] = [row[column]]
                column += 1
        for q in range(P):
            where = [
                next(m for m, area in enumerate(areas, 1) if q in area) for areas in partitions
            ]
            name = "self" if q == self.problem.patch else "_".join(map(str, where))
            entries.setdefault(f"Upsilon_{name}", []).append(row[q])
        return {name: np.array(values) for name, values in entries.items()}


@dataclass(frozen=True)
class FullMaskedTrajectory:
    """Records of full gradient descent.

    Attributes
    ----------
    model, learning_rate
        Model and learning rate of the run.
    step, Q, losses
        Step, (T,), matrix, (T, d, d), and loss of each query patch, (T, P), of each record.
    """

    model: FullMaskedModel
    learning_rate: float
    step: NDArray[np.int64]
    Q: Array
    losses: Array

    @property
    def time(self) -> Array:
        """Learning rate x step."""
        return np.asarray(self.learning_rate * self.step, float)

    def correlations(self) -> dict[str, Array]:
        """Return a mapping from the names of the order parameters to their values, (T,)."""
        rows = [self.model.correlations(Q) for Q in self.Q]
        return {name: np.array([row[name] for row in rows]) for name in rows[0]}

    def violations(self) -> dict[str, float]:
        """Return the largest violation of each assumption of the reduction."""
        P = self.model.problem.P
        return {
            "feature rows fixed": float(np.abs(self.Q[:, P:] - self.Q[0, P:]).max()),
            "one Upsilon per cell": max(self.model.spread(Q) for Q in self.Q),
        }


def gradient_descent(
    problem: MaskedProblem,
    Q: ArrayLike | None = None,
    *,
    learning_rate: float,
    steps: int,
    record_every: int = 1,
) -> FullMaskedTrajectory:
    """Run gradient descent on the raw loss, ``Q <- Q - learning_rate dL/dQ``.

    Parameters
    ----------
    problem
        Problem with explicit partitions and a fixed scale.
    Q
        Initial matrix, (d, d), by default 0.
    learning_rate, steps
        Learning rate, greater than 0, and number of steps, at least 1.
    record_every
        Number of steps between records. The first and the last state are always recorded.

    Raises
    ------
    ParameterError
        If an argument is not allowed, or Q overflows.
    """
    learning_rate = finite("learning_rate", learning_rate)
    require(learning_rate > 0.0, "learning_rate", learning_rate, "greater than 0")
    steps = integer("steps", steps, 1)
    record_every = integer("record_every", record_every, 1)
    model = FullMaskedModel(problem)
    current = np.zeros((model.dimension,) * 2) if Q is None else np.array(Q, float)
    records = []
    for step in range(steps + 1):
        losses, dQ = model.evaluate(current)
        if step % record_every == 0 or step == steps:
            records.append((step, current, losses))
        current = current - learning_rate * dQ
    numbers, matrices, values = zip(*records)
    return FullMaskedTrajectory(
        model, learning_rate, np.array(numbers), np.stack(matrices), np.stack(values)
    )
