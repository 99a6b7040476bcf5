"""Population risk of a theory whose order parameters are overlaps."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from flint import arb, ctx

from dynamics.core.balls.exact import above, exact
from dynamics.core.checks import finite
from dynamics.core.errors import ParameterError
from dynamics.core.optimizers import Optimizer
from dynamics.core.risk import Risk
from dynamics.overlaps.algebra import Algebra
from dynamics.overlaps.descent import VectorDescent
from dynamics.overlaps.formula import Derivatives, Formula
from dynamics.overlaps.moments import BALLS, FLOATS
from dynamics.theory.data import Array
from dynamics.theory.risk import TheoryProblem, TheoryTrajectory, Value

#: Precision of the balls, in bits.
BITS = 106
#: Eigenvalues of a Gram matrix above minus this, relative to the largest, are rounding.
_SEMIDEFINITE = 1e-10


class OverlapRisk(Risk):
    """Mean loss over normal data, as a function of overlaps.

    Parameters
    ----------
    problem
        Sizes, constants and start.
    formula
        The loss; its numbers are balls.
    fixed
        Balls around the Gram entries that are not order parameters.
    algebra
        Structure of equivariant matrices.

    Notes
    -----
    :meth:`gradient` is S G + G S^T, minus the velocity of the flow of the vectors. Gradient descent
    of the vectors is :meth:`step`, exactly, for every dimension that is at least the number of
    vectors.
    """

    method = "normal expectations"
    reason = "closed forms, and the trapezoidal rule where there is none"
    trajectory = TheoryTrajectory
    tolerance = 1e-12
    rotated = "the vectors of this theory"
    plans_contain_optimizer = True

    def __init__(
        self, problem: TheoryProblem, formula: Formula, fixed: tuple[arb, ...], algebra: Algebra
    ) -> None:
        self.problem, self.algebra = problem, algebra
        self.order_parameters = tuple(problem.start)
        self.evaluations = 0
        self._balls, self._floats = formula, formula.converted(_float)
        self._fixed, self._fixed_floats = fixed, tuple(map(_float, fixed))
        self._mark_estimate(formula)

    def _mark_estimate(self, formula: Formula) -> None:
        """Mark the risk as an estimate if an expectation has no bound."""
        if formula.expectations.is_estimate:
            rule = formula.expectations.uncertified_rule
            self.method, self.is_estimate = rule, True
            self.reason = f"an estimate without a bound: a {rule}"

    def checked(self, state: Any) -> Any:
        """Return a state as finite floats; raise ParameterError if no vectors have its overlaps."""
        numbers = super().checked(state)
        smallest = self.algebra.smallest_eigenvalue(self._gram(numbers))
        if not smallest >= -_SEMIDEFINITE:
            raise ParameterError(
                f"state = {[float(x) for x in numbers]} is not allowed: no vectors have these "
                "overlaps, because their Gram matrix has a negative eigenvalue "
                f"({smallest:.3g} times the largest)"
            )
        return numbers

    def _gram(self, state: Any) -> list[float]:
        return [*map(float, state), *self._fixed_floats]

    def gram_matrix(self, state: Any) -> list[float]:
        """Return the Gram matrix of all vectors: one number for each ordered pair orbit."""
        return self.algebra.matrix(self._gram(state))

    def _at(self, state: Any) -> Derivatives:
        try:
            return self._floats.at(self._gram(state), len(self.order_parameters), FLOATS)[0]
        except ValueError as error:  # the square root of a negative number
            raise OverflowError(f"the overlaps {list(map(float, state))} overflow") from error

    def loss(self, state: Any) -> float:
        """Return the risk without its bound, faster than `evaluate`."""
        return float(self._at(state).value)

    def coefficients(self, state: Any) -> list[float]:
        """Return S, projected for vectors on a sphere: one number for each ordered pair orbit."""
        algebra, gram = self.algebra, self.gram_matrix(state)
        try:
            slopes = self._at(state).gradient
        except ValueError as error:
            raise OverflowError(f"the overlaps {list(map(float, state))} overflow") from error
        return algebra.projected(algebra.coefficients(slopes), gram)

    def gradient(self, state: Any) -> Any:
        """Return S G + G S^T at the order parameters, (n,): minus the velocity of the flow."""
        self.evaluations += 1
        gram = self.gram_matrix(state)
        return np.array(self.algebra.velocity(self.coefficients(state), gram))

    def step(self, state: Any, learning_rate: float, weight_decay: float = 0.0) -> Array:
        """Return the overlaps after one step of gradient descent on the vectors, (n,).

        The step is exact: A G A^T with A = 1 - learning_rate (S + weight_decay), a quadratic
        polynomial in the learning rate. Vectors on a sphere are normalized after the step.

        Parameters
        ----------
        state
            Overlaps (n,).
        learning_rate
            Step size of the vectors.
        weight_decay
            Trained vectors are multiplied by 1 - learning_rate x weight_decay first.
        """
        rate, decay = finite("learning_rate", learning_rate), finite("weight_decay", weight_decay)
        gram = self.gram_matrix(state)
        return np.array(self.algebra.step(self.coefficients(state), gram, rate, decay))

    def descent_plan(self, state: Any, learning_rate: float, optimizer: Optimizer) -> Any:
        """Return the exact step for the loop of gradient descent."""
        return VectorDescent(self, learning_rate, optimizer)

    def jacobian(self, state: Any) -> Array:
        """Return the (n, n) matrix d gradient_i / d state_k."""
        algebra, gram, s = self.algebra, self.gram_matrix(state), self.coefficients(state)
        columns = []
        for change, moved in self._changes(state):
            pairs = zip(algebra.velocity(change, gram), algebra.velocity(s, moved))
            columns.append([x + y for x, y in pairs])
        return np.array(columns).T

    def _changes(self, state: Any) -> Iterator[tuple[list[float], list[float]]]:
        """Yield the derivatives of S and of the Gram matrix in each order parameter."""
        algebra, n = self.algebra, len(self.order_parameters)
        gram, derivatives = self.gram_matrix(state), self._at(state)
        free, hessian = algebra.coefficients(derivatives.gradient), derivatives.hessian
        for k in range(n):
            change = [0.0] * (n + len(self._fixed))
            change[k] = 1.0
            moved = algebra.matrix(change)
            slopes = algebra.coefficients(hessian[k])
            if any(algebra.sphere):  # derivative of the radial part, a product
                radial = algebra.multiply(slopes, gram), algebra.multiply(free, moved)
                pairs = zip(slopes, *radial, algebra.sphere)
                slopes = [x - r - s if sphere else x for x, r, s, sphere in pairs]
            yield slopes, moved

    def evaluate(self, state: Any) -> Value:
        """Return risk and gradient with certified bounds of quadrature and rounding.

        The state is taken as exact. The bounds contain the distance to the floats of `loss` and
        `gradient`; they are infinite where an expectation is an estimate.
        """
        loss, gradient = self.loss(state), self.gradient(state)
        if not (math.isfinite(loss) and np.isfinite(gradient).all()):
            raise OverflowError(f"the risk is {loss}")
        with ctx.workprec(BITS):
            certified, balls = self._certified([*(exact(float(x)) for x in state), *self._fixed])
            bound = above(abs(certified - exact(loss)))
            bounds = [above(abs(x - exact(float(y)))) for x, y in zip(balls, gradient)]
        return Value(loss, bound, gradient, np.array(bounds))

    def certified_loss(self, state: Any) -> Value:
        """Return risk and bound as `evaluate`, without the gradient (nan), which costs more."""
        loss = self.loss(state)
        if not math.isfinite(loss):
            raise OverflowError(f"the risk is {loss}")
        with ctx.workprec(BITS):
            gram = [*(exact(float(x)) for x in state), *self._fixed]
            certified = self._balls.at(gram, len(self.order_parameters), BALLS)[0].value
            bound = above(abs(certified - exact(loss)))
        unknown = np.full(len(self.order_parameters), math.nan)
        return Value(loss, bound, unknown, unknown)

    def _certified(self, gram: list[arb]) -> tuple[arb, list[arb]]:
        """Return balls around risk and gradient at balls around the Gram entries."""
        certified = self._balls.at(gram, len(self.order_parameters), BALLS)[0]
        matrix, free = self.algebra.matrix(gram), self.algebra.coefficients(certified.gradient)
        motion = self.algebra.velocity(self.algebra.projected(free, matrix), matrix)
        return certified.value, motion


def _float(x: arb) -> float:
    return float(x.mid())
