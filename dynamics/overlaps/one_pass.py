"""Mean motion of overlaps under stochastic gradient descent with one pass over the data."""

from typing import Any, NamedTuple

import numpy as np
from flint import arb

from dynamics.core.checks import finite, integer, require
from dynamics.core.errors import ParameterError
from dynamics.core.invariants import Invariant
from dynamics.core.optimizers import Optimizer
from dynamics.overlaps.formula import Formula
from dynamics.overlaps.moments import BALLS, FLOATS, Arithmetic
from dynamics.overlaps.risk import OverlapRisk
from dynamics.theory.data import Array
from dynamics.theory.risk import TheoryTrajectory


class Noise(NamedTuple):
    """Second moments of the gradients of one datum, g_a g_b for pairs of trained vectors.

    Attributes
    ----------
    entries
        The order parameter of each pair.
    formula
        The second moment of each pair; numbers are balls.
    """

    entries: tuple[int, ...]
    formula: Formula


class OnePassTrajectory(TheoryTrajectory):
    """Trajectory of the mean motion of one-pass SGD, along which the loss may rise."""

    @property
    def invariants(self) -> tuple[Invariant, ...]:
        """Statements that should hold along the trajectory: none."""
        return ()


class OnePassRisk(OverlapRisk):
    """Mean loss over normal data; its gradient flow is the mean motion of one-pass SGD.

    Parameters
    ----------
    risk
        Risk of the theory.
    noise
        Second moments of the gradients.
    learning_rate
        Step size of the vectors. In the notation of Saad and Solla it is their rate over d.
    batch
        Number of data of each step.

    Notes
    -----
    The mean of the overlaps after a step is G - rate (S G + G S^T) + rate^2 M exactly, where M is
    the mean of g_a g_b over the data of a step. The flow in time rate x step,
    dG/dt = -(S G + G S^T) + rate M, omits the fluctuations of G and the difference between a step
    and the flow, both of the order of the learning rate.
    """

    method = "normal expectations of one-pass SGD"
    trajectory = OnePassTrajectory
    plans_contain_optimizer = False
    #: Runs on vectors to compare with, if there are any.
    runs: Any = None

    def __init__(
        self,
        risk: OverlapRisk,
        noise: Noise,
        learning_rate: float,
        batch: int = 1,
    ) -> None:
        super().__init__(risk.problem, risk._balls, risk._fixed, risk.algebra)
        self.learning_rate = finite("learning_rate", learning_rate)
        require(learning_rate > 0.0, "learning_rate", learning_rate, "greater than 0")
        self.batch = integer("batch", batch, 1)
        self._noise, self._noise_floats = noise, noise.formula.converted(_float)
        self._mark_estimate(noise.formula)

    @property
    def settings(self) -> dict[str, Any]:
        """Settings of the expectation, with the learning rate and the batch of SGD."""
        return {**super().settings, "sgd_learning_rate": self.learning_rate, "batch": self.batch}

    def check_optimizer(self, rule: Optimizer) -> None:
        """Raise ParameterError unless the optimizer is plain gradient descent."""
        if not rule.is_plain:
            raise ParameterError(
                f"optimizer = {rule.name} is not allowed: the noise of one-pass SGD is available "
                "for gd without weight decay"
            )

    def descent_plan(self, state: Any, learning_rate: float, optimizer: Optimizer) -> Any:
        """Return the plan of the mean of each step; the learning rate must be that of SGD."""
        if learning_rate != self.learning_rate:
            raise ParameterError(
                f"learning_rate = {learning_rate:g} is not allowed: this risk is that of one-pass "
                f"SGD with learning rate {self.learning_rate:g}"
            )
        return self.gradient_plan(state)

    def second_moments(self, state: Any) -> Array:
        """Return the mean of g_a g_b over the data of a step for each order parameter, (n,)."""
        gram, s = self._gram(state), self.coefficients(state)
        return np.array(self._moments(gram, s, FLOATS), float)

    def _moments(self, gram: list[Any], s: list[Any], arithmetic: Arithmetic) -> list[Any]:
        """Return the second moments at Gram entries, with the matrix S."""
        n, algebra = len(self.order_parameters), self.algebra
        formula = self._noise.formula if arithmetic.certified else self._noise_floats
        result = [arithmetic.number(0)] * n
        if self.batch > 1:  # two data of a step are independent
            pairs = algebra.varying(algebra.conjugated(s, algebra.matrix(gram)))
            result = [x * (self.batch - 1) / self.batch for x in pairs]
        for entry, own in zip(self._noise.entries, formula.at(gram, n, arithmetic)):
            result[entry] = result[entry] + own.value / self.batch
        return result

    def gradient(self, state: Any) -> Any:
        """Return S G + G S^T - learning_rate M at the order parameters, (n,)."""
        return super().gradient(state) - self.learning_rate * self.second_moments(state)

    def step(self, state: Any, learning_rate: float, weight_decay: float = 0.0) -> Array:
        """Return the mean of the overlaps after one step of SGD, (n,); it is exact."""
        self.descent_plan(state, learning_rate, Optimizer())
        self.check_optimizer(Optimizer(weight_decay=weight_decay))
        return np.asarray(state, float) - self.learning_rate * self.gradient(state)

    def jacobian(self, state: Any) -> Array:
        """Return the (n, n) matrix d gradient_i / d state_k."""
        algebra, n, batch = self.algebra, len(self.order_parameters), self.batch
        moments = np.zeros((n, n))
        own = self._noise_floats.at(self._gram(state), n, FLOATS)
        for entry, derivatives in zip(self._noise.entries, own):
            moments[entry] += np.array(derivatives.gradient) / batch
        if batch > 1:
            gram, s = self.gram_matrix(state), self.coefficients(state)
            for k, (change, moved) in enumerate(self._changes(state)):
                half = algebra.multiply(algebra.multiply(change, gram), algebra.transpose(s))
                pairs = zip(algebra.symmetric(half), algebra.conjugated(s, moved))
                column = algebra.varying([x + y for x, y in pairs])
                moments[:, k] += (batch - 1) / batch * np.array(column)
        return super().jacobian(state) - self.learning_rate * moments

    def _certified(self, gram: list[arb]) -> tuple[arb, list[arb]]:
        loss, motion = super()._certified(gram)
        derivatives = self._balls.at(gram, len(self.order_parameters), BALLS)[0]
        s = self.algebra.coefficients(derivatives.gradient)
        pairs = zip(motion, self._moments(gram, s, BALLS))
        return loss, [x - self.learning_rate * y for x, y in pairs]


def _float(x: arb) -> float:
    return float(x.mid())
