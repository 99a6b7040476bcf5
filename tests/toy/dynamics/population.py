"""A deep linear scalar: the risk (a b - s)^2 / 2, which descent follows in closed form."""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np

from dynamics.core.annotations import Doc, Draw, Ticks, above
from dynamics.core.parameters import Parameters
from dynamics.core.risk import Risk
from dynamics.core.trajectory import Trajectory


class Pair(NamedTuple):
    a: float
    b: float


@dataclass(frozen=True)
class ToyProblem(Parameters):
    s: Annotated[float, above(0), Doc("target"), Ticks(0.5, 1, 2), Draw(0.1, 2)] = 1.0
    a0: Annotated[float, Doc("initial a"), Draw(0.1, 2)] = 0.1
    b0: Annotated[float, Doc("initial b"), Draw(0.1, 2)] = 0.2

    @property
    def initial_state(self):
        return Pair(self.a0, self.b0)


class Loss(NamedTuple):
    loss: float
    bound: float


class ToyTrajectory(Trajectory):
    @staticmethod
    def state(vector):
        return Pair(*map(float, vector))


class ToyPopulation(Risk):
    order_parameters = ("a", "b")
    trajectory = ToyTrajectory
    method = "closed form"
    reason = "closed form: a polynomial"
    tolerance = 1e-12

    def __init__(self, problem):
        self.problem, self.evaluations = problem, 0

    def gradient(self, state):
        self.evaluations += 1
        rest = state[0] * state[1] - self.problem.s
        return Pair(rest * state[1], rest * state[0])

    def jacobian(self, state):
        a, b = state
        cross = 2.0 * a * b - self.problem.s
        return np.array([[b * b, cross], [cross, a * a]])

    def evaluate(self, state):
        rest = state[0] * state[1] - self.problem.s
        return Loss(0.5 * rest * rest, 1e-15 * max(1.0, rest * rest))
