r"""Gradient flow and gradient descent as clocks, for proofs that cover both.

A clock counts time for the flow and steps for descent. On a piece of length h, u in [-1, 1] stands
for the count t_0 + h (u + 1)/2. For the flow, the scalar comparison :math:`w'\le Mw+b` with w(0) =
v gives :math:`w\le e^{Mt}v+b\int_0^te^{Ms}ds`. For descent with learning rate eta,
:math:`w_{n+1}\le gw_n+\eta b` with :math:`g\ge|1+\eta J|` gives
:math:`w_n\le g^nv+\eta b(g^n-1)/(g-1)`. Both bounds are monotone in time, so that the larger of
their values at the ends bounds them in between.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from flint import arb

from dynamics.core.balls.exact import above, exact
from dynamics.core.tube.polynomials import around, derivative

PARTS = 8  # parts of a piece, each with its own coordinates
_FEWEST = 2 * PARTS  # smallest number of steps of a polynomial piece; else single steps


@dataclass(frozen=True)
class Flow:
    """Gradient flow theta' = f(theta)."""

    unit: ClassVar[float] = 1.0  # time of one count
    least: ClassVar[float] = 1e-14  # smallest length of a piece
    turns: ClassVar[bool] = True  # whether pairs of coordinates are bounded together

    def parts(self, length: float) -> int:
        """Return the number of parts of a piece."""
        return PARTS

    def fitted(self, length: float, left: float) -> float:
        """Return the admissible length of a piece next to the requested one."""
        return length if length < (1.0 - 1e-6) * left else left

    def rate(self, coefficients: list[Any], length: arb) -> list[Any]:
        """Return the time derivative of a polynomial, to be compared with the velocity."""
        return [2 * c / length for c in derivative(coefficients)]

    def growth(self, entry: arb, length: arb) -> tuple[arb, arb]:
        """Return the factors of v and b after a time, for a ball of diagonal entries."""
        M = exact(above(entry))
        whole = (M * length).exp()
        return whole, length if M == 0 else (M * length).expm1() / M

    def rates(self, nodes: np.ndarray, degree: int, length: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the collocation nodes and the rate of each power of u at the nodes (floats)."""
        powers = np.arange(degree + 1)
        return nodes, 2.0 / length * powers * nodes[:, None] ** np.maximum(powers - 1, 0)


@dataclass(frozen=True)
class Descent:
    """Gradient descent theta_{n+1} = theta_n + eta f(theta_n).

    A piece is a single step or a multiple of 8 steps.
    """

    learning_rate: float
    least: ClassVar[float] = 0.5
    turns: ClassVar[bool] = False  # a pair would need the norm of I + eta M

    @property
    def unit(self) -> float:
        """Time of one step."""
        return self.learning_rate

    def parts(self, length: float) -> int:
        """Return the number of parts of a piece; each is a whole number of steps."""
        return 1 if length < _FEWEST else PARTS

    def fitted(self, length: float, left: float) -> float:
        """Return the admissible length of a piece next to the requested one."""
        length = min(length, left)
        return 1.0 if length < _FEWEST else float(PARTS * int(length / PARTS))

    def rate(self, coefficients: list[Any], length: arb) -> list[Any]:
        """Return (P(t + eta) - P(t))/eta as a polynomial."""
        eta = exact(self.learning_rate)
        ahead = around(coefficients, 2 / length)
        return [(x - y) / eta for x, y in zip(ahead, coefficients)]

    def growth(self, entry: arb, length: arb) -> tuple[arb, arb]:
        """Return the factors of v and b after some steps, for a ball of diagonal entries."""
        eta = exact(self.learning_rate)
        g = exact(above(abs(1 + eta * entry)))
        whole = (length * g.log()).exp() if g > 0 else arb(0)
        return whole, eta * (length if g == 1 else (whole - 1) / (g - 1))

    def rates(self, nodes: np.ndarray, degree: int, length: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the collocation nodes, before the last step, and the rate of each power there."""
        ahead = 2.0 / length
        points = -1.0 + (nodes + 1.0) * (1.0 - 0.5 * ahead)
        powers = np.arange(degree + 1)
        table = np.zeros((nodes.size, degree + 1))
        for k in powers:  # (u + ahead)^k - u^k without cancellation
            for j in range(1, k + 1):
                table[:, k] += math.comb(int(k), j) * points ** (k - j) * ahead ** (j - 1)
        return points, table * (ahead / self.learning_rate)


Clock = Flow | Descent
