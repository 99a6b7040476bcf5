r"""The population expectation by Fourier integrals.

The cost does not depend on D or on how rare the important images are. ``F`` depends on the data
through the types of the ``L - 1`` random sets. Given the total ``R`` the sets contribute
independently to ``F``, so the characteristic function of ``F`` on ``R = r`` is one coefficient of a
power of a small polynomial, and the logistic sigmoid is a Fourier integral:

.. math:: s(-F) = \frac{1}{2\pi i}\int_{\eta - i\infty}^{\eta + i\infty}
          \frac{\pi\, e^{-wF}}{\sin \pi w}\, dw, \qquad 0 < \eta < 1.

See the notebook ``fourier_method`` for the derivation, and the docstring of the package
:mod:`dynamics.positional.population.fourier` for modules and notation.
"""

import math
from dataclasses import dataclass

import numpy as np

from dynamics.core.checks import require
from dynamics.core.errors import ToleranceError
from dynamics.positional._emitted import row_sum
from dynamics.positional.population.fourier.assemble import PARTS, Result, expectation
from dynamics.positional.population.fourier.curvature import curvature
from dynamics.positional.population.fourier.errors import WeightErrors
from dynamics.positional.population.fourier.goals import Target, prepare
from dynamics.positional.population.fourier.lines import design
from dynamics.positional.population.fourier.operation_count import Effort, effort
from dynamics.positional.population.fourier.set_law import SetLaw, set_law, totals_of
from dynamics.positional.population.fourier.signs.power_sums import Order
from dynamics.positional.population.fourier.signs.sign import Signs, sign_probabilities
from dynamics.positional.population.fourier.signs.sign_law import SignLaw, sign_law
from dynamics.positional.population.fourier.tables import Model, underflow
from dynamics.positional.population.tables import vanishes
from dynamics.positional.population.value import Loss, Value, require_finite
from dynamics.positional.problem import Problem, State

_JACOBIAN_TOLERANCE = 1e-7

#: Largest size of a table of all types and all totals; about ten such tables are made.
_MOST_NUMBERS = 5 * 10**6

_UPPER = np.triu_indices(3)


@dataclass(frozen=True, slots=True)
class FourierValue(Value):
    """Result of :meth:`FourierExpectation.evaluate`: a :class:`Value` with details of its errors.

    Attributes
    ----------
    derivatives, derivative_bound
        ``d ell / d(alpha, gamma, rho)``, the gradient times its multiplicity, and its error.
    parts
        Named parts of the bounds: part -> (loss, alpha, gamma, rho, mean sigmoid), for the loss,
        the derivatives and the mean sigmoid.
    magnitude
        Upper estimate of ``E[s(-F) |dF|]`` in the order of ``parts``: the scale of the tolerance.
    """

    derivatives: State
    derivative_bound: State
    parts: dict[str, tuple[float, ...]]
    magnitude: tuple[float, ...]


class FourierExpectation:
    """The expectation over the data of one problem with certified errors.

    Parameters
    ----------
    problem
        Constants; D may be as large as 10^9. The cost grows with ``q D`` and ``C``.
    tolerance
        Between 1e-16 and 0.1; tolerances far below 1e-12 can be met at few states. The error of the
        loss and of E[s(-F)] is at most ``tolerance`` times max(1, value). The error of ``d ell / d
        theta`` is at most ``tolerance`` times ``max(1, E[s(-F) |dF/dtheta|])``, for alpha also at
        most ``tolerance / alpha``. (On the slow manifold d ell / d alpha is a difference of terms
        of that size, 1e4 at D = 10^6.) Small values have the relative error ``tolerance`` as far as
        rounding allows, down to about 1e-15 of E|dF|; see the bounds.
    relative
        Whether the errors of the loss and of each derivative are at most ``tolerance`` times its
        own modulus. A derivative that is a small difference of large terms may then raise
        ToleranceError. Values that are exactly 0 have no error.

    Raises
    ------
    ToleranceError
        If the tables for these D, C and q are too large.
    """

    name = "fourier"

    def __init__(self, problem: Problem, tolerance: float = 1e-10, relative: bool = False) -> None:
        require(1e-16 <= tolerance <= 0.1, "tolerance", tolerance, "between 1e-16 and 0.1")
        require(problem.q >= 1e-300, "q", problem.q, "at least 1e-300 for the Fourier method")
        self.problem = problem
        self.tolerance = float(tolerance)
        self.relative = bool(relative)
        self._check_table_size()
        self._law: SetLaw = set_law(problem)
        self._signs: SignLaw | None = None

    def gradient(self, state: State) -> State:
        """Return the entrywise gradient, without the loss and the test error.

        Raises
        ------
        ToleranceError
            If the certified error exceeds the tolerance; the message contains the error.
        """
        values, bounds, magnitude = self._run(state, loss=False)
        answer = values if self.relative else magnitude
        errors = [sum(parts) for parts in bounds[1:4].tolist()]
        self._check_error(self._of_gradient(state, errors, answer[1:4].tolist()))
        multiplicity = self.problem.multiplicity
        return State(*(-v / m for v, m in zip(values[1:4].tolist(), multiplicity)))

    def evaluate(self, state: State) -> FourierValue:
        """Return loss, gradient, test error and their certified errors.

        Raises
        ------
        ToleranceError
            If the certified error of the loss or of a derivative exceeds the tolerance.
        """
        values, bounds, magnitude, worst = self._certified(state)
        total = bounds.sum(axis=1)
        signs = self.signs(state)
        multiplicity = self.problem.multiplicity
        return FourierValue(
            loss=float(values[0]),
            bound=float(worst.sum()),
            bounds=dict(zip(PARTS, worst.tolist())),
            loss_bound=float(total[0]),
            mean_sigmoid=float(values[4]),
            mean_sigmoid_bound=float(total[4]),
            gradient=State(*(-float(v) / m for v, m in zip(values[1:4], multiplicity))),
            gradient_bound=State(*(float(b) / m for b, m in zip(total[1:4], multiplicity))),
            derivatives=State(*(-float(v) for v in values[1:4])),
            derivative_bound=State(*(float(b) for b in total[1:4])),
            test_error=signs.error,
            ties=signs.ties,
            test_error_bound=signs.error_bound,
            ties_bound=signs.ties_bound,
            parts={name: tuple(map(float, bounds[:, i])) for i, name in enumerate(PARTS)},
            magnitude=tuple(map(float, magnitude)),
        )

    def certified_loss(self, state: State) -> Loss:
        """Return the loss and its bound without the test error, at the cost of one gradient.

        Raises
        ------
        ToleranceError
            As :meth:`evaluate`.
        """
        values, _, _, worst = self._certified(state)
        return Loss(float(values[0]), float(worst.sum()))

    def jacobian(self, state: State) -> np.ndarray:
        """Return the 3 x 3 matrix d gradient_i / d state_k of the entrywise gradient.

        Its errors are about 1e-7 of its terms, without a certificate. It is used for the Newton
        iterations of a stiff solver and does not affect the solution.

        Raises
        ------
        ToleranceError
            If the range of F requires too many nodes.
        """
        model, tolerance = Model.at(self.problem, state), max(self.tolerance, _JACOBIAN_TOLERANCE)
        second = curvature(self._law, model, self._crude(model, state), Target.of(tolerance))
        if not np.all(np.isfinite(second)):
            raise ToleranceError("the Fourier method cannot resolve the range of F at this state")
        matrix = np.empty((3, 3))
        matrix[_UPPER] = matrix.T[_UPPER] = second
        return matrix / np.array(self.problem.multiplicity)[:, None]

    def predicted_error(self, state: State) -> float:
        """Predict the relative error that :meth:`evaluate` will certify, without an integral.

        The prediction is correct within a factor of about 4, except for derivatives that cancel. It
        takes a fraction of the time of a gradient.

        Raises
        ------
        OverflowError, ToleranceError
            As :meth:`gradient` if F overflows or there are too many integrals.
        """
        return self._error(state, self._run(state, predict=True))

    def effort(self, state: State) -> Effort:
        """Return the work of one gradient: numbers of totals, nodes, points and operations."""
        law, model, required = self._law, Model.at(self.problem, state), Target.of(self.tolerance)
        lines = design(law, prepare(law, model, self._crude(model, state), required), required)
        filled = lines.share.sum(axis=1)
        return effort(law.C, law.L, len(law.n), lines.nodes, lines.angles, filled)

    def _check_table_size(self) -> None:
        """Raise ToleranceError if tables of all types and totals would be too large."""
        C, totals = self.problem.C, totals_of(self.problem)
        numbers = ((C + 1) * (C + 2) // 2) * totals
        if numbers > _MOST_NUMBERS:
            raise ToleranceError(
                f"the Fourier method needs tables of {numbers:.2g} numbers ({totals:.2g} totals) "
                f"for these D, C and q, more than the limit of {_MOST_NUMBERS:.0e}"
            )

    def _run(self, state: State, predict: bool = False, loss: bool = True) -> Result:
        """Return the result at a state, or a prediction of it; without the loss if not ``loss``."""
        model, target = (
            Model.at(self.problem, state),
            Target.of(self.tolerance, self.relative, loss),
        )
        weight_errors = WeightErrors.of(self.problem, state, model)
        crude = self._crude(model, state)
        result = expectation(self._law, model, weight_errors, crude, target, predict)
        result.bounds[:, 4] += underflow(self.problem, model, crude)
        if vanishes(self.problem.beta, *state):
            result.values[2:4], result.bounds[2:4] = 0.0, 0.0
        return result

    def _certified(self, state: State) -> tuple[np.ndarray, ...]:
        """Return the result with the loss, and the error parts of the least accurate entry."""
        values, bounds, magnitude = result = self._run(state)
        self._check_error(self._error(state, result))
        entrywise = bounds[:4] / np.array([1.0, *self.problem.multiplicity])[:, None]
        return values, bounds, magnitude, entrywise[int(np.argmax(entrywise.sum(axis=1)))]

    def _error(self, state: State, result: Result) -> float:
        """Return the largest error of loss, mean sigmoid and derivatives, each over its scale."""
        values, bounds, magnitude = result
        total = bounds.sum(axis=1).tolist()
        if any(map(math.isnan, total)):
            return math.nan
        if self.relative:
            with np.errstate(over="ignore"):  # for a loss close to 0
                others = float(total[0] / values[0]) if values[0] > 0.0 else math.inf
        else:
            others = max(total[0] / max(1.0, magnitude[0]), total[4])
        answer = values if self.relative else magnitude
        return max(self._of_gradient(state, total[1:4], answer[1:4].tolist()), others)

    def _of_gradient(self, state: State, bounds: list[float], answer: list[float]) -> float:
        """Return the largest error of the three derivatives, relative to their scales."""
        if self.relative:
            scale = [abs(value) for value in answer]
        else:
            scale = [max(1.0, size) for size in answer]
            if state[0] != 0.0:
                scale[0] = max(scale[0], 1.0 / abs(state[0]))
        errors = [
            bound / size if size > 0.0 else math.inf if bound > 0.0 else 0.0
            for bound, size in zip(bounds, scale)
        ]
        return math.nan if any(map(math.isnan, errors)) else max(errors)

    def _check_error(self, error: float) -> None:
        """Raise ToleranceError if a relative error exceeds the tolerance."""
        if not error <= self.tolerance:
            raise ToleranceError(
                f"tolerance = {self.tolerance:g} cannot be met here by the Fourier method: "
                f"its certified relative error is {error:.2g}",
                reachable=error,
            )

    def signs(self, state: State) -> Signs:
        """Return the test error and the probability of a tie, with bounds of their errors."""
        if self._signs is None:
            D, C, q = self.problem.D, self.problem.C, self.problem.q
            self._signs = sign_law(D, C, q, max(self.tolerance, 1e-9))
        model = Model.at(self.problem, state)
        weight_errors = WeightErrors.of(self.problem, state, model)
        order = Order.of(self.problem, state)
        return sign_probabilities(self._law, self._signs, model, weight_errors, order)

    def _crude(self, model: Model, state: State) -> np.ndarray:
        """Return upper bounds of softplus(-F), |dF| and 1 for all images: |O| <= kappa |alpha|."""
        problem = self.problem
        top = problem.kappa * abs(model.alpha)
        overflows = top > 1.0 and (problem.p - 1) * math.log10(top) > 307.0
        steep = math.inf if overflows else top ** (problem.p - 1)
        slope = problem.D * (problem.p * steep + problem.nu)
        loss = math.log(2) + problem.D * (top * steep + problem.nu * top)
        move = 2.0 * slope * top / problem.tau
        C, D = float(problem.C), float(problem.D)
        same, others = row_sum(0.0, model.Gamma, 0.0, C, D), row_sum(0.0, 0.0, model.Xi, C, D)
        crude = (loss, slope * problem.kappa, move * same, move * others, 1.0)
        require_finite(crude, state)
        return np.array(crude)


def predicted_cost(problem: Problem, tolerance: float) -> float:
    """Return the approximate seconds of one gradient on one thread, for choosing a method.

    The number of totals R is multiplied by the nodes, growing with log(1/tolerance) and the range
    of F, by the pairs of angles, and by the cost of a polynomial. The constants are fitted to
    measurements at qD = 2 ... 64, C = 2 ... 16, with errors of a factor of about 3.

    Parameters
    ----------
    problem
        Constants.
    tolerance
        Tolerance of the Fourier method.
    """
    depth = math.log(1.0 / tolerance) + 4.0
    patches = problem.D - problem.C
    spread = math.sqrt(2.0 * depth * max(problem.q * patches, 0.5))
    totals = min(2.0 * patches + 1.0, 1.6 * spread + 6.0)
    nodes = depth * (depth + 15.0) / 20.0 + 4.0
    angles = min(2.0 * patches + 2.0, 1.1 * spread + 4.0)
    types = (problem.C + 1) * (problem.C + 2) / 2
    per_point = 0.5e-9 * (6.0 + 2.0 * problem.C + math.log2(problem.L))
    return totals * (nodes * angles / 2 * per_point + types * (4e-8 * nodes / 8 + 4e-7))
