"""Abstract base class of population risks: the interface between theories and solvers.

Gradient descent, gradient flow and trajectories access a theory only through :class:`Risk`.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from dynamics.core.checks import abbreviated, finite, require
from dynamics.core.errors import ParameterError, ToleranceError
from dynamics.core.trajectory import Trajectory

if TYPE_CHECKING:
    from dynamics.core.optimizers import Optimizer

#: Largest number of samples of `Risk.gradient_covariance`: its cost grows as their square.
_MOST_SAMPLES = 20_000


class Certified(Protocol):
    """A loss with the absolute error of the loss and of the gradient."""

    @property
    def loss(self) -> float:
        """Population risk."""

    @property
    def bound(self) -> float:
        """Certified (or estimated) absolute error."""


class Risk(ABC):
    """Population risk as a function of n order parameters.

    A theory derives from this class and implements :attr:`method`, :meth:`gradient`,
    :meth:`jacobian` and :meth:`evaluate`. The solvers compute with arrays of shape (n,);
    :meth:`state` converts them to the theory's own type of states.

    Attributes
    ----------
    problem
        Constants of the problem, a frozen dataclass with ``initial_state``.
    order_parameters
        Names of the n entries of a state; they may depend on the problem.
    tolerance
        Requested accuracy of the population expectation.
    reason
        Why ``method`` was chosen.
    evaluations
        Number of states evaluated so far.
    trajectory
        Class of the trajectories of the theory; it converts arrays to states.
    is_estimate
        Whether risk and gradient are estimates without a bound of their error.
    rotated
        The trained parameters that a rotation may mix, in text; empty if there are none. Adam and
        sign descent, which do not commute with rotations, are rejected where there are some.
    plans_contain_optimizer
        Whether `descent_plan` applies momentum and weight decay, which then act on parameters of
        which the order parameters are no linear functions.

    Notes
    -----
    Results of :meth:`gradient`, :meth:`jacobian` and :meth:`evaluate` must depend on the state
    alone, to the last bit, and not on earlier evaluations. The solvers turn an ``OverflowError`` or
    a ``ToleranceError`` raised by any of them into the status of the trajectory.
    """

    problem: Any
    order_parameters: tuple[str, ...]
    tolerance: float
    reason: str = ""
    evaluations: int
    trajectory: ClassVar[type[Trajectory]] = Trajectory
    is_estimate: bool = False
    rotated: ClassVar[str] = "the parameters of this theory"
    plans_contain_optimizer: ClassVar[bool] = False

    @property
    @abstractmethod
    def method(self) -> str:
        """Name of the method that computes the expectation."""

    @property
    def settings(self) -> dict[str, Any]:
        """Settings of the expectation, recorded with each trajectory."""
        return {"expectation": self.method, "population_tolerance": self.tolerance}

    @property
    def trained(self) -> np.ndarray:
        """1 for each trained order parameter, 0 for each fixed one, which does not decay, (n,)."""
        return np.ones(len(self.order_parameters))

    @property
    def predicted_seconds(self) -> float:
        """Predicted cost of a gradient in seconds; 0 if negligible."""
        return 0.0

    @abstractmethod
    def gradient(self, state: Any) -> Sequence[float]:
        """Return the gradient: n numbers that descent multiplies by minus the learning rate."""

    @abstractmethod
    def jacobian(self, state: Any) -> np.ndarray:
        """Return the (n, n) matrix d gradient_i / d state_k."""

    @abstractmethod
    def evaluate(self, state: Any) -> Certified:
        """Return loss, bound and the observables of the theory at a state."""

    def certified_loss(self, state: Any) -> Certified:
        """Return loss and bound at a state; override this where it is cheaper than `evaluate`."""
        return self.evaluate(state)

    def observe(self, run: Trajectory) -> Trajectory:
        """Return a trajectory with all its observables, such as test errors.

        Parameters
        ----------
        run
            A trajectory on the same problem; each of its records is evaluated.

        Returns
        -------
        Trajectory
            Copy with ``observed`` filled in, or ``run`` itself if it has all observables.

        Raises
        ------
        ParameterError
            If the trajectory is on another problem.
        OverflowError, ToleranceError
            If a record cannot be evaluated within the tolerance.
        """
        if run.problem != self.problem:
            raise ParameterError(
                f"run = a run on {abbreviated(repr(run.problem))} is not allowed: it must be one "
                f"on {abbreviated(repr(self.problem))}"
            )
        if run.is_observed:
            return run
        values = [self.evaluate(run.state(row)) for row in run.states]
        observed = {
            name: np.array([getattr(value, name) for value in values]) for name in run.observables
        }
        return replace(run, observed=observed)

    def reliable_records(self, run: Trajectory) -> tuple[int, str]:
        """Return the number of reliable records of a trajectory, and why the others are not.

        By default all records are reliable and the reason is empty. A completed or stalled
        trajectory is truncated after the reliable records, with status ``INACCURATE``.
        """
        return len(run.time), ""

    def state(self, vector: np.ndarray) -> Any:
        """Convert an array of shape (n,) to a state of the theory."""
        return self.trajectory.state(vector)

    def checked(self, state: Any) -> Any:
        """Return a state given by the user as finite floats.

        Raises
        ------
        ParameterError
            If it is not a sequence of n finite numbers.
        """
        names = self.order_parameters
        try:
            numbers = list(state)
        except TypeError:
            numbers = []
        if len(numbers) != len(names):
            raise ParameterError(
                f"state = {abbreviated(repr(state))} is not allowed: it must be {len(names)} "
                f"numbers ({', '.join(names)})"
            )
        return self.state(np.array([finite(*pair) for pair in zip(names, numbers)]))

    @property
    def sample_weights(self) -> np.ndarray:
        """Probabilities of the enumerated samples up to symmetry, (N,); they sum to 1.

        Raises
        ------
        ParameterError
            If the risk does not enumerate its samples exactly.
        """
        raise self._not_enumerated()

    def weighted_gradient(self, state: Any, weights: np.ndarray) -> np.ndarray:
        """Return the gradient (n,) with other probabilities of the enumerated samples (N,).

        With weight 1 of a single sample it is the gradient of its loss, averaged over the entries
        of each order parameter.

        Raises
        ------
        ParameterError
            If the risk does not enumerate its samples exactly.
        """
        raise self._not_enumerated()

    def _not_enumerated(self) -> ParameterError:
        return ParameterError(
            f"method = {self.method} is not allowed here: the samples are not enumerated; use the "
            "theory in a file, which enumerates them"
        )

    def gradient_covariance(self, state: Any) -> np.ndarray:
        """Return the covariance (n, n) of the gradient of one random sample at a state.

        The gradient of a sample is averaged over the entries of each order parameter. The
        covariance is exact up to rounding; data over which the loss is already a mean add nothing.

        Raises
        ------
        ParameterError
            If the samples are not enumerated, or if there are more than 20,000.
        OverflowError
            If a gradient is not finite.
        """
        state, weights = self.checked(state), self.sample_weights
        size = weights.size
        require(size <= _MOST_SAMPLES, "samples", size, f"at most {_MOST_SAMPLES}")
        gradients = np.array([self.weighted_gradient(state, row) for row in np.eye(size)])
        if not np.isfinite(gradients).all():
            raise OverflowError("the gradient of a sample is not finite")
        centred = gradients - weights @ gradients
        return np.asarray((centred.T * weights) @ centred)

    def gradient_plan(self, state: Any) -> Any:
        """Return the object whose gradient the descent loop evaluates near a state.

        By default the risk itself, in Python. A theory with a compiled gradient returns a plan:
        precomputed data that is immutable and registered with
        `dynamics.core.compiled_gradients.gradient_of`. Where the gradient of a plan is not within
        the tolerance, the loop requests the plan of the current state.

        Raises
        ------
        OverflowError, ToleranceError
            If there is no plan for the state.
        """
        return self

    def descent_plan(self, state: Any, learning_rate: float, optimizer: "Optimizer") -> Any:
        """Return the plan of gradient descent near a state; by default that of the gradient.

        A theory whose order parameters are no linear functions of the parameters overrides it: its
        step is not linear in the learning rate.
        """
        return self.gradient_plan(state)

    def step(self, state: Any, learning_rate: float) -> np.ndarray:
        """Return the order parameters after one step of gradient descent, shape (n,)."""
        return np.asarray(state, float) - learning_rate * np.asarray(self.gradient(state), float)

    def check_optimizer(self, rule: "Optimizer") -> None:
        """Raise ParameterError if an optimizer does not act on the order parameters."""
        rule.require_symmetric(self.rotated)

    def gradient_within(self, theta: np.ndarray, out: np.ndarray) -> bool:
        """Write the gradient to ``out`` (nan on overflow); return whether it is accurate."""
        try:
            out[:] = self.gradient(self.state(theta))
        except OverflowError:
            out[:] = math.nan
        except ToleranceError:
            out[:] = 0.0
            return False
        return True

    def has_grown(self, start: np.ndarray, vector: np.ndarray) -> bool:
        """Return whether the largest entry of a state is ten times that of the start.

        It distinguishes divergence from a loss of accuracy.
        """
        return float(np.max(np.abs(vector))) > 10.0 * max(float(np.max(np.abs(start))), 1e-3)

    def largest_stable_learning_rate(self, state: Any) -> float:
        """Return 2 / (largest curvature), the stability limit of gradient descent at a state.

        The curvature is the largest real part of the eigenvalues of :meth:`jacobian`. Infinite if
        no direction curves upwards, nan if the Jacobian overflows.
        """
        jacobian = self.jacobian(self.checked(state))
        if not np.isfinite(jacobian).all():
            return math.nan
        curvatures = np.linalg.eigvals(jacobian).real
        largest = float(np.max(curvatures))
        return 2.0 / largest if largest > 0.0 else math.inf

    def learning_rate_hint(self, start: Any) -> str:
        """Return the part of an error message that names the largest learning rate to try."""
        return (
            "the largest stable one (2 / largest curvature at the start) is "
            f"{self.largest_stable_learning_rate(start):.6g}"
        )
