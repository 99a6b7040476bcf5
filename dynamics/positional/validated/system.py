"""The reduced dynamics as a system for certified enclosures of trajectories (tubes)."""

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

#: Default limit of the number of multisets that are summed.
MOST_STATES = 1_000_000
_SHARE = 0.25  # fraction of the tolerance that truncation may use


@dataclass(frozen=True)
class TruncatedField:
    """Velocity from the images with at most K features, in balls and in floats.

    Attributes
    ----------
    field
        Velocity in balls.
    tail
        Bounds of the contribution of all other images.
    """

    field: Field
    tail: Tail

    @property
    def K(self) -> int:
        """The largest number of features outside the signal set."""
        return self.field.K

    def velocity(self, theta: Series) -> Series:
        """Return the Taylor series of the velocity along a curve theta, three lanes."""
        return self.field.velocity(theta)

    def jacobian(self, theta: Series) -> Series:
        """Return the Taylor series of the Jacobian along a curve theta, nine lanes (by rows)."""
        return self.field.jacobian(theta)

    def neglected(self, box: Series) -> np.ndarray:
        """Return bounds (3,), valid on a box, of the velocity from all other images."""
        return np.asarray(self.tail.bounds(box)[self.K, 1:])

    @cached_property
    def _arguments(self) -> tuple[StateTable, Constants]:
        """Table and constants for the float kernels."""
        problem = self.field.problem
        return _states(problem, self.K), Constants.of(problem)

    def velocity_at(self, theta: np.ndarray) -> np.ndarray:
        """Return the velocity at a state (3,) in floats."""
        _, *slopes = gradient_sum(*self._arguments, *theta.tolist())
        return -np.array(slopes) / self.field.problem.multiplicity

    def jacobian_at(self, theta: np.ndarray) -> np.ndarray:
        """Return the Jacobian (3, 3) at a state (3,) in floats."""
        hessian = hessian_sum(*self._arguments, *theta.tolist())
        return -hessian / np.array(self.field.problem.multiplicity)[:, None]


@lru_cache(maxsize=8)
def _states(problem: Problem, K: int) -> StateTable:
    """Return the table of all multisets with at most K features, from a cache."""
    return enumerate_states(problem, K)


class ReducedSystem:
    """Dynamics of (alpha, gamma, rho) on the population risk, with its initial state.

    Parameters
    ----------
    problem
        Constants.
    initial
        Initial state; ``None`` means Parametrization 3.1. That state is irrational: it is
        represented by the nearest float and a radius.
    most_states
        Largest number of multisets that are summed.
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
        """Return the smallest field that neglects at most a quarter of tolerance x |velocity|.

        Parameters
        ----------
        theta
            State (3,).
        tolerance
            Relative error of the velocity.

        Raises
        ------
        ToleranceError
            If the field needs more states than allowed.
        """
        beyond = self.tail.bounds(Series.exact(theta[None, :]))[:, 1:]
        lost = np.sqrt((self.metric * beyond**2).sum(axis=1))
        K = min(4, self.most_K)
        while True:
            velocity = self.truncated(K).velocity_at(theta)
            speed = math.sqrt(float((self.metric * velocity**2).sum()))
            enough = int(np.argmax(lost <= _SHARE * tolerance * speed))
            enough = min(enough, self.problem.D - self.problem.C)
            if enough <= K:
                return self.truncated(enough)
            if enough > self.most_K:
                raise ToleranceError(
                    f"tolerance = {tolerance:g} needs all images with up to {enough} features, but "
                    f"the limit of the number of states allows only {self.most_K}"
                )
            K = enough

    def truncated(self, K: int) -> TruncatedField:
        """Return the field of the images with at most K features."""
        if K > self._images.K:
            self._images = images(self.problem, min(K + 1, self.most_K))
        return TruncatedField(Field(self.problem, self._images, K), self.tail)
