"""A coupled, non-normal system, for bounds of a tube that a diagonal one never exercises.

x' = A x + b x_0^k with A not normal: neither symmetric nor diagonal in the metric, so that the
eigenvectors of its symmetric part leave off-diagonal entries. The perturbation is adversarial: it
is added with a sign of its own in each coordinate.
"""

from dataclasses import dataclass

import numpy as np

from dynamics.core.balls.series import Series
from tests.dynamics.core.balls.reference import number, precise


@dataclass
class Coupled:
    """x' = A x + bend x_0^power + g, |g_i| <= lost_i where |x_0| may exceed ``beyond``, else 0."""

    A: np.ndarray
    bend: tuple[float, ...] = (0.0, 0.0)
    lost: tuple[float, ...] = (0.0, 0.0)
    start: np.ndarray = None
    start_radius: np.ndarray = None
    beyond: float = 0.0
    power: int = 2

    def __post_init__(self):
        self.start = np.array([0.5, 0.25]) if self.start is None else self.start
        self.start_radius = np.zeros(2) if self.start_radius is None else self.start_radius
        self.metric = np.ones(2)

    def field(self, theta, tolerance):
        return self

    def velocity(self, theta):
        x = [theta.lane(slice(i, i + 1)) for i in range(2)]
        square = x[0].power(self.power)
        rows = zip(self.A.tolist(), self.bend)
        return joined([x[0].times(a) + x[1].times(b) + square.times(c) for (a, b), c in rows])

    def jacobian(self, theta):
        x, k = theta.lane(slice(0, 1)), self.power
        slope = x.power(k - 1).times(float(k))
        rows = zip(self.A.tolist(), self.bend)
        return joined([
            entry for (a, b), c in rows
            for entry in (slope.times(c).plus(a), x.times(0.0).plus(b))
        ])  # fmt: skip

    def neglected(self, box):
        far = abs(box.mid[0, 0]) + box.rad[0, 0] > self.beyond
        return np.array(self.lost) * far

    def velocity_at(self, theta):
        return self.A @ theta + np.array(self.bend) * theta[0] ** self.power

    def jacobian_at(self, theta):
        J = self.A.copy()
        J[:, 0] += self.power * np.array(self.bend) * theta[0] ** (self.power - 1)
        return J

    def descent(self, start, signs, eta, steps):
        """The iterates with perturbations ``signs[step]`` x ``lost``, in Arb, start included."""
        with precise():
            x = [number(value) for value in start]
            result = [x]
            for step in range(steps):
                f = [
                    sum((number(a) * y for a, y in zip(row, x)), number(c) * x[0] ** self.power)
                    + number(sign * lost)
                    for row, c, sign, lost in zip(
                        self.A.tolist(), self.bend, signs[step], self.lost
                    )
                ]
                x = [y + number(eta) * z for y, z in zip(x, f)]
                result.append(x)
            return result


def joined(parts):
    return Series(np.hstack([p.mid for p in parts]), np.hstack([p.rad for p in parts]))
