"""The risk of a stated theory, as the solvers descend it."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dynamics.core.risk import Risk
from dynamics.theory.data import Array, Orbits
from dynamics.theory.kernel import columns

#: Rounding that is allowed for, in units of the last place of the risk: some operations deep.
ROUNDING = 64 * 2.0**-52
#: Step of central differences of the gradient, relative to max(1, |x|): the cube root of rounding.
_STEP = 6e-6


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


class Loss(NamedTuple):
    """The risk, an estimate of the rounding in it and a bound of what is left out of the data."""

    loss: float
    bound: float


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

    Nothing is neglected but what the data leave out: that is at most ``remainder``, a bound of its
    chance, times these bounds (:meth:`left_out`). What remains is rounding, of which ``bound`` is
    an estimate, 64 units in the last place; it holds both. :meth:`jacobian` is by central
    differences of the gradient: it steers a flow and tells a stable learning rate, to about ten
    digits.
    """

    tolerance = ROUNDING
    method = "data orbits"

    def __init__(
        self,
        problem: StatedProblem,
        function: Callable[..., float],
        data: Orbits,
        largest: Callable[[Array], tuple[float, Array]] | None = None,
    ) -> None:
        self._largest = largest
        self.problem, self.order_parameters = problem, tuple(problem.start)
        number = len(data.weight)
        self.remainder = data.remainder
        self.reason = f"{self.method}: all {number} of them" if number > 1 else "closed form"
        if data.remainder:
            self.reason = f"{self.method}: {number}, all but a chance of {data.remainder:.1e}"
        self.evaluations = 0
        self._function, self._columns = function, columns(function, data)
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

    def evaluate(self, state: Any) -> Loss:
        """Return the risk, and an estimate of its rounding with a bound of what is left out."""
        loss = self._evaluate(state)[0]
        if not math.isfinite(loss):
            raise OverflowError(f"the risk is {loss}")
        return Loss(loss, ROUNDING * abs(loss) + self.left_out(state)[0])
