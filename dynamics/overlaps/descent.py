"""Exact steps of gradient descent on vectors, with weight decay and momentum."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dynamics.core.optimizers import Optimizer
from dynamics.theory.data import Array

if TYPE_CHECKING:
    from dynamics.overlaps.risk import OverlapRisk


class VectorDescent:
    """Plan of gradient descent: the gradient that leads to the exact step at one rate.

    With momentum it contains the inner products of the velocities, and each evaluation advances
    them: v' = momentum v + S u and u' = (1 - rate weight_decay) u - rate v'. On spheres S u is
    projected and u' is normalized.

    Parameters
    ----------
    risk
        The risk.
    learning_rate, optimizer
        Step size, and momentum and weight decay.
    """

    def __init__(self, risk: OverlapRisk, learning_rate: float, optimizer: Optimizer) -> None:
        self.risk, self.rate = risk, learning_rate
        self.decay = optimizer.weight_decay
        self.momentum = optimizer.momentum if optimizer.name == "momentum" else 0.0
        zero = [0.0] * len(risk.algebra.entry)
        #: Inner products of velocities (rows) with vectors, and of velocities.
        self._mixed, self._squares = zero, zero

    def gradient_within(self, theta: Array, out: Array) -> bool:
        """Write (theta - step) / rate to ``out``; it is always within the tolerance."""
        if self.momentum:
            moved = self._with_momentum(theta)
        else:
            moved = self.risk.step(theta, self.rate, self.decay)
        out[:] = (theta - moved) / self.rate
        return True

    def _with_momentum(self, theta: Array) -> Any:
        """Return the overlaps after a step, and advance the velocities."""
        algebra, rate, mu = self.risk.algebra, self.rate, self.momentum
        gram = self.risk.gram_matrix(theta)
        s = self.risk.coefficients(theta)
        driven = algebra.symmetric(algebra.multiply(self._mixed, algebra.transpose(s)))
        squares = zip(self._squares, driven, algebra.conjugated(s, gram))
        self._squares = [mu * mu * x + mu * y + z for x, y, z in squares]
        mixed = [mu * x + y for x, y in zip(self._mixed, algebra.multiply(s, gram))]
        shrunk = algebra.shrinkage(1.0 - rate * self.decay)
        mixed = algebra.multiply(mixed, shrunk)  # new velocities with shrunk vectors
        terms = zip(algebra.conjugated(shrunk, gram), algebra.symmetric(mixed), self._squares)
        moved = [x - rate * y + rate * rate * z for x, y, z in terms]
        mixed = [x - rate * z for x, z in zip(mixed, self._squares)]
        scale = algebra.normalization(moved)
        self._mixed = algebra.multiply(mixed, scale)
        return algebra.varying(algebra.conjugated(scale, moved))
