"""What a theory tells the solvers: a risk as a function of a few order parameters.

Gradient descent, its flow and the records they leave know a theory only through :class:`Risk`.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Protocol

import numpy as np

from dynamics.core.checks import finite, shown
from dynamics.core.errors import ParameterError, ToleranceError
from dynamics.core.trajectory import Trajectory


class Certified(Protocol):
    """A loss, and the absolute error of it and of the gradient at the same state."""

    @property
    def loss(self) -> float:
        """The risk."""

    @property
    def bound(self) -> float:
        """Its certified (or estimated) error."""


class Risk(ABC):
    """A risk that the solvers can descend; a theory derives from it.

    A state is whatever the theory makes of the n order parameters (:meth:`state`); the solvers
    compute with arrays of shape (n,) and hand states to the theory and to the user.

    Attributes
    ----------
    problem
        The constants, a frozen dataclass with ``initial_state``.
    order_parameters
        The names of the n entries of a state; they may depend on the problem.
    tolerance, method, reason
        Accuracy asked of the expectation, the name of the method that computes it, and why that.
    evaluations
        How many states were evaluated so far.
    trajectory
        The theory's own class of trajectories, which makes its states.

    What :meth:`gradient`, :meth:`jacobian` and :meth:`evaluate` return is a function of the state,
    to the last bit, whatever was evaluated before; a run is one of its start. A theory gives these
    three; what else is here has a default. ``OverflowError`` and ``ToleranceError`` from any of
    them become the status of a run.
    """

    problem: Any
    order_parameters: tuple[str, ...]
    tolerance: float
    reason: str = ""
    evaluations: int
    trajectory: ClassVar[type[Trajectory]] = Trajectory

    @property
    @abstractmethod
    def method(self) -> str:
        """The name of the method that computes the expectation."""

    @property
    def settings(self) -> dict[str, Any]:
        """What, with the problem, an equal expectation is made from; its runs record it."""
        return {"expectation": self.method, "population_tolerance": self.tolerance}

    @property
    def predicted_seconds(self) -> float:
        """What a gradient will cost, about; 0 where it is so cheap that no one need know."""
        return 0.0

    @abstractmethod
    def gradient(self, state: Any) -> Sequence[float]:
        """Return the n numbers that gradient descent multiplies by minus the learning rate."""

    @abstractmethod
    def jacobian(self, state: Any) -> np.ndarray:
        """Return the (n, n) matrix d gradient_i / d state_k."""

    @abstractmethod
    def evaluate(self, state: Any) -> Certified:
        """Return all that is known at a state, with at least ``loss`` and ``bound``."""

    def certified_loss(self, state: Any) -> Certified:
        """Return loss and bound only; worth overriding where that is cheaper."""
        return self.evaluate(state)

    def observe(self, run: Trajectory) -> Trajectory:
        """Return a run with all its observables, such as test errors: one pass over its records.

        A run that holds them already is returned as it is.

        Raises
        ------
        ParameterError
            If it is a run on another problem.
        OverflowError, ToleranceError
            If they cannot be had to the tolerance at one of the records.
        """
        if run.problem != self.problem:
            raise ParameterError(
                f"run = a run on {shown(repr(run.problem))} is not allowed: it must be one on "
                f"{shown(repr(self.problem))}"
            )
        if run.is_observed:
            return run
        values = [self.evaluate(run.state(row)) for row in run.states]
        observed = {
            name: np.array([getattr(value, name) for value in values]) for name in run.observables
        }
        return replace(run, observed=observed)

    def doubt(self, run: Trajectory) -> tuple[int, str]:
        """Return how many records of a run are known, and why the others are not.

        By default all, and "". A run that is complete or stalled is cut there and becomes
        inaccurate.
        """
        return len(run.time), ""

    def state(self, vector: np.ndarray) -> Any:
        """Return the theory's own state for an array (n,)."""
        return self.trajectory.state(vector)

    def checked(self, state: Any) -> Any:
        """Return a state given by the user as finite floats, or raise ParameterError."""
        names = self.order_parameters
        try:
            numbers = list(state)
        except TypeError:
            numbers = []
        if len(numbers) != len(names):
            raise ParameterError(
                f"state = {shown(repr(state))} is not allowed: it must be {len(names)} numbers "
                f"({', '.join(names)})"
            )
        return self.state(np.array([finite(*pair) for pair in zip(names, numbers)]))

    def plan(self, state: Any) -> Any:
        """Return what the descent loop evaluates from a state on, a value; by default itself.

        It is compiled where ``dynamics.core.compiled_gradients`` knows its class. Where the
        gradient of a plan is not within the tolerance the loop asks for the plan of its state,
        which raises OverflowError or ToleranceError if there is none.
        """
        return self

    def gradient_within(self, theta: np.ndarray, out: np.ndarray) -> bool:
        """Write the gradient to ``out`` (nan on overflow); return whether it could be had."""
        try:
            out[:] = self.gradient(self.state(theta))
        except OverflowError:
            out[:] = math.nan
        except ToleranceError:
            out[:] = 0.0
            return False
        return True

    def has_grown(self, start: np.ndarray, vector: np.ndarray) -> bool:
        """Tell divergence from mere loss of accuracy: is the state far larger than its start?"""
        return float(np.max(np.abs(vector))) > 10.0 * max(float(np.max(np.abs(start))), 1e-3)

    def largest_stable_learning_rate(self, state: Any) -> float:
        """Return 2 / (largest curvature): above it gradient descent moves away from this valley.

        The curvature is the largest eigenvalue of :meth:`jacobian`; infinite if no direction
        curves upwards, nan if the curvature overflows.
        """
        jacobian = self.jacobian(self.checked(state))
        if not np.isfinite(jacobian).all():
            return math.nan
        curvatures = np.linalg.eigvals(jacobian).real
        largest = float(np.max(curvatures))
        return 2.0 / largest if largest > 0.0 else math.inf

    def advice(self, start: Any) -> str:
        """Return the largest learning rate to try from ``start``, in words."""
        return (
            "the largest stable one (2 / largest curvature at the start) is "
            f"{self.largest_stable_learning_rate(start):.6g}"
        )
