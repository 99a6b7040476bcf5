"""Population risk of a user-defined theory."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dynamics.core.compiled_gradients import gradient_of
from dynamics.core.errors import ParameterError
from dynamics.core.jit import kernel, native_function
from dynamics.core.risk import Risk
from dynamics.core.trajectory import Trajectory
from dynamics.theory import pairs
from dynamics.theory.data import Array, Orbits
from dynamics.theory.kernel import columns, compiled
from dynamics.theory.rounding import final

#: Default tolerance: the rounding of about 64 operations.
ROUNDING = 64 * 2.0**-52
#: Reasons why the weights are not the probabilities of data, by form of the data orbits.
_NOT_ENUMERATED = {"sample": "uses a sample of data", "steps": "is a sum over positions"}
#: Allowed motion of order parameters by rounding: absolute, and relative to their size.
_ABSOLUTE, _RELATIVE = 1e-10, 1e-7


@dataclass(frozen=True)
class TheoryProblem:
    """Constants of a user-defined theory.

    Attributes
    ----------
    theory
        Name of the theory.
    values
        Mapping from the names of sizes and constants to their values.
    start
        Mapping from the names of order parameters to their initial values.
    """

    theory: str
    values: Mapping[str, float]
    start: Mapping[str, float]

    @property
    def initial_state(self) -> Array:
        """Order parameters at time 0, shape (n,)."""
        return np.array(list(self.start.values()), float)


class Value(NamedTuple):
    """Risk and gradient (n,), each with a certified bound of its absolute error.

    The bounds include the rounding of all operations, of the data and of their probabilities, and
    the omitted data orbits. Sizes, constants and state are exact floats. A bound is infinite if
    the error is unknown.
    """

    loss: float
    bound: float
    gradient: Array
    gradient_bound: Array


@dataclass(frozen=True, eq=False)
class TheoryTrajectory(Trajectory):
    """Trajectory of a user-defined theory.

    Attributes
    ----------
    bound
        Certified error of the loss, shape (n,).
    """

    observables: ClassVar[tuple[str, ...]] = ("gradient_bound",)

    @property
    def gradient_bound(self) -> Array:
        """Certified errors of the gradient at the records, shape (n, len(order_parameters))."""
        return self.observation("gradient_bound").reshape(self.states.shape)

    @property
    def largest_gradient_bound(self) -> Array:
        """Largest certified error of a gradient entry at each record, shape (n,)."""
        return np.max(self.gradient_bound, axis=1, initial=0.0)

    def columns(self) -> dict[str, tuple[np.ndarray, str]]:
        """Return the dataset variables: name -> (array of shape (n,), long name)."""
        largest = self.largest_gradient_bound, "largest absolute error of a gradient entry"
        loss = self.bound, "absolute error of the loss"
        return {**super().columns(), "bound": loss, "gradient_bound": largest}


class Kernels(NamedTuple):
    """The compiled functions of a theory, all from the same emitted source.

    Attributes
    ----------
    mean
        Risk and gradient (`dynamics.theory.kernel.compiled`).
    with_errors, with_tangents
        The same on pairs (`dynamics.theory.pairs`): with error bounds, and with derivatives.
    """

    mean: Callable[..., float]
    with_errors: Callable[..., tuple[float, float]]
    with_tangents: Callable[..., tuple[float, float]]

    @classmethod
    def of(cls, source: str, name: str) -> "Kernels":
        """Return the kernels of an emitted module; each is compiled when it is first called."""
        functions = pairs.with_errors(source, name), pairs.with_tangents(source, name)
        return cls(compiled(source, name), *functions)


class TheoryGradient(NamedTuple):
    """Arguments of the compiled gradient of a user-defined theory: function and data columns."""

    function: Any
    columns: tuple[np.ndarray, ...]


@gradient_of(TheoryGradient)
@kernel
def _gradient_within(gradient_plan, theta, out):
    """Write the gradient to ``out``; it is always within the tolerance."""
    gradient_plan.function(theta, out, *gradient_plan.columns)
    return True


class TheoryRisk(Risk):
    """Mean loss of a user-defined theory over its data orbits.

    Parameters
    ----------
    problem
        Sizes, constants and start.
    kernels
        Compiled functions of the theory.
    data
        Data orbits, all of them or the most probable ones.
    largest
        Function of a state that returns bounds of |loss| and of each gradient entry for a single
        datum; without it, the bounds of the results are infinite if orbits are omitted.
    integrated
        Whether the loss is the mean over Gaussian data, of which no single sample is known.

    Notes
    -----
    The contribution of omitted orbits is at most their probability ``remainder`` times the bounds
    for a single datum (:meth:`left_out`). The only other error is rounding, for which
    :meth:`evaluate` returns a running bound. :meth:`jacobian` differentiates the operations of the
    emitted source.
    """

    tolerance = ROUNDING
    method = "data orbits"
    trajectory = TheoryTrajectory
    rotated = ""  # order parameters are entries; the group permutes axes and flips signs

    def __init__(
        self,
        problem: TheoryProblem,
        kernels: Kernels,
        data: Orbits,
        largest: Callable[[Array], tuple[float, Array]] | None = None,
        integrated: bool = False,
    ) -> None:
        self.kernels, self._largest, self.integrated = kernels, largest, integrated
        self.problem, self.order_parameters = problem, tuple(problem.start)
        number = len(data.weight)
        self.remainder, self.form = data.remainder, data.form
        self.reason = f"{self.method}: all {number} of them" if number > 1 else "closed form"
        if self.form == "sample":
            self.method, self.is_estimate = self.form, True
            self.reason = f"an estimate without a bound: the mean over {number} random sequences"
        if self.form == "steps":
            self.reason = f"transfer matrix: {number} pairs of states with a number of ones"
        if data.remainder:
            self.reason = f"{self.method}: {number}, all but a probability of {data.remainder:.1e}"
        self.evaluations = 0
        constants = np.array(list(problem.values.values()), float)
        self.columns = constants, *columns(kernels.mean, data)
        self._with_errors = constants, *pairs.columns(kernels.with_errors, data)

    def _evaluate(self, state: Any) -> tuple[float, Array]:
        out = np.empty(len(self.order_parameters))
        return self.kernels.mean(np.asarray(state, float), out, *self.columns), out

    def loss(self, state: Any) -> float:
        """Return the risk without its bound, faster than `evaluate`."""
        return self._evaluate(state)[0]

    def left_out(self, state: Any) -> tuple[float, Array]:
        """Return certified bounds of the contribution of omitted orbits to risk and gradient (n,).

        They are the bound of the omitted probability times the bound of the loss, or slope, of any
        datum; infinite if the latter is unknown.
        """
        n = len(self.order_parameters)
        if not self.remainder:
            return 0.0, np.zeros(n)
        if self._largest is None:
            return math.inf, np.full(n, math.inf)
        loss, slopes = self._largest(np.asarray(state, float))
        return self.remainder * loss * (1.0 + ROUNDING), self.remainder * slopes * (1.0 + ROUNDING)

    def gradient(self, state: Any) -> Any:
        """Return the derivative in one entry of each order parameter, (n,)."""
        self.evaluations += 1
        return self._evaluate(state)[1]

    def gradient_within(self, theta: np.ndarray, out: np.ndarray) -> bool:
        """Write the gradient to ``out``; it is always within the tolerance."""
        self.evaluations += 1
        self.kernels.mean(theta, out, *self.columns)
        return True

    @property
    def sample_weights(self) -> np.ndarray:
        """Probabilities of the data orbits, (N,).

        Raises
        ------
        ParameterError
            If orbits are omitted, or if the loss is the mean over Gaussian data.
        """
        reason = "is a mean over Gaussian data" if self.integrated else ""
        reason = "omits data orbits" if self.remainder else reason
        reason = _NOT_ENUMERATED.get(self.form, reason)
        if reason:
            raise ParameterError(f"theory = {self.problem.theory} is not allowed here: it {reason}")
        return np.asarray(self.columns[1])

    def weighted_gradient(self, state: Any, weights: np.ndarray) -> np.ndarray:
        """Return the gradient (n,) with other probabilities of the data orbits (N,)."""
        self.evaluations += 1
        out, (constants, _, *rest) = np.empty(len(self.order_parameters)), self.columns
        self.kernels.mean(np.asarray(state, float), out, constants, weights, *rest)
        return out

    @cached_property
    def _gradient_plan(self) -> TheoryGradient:
        theta = np.empty(len(self.order_parameters))
        function = native_function(self.kernels.mean, theta, theta, *self.columns)
        return TheoryGradient(function, self.columns)

    def gradient_plan(self, state: Any) -> TheoryGradient:
        """Return the compiled gradient with its data, the same at each state."""
        return self._gradient_plan

    def standard_error(self, state: Any) -> tuple[float, Array]:
        """Return the standard errors of risk and gradient (n,) of a mean over a sample.

        They are 0 if all data are enumerated.
        """
        theta, n = np.asarray(state, float), len(self.order_parameters)
        if self.form != "sample":
            return 0.0, np.zeros(n)
        constants, weight, blocks, *relations = self.columns
        values = np.empty((len(weight), 1 + n))
        unit = np.ones(1)
        for i, row in enumerate(values):
            row[0] = self.kernels.mean(
                theta, row[1:], constants, unit, blocks[i : i + 1], *relations
            )
        loss, *slopes = np.std(values, axis=0, ddof=1) / math.sqrt(len(values))
        return float(loss), np.array(slopes)

    def jacobian(self, state: Any) -> np.ndarray:
        """Return the (n, n) matrix d gradient_i / d state_k, up to rounding."""
        theta = np.asarray(state, float)
        slopes, columns = np.empty((2, theta.size)), np.empty((theta.size, theta.size))
        for direction, column in zip(np.eye(theta.size), columns):
            self.kernels.with_tangents(theta, direction, slopes[0], column, *self.columns)
        return columns.T

    def evaluate(self, state: Any) -> Value:
        """Return risk and gradient with certified bounds of rounding and of omitted orbits.

        The bounds are those of IEEE arithmetic in the order of the source, plus the distance to the
        fast kernel, whose sums may be reordered. A mean over a sample has infinite bounds.
        """
        loss, gradient = self._evaluate(state)
        if not math.isfinite(loss):
            raise OverflowError(f"the risk is {loss}")
        theta = np.asarray(state, float)
        if self.form == "sample":
            return Value(loss, math.inf, gradient, np.full(theta.size, math.inf))
        slopes, errors = np.empty((2, theta.size))
        strict = self.kernels.with_errors(theta, slopes, errors, *self._with_errors)
        rest, each = self.left_out(state)
        bound = final(strict[1] + abs(loss - strict[0])) + rest
        bounds = [final(x) for x in (errors + np.abs(gradient - slopes)).tolist()]
        return Value(loss, bound, gradient, bounds + each)

    def reliable_records(self, run: Trajectory) -> tuple[int, str]:
        """Return the number of records before a run is driven by rounding, and the reason.

        The sign of a gradient entry below its error bound is unknown. The motion of an order
        parameter between records with unknown sign is accumulated, and must stay below the errors
        of the flow at its default tolerances.
        """
        if self.form == "sample":  # the flow of an estimate, whose bounds are infinite
            return len(run.states), ""
        slopes = np.array([self._evaluate(row)[1] for row in run.states]).reshape(run.states.shape)
        bounds = run.observation("gradient_bound").reshape(run.states.shape)
        unsure = ~(np.abs(slopes) > bounds)
        moved = np.abs(np.diff(run.states, axis=0)) * (unsure[1:] & unsure[:-1])
        allowed = _ABSOLUTE + _RELATIVE * np.abs(run.states).max(axis=0, initial=0.0)
        late, which = np.nonzero(np.cumsum(moved, axis=0) > allowed)
        if not late.size:
            return len(run.states), ""
        last, k = int(late[0]), int(which[0])
        return last + 1, (
            f"the gradient in {run.order_parameters[k]} is below the bound of its rounding error "
            f"from time {run.time[last]:.6g} on ({abs(slopes[last, k]):.3g} <= "
            f"{bounds[last, k]:.3g}): the motion after that time is unknown"
        )
