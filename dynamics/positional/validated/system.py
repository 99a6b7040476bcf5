"""The reduced dynamics as a system of which tubes can be proved."""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from flint import ctx

from dynamics.core.balls.exact import above, exact
from dynamics.core.balls.series import Series
from dynamics.core.errors import ToleranceError
from dynamics.positional.population.expectation import Constants, gradient_sum, hessian_sum
from dynamics.positional.population.states import StateTable, count_states, enumerate_states
from dynamics.positional.problem import Problem, State
from dynamics.positional.validated.field import Field
from dynamics.positional.validated.images import images
from dynamics.positional.validated.tail import Tail

MOST_STATES = 200_000
_SHARE = 0.25  # of the tolerance that what is neglected may take


@dataclass(frozen=True)
class TruncatedField:
    """The velocity of the images with at most K features, in balls and in floats."""

    field: Field
    tail: Tail

    @property
    def K(self) -> int:
        """The largest number of features outside the signal set."""
        return self.field.K

    def velocity(self, theta: Series) -> Series:
        """Return the Taylor series of the velocity along a curve."""
        return self.field.velocity(theta)

    def jacobian(self, theta: Series) -> Series:
        """Return the Taylor series of its Jacobian."""
        return self.field.jacobian(theta)

    def neglected(self, box: Series) -> np.ndarray:
        """Return bounds (3,) on a box of the velocity of all other images."""
        return np.asarray(self.tail.bounds(box)[self.K, 1:])

    @cached_property
    def _plan(self) -> tuple[StateTable, Constants]:
        problem = self.field.problem
        return _states(problem, self.K), Constants.of(problem)

    def velocity_at(self, theta: np.ndarray) -> np.ndarray:
        """Return the velocity in floats."""
        _, *slopes = gradient_sum(*self._plan, *theta.tolist())
        return -np.array(slopes) / self.field.problem.multiplicity

    def jacobian_at(self, theta: np.ndarray) -> np.ndarray:
        """Return its Jacobian in floats."""
        hessian = hessian_sum(*self._plan, *theta.tolist())
        return -hessian / np.array(self.field.problem.multiplicity)[:, None]


@lru_cache(maxsize=8)
def _states(problem: Problem, K: int) -> StateTable:
    return enumerate_states(problem, K)


class ReducedSystem:
    """The flow or descent of (alpha, gamma, rho) on the population risk, from a start.

    The start of Parametrization 3.1 is irrational; the float next to it gets a radius.
    """

    def __init__(
        self, problem: Problem, initial: State | None = None, most_states: int = MOST_STATES
    ) -> None:
        self.problem = problem
        self.metric = np.array(problem.multiplicity)
        self.start = np.array(problem.initial_state if initial is None else initial, float)
        self.start_radius = np.zeros(3)
        if initial is None:
            with ctx.workprec(128):
                root = (exact(problem.nu).log() / (problem.p - 1)).exp()
                self.start_radius[0] = above(abs(root - exact(self.start[0])))
        self.tail = Tail(problem)
        counts = count_states(problem, min(problem.D - problem.C, 60))
        self.most_K = int(np.searchsorted(counts, most_states, side="right")) - 1
        self._images = images(problem, min(4, self.most_K))

    def field(self, theta: np.ndarray, tolerance: float) -> TruncatedField:
        """Return the smallest field whose neglected part is a share of tolerance x velocity.

        Raises
        ------
        ToleranceError
            If it needs more states than are allowed.
        """
        beyond = self.tail.bounds(Series.exact(theta[None, :]))[:, 1:]
        lost = np.sqrt((self.metric * beyond**2).sum(axis=1))
        K = min(4, self.most_K)
        while True:
            found = self.truncated(K)
            velocity = found.velocity_at(theta)
            speed = math.sqrt(float((self.metric * velocity**2).sum()))
            enough = int(np.argmax(lost <= _SHARE * tolerance * speed))
            enough = min(enough, self.problem.D - self.problem.C)
            if enough <= K:
                return self.truncated(enough)
            if enough > self.most_K:
                raise ToleranceError(
                    f"tolerance = {tolerance:g} needs all images with up to {enough} features, and "
                    f"those with up to {self.most_K} are as many as are kept"
                )
            K = enough

    def truncated(self, K: int) -> TruncatedField:
        """Return the field of the images with at most K features."""
        if K > self._images.K:
            self._images = images(self.problem, min(K + 1, self.most_K))
        return TruncatedField(Field(self.problem, self._images, K), self.tail)
