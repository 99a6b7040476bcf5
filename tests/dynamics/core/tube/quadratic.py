"""Systems of quadratic differential equations, and two public benchmarks of reachability.

ROBE21 and LALO20 are models of the category "nonlinear" of the competition ARCH-COMP, with the
constants of the repository JuliaReach/ARCH2024_NLN_RE.
"""

from dataclasses import dataclass
from functools import reduce
from math import prod

import numpy as np

from dynamics.core.balls.series import Series

#: (row, factor, coordinates): the velocity of the row contains the factor times the coordinates.
Term = tuple[int, float, tuple[int, ...]]


@dataclass
class Quadratic:
    """x_i' = sum of factors times products of coordinates; its own velocity field."""

    terms: list[Term]
    start: np.ndarray
    start_radius: np.ndarray

    def __post_init__(self):
        self.n = self.start.size
        self.metric = np.ones(self.n)

    def slopes(self):
        """Return the terms of the Jacobian; a row stands for an entry, by rows."""
        return [
            (i * self.n + j, c, rest[:k] + rest[k + 1 :])
            for i, c, rest in self.terms
            for k, j in enumerate(rest)
        ]

    def field(self, theta, tolerance):
        return self

    def velocity_at(self, theta):
        return summed(self.terms, self.n, theta)

    def jacobian_at(self, theta):
        return summed(self.slopes(), self.n**2, theta).reshape(self.n, self.n)

    def velocity(self, theta):
        return enclosed(self.terms, self.n, theta)

    def jacobian(self, theta):
        return enclosed(self.slopes(), self.n**2, theta)

    def neglected(self, box):
        return np.zeros(self.n)


def summed(terms, size, theta):
    """Return the sums of terms (size,) at a state."""
    total = np.zeros(size)
    for row, factor, coordinates in terms:
        total[row] += factor * prod(theta[j] for j in coordinates)
    return total


def enclosed(terms, size, theta):
    """Return the sums of terms along a curve; factors are decimal numbers, rounded to floats."""
    unit = Series.constant(1.0, 0.0, theta.order)
    rows = [unit.times(0.0)] * size
    for row, factor, coordinates in terms:
        product = reduce(Series.__mul__, (theta.lane(slice(j, j + 1)) for j in coordinates), unit)
        decimal = Series.constant(factor, abs(factor) * 2.0**-53, theta.order)
        rows[row] = rows[row] + product * decimal
    return Series(np.hstack([x.mid for x in rows]), np.hstack([x.rad for x in rows]))


def robertson(beta, gamma, alpha=0.4):
    """ROBE21: a stiff chemical reaction. The sum of its coordinates is conserved."""
    terms = [(0, -alpha, (0,)), (0, beta, (1, 2)), (1, alpha, (0,)), (1, -beta, (1, 2))]
    terms += [(1, -gamma, (1, 1)), (2, gamma, (1, 1))]
    return Quadratic(terms, np.array([1.0, 0.0, 0.0]), np.zeros(3))


def laub_loomis(width):
    """LALO20: an oscillating enzyme, from a box of half-width ``width``."""
    terms = [(0, 1.4, (2,)), (0, -0.9, (0,)), (1, 2.5, (4,)), (1, -1.5, (1,)), (2, 0.6, (6,))]
    terms += [(2, -0.8, (1, 2)), (3, 2.0, ()), (3, -1.3, (2, 3)), (4, 0.7, (0,)), (4, -1.0, (3, 4))]
    terms += [(5, 0.3, (0,)), (5, -3.1, (5,)), (6, 1.8, (5,)), (6, -1.6, (1, 6))]
    return Quadratic(
        terms, np.array([1.2, 1.05, 1.5, 2.4, 1.0, 0.1, 0.45]), np.full(7, float(width))
    )
