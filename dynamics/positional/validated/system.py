"""The reduced dynamics as a system for certified enclosures of trajectories (tubes)."""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from flint import arb, ctx

from dynamics.core.balls.exact import above, exact
from dynamics.core.balls.series import Series
from dynamics.core.errors import ToleranceError
from dynamics.positional.population.expectation import Constants, gradient_sum, hessian_sum
from dynamics.positional.population.states import StateTable, count_states, enumerate_states
from dynamics.positional.problem import Problem, State
from dynamics.positional.validated.field import Field
from dynamics.positional.validated.images import by_q, features_and_totals, images
from dynamics.positional.validated.tail import Tail

#: Default limit of the number of multisets that are summed.
MOST_STATES = 1_000_000
_BALL = ("mid", "rad")
_SHARE = 0.25  # fraction of the tolerance that truncation may use


class Box(NamedTuple):
    """Radii of the constants of a problem that vary; 0 for a constant that is fixed."""

    nu: float = 0.0
    q: float = 0.0


#: The box of a single problem.
POINT = Box()


@dataclass(frozen=True)
class TruncatedField:
    """Velocity from the images with at most K features, in balls and in floats.

    With a box of constants, ``velocity`` is that of its centre, and all other bounds are valid for
    the whole box.

    Attributes
    ----------
    field
        Velocity in balls.
    tail
        Bounds of the contribution of all other images.
    box
        Radii of the constants.
    """

    field: Field
    tail: Tail
    box: Box = POINT

    @property
    def K(self) -> int:
        """The largest number of features outside the signal set."""
        return self.field.K

    @cached_property
    def whole(self) -> Field:
        """The velocity in balls that contain it for all constants of the box."""
        if not any(self.box):
            return self.field
        problem, K = self.field.problem, self.field.images.K
        return Field(problem, images(problem, K, self.box.q), self.K, self.box.nu)

    def velocity(self, theta: Series) -> Series:
        """Return the Taylor series of the velocity along a curve theta, three lanes."""
        return self.field.velocity(theta)

    def jacobian(self, theta: Series) -> Series:
        """Return the Taylor series of the Jacobian along a curve theta, nine lanes (by rows)."""
        return self.whole.jacobian(theta)

    def sensitivity(self, theta: Series) -> Series:
        """Return the series of r d f / d c for each constant c with a radius r, for all constants.

        Three lanes for each constant, in the order of `Box`.
        """
        parts = []
        if self.box.nu:
            parts.append(self.whole.by_nu(theta).times(self.box.nu))
        if self.box.q:
            weights = by_q(self.field.problem, self.field.images.K, self.box.q)
            slope = Field(self.field.problem, weights, self.K, self.box.nu)
            parts.append(slope.velocity(theta).times(self.box.q))
        return Series(*(np.concatenate([getattr(x, n) for x in parts], axis=1) for n in _BALL))

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

    def sensitivity_at(self, theta: np.ndarray) -> np.ndarray:
        """Return the derivatives by delta at a state (3,) in floats, one row for each constant."""
        (table, constants), problem, rows = self._arguments, self.field.problem, []
        if self.box.nu:
            ends = [
                np.array(gradient_sum(table, constants._replace(nu=nu), *theta.tolist())[1:])
                for nu in (problem.nu + self.box.nu, problem.nu - self.box.nu)
            ]
            rows.append((ends[1] - ends[0]) / 2)
        if self.box.q:
            features, _ = features_and_totals(problem, table)
            empty = problem.D - problem.C - features
            ratio = features / problem.q - empty / max(1.0 - problem.q, 1e-12)
            changed = table._replace(weight=table.weight * ratio * self.box.q)
            rows.append(-np.array(gradient_sum(changed, constants, *theta.tolist())[1:]))
        return np.array(rows) / problem.multiplicity

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
    box
        Radii of the constants: the system is a family with the problem at its centre.
    """

    def __init__(
        self,
        problem: Problem,
        initial: State | None = None,
        most_states: int = MOST_STATES,
        box: Box = POINT,
    ) -> None:
        self.problem, self.box = problem, box
        self.metric = np.array(problem.multiplicity)
        self.start = np.array(problem.initial_state if initial is None else initial, float)
        self.start_radius = np.zeros(3)
        if initial is None:
            with ctx.workprec(128):
                root = (exact(problem.nu).log() / (problem.p - 1)).exp()
                self.start_radius[0] = above(abs(root - exact(self.start[0])))
        self.start_slopes = tuple(np.zeros(3) for radius in box if radius)
        if initial is None and box.nu:
            self._vary_start()
        self.tail = Tail(problem, q_radius=box.q, nu_radius=box.nu)
        counts = count_states(problem, min(problem.D - problem.C, 60))
        self.most_K = int(np.searchsorted(counts, most_states, side="right")) - 1
        self._images = images(problem, min(4, self.most_K))

    def _vary_start(self) -> None:
        """Add the dependence of Parametrization 3.1 on nu: a slope, and the second order."""
        with ctx.workprec(128):
            power, radius = arb(1) / (self.problem.p - 1), exact(self.box.nu)
            nu = exact(self.problem.nu)
            self.start_slopes[0][0] = float((power * nu ** (power - 1) * radius).mid())
            whole = nu + arb(0, 1) * radius
            slope = power * whole ** (power - 1) * radius - exact(float(self.start_slopes[0][0]))
            self.start_radius[0] = above(exact(self.start_radius[0]) + abs(slope).upper())

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
        return TruncatedField(Field(self.problem, self._images, K), self.tail, self.box)
