"""The population expectation behind one door: evaluate a state, by whichever method is best."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from dynamics.enumeration import Enumeration
from dynamics.errors import ParameterError, ToleranceError
from dynamics.problem import Problem, State, finite, require
from dynamics.sampling import Sampling
from dynamics.value import Value

METHODS = ("auto", "enumeration", "sampling")
DEFAULT_TOLERANCE = 1e-10


class AccuracyWarning(UserWarning):
    """No certified method was affordable, so the expectation is estimated."""


class Population:
    r"""Population risk :math:`E\log(1+e^{-F})` of a problem and its gradient (problem (P)).

    Parameters
    ----------
    problem
        The constants of data and model.
    method
        ``"enumeration"`` (certified), ``"sampling"`` (error bars), or ``"auto"``.
    tolerance
        Error of the loss and of each gradient entry, absolute for values below 1 and relative
        above. ``None`` means 1e-10 for certified methods and no request for sampling.
    samples, seed
        Sample size (used when no tolerance is given) and root seed of ``"sampling"``.
    memory_budget
        Bytes that the table of states may take.

    Raises
    ------
    ParameterError
        If an argument is outside its domain.
    ToleranceError
        If the tolerance cannot be met; its message names the bound that can be reached. A result
        is never silently worse than asked.
    """

    def __init__(
        self,
        problem: Problem,
        method: str = "auto",
        tolerance: float | None = None,
        *,
        samples: int = 200_000,
        seed: int = 0,
        memory_budget: float = 2.0**29,
    ) -> None:
        if not isinstance(problem, Problem):
            raise ParameterError(f"problem = {problem!r} is not allowed: it must be a Problem")
        require(method in METHODS, "method", method, f"one of {', '.join(METHODS)}")
        if tolerance is not None:
            tolerance = finite("tolerance", tolerance)
            require(tolerance > 0.0, "tolerance", tolerance, "greater than 0")
        require(finite("samples", samples) >= 100, "samples", samples, "at least 100")
        require(finite("memory_budget", memory_budget) >= 2**16, "memory_budget", memory_budget,
                "at least 65536 bytes")  # fmt: skip
        self.problem = problem
        self.tolerance = DEFAULT_TOLERANCE if tolerance is None else tolerance
        self.expectation, self.reason = self._choose(
            method, tolerance, int(samples), seed, memory_budget
        )
        self.evaluations = 0

    def _choose(
        self, method: str, tolerance: float | None, samples: int, seed: int, budget: float
    ) -> tuple[Any, str]:
        if method != "sampling":
            try:
                exact = Enumeration(self.problem, self.tolerance, budget)
            except ToleranceError as refusal:
                if method == "enumeration" or tolerance is not None:
                    raise
                warnings.warn(
                    f"the expectation is estimated by sampling, since {refusal}",
                    AccuracyWarning,
                    stacklevel=3,
                )
                reason = f"sampling, since {refusal}"
            else:
                return exact, f"enumeration: {exact.n_states} states reach {self.tolerance:g}"
        else:
            reason = "sampling, as requested"
        return Sampling(self.problem, tolerance, budget, samples, seed), reason

    @property
    def method(self) -> str:
        """The method in use; :attr:`reason` says why."""
        return str(self.expectation.name)

    def evaluate(self, state: State) -> Value:
        """Return loss, gradient, test error and their bounds at ``state``."""
        self.evaluations += 1
        return self.expectation.evaluate(checked_state(state))

    def gradient(self, state: State) -> State:
        """Return the entrywise gradient only: the fast path of the solvers."""
        self.evaluations += 1
        return self.expectation.gradient(State(*state))

    def jacobian(self, state: State) -> np.ndarray:
        """Return the (3, 3) matrix d gradient_i / d state_k, the curvature seen by descent."""
        return self.expectation.jacobian(State(*state))

    def largest_stable_learning_rate(self, state: State) -> float:
        """Return 2 / (largest curvature): above it gradient descent moves away from this valley.

        The curvature is the largest eigenvalue of :meth:`jacobian`, i.e. that of the Hessian of
        the risk with respect to (A, v) restricted to the invariant manifold; infinite if no
        direction curves upwards.
        """
        largest = float(np.max(np.linalg.eigvals(self.jacobian(checked_state(state))).real))
        return 2.0 / largest if largest > 0.0 else math.inf


def checked_state(state: State) -> State:
    """Return ``state`` as finite floats or raise one clear sentence."""
    try:
        alpha, gamma, rho = state
    except (TypeError, ValueError):
        raise ParameterError(
            f"state = {state!r} is not allowed: it must be three numbers (alpha, gamma, rho)"
        ) from None
    return State(finite("alpha", alpha), finite("gamma", gamma), finite("rho", rho))
