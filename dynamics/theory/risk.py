"""The risk of a stated theory, as the solvers descend it."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dynamics.core.risk import Risk
from dynamics.core.trajectory import Trajectory
from dynamics.theory import bounded
from dynamics.theory.data import Array, Orbits
from dynamics.theory.kernel import columns
from dynamics.theory.rounding import final

#: Rounding that is allowed for, in units of the last place of the risk: some operations deep.
ROUNDING = 64 * 2.0**-52
#: Step of central differences of the gradient, relative to max(1, |x|): the cube root of rounding.
_STEP = 6e-6
#: What order parameters may move by rounding, and relative to their size along the run.
_ABSOLUTE, _RELATIVE = 1e-10, 1e-7


@dataclass(frozen=True)
class StatedProblem:
    """Sizes, constants and start of a stated theory."""

    theory: str
    values: Mapping[str, float]
    start: Mapping[str, float]

    @property
    def initial_state(self) -> Array:
        """The order parameters at time 0, (n,)."""
        return np.array(list(self.start.values()), float)


class Value(NamedTuple):
    """The risk and its slopes, (n,), each with a certified bound of its absolute error.

    It bounds rounding, of data and their chances too, and what is left out of the data; sizes,
    constants and state are taken as the floats that they are. Infinite where nothing is known.
    """

    loss: float
    bound: float
    gradient: Array
    gradient_bound: Array


@dataclass(frozen=True, eq=False)
class StatedTrajectory(Trajectory):
    """A run of a stated theory.

    Attributes
    ----------
    bound
        Certified error of the loss, (n,).
    """

    observables: ClassVar[tuple[str, ...]] = ("gradient_bound",)

    @property
    def gradient_bound(self) -> Array:
        """Certified errors of the slopes at the records, (n, len(order_parameters))."""
        return self.observation("gradient_bound").reshape(self.states.shape)

    @property
    def largest_gradient_bound(self) -> Array:
        """The largest of them at each record, (n,)."""
        return np.max(self.gradient_bound, axis=1, initial=0.0)

    def columns(self) -> dict[str, tuple[np.ndarray, str]]:
        """Return what a dataset holds."""
        largest = self.largest_gradient_bound, "largest absolute error of a gradient entry"
        loss = self.bound, "absolute error of the loss"
        return {**super().columns(), "bound": loss, "gradient_bound": largest}


class StatedRisk(Risk):
    """The mean loss of a stated theory over its data orbits, every one of them.

    Parameters
    ----------
    problem
        Sizes, constants and start.
    function
        What `dynamics.theory.kernel.compiled` returns.
    data
        Every configuration of the data up to symmetry, or all but unlikely ones.
    largest
        Returns bounds of |loss| and of each slope, of any datum, at a state; needed where
        configurations are left out.
    bounds
        What `dynamics.theory.bounded.bounded` returns; without it no error has a bound.

    Nothing is neglected but what the data leave out: that is at most ``remainder``, a bound of its
    chance, times these bounds (:meth:`left_out`). What remains is rounding, of which
    :meth:`evaluate` returns a running bound. :meth:`jacobian` is by central differences of the
    gradient: it steers a flow and gives a stable learning rate, to about ten digits.
    """

    tolerance = ROUNDING
    method = "data orbits"
    trajectory = StatedTrajectory
    rotated = ""  # order parameters are entries; the group permutes axes and flips signs

    def __init__(
        self,
        problem: StatedProblem,
        function: Callable[..., float],
        data: Orbits,
        largest: Callable[[Array], tuple[float, Array]] | None = None,
        bounds: Callable[..., tuple[float, float]] | None = None,
    ) -> None:
        self._largest, self._bounds = largest, bounds
        self.problem, self.order_parameters = problem, tuple(problem.start)
        number = len(data.weight)
        self.remainder = data.remainder
        self.reason = f"{self.method}: all {number} of them" if number > 1 else "closed form"
        if data.remainder:
            self.reason = f"{self.method}: {number}, all but a chance of {data.remainder:.1e}"
        self.evaluations = 0
        self._function, self._columns = function, columns(function, data)
        self._with_errors = () if bounds is None else bounded.columns(bounds, data)
        self._constants = np.array(list(problem.values.values()), float)

    def _evaluate(self, state: Any) -> tuple[float, Array]:
        out = np.empty(len(self.order_parameters))
        return self._function(np.asarray(state, float), self._constants, *self._columns, out), out

    def left_out(self, state: Any) -> tuple[float, Array]:
        """Return bounds of what the configurations left out add to risk and gradient, (n,).

        Certified: the bound of their chance times one of the loss, or slope, of any datum. Infinite
        where that is not known.
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
        self._function(theta, self._constants, *self._columns, out)
        return True

    def jacobian(self, state: Any) -> np.ndarray:
        """Return the (n, n) matrix d gradient_i / d state_k."""
        at = np.asarray(state, float)
        found = np.empty((at.size, at.size))
        for k, x in enumerate(at):
            step = _STEP * max(1.0, abs(x))
            up, down = at.copy(), at.copy()
            up[k], down[k] = x + step, x - step
            sides = self._evaluate(up)[1], self._evaluate(down)[1]
            found[:, k] = (sides[0] - sides[1]) / (up[k] - down[k])
        return found

    def evaluate(self, state: Any) -> Value:
        """Return risk and gradient, each with a bound of rounding and of what is left out.

        The bounds are those of IEEE arithmetic in the order that is written, and how far the fast
        kernel is from that: its sums may be reordered.
        """
        loss, gradient = self._evaluate(state)
        if not math.isfinite(loss):
            raise OverflowError(f"the risk is {loss}")
        n = len(gradient)
        if self._bounds is None:
            return Value(loss, math.inf, gradient, np.full(n, math.inf))
        slopes, errors = np.empty(n), np.empty(n)
        at = np.asarray(state, float)
        strict = self._bounds(at, self._constants, *self._with_errors, slopes, errors)
        rest, each = self.left_out(state)
        bound = final(strict[1] + abs(loss - strict[0])) + rest
        found = [final(x) for x in (errors + np.abs(gradient - slopes)).tolist()]
        return Value(loss, bound, gradient, found + each)

    def reliable_records(self, run: Trajectory) -> tuple[int, str]:
        """Return the number of records before a run is driven by rounding, and the reason.

        A slope within its bound may be 0, or have the other sign. What an order parameter moves
        between two such records is added up; the flow at its default tolerances may be off by so
        much that less does not count.
        """
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
            f"{bounds[last, k]:.3g}): what moves after that is not known"
        )
