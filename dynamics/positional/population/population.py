"""The population risk, evaluated by enumeration, by the Fourier method or by sampling."""

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from dynamics.core.checks import finite, require
from dynamics.core.errors import ParameterError, ToleranceError
from dynamics.core.risk import Risk
from dynamics.positional.population.enumeration import (
    SECONDS_PER_STATE,
    Enumeration,
    predicted_states,
)
from dynamics.positional.population.fourier import FourierExpectation, predicted_cost
from dynamics.positional.population.sampling import Sampling
from dynamics.positional.population.value import Loss, Value
from dynamics.positional.problem import Problem, State
from dynamics.positional.slow_manifold import largest_stable_learning_rate
from dynamics.positional.trajectory import ReducedTrajectory

METHODS = ("auto", "enumeration", "fourier", "sampling")
DEFAULT_TOLERANCE = 1e-10
DEFAULT_RELATIVE = 1e-6
_LEARNED_LOSS = 1e-5  # loss at which the cost of a relative tolerance is predicted
_MAX_STATES = 1.5e6  # states enumerated even if the Fourier method is predicted to be faster
_REACH, _RELATIVE_REACH = 5e-12, 1e-10  # smallest errors of Fourier integrals, due to rounding
_UNCERTAINTY = 4.0  # factor between predicted and actual errors of the Fourier method
_SLOW = 0.1  # seconds per gradient: no slower certified method is chosen automatically


class AccuracyWarning(UserWarning):
    """Warn that the expectation is an estimate because no certified method was affordable."""


class Population(Risk):
    r"""Population risk :math:`E\log(1+e^{-F})` of a problem and its gradient (problem (P)).

    Parameters
    ----------
    problem
        Constants of data and model.
    method
        ``"enumeration"`` and ``"fourier"`` have certified errors, ``"sampling"`` has statistical
        ones. ``"auto"`` chooses the certified method with the smaller predicted cost, if its
        predicted error at the initial state meets the tolerance, and sampling if both certified
        methods are too expensive. The prediction ignores rounding: for tolerances near 1e-11 the
        other certified method may be ten times more accurate.
    tolerance
        Error of the loss and of each gradient entry, absolute for values below 1 and relative
        above. ``None`` means 1e-10 for certified methods and the given sample size for sampling.
    relative
        Whether the tolerance (1e-6 if ``None``) is relative to the loss and to each gradient
        entry, however small. Not available for sampling.
    samples, seed
        Sample size (used if ``tolerance`` is ``None``) and root seed of ``"sampling"``.
    memory_budget
        Largest memory of the table of states, in bytes.

    Attributes
    ----------
    method
        The method in use.
    reason
        Reason for the choice of the method.
    evaluations
        Number of evaluated states.

    Raises
    ------
    ParameterError
        If an argument is outside its domain.
    ToleranceError
        If the tolerance is predicted to be out of reach at the initial state. Evaluations raise it
        at states where the tolerance is not met. The message contains the smallest bound that can
        be reached.

    Notes
    -----
    The result at a state is a function of the state alone, to the last bit: earlier evaluations do
    not affect it (:mod:`dynamics.positional.population.levels`).
    """

    order_parameters = State._fields
    trajectory = ReducedTrajectory
    rotated = ""  # v stays along w*, which Adam and sign descent take for a coordinate axis

    def __init__(
        self,
        problem: Problem,
        method: str = "auto",
        tolerance: float | None = None,
        *,
        relative: bool = False,
        samples: int = 200_000,
        seed: int = 0,
        memory_budget: float = 2.0**29,
    ) -> None:
        if not isinstance(problem, Problem):
            raise ParameterError(f"problem = {problem!r} is not allowed: it must be a Problem")
        require(method in METHODS, "method", method, f"one of {', '.join(METHODS)}")
        if tolerance is not None:
            tolerance = finite("tolerance", tolerance)
            require(0.0 < tolerance <= 1.0, "tolerance", tolerance, "greater than 0 and at most 1")
        if not isinstance(relative, bool):
            raise ParameterError(f"relative = {relative!r} is not allowed: it must be a bool")
        require(
            not (relative and method == "sampling"),
            "relative",
            relative,
            "False for sampling, whose errors are not certified",
        )
        require(finite("samples", samples) >= 100, "samples", samples, "at least 100")
        require(
            finite("memory_budget", memory_budget) >= 2**16,
            "memory_budget",
            memory_budget,
            "at least 65536 bytes",
        )
        self.problem = problem
        self.relative = relative
        default = DEFAULT_RELATIVE if relative else DEFAULT_TOLERANCE
        self.tolerance = default if tolerance is None else tolerance
        self.evaluations = 0
        self._limits = (int(samples), seed, memory_budget)
        self.expectation: Any
        if method == "enumeration":
            self.expectation = self._enumeration(memory_budget)
            self.reason = "enumeration, as requested"
        elif method == "fourier":
            self.expectation = self._fourier()
            self.reason = "fourier, as requested"
        elif method == "sampling":
            self.expectation = Sampling(problem, tolerance, memory_budget, int(samples), seed)
            self.reason = "sampling, as requested"
        else:
            self.expectation, self.reason = self._choose(
                self.tolerance if relative else tolerance, int(samples), seed, memory_budget
            )

    def _enumeration(self, budget: float, certain: bool = False) -> Enumeration:
        """Return the enumeration.

        With ``certain``, raise ToleranceError if the initial state may exceed the memory budget.
        """
        method = Enumeration(self.problem, self.tolerance, budget, relative=self.relative)
        if certain and not method.certainly_reaches(self.problem.initial_state):
            raise ToleranceError("its start may need more images than the memory budget allows")
        return method

    def _fourier(self, largest_error: float = math.inf) -> FourierExpectation:
        """Return the Fourier method; raise ToleranceError if the predicted error is too large."""
        tolerance = min(self.tolerance, 0.1)  # the largest that the method accepts
        method = FourierExpectation(self.problem, tolerance, relative=self.relative)
        error = method.predicted_error(self.problem.initial_state)
        if not error <= largest_error:
            raise ToleranceError(
                f"the certified relative error of the Fourier method would be about {error:.1g}",
                reachable=error,
            )
        return method

    def _choose(
        self, tolerance: float | None, samples: int, seed: int, budget: float
    ) -> tuple[Any, str]:
        """Return the cheaper certified method, or sampling if neither is affordable, with a reason.

        Methods that certainly reach the tolerance are tried first.
        """
        absolute = self.tolerance * (_LEARNED_LOSS if self.relative else 1.0)
        states = predicted_states(self.problem, absolute)
        enumeration_cost = states * SECONDS_PER_STATE
        fourier_cost = predicted_cost(self.problem, absolute)
        number = f"about {states:.2g}" if math.isfinite(states) else "far too many"
        notes = [f"enumeration needs {number} states"]
        if enumeration_cost <= _SLOW:
            notes[0] += f" and {_milliseconds(enumeration_cost)} a gradient"
        notes.append(f"Fourier needs about {_milliseconds(fourier_cost)} a gradient")
        in_reach = self.tolerance >= (_RELATIVE_REACH if self.relative else _REACH)
        # whether it may miss the tolerance, seconds per gradient, constructor
        candidates: list[tuple[bool, float, Callable[[], Any]]] = []
        if states <= _MAX_STATES or enumeration_cost <= fourier_cost:
            candidates += [
                (False, enumeration_cost, lambda: self._enumeration(budget, certain=True)),
                (True, enumeration_cost, lambda: self._enumeration(budget)),
            ]
        if fourier_cost <= _SLOW:
            if in_reach:
                smaller = self.tolerance / _UNCERTAINTY
                candidates.append((False, fourier_cost, lambda: self._fourier(smaller)))
            larger = self.tolerance * _UNCERTAINTY
            candidates.append((True, fourier_cost, lambda: self._fourier(larger)))
        for _, _, construct in sorted(candidates, key=lambda candidate: candidate[:2]):
            try:
                method = construct()
                costs = f"for tolerance {self.tolerance:g} {', '.join(notes[:2])}"
                return method, "; ".join([f"{method.name}: {costs}", *notes[2:]])
            except (ToleranceError, OverflowError) as error:
                if str(error) not in notes:
                    notes.append(str(error))
        reason = "; ".join(notes)
        if tolerance is not None:
            raise ToleranceError(
                f"tolerance = {tolerance:g} cannot be certified within {_SLOW:g} s a gradient "
                f"({reason}): use a larger tolerance, or set the method"
            )
        warnings.warn(
            f"the expectation is estimated by sampling: {reason}", AccuracyWarning, stacklevel=3
        )
        sample = Sampling(self.problem, None, budget, samples, seed, clip=True)
        return sample, f"sampling: {reason}"

    @property
    def settings(self) -> dict[str, Any]:
        """Settings that, with the problem, determine the expectation."""
        settings: dict[str, Any] = {"expectation": self.method}
        if isinstance(self.expectation, Sampling):
            settings |= {"population_tolerance": None, "samples": self.expectation.samples}
            return settings | {"seed": self._limits[1]}
        settings["population_tolerance"] = self.tolerance
        return settings | ({"relative": True} if self.relative else {})

    @property
    def predicted_seconds(self) -> float:
        """Approximate seconds per gradient on one thread."""
        absolute = self.tolerance * (_LEARNED_LOSS if self.relative else 1.0)
        if isinstance(self.expectation, FourierExpectation):
            return predicted_cost(self.problem, absolute)
        sampled = isinstance(self.expectation, Sampling)
        states = self.expectation.samples if sampled else predicted_states(self.problem, absolute)
        return states * SECONDS_PER_STATE

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the arguments and the attributes, without the table of states."""
        samples, *rest = self._limits
        sampled = isinstance(self.expectation, Sampling)
        count = self.expectation.samples if sampled else samples
        tolerance = None if sampled else self.tolerance
        relative = self.relative and not sampled
        attributes = {
            "tolerance": self.tolerance,
            "evaluations": self.evaluations,
            "reason": self.reason,
        }
        limits = (count, *rest)
        return _unpickle, (self.problem, self.method, tolerance, relative, limits, attributes)

    @property
    def method(self) -> str:
        """The method in use."""
        return str(self.expectation.name)

    def evaluate(self, state: State) -> Value:
        """Return loss, gradient, test error and their bounds at a state.

        Raises
        ------
        ParameterError
            If the state is not three finite numbers.
        OverflowError
            If F or a derivative overflows.
        ToleranceError
            If the tolerance is not met.
        """
        self.evaluations += 1
        return self.expectation.evaluate(self.checked(state))

    def certified_loss(self, state: State) -> Loss | Value:
        """Return the loss and its bound, without the test error if that is expensive."""
        self.evaluations += 1
        return self.expectation.certified_loss(self.checked(state))

    def gradient(self, state: State) -> State:
        """Return the entrywise gradient (d ell/d alpha, dL/dA same set, dL/dA different sets)."""
        self.evaluations += 1
        return self.expectation.gradient(State(*state))

    def jacobian(self, state: State) -> np.ndarray:
        """Return the (3, 3) matrix d gradient_i / d state_k."""
        return self.expectation.jacobian(State(*state))

    def gradient_plan(self, state: State) -> Any:
        """Return the data for compiled gradients at a state; itself for the Fourier method."""
        if isinstance(self.expectation, FourierExpectation):
            return self
        return self.expectation.table(State(*state)).gradient_data

    def has_grown(self, start: np.ndarray, vector: np.ndarray) -> bool:
        """Return whether alpha has diverged; large attention logits are not a divergence."""
        return bool(abs(vector[0]) > 10.0 * max(abs(start[0]), 1e-3))

    def learning_rate_hint(self, start: State) -> str:
        """Return a sentence with the largest stable learning rate, for error messages."""
        stable = largest_stable_learning_rate(self, start)
        return (
            "the largest stable one (2 / largest curvature on the quasi-steady state of the start) "
            f"is {stable:.6g}"
        )


def _unpickle(
    problem: Problem,
    method: str,
    tolerance: float | None,
    relative: bool,
    limits: tuple[Any, ...],
    attributes: dict[str, Any],
) -> Population:
    """Return a pickled population."""
    samples, seed, budget = limits
    population = Population(
        problem,
        method,
        tolerance,
        relative=relative,
        samples=samples,
        seed=seed,
        memory_budget=budget,
    )
    vars(population).update(attributes)
    return population


def _milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:.2g} ms"
