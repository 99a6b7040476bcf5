"""The expectation over a fixed random sample of images, with error bars."""

from __future__ import annotations

import math

import numpy as np

from dynamics.enumeration import StatePlan
from dynamics.errors import ToleranceError
from dynamics.expectation import Constants, hessian_sum, risk_sums
from dynamics.problem import Problem, State
from dynamics.states import sample_states
from dynamics.truncation import nothing
from dynamics.value import Value, require_finite, scale

_PILOT = 20_000
_BYTES_PER_ENTRY = 60  # of the table and of the buffers while it is drawn


class Sampling:
    """A sample of images drawn once, so that a trajectory descends one fixed empirical mean.

    With a tolerance, the sample is made large enough that three standard errors at the initial
    state stay below it; at later states :attr:`Value.bound` tells what is reached. Rare images
    carry most of the late loss, which error bars from a sample can miss: enumeration and Fourier
    are the methods to trust where they apply. ``clip`` reduces the sample to the memory budget
    instead of refusing.
    """

    name = "sampling"

    def __init__(
        self,
        problem: Problem,
        tolerance: float | None,
        memory_budget: float,
        samples: int,
        seed: int,
        clip: bool = False,
    ) -> None:
        self.problem = problem
        self.tolerance = tolerance
        self.constants = Constants.of(problem)
        features = min(problem.q * (problem.D - problem.C), problem.L - 1.0)
        affordable = int(memory_budget / (_BYTES_PER_ENTRY * (1.0 + features)))
        if tolerance is not None:
            samples = self._samples_for(tolerance, affordable, seed)
        elif clip:
            samples = min(samples, affordable)
        elif samples > affordable:
            raise ToleranceError(
                f"samples = {samples} do not fit the memory budget: at most {affordable}"
            )
        self.samples = samples
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1,)))
        self.states = sample_states(problem, samples, rng)

    def _samples_for(self, tolerance: float, affordable: int, seed: int) -> int:
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0,)))
        self.samples = _PILOT
        self.states = sample_states(self.problem, _PILOT, rng)
        pilot = self.evaluate(self.problem.initial_state)
        target = tolerance * scale((pilot.loss, *pilot.gradient))
        needed = max(_PILOT, math.ceil(1.2 * _PILOT * (pilot.bound / target) ** 2))
        if needed > affordable:
            best = pilot.bound * math.sqrt(1.2 * _PILOT / affordable)
            raise ToleranceError(
                f"tolerance = {tolerance:g} needs about {needed:.2g} samples, more than the memory "
                f"budget holds: with {affordable} samples three standard errors are {best:.1e}",
                reachable=best,
            )
        return needed

    @property
    def plan(self) -> StatePlan:
        """The sample, for a compiled loop: nothing is truncated, so every state is within."""
        return StatePlan(self.states, nothing(), self.constants, math.inf)

    def gradient(self, state: State) -> State:
        """Return the entrywise gradient of the sample mean."""
        gradient, _ = self.plan.gradient(state)
        require_finite(gradient, state)
        return gradient

    def jacobian(self, state: State) -> np.ndarray:
        """Return d gradient_i / d state_k of the sample mean, shape (3, 3)."""
        hessian = hessian_sum(self.states, self.constants, *state)
        return hessian / np.array(self.problem.multiplicity)[:, None]

    def evaluate(self, state: State) -> Value:
        """Return the full :class:`Value` with three standard errors as its bound."""
        sums, test_error, ties = risk_sums(self.states, self.constants, *state)
        loss, mean_sigmoid, *derivatives = sums[0].tolist()
        require_finite((loss, *derivatives), state)
        deviation = np.sqrt(np.maximum(sums[1] - sums[0] ** 2, 0.0) / (self.samples - 1))
        deviation[2:] /= self.problem.multiplicity
        rounding = float(max(sums[2, 0], *(sums[2, 2:] / self.problem.multiplicity)))
        statistical = 3.0 * float(max(deviation[0], *deviation[2:]))
        spread = test_error * (1.0 - test_error) / self.samples
        return Value(
            loss=loss,
            gradient=State(*np.divide(derivatives, self.problem.multiplicity).tolist()),
            test_error=min(1.0, float(test_error)),
            ties=min(1.0, float(ties)),
            mean_sigmoid=mean_sigmoid,
            bound=statistical + rounding,
            bounds={"three standard errors": statistical, "rounding": rounding},
            # the second term keeps the bar honest when no error was drawn (rule of three)
            test_error_bound=3.0 * math.sqrt(spread) + 3.0 / self.samples,
        )
