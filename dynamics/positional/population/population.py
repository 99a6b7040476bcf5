"""The population expectation behind one door: evaluate a state, by whichever method is best."""

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
_LEARNED_LOSS = 1e-5  # what a relative tolerance is predicted for
_TABLE = 1.5e6  # states that are enumerated where the Fourier method is out of reach
_REACH, _RELATIVE_REACH = 5e-12, 1e-10  # rounding keeps Fourier integrals above
_DOUBT = 4.0  # an error foreseen within this factor of the tolerance may turn out on either side
_SLOW = 0.1  # seconds a gradient: beyond it no certified method is worth its cost by default


class AccuracyWarning(UserWarning):
    """No certified method was affordable, so the expectation is estimated."""


class Population(Risk):
    r"""Population risk :math:`E\log(1+e^{-F})` of a problem and its gradient (problem (P)).

    Parameters
    ----------
    problem
        The constants of data and model.
    method
        ``"enumeration"`` and ``"fourier"`` (certified), ``"sampling"`` (error bars), or
        ``"auto"``: the cheaper of the two certified ones by their predicted cost at the tolerance,
        if its error at the problem's own start is foreseen to meet it; sampling only where both
        are out of reach. Rounding is not foreseen: near the limit of double precision (1e-11) the
        other one, asked for by name, may reach ten times further.
    tolerance
        Error of the loss and of each gradient entry, absolute for values below 1 and relative
        above. ``None`` means 1e-10 for certified methods and no request for sampling.
    relative
        Make the tolerance (1e-6 if ``None``) relative to the loss and to each gradient entry,
        however small; certified methods only.
    samples, seed
        Sample size (used when no tolerance is given) and root seed of ``"sampling"``.
    memory_budget
        Bytes that the table of states may take.

    What is found at a state depends on the state alone, to the last bit: the tables in use are
    values, chosen by the state (:mod:`dynamics.positional.population.levels`).

    Raises
    ------
    ParameterError
        If an argument is outside its domain.
    ToleranceError
        If the tolerance is predicted to be out of reach at the problem's own start; evaluations
        raise it at states where it is not met. The message names the bound that can be reached. A
        result is never silently worse than asked.
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
            "False for sampling, which certifies nothing",
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

    def _enumeration(self, budget: float, sure: bool = False) -> Enumeration:
        """Refuse, if asked to be ``sure``, what may turn out at the start to need more memory."""
        method = Enumeration(self.problem, self.tolerance, budget, relative=self.relative)
        if sure and not method.surely_reaches(self.problem.initial_state):
            raise ToleranceError("its start may need more images than the memory budget holds")
        return method

    def _fourier(self, most: float = math.inf) -> FourierExpectation:
        """Refuse now rather than later what is foreseen to err at the start by more than this."""
        tolerance = min(self.tolerance, 0.1)  # the largest that it takes
        method = FourierExpectation(self.problem, tolerance, relative=self.relative)
        error = method.foreseen_error(self.problem.initial_state)
        if not error <= most:
            raise ToleranceError(
                f"the certified relative error of the Fourier method would be about {error:.1g}",
                reachable=error,
            )
        return method

    def _choose(
        self, tolerance: float | None, samples: int, seed: int, budget: float
    ) -> tuple[Any, str]:
        """Return the cheaper certified method, or sampling if neither is affordable.

        A method of which it is in doubt whether it reaches the tolerance comes last.
        """
        asked = self.tolerance * (_LEARNED_LOSS if self.relative else 1.0)
        states = predicted_states(self.problem, asked)
        by_states = states * SECONDS_PER_STATE
        by_fourier = predicted_cost(self.problem, asked)
        number = f"about {states:.2g}" if math.isfinite(states) else "far too many"
        found = [f"enumeration needs {number} states"]
        if by_states <= _SLOW:
            found[0] += f" and {_milliseconds(by_states)} a gradient"
        found.append(f"Fourier needs about {_milliseconds(by_fourier)} a gradient")
        hopeful = self.tolerance >= (_RELATIVE_REACH if self.relative else _REACH)
        ways: list[tuple[bool, float, Callable[[], Any]]] = []  # in doubt, seconds
        if states <= _TABLE or by_states <= by_fourier:
            ways.append((False, by_states, lambda: self._enumeration(budget, sure=True)))
            ways.append((True, by_states, lambda: self._enumeration(budget)))
        if by_fourier <= _SLOW:
            if hopeful:
                ways.append((False, by_fourier, lambda: self._fourier(self.tolerance / _DOUBT)))
            ways.append((True, by_fourier, lambda: self._fourier(self.tolerance * _DOUBT)))
        for _, _, way in sorted(ways, key=lambda way: way[:2]):
            try:
                method = way()
                costs = f"for tolerance {self.tolerance:g} {', '.join(found[:2])}"
                return method, "; ".join([f"{method.name}: {costs}", *found[2:]])
            except (ToleranceError, OverflowError) as refusal:
                if str(refusal) not in found:
                    found.append(str(refusal))
        reason = "; ".join(found)
        if tolerance is not None:
            raise ToleranceError(
                f"tolerance = {tolerance:g} cannot be certified within {_SLOW:g} s a gradient "
                f"({reason}): ask for a larger tolerance, or for a method by name"
            )
        warnings.warn(
            f"the expectation is estimated by sampling: {reason}", AccuracyWarning, stacklevel=3
        )
        sample = Sampling(self.problem, None, budget, samples, seed, clip=True)
        return sample, f"sampling: {reason}"

    @property
    def settings(self) -> dict[str, Any]:
        """What, with the problem, an equal expectation is made from."""
        found: dict[str, Any] = {"expectation": self.method}
        if isinstance(self.expectation, Sampling):
            found |= {"population_tolerance": None, "samples": self.expectation.samples}
            return found | {"seed": self._limits[1]}
        found["population_tolerance"] = self.tolerance
        return found | ({"relative": True} if self.relative else {})

    @property
    def predicted_seconds(self) -> float:
        """What a gradient will cost, about, on one thread."""
        asked = self.tolerance * (_LEARNED_LOSS if self.relative else 1.0)
        if isinstance(self.expectation, FourierExpectation):
            return predicted_cost(self.problem, asked)
        sampled = isinstance(self.expectation, Sampling)
        states = self.expectation.samples if sampled else predicted_states(self.problem, asked)
        return states * SECONDS_PER_STATE

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what it was made from: trajectories carry it, but not its table of states."""
        samples, *rest = self._limits
        sampled = isinstance(self.expectation, Sampling)
        count = self.expectation.samples if sampled else samples
        tolerance = None if sampled else self.tolerance
        kept = {"tolerance": self.tolerance, "evaluations": self.evaluations, "reason": self.reason}
        relative = self.relative and not sampled
        return _again, (self.problem, self.method, tolerance, relative, (count, *rest), kept)

    @property
    def method(self) -> str:
        """The method in use; :attr:`reason` says why."""
        return str(self.expectation.name)

    def evaluate(self, state: State) -> Value:
        """Return loss, gradient, test error and their bounds at ``state``."""
        self.evaluations += 1
        return self.expectation.evaluate(self.checked(state))

    def certified_loss(self, state: State) -> Loss | Value:
        """Return loss and bound only: by the Fourier method test errors cost far more."""
        self.evaluations += 1
        return self.expectation.certified_loss(self.checked(state))

    def gradient(self, state: State) -> State:
        """Return the entrywise gradient only: the fast path of the solvers."""
        self.evaluations += 1
        return self.expectation.gradient(State(*state))

    def jacobian(self, state: State) -> np.ndarray:
        """Return the (3, 3) matrix d gradient_i / d state_k, the curvature seen by descent."""
        return self.expectation.jacobian(State(*state))

    def plan(self, state: State) -> Any:
        """Return the table of states for a state, itself where the method has none."""
        if isinstance(self.expectation, FourierExpectation):
            return self
        return self.expectation.table(State(*state)).plan

    def has_grown(self, start: np.ndarray, vector: np.ndarray) -> bool:
        """Tell whether alpha ran away: large attention logits are no divergence."""
        return bool(abs(vector[0]) > 10.0 * max(abs(start[0]), 1e-3))

    def learning_rate_hint(self, start: State) -> str:
        """Return the largest stable learning rate in words."""
        stable = largest_stable_learning_rate(self, start)
        return (
            "the largest stable one (2 / largest curvature on the quasi-steady state of the start) "
            f"is {stable:.6g}"
        )


def _again(
    problem: Problem,
    method: str,
    tolerance: float | None,
    relative: bool,
    limits: tuple[Any, ...],
    kept: Any,
) -> Population:
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
    vars(population).update(kept)
    return population


def _milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:.2g} ms"
