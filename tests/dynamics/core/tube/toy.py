"""A system whose solutions are known: logistic growth, and a stiff follower of it."""

from dataclasses import dataclass

import numpy as np
from flint import arb

from dynamics.core.balls.series import Series
from tests.dynamics.core.balls.reference import number, precise

STIFF = 50.0


@dataclass
class Toy:
    """y' = side y (1 - y), z' = -50 z, and an unknown perturbation of y' of at most ``lost``."""

    side: float = 1.0
    lost: float = 0.0
    start_radius: np.ndarray = None
    metric = np.ones(2)
    start = np.array([0.1, 0.5])

    def __post_init__(self):
        self.start_radius = np.zeros(2) if self.start_radius is None else self.start_radius

    def field(self, theta, tolerance):
        return self

    def velocity(self, theta):
        y, z = theta.lane(slice(0, 1)), theta.lane(slice(1, 2))
        return _joined([(y * (-y).plus(1.0)).times(self.side), z.times(-STIFF)])

    def jacobian(self, theta):
        y = theta.lane(slice(0, 1))
        nothing = y.times(0.0)
        slope = y.times(-2.0).plus(1.0).times(self.side)
        return _joined([slope, nothing, nothing, nothing.plus(-STIFF)])

    def neglected(self, box):
        return np.array([self.lost, 0.0])

    def velocity_at(self, theta):
        return np.array([theta[0] * (1 - theta[0]), -STIFF * theta[1]])

    def jacobian_at(self, theta):
        return np.diag([1 - 2 * theta[0], -STIFF])


def _joined(parts):
    return Series(np.hstack([p.mid for p in parts]), np.hstack([p.rad for p in parts]))


def flow_at(time, start=(0.1, 0.5)):
    """The exact solution, in Arb."""
    with precise():
        t, (y, z) = number(time), map(number, start)
        return [1 / (1 + (1 / y - 1) * (-t).exp()), z * (-STIFF * t).exp()]


def descent_at(steps, eta):
    """The exact iterates, in Arb."""
    with precise():
        y, z, eta = number(0.1), number(0.5), number(eta)
        for _ in range(steps):
            y, z = y + eta * y * (1 - y), z - eta * arb(STIFF) * z
        return [y, z]
