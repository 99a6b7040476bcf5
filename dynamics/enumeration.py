"""The expectation by truncated enumeration of multisets of set types, with a certified bound."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from dynamics._jit import kernel
from dynamics.attention import attention
from dynamics.errors import ToleranceError
from dynamics.expectation import Constants, gradient_sum, hessian_sum, risk_sums
from dynamics.plans import gradient_of
from dynamics.problem import Problem, State
from dynamics.states import (
    StateTable,
    count_states,
    enumerate_states,
    select_states,
)
from dynamics.truncation import (
    Neglected,
    binomial_tail,
    group_bounds,
    groups_by_sum,
    state_bounds,
)
from dynamics.value import Value, require_finite, scale

SECONDS_PER_STATE = 1.5e-8  # of one gradient, on one thread
_KEPT = 0.4  # share of the multisets up to K whose weight is not negligible
_LEARNED_OUTPUT = 10.0
_LARGEST_K = 120  # beyond it the number of multisets is astronomical, and slow to count
_SUM_ROUNDING = 1e-13  # of a sum of up to a few million probabilities, each good to 1e-14
_BYTES_PER_STATE = 300  # table and the buffers while it is built, measured at C = 2 .. 8


class StatePlan(NamedTuple):
    """What a compiled loop needs to evaluate the gradient from a table of states."""

    states: StateTable
    neglected: Neglected
    constants: Constants
    tolerance: float

    def gradient(self, state: State) -> tuple[State, bool]:
        """Return the entrywise gradient and whether the table is accurate enough there."""
        out = np.empty(3)
        within = gradient_within(self, np.array(state, float), out)
        return State(*out.tolist()), within


@gradient_of(StatePlan)
@kernel
def gradient_within(plan, theta, out):
    """Write the entrywise gradient; return whether what the table neglects is tolerable there."""
    constants = plan.constants
    alpha, gamma, rho = theta[0], theta[1], theta[2]
    _, d_alpha, d_gamma, d_rho = gradient_sum(plan.states, constants, alpha, gamma, rho)
    out[0] = d_alpha
    out[1] = d_gamma / (constants.D * (constants.C - 1.0))
    out[2] = d_rho / (constants.D * (constants.D - constants.C))
    neglected = np.sum(group_bounds(plan.neglected, constants, alpha, gamma, rho))
    scale = max(1.0, abs(out[0]), abs(out[1]), abs(out[2]))
    return neglected <= plan.tolerance * scale


class Enumeration:
    """All images with at most K features outside the signal set, less those of negligible weight.

    K and the weight follow the tolerance; the table is made anew when a state needs a larger one.
    Cost does not depend on D.

    Raises
    ------
    ToleranceError
        If the memory budget does not allow the K that the tolerance needs; the message names the
        bound that can be reached.
    """

    name = "enumeration"

    def __init__(self, problem: Problem, tolerance: float, memory_budget: float) -> None:
        self.problem = problem
        self.tolerance = tolerance
        self.constants = Constants.of(problem)
        self._groups = _tail(problem.D, problem.C, problem.q, problem.p)
        counts = count_states(problem, min(self._groups.mass.size - 2, _LARGEST_K))
        self._affordable = int(np.searchsorted(counts, memory_budget / _BYTES_PER_STATE)) - 1
        self.K = -1
        self.states: StateTable
        self._neglected: Neglected
        self._rebuild(problem.initial_state, math.sqrt(tolerance))
        self.gradient(problem.initial_state)

    @property
    def n_states(self) -> int:
        """Number of multisets in the table."""
        return int(self.states.weight.size)

    def neglected(self, state: State) -> float:
        """Return the certified bound of what the present table neglects at a state."""
        return math.fsum(group_bounds(self._neglected, self.constants, *state))

    def _rebuild(self, state: State, target: float) -> None:
        """Make a table that neglects less than ``target`` at ``state``, or refuse."""
        beyond = _mass_beyond(self._groups, self.problem, state)
        K = int(np.argmax(beyond <= 0.25 * target))
        if self._affordable < K:
            best = float(beyond[self._affordable])
            raise ToleranceError(
                f"tolerance = {self.tolerance:g} needs all images with up to {K} features, "
                f"more than the memory budget holds: with at most {self._affordable} features "
                f"the certified bound is {best:.1e}",
                reachable=best,
            )
        self.K = max(K, self.K)
        states = enumerate_states(self.problem, self.K)
        self.states, dropped = self._without_negligible(states, state, 0.25 * target)
        self._neglected = self._groups.beyond(self.K).joined(dropped)

    def _without_negligible(
        self, states: StateTable, state: State, target: float
    ) -> tuple[StateTable, Neglected]:
        """Drop the states that matter least as long as their bounds add up to less than target."""
        bounds = state_bounds(states, self.constants, *state)
        order = np.argsort(bounds)
        dropped = np.zeros(bounds.size, bool)
        dropped[order[: int(np.searchsorted(np.cumsum(bounds[order]), target))]] = True
        return select_states(states, ~dropped), groups_by_sum(self.problem, states, dropped)

    @property
    def plan(self) -> StatePlan:
        """The present table, for a compiled loop."""
        return StatePlan(self.states, self._neglected, self.constants, self.tolerance)

    def gradient(self, state: State) -> State:
        """Return the entrywise gradient, within the tolerance."""
        while True:
            gradient, within = self.plan.gradient(state)
            require_finite(gradient, state)
            if within:
                return gradient
            self._rebuild(state, self.tolerance * scale(gradient))

    def jacobian(self, state: State) -> np.ndarray:
        """Return d gradient_i / d state_k, shape (3, 3), at the K of the last gradient."""
        hessian = hessian_sum(self.states, self.constants, *state)
        return hessian / np.array(self.problem.multiplicity)[:, None]

    def evaluate(self, state: State) -> Value:
        """Return the full :class:`Value`, within the tolerance or not at all."""
        while True:
            sums, test_error, ties = risk_sums(self.states, self.constants, *state)
            loss, mean_sigmoid, *derivatives = sums[0].tolist()
            require_finite((loss, *derivatives), state)
            gradient = State(*np.divide(derivatives, self.problem.multiplicity).tolist())
            target = self.tolerance * scale((loss, *gradient))
            truncation = self.neglected(state)
            rounding = float(max(sums[2, 0], *(sums[2, 2:] / self.problem.multiplicity)))
            if truncation + rounding <= target:
                break
            if rounding > 0.5 * target:
                raise ToleranceError(
                    f"tolerance = {self.tolerance:g} is below the rounding error {rounding:.1e} "
                    f"of double precision at alpha = {state.alpha:.6g}",
                    reachable=rounding,
                )
            self._rebuild(state, target - rounding)
        return Value(
            loss=loss,
            gradient=gradient,
            test_error=min(1.0, float(test_error)),
            ties=min(1.0, float(ties)),
            mean_sigmoid=mean_sigmoid,
            bound=truncation + rounding,
            bounds={"truncation": truncation, "rounding": rounding},
            test_error_bound=math.fsum(self._neglected.mass) + _SUM_ROUNDING,
        )


def predicted_states(problem: Problem, tolerance: float) -> float:
    """Return about how many states a table needs once alpha has settled, without making one.

    A learned state is one at which F is about `_LEARNED_OUTPUT` on the signal set alone; a start
    below it needs fewer states than the run will. Infinite where even to count them is pointless.
    """
    start = problem.initial_state
    _, _, _, G = attention(problem, start)
    output = (_LEARNED_OUTPUT / problem.C) ** (1.0 / problem.p)
    alpha = max(start.alpha, output * problem.D / (problem.kappa * G))
    beyond = _mass_beyond(_tail(problem.D, problem.C, problem.q, problem.p), problem, (alpha, 0, 0))
    K = int(np.argmax(beyond <= 0.25 * tolerance))
    return _KEPT * float(count_states(problem, K)[-1]) if K <= _LARGEST_K else math.inf


def _mass_beyond(groups: Neglected, problem: Problem, state: tuple[float, ...]) -> np.ndarray:
    """Return, for each K, the bound of what all groups after it do to loss and gradient."""
    bounds = group_bounds(groups, Constants.of(problem), *map(float, state))
    return np.append(np.cumsum(bounds[::-1])[::-1][1:], 0.0)


@lru_cache(maxsize=64)
def _tail(D: int, C: int, q: float, p: int) -> Neglected:
    """Groups by number of features; a sweep over other constants asks for the same ones."""
    return binomial_tail(Problem(D=D, C=C, q=q, p=p))
