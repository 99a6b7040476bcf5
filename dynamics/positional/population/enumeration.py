"""The expectation by truncated enumeration of multisets of set types, with a certified bound."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from dynamics.core.checks import scale
from dynamics.core.errors import ToleranceError
from dynamics.core.jit import kernel
from dynamics.core.plans import gradient_of
from dynamics.positional._emitted import multiplicity
from dynamics.positional.attention import attention
from dynamics.positional.population.expectation import (
    Constants,
    certified_sums,
    gradient_sum,
    hessian_sum,
    sized_gradient_sum,
)
from dynamics.positional.population.rounding import OUTWARD, TINY, UNIT
from dynamics.positional.population.states import (
    LARGEST_SET,
    UNDERFLOWN_WEIGHT,
    StateTable,
    count_states,
    enumerate_states,
    select_states,
    weight_error,
)
from dynamics.positional.population.ties import tie_law
from dynamics.positional.population.truncation import (
    Neglected,
    binomial_tail,
    group_bounds,
    groups_by_sum,
    state_bounds,
)
from dynamics.positional.population.value import Value, require_finite
from dynamics.positional.problem import Problem, State

SECONDS_PER_STATE = 1.5e-8  # of one gradient, on one thread
_KEPT = 0.4  # share of the multisets up to K whose weight is not negligible
_LEARNED_OUTPUT = 10.0
_LARGEST_K = 120  # beyond it the number of multisets is astronomical, and slow to count
_BYTES_PER_STATE = 300  # table and the buffers while it is built, measured at C = 2 .. 8
_ATTEMPTS = 60  # at a table good enough for a state
_CANCELLED = 2.0**-50  # of its terms: a smaller sum is rounding
_ENTRIES = ("the loss", "d/d alpha", "d/d gamma", "d/d rho")


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
    same, different = multiplicity(constants.C, constants.D)
    out[1], out[2] = d_gamma / same, d_rho / different
    neglected = group_bounds(plan.neglected, constants, alpha, gamma, rho)
    scale = max(1.0, abs(out[0]), abs(out[1]), abs(out[2]))
    return bool(np.max(np.sum(neglected, axis=0)) <= plan.tolerance * scale)


class RelativePlan(NamedTuple):
    """The same for a tolerance relative to each entry of the gradient.

    An entry that cancels below `_CANCELLED` of its terms E[s(-F) |dF|] (it changes sign along a
    run) is held to that instead.
    """

    states: StateTable
    neglected: Neglected
    constants: Constants
    tolerance: float

    def gradient(self, state: State) -> tuple[State, bool]:
        """Return the entrywise gradient and whether the table is accurate enough there."""
        out = np.empty(3)
        within = relative_gradient_within(self, np.array(state, float), out)
        return State(*out.tolist()), within


@gradient_of(RelativePlan)
@kernel
def relative_gradient_within(plan, theta, out):
    """As `gradient_within`, with the tolerance relative to each entry."""
    constants = plan.constants
    sums = np.empty((2, 3))
    sized_gradient_sum(plan.states, constants, theta[0], theta[1], theta[2], sums)
    neglected = group_bounds(plan.neglected, constants, theta[0], theta[1], theta[2])
    same, different = multiplicity(constants.C, constants.D)
    within = True
    for m in range(3):
        many = 1.0 if m == 0 else same if m == 1 else different
        out[m] = sums[0, m] / many
        target = max(plan.tolerance * abs(out[m]), _CANCELLED * sums[1, m] / many)
        within = within and np.sum(neglected[:, 1 + m]) <= target
        if m == 0 and vanishes(constants.beta, theta[0], theta[1], theta[2]):
            out[1:] = 0.0
            break
    return within


@kernel
def vanishes(beta, alpha, gamma, rho):
    """Tell whether the gradient in A is exactly 0: no output, or uniform attention."""
    return alpha == 0.0 or (beta == gamma and gamma == rho)


class Enumeration:
    """All images with at most K features outside the signal set, less those of negligible weight.

    K and the weight follow the tolerance; the table is made anew when a state needs a larger one.
    Cost does not depend on D. With ``relative`` the tolerance is relative to the loss and to each
    entry of the gradient, however small.

    Every bound is one: what the table neglects by :mod:`dynamics.positional.population.truncation`,
    rounding by the running error analysis of :mod:`dynamics.positional.population.rounding`.

    Raises
    ------
    ToleranceError
        If the memory budget does not allow the K that the tolerance needs, or double precision
        does not reach it; the message names the bound that can be reached.
    """

    name = "enumeration"

    def __init__(
        self, problem: Problem, tolerance: float, memory_budget: float, relative: bool = False
    ) -> None:
        self.problem = problem
        self.tolerance = tolerance
        self.relative = relative
        self.constants = Constants.of(problem)
        if problem.C > LARGEST_SET:
            raise ToleranceError(
                f"enumeration is out of reach: a set of C = {problem.C} patches has "
                f"{(problem.C + 1) * (problem.C + 2) / 2:.2g} types; C may be at most {LARGEST_SET}"
            )
        self._groups = _tail(problem.D, problem.C, problem.q, problem.p)
        counts = count_states(problem, min(self._groups.mass.size - 2, _LARGEST_K))
        self._affordable = int(np.searchsorted(counts, memory_budget / _BYTES_PER_STATE)) - 1
        self.K = -1
        self.states: StateTable
        self._neglected: Neglected
        self._rebuild(problem.initial_state, np.full(4, math.sqrt(tolerance)))
        self.gradient(problem.initial_state)

    @property
    def n_states(self) -> int:
        """Number of multisets in the table."""
        return int(self.states.weight.size)

    def neglected(self, state: State) -> float:
        """Return the certified bound of what the present table neglects at a state."""
        return float(self._truncation(state).max())

    def _truncation(self, state: State) -> np.ndarray:
        """Return what the table neglects of the loss and the three entries, (4,)."""
        bounds = group_bounds(self._neglected, self.constants, *state)
        total = np.array([math.fsum(column) for column in bounds.T]) * OUTWARD
        if vanishes(self.problem.beta, *state):
            total[2:] = 0.0
        return total

    def _rebuild(self, state: State, target: np.ndarray) -> None:
        """Make a table that neglects less than ``target`` (4,) at ``state``, or refuse."""
        if vanishes(self.problem.beta, *state):
            target = np.array([*target[:2], math.inf, math.inf])
        beyond = _mass_beyond(self._groups, self.problem, state)
        share = _shares(beyond, target)
        K = int(np.argmax(share <= 0.25))
        if self._affordable < K:
            best = float(beyond[self._affordable].max())
            asked = "relative tolerance" if self.relative else "tolerance"
            tabled = self._groups.mass.size - 2
            typical = self.problem.q * (self.problem.D - self.problem.C)
            needed = f"up to {K}" if tabled >= K else f"about {typical:.3g} and more"
            raise ToleranceError(
                f"{asked} = {self.tolerance:g} needs all images with {needed} features, "
                f"more than the memory budget holds: with at most {self._affordable} features "
                f"the certified bound is {best:.1e}",
                reachable=best,
            )
        self.K = max(K, self.K)
        states = enumerate_states(self.problem, self.K)
        self._weight_error = weight_error(self.problem, self.K)
        self.states, dropped = self._without_negligible(states, state, target)
        self._neglected = self._groups.beyond(self.K).joined(dropped)

    def _without_negligible(
        self, states: StateTable, state: State, target: np.ndarray
    ) -> tuple[StateTable, Neglected]:
        """Drop the states that matter least while their bounds stay within a quarter of target."""
        shares = _shares(state_bounds(states, self.constants, *state), target)
        order = np.argsort(shares)
        dropped = np.zeros(shares.size, bool)
        dropped[order[: int(np.searchsorted(np.cumsum(shares[order]), 0.25))]] = True
        groups = groups_by_sum(self.problem, states, dropped, self._weight_error)
        return select_states(states, ~dropped), groups

    @property
    def plan(self) -> StatePlan | RelativePlan:
        """The present table, for a compiled loop."""
        plan = RelativePlan if self.relative else StatePlan
        return plan(self.states, self._neglected, self.constants, self.tolerance)

    def gradient(self, state: State) -> State:
        """Return the entrywise gradient, within the tolerance."""
        for attempt in range(_ATTEMPTS):
            gradient, within = self.plan.gradient(state)
            require_finite(gradient, state)
            if within:
                return gradient
            target = self._target(state, gradient)
            if self.relative:
                target = self._reliable(target, np.array([math.inf, *gradient]), state)
            self._rebuild(state, target * (1.0 if attempt < 3 else 0.1))
        raise self._out_of_reach(state)

    def _target(self, state: State, gradient: State) -> np.ndarray:
        """Return what the table may neglect of the loss and the entries, for a gradient only."""
        if not self.relative:
            return np.full(4, self.tolerance * scale(gradient))
        sums = np.empty((2, 3))
        sized_gradient_sum(self.states, self.constants, *state, sums)
        size = sums[1] / self.problem.multiplicity
        entries = np.maximum(self.tolerance * np.abs(gradient), _CANCELLED * size)
        return np.array([math.inf, *entries])

    def _reliable(self, target: np.ndarray, found: np.ndarray, state: State) -> np.ndarray:
        """Return the targets, or where the table neglects too much to know them, a step to them."""
        truncation = self._truncation(state)
        unknown = np.isfinite(target) & (truncation > 0.1 * np.abs(found))
        return np.where(unknown, np.maximum(target, 1e-6 * truncation), target)

    def jacobian(self, state: State) -> np.ndarray:
        """Return d gradient_i / d state_k, shape (3, 3), at the K of the last gradient."""
        hessian = hessian_sum(self.states, self.constants, *state)
        return hessian / np.array(self.problem.multiplicity)[:, None]

    def certified_loss(self, state: State) -> Value:
        """Return the full value, of which the loss alone is held to a relative tolerance."""
        return self._evaluated(state, entries=1 if self.relative else 4)

    def evaluate(self, state: State) -> Value:
        """Return the full :class:`Value`, within the tolerance or not at all."""
        return self._evaluated(state, entries=4)

    def _evaluated(self, state: State, entries: int) -> Value:
        """Return the value, its first ``entries`` of (loss, alpha, gamma, rho) within tolerance."""
        for attempt in range(_ATTEMPTS):
            tie = tie_law(self.problem, state, self.states.plus, self.states.minus)
            sums, signs = certified_sums(
                self.states, self.constants, *state, self._weight_error, tie
            )
            require_finite(tuple(sums[0].tolist()), state)
            many = np.array([1.0, *self.problem.multiplicity])
            found = np.delete(sums[0], 1) / many
            rounding = np.delete(sums[2], 1) / many * OUTWARD + TINY
            if vanishes(self.problem.beta, *state):
                found[2:] = rounding[2:] = 0.0
            truncation = self._truncation(state)
            bounds = (truncation + rounding) * OUTWARD
            target = self.tolerance * np.abs(found)
            if not self.relative:
                target[:] = self.tolerance * scale(tuple(found.tolist()))
            if np.all(bounds[:entries] <= target[:entries]):
                return self._value(sums, signs, found, bounds, truncation)
            target[entries:] = math.inf
            aim = self._reliable(target, found, state) if self.relative else target
            if np.all(aim == target):
                self._refuse_rounding(state, rounding, target)
                aim = np.where(rounding < target, target - rounding, target)
            self._rebuild(state, aim * (1.0 if attempt < 3 else 0.1))
        raise self._out_of_reach(state)

    def _refuse_rounding(self, state: State, rounding: np.ndarray, target: np.ndarray) -> None:
        """Refuse where rounding alone takes nine tenths of what may be lost."""
        ratio = _ratio(rounding, target)
        worst = int(np.argmax(ratio))
        if ratio[worst] <= 0.9:
            return
        reachable = float(rounding[worst])
        if not self.relative:
            raise ToleranceError(
                f"tolerance = {self.tolerance:g} is below the rounding error {reachable:.1e} "
                f"of double precision at alpha = {state.alpha:.6g}",
                reachable=reachable,
            )
        raise ToleranceError(
            f"relative tolerance = {self.tolerance:g} is out of reach of double precision at "
            f"alpha = {state.alpha:.6g}: {_ENTRIES[worst]} can be had within {reachable:.1e}",
            reachable=reachable,
        )

    def _value(
        self,
        sums: np.ndarray,
        signs: np.ndarray,
        found: np.ndarray,
        bounds: np.ndarray,
        truncation: np.ndarray,
    ) -> Value:
        """Return the value from the sums of the table and the bounds of loss and entries."""
        missing = math.fsum(self._neglected.mass)
        negative, zero, undecided, _ = (float(mass) for mass in signs)
        rounded = (self._weight_error + 8.0 * UNIT) * (negative + zero + undecided)
        lost = (missing + rounded + self.n_states * UNDERFLOWN_WEIGHT) * OUTWARD
        worst = int(np.argmax(bounds))
        part = float(truncation[worst])
        rest = float(bounds[worst]) * (1.0 + 4.0 * UNIT) - part
        return Value(
            loss=float(found[0]),
            gradient=State(*found[1:].tolist()),
            test_error=min(1.0, negative + zero + 0.5 * undecided),
            ties=min(1.0, zero),
            mean_sigmoid=float(sums[0, 1]),
            bound=part + rest,
            bounds={"truncation": part, "rounding": rest},
            test_error_bound=lost + 0.5 * undecided * OUTWARD,
            loss_bound=float(bounds[0]),
            gradient_bound=State(*bounds[1:].tolist()),
            mean_sigmoid_bound=(float(sums[2, 1]) + missing) * OUTWARD + TINY,
            ties_bound=lost + undecided * OUTWARD,
        )

    def _out_of_reach(self, state: State) -> ToleranceError:
        return ToleranceError(
            f"tolerance = {self.tolerance:g} cannot be met at alpha = {state.alpha:.6g}, gamma = "
            f"{state.gamma:.6g}, rho = {state.rho:.6g}: the bound of what a table of states "
            "neglects does not fall below it"
        )


def _ratio(bounds: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Return bounds / target, 0 where both vanish."""
    some = target > 0.0
    with np.errstate(over="ignore"):
        return np.where(
            some, bounds / np.where(some, target, 1.0), np.where(bounds > 0, math.inf, 0.0)
        )


def _shares(bounds: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Return by how much bounds (n, 4) exceed their targets (4,), at the worst entry."""
    return _ratio(bounds, target).max(axis=1)


def predicted_states(problem: Problem, tolerance: float) -> float:
    """Return about how many states a table needs once alpha has settled, without making one.

    A learned state is one at which F is about `_LEARNED_OUTPUT` on the signal set alone; a start
    below it needs fewer states than the run will. Infinite where even to count them is pointless.
    """
    if problem.C > LARGEST_SET:
        return math.inf
    start = problem.initial_state
    _, _, _, G = attention(problem, start)
    output = (_LEARNED_OUTPUT / problem.C) ** (1.0 / problem.p)
    alpha = max(start.alpha, output * problem.D / (problem.kappa * G))
    groups = _tail(problem.D, problem.C, problem.q, problem.p)
    beyond = _mass_beyond(groups, problem, (alpha, 0, 0))
    K = int(np.argmax(beyond.max(axis=1) <= 0.25 * tolerance))
    within = min(_LARGEST_K, groups.mass.size - 2) >= K
    return _KEPT * float(count_states(problem, K)[-1]) if within else math.inf


def _mass_beyond(groups: Neglected, problem: Problem, state: tuple[float, ...]) -> np.ndarray:
    """Return, for each K, what all groups after it do to loss and gradient at most, (K, 4)."""
    bounds = group_bounds(groups, Constants.of(problem), *map(float, state))
    return np.vstack([np.cumsum(bounds[::-1], axis=0)[::-1][1:], np.zeros(4)])


@lru_cache(maxsize=64)
def _tail(D: int, C: int, q: float, p: int) -> Neglected:
    """Groups by number of features; a sweep over other constants asks for the same ones."""
    return binomial_tail(Problem(D=D, C=C, q=q, p=p))
