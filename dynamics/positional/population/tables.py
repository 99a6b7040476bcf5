"""A table of states as a value: its sums, what it neglects, and whether that is tolerable."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dynamics.core.compiled_gradients import gradient_of
from dynamics.core.jit import kernel
from dynamics.positional._emitted import multiplicity
from dynamics.positional.population.expectation import (
    Constants,
    certified_sums,
    gradient_sum,
    hessian_sum,
    sized_gradient_sum,
)
from dynamics.positional.population.rounding import OUTWARD, TINY, UNIT
from dynamics.positional.population.states import UNDERFLOWN_WEIGHT, StateTable
from dynamics.positional.population.ties import tie_law
from dynamics.positional.population.truncation import Neglected, group_bounds
from dynamics.positional.population.value import Value, require_finite
from dynamics.positional.problem import Problem, State

_CANCELLED = 2.0**-50  # of its terms: a smaller sum is rounding
_ANSWERS = np.array([0, 2, 3, 4])  # of the certified sums: all but E[s(-F)]


class StatePlan(NamedTuple):
    """What a compiled loop needs to evaluate the gradient from a table of states.

    The table is the one for a state if it neglects at most ``tolerance`` there and the next
    smaller one (``lower``, without groups where there is none) more. With ``scaled`` the tolerance
    is relative to entries above 1.
    """

    states: StateTable
    neglected: Neglected
    lower: Neglected
    constants: Constants
    tolerance: float
    scaled: bool


@kernel
def bounds_at(neglected, constants, alpha, gamma, rho):
    """Return what is neglected of the loss and of the entries of the gradient, (4,)."""
    return np.sum(group_bounds(neglected, constants, alpha, gamma, rho), axis=0)


@gradient_of(StatePlan)
@kernel
def gradient_within(plan, theta, out):
    """Write the entrywise gradient; return whether the table is the one for this state."""
    constants = plan.constants
    alpha, gamma, rho = theta[0], theta[1], theta[2]
    _, d_alpha, d_gamma, d_rho = gradient_sum(plan.states, constants, alpha, gamma, rho)
    out[0] = d_alpha
    same, different = multiplicity(constants.C, constants.D)
    out[1], out[2] = d_gamma / same, d_rho / different
    size = max(1.0, abs(out[0]), abs(out[1]), abs(out[2])) if plan.scaled else 1.0
    lost = np.max(bounds_at(plan.neglected, constants, alpha, gamma, rho))
    if not lost <= plan.tolerance * size:
        return False
    if plan.lower.mass.size == 0:
        return True
    return bool(np.max(bounds_at(plan.lower, constants, alpha, gamma, rho)) > plan.tolerance)


class RelativePlan(NamedTuple):
    """The same for a tolerance relative to each entry of the gradient.

    An entry that cancels below `_CANCELLED` of its terms E[s(-F) |dF|] (it changes sign along a
    run) is held to that instead. A loop keeps the table as long as it is accurate enough.
    """

    states: StateTable
    neglected: Neglected
    constants: Constants
    tolerance: float


@gradient_of(RelativePlan)
@kernel
def relative_gradient_within(plan, theta, out):
    """Write the entrywise gradient; return whether what the table neglects is tolerable there."""
    constants = plan.constants
    sums = np.empty((2, 3))
    sized_gradient_sum(plan.states, constants, theta[0], theta[1], theta[2], sums)
    lost = bounds_at(plan.neglected, constants, theta[0], theta[1], theta[2])
    same, different = multiplicity(constants.C, constants.D)
    within = True
    for m in range(3):
        many = 1.0 if m == 0 else same if m == 1 else different
        out[m] = sums[0, m] / many
        target = max(plan.tolerance * abs(out[m]), _CANCELLED * sums[1, m] / many)
        within = within and lost[1 + m] <= target
        if m == 0 and vanishes(constants.beta, theta[0], theta[1], theta[2]):
            out[1:] = 0.0
            break
    return within


@kernel
def vanishes(beta, alpha, gamma, rho):
    """Tell whether the gradient in A is exactly 0: no output, or uniform attention."""
    return alpha == 0.0 or (beta == gamma and gamma == rho)


class Terms(NamedTuple):
    """Loss and entries of the gradient at a state, (4,), and the two parts of their error."""

    found: np.ndarray
    truncation: np.ndarray
    rounding: np.ndarray
    sums: np.ndarray
    signs: np.ndarray

    @property
    def bounds(self) -> np.ndarray:
        """Return the error of each, (4,)."""
        return (self.truncation + self.rounding) * OUTWARD


@dataclass(frozen=True, eq=False)
class Table:
    """Images by their states, and what is left out: a value, which no evaluation changes.

    ``level`` is its refinement level, ``K`` the largest number of features outside the signal
    set; the weights have a relative error of at most ``weight_error``.
    """

    problem: Problem
    level: int
    K: int
    plan: StatePlan | RelativePlan
    weight_error: float

    @property
    def states(self) -> StateTable:
        """The states that are summed."""
        return self.plan.states

    @property
    def n_states(self) -> int:
        """Number of multisets in the table."""
        return int(self.states.weight.size)

    def gradient(self, state: State) -> tuple[State, bool]:
        """Return the entrywise gradient, and whether this is the table for that state.

        Raises
        ------
        OverflowError
            If F or a derivative overflows.
        """
        gradient, within = self._gradient(state)
        require_finite(gradient, state)
        return gradient, within

    def own_gradient(self, state: State) -> State | None:
        """Return the gradient if this is the table for the state."""
        gradient, within = self._gradient(state)
        if not within:
            return None
        require_finite(gradient, state)
        return gradient

    def _gradient(self, state: State) -> tuple[State, bool]:
        out, relative = np.empty(3), isinstance(self.plan, RelativePlan)
        evaluated = relative_gradient_within if relative else gradient_within
        within = evaluated(self.plan, np.array(state, float), out)
        return State(*out.tolist()), within

    def sizes(self, state: State) -> np.ndarray:
        """Return what the entries of the gradient may cancel to: rounding of their terms, (3,)."""
        sums = np.empty((2, 3))
        sized_gradient_sum(self.states, self.plan.constants, *state, sums)
        return _CANCELLED * sums[1] / self.problem.multiplicity

    def jacobian(self, state: State) -> np.ndarray:
        """Return d gradient_i / d state_k, shape (3, 3)."""
        hessian = hessian_sum(self.states, self.plan.constants, *state)
        return hessian / np.array(self.problem.multiplicity)[:, None]

    def truncation(self, state: State) -> np.ndarray:
        """Return what the table neglects of the loss and the three entries, (4,)."""
        total = bounds_at(self.plan.neglected, self.plan.constants, *map(float, state)) * OUTWARD
        if vanishes(self.problem.beta, *state):
            total[2:] = 0.0
        return total

    def terms(self, state: State) -> Terms:
        """Return loss and gradient with their errors.

        Raises
        ------
        OverflowError
            If F or a derivative overflows.
        """
        tie = tie_law(self.problem, state, self.states.plus, self.states.minus)
        sums, signs = certified_sums(
            self.states, self.plan.constants, *state, self.weight_error, tie
        )
        require_finite(tuple(sums[0].tolist()), state)
        many = np.array([1.0, *self.problem.multiplicity])
        found = sums[0, _ANSWERS] / many
        rounding = sums[2, _ANSWERS] / many * OUTWARD + TINY
        if vanishes(self.problem.beta, *state):
            found[2:] = rounding[2:] = 0.0
        return Terms(found, self.truncation(state), rounding, sums, signs)

    def value(self, terms: Terms) -> Value:
        """Return all that is known at the state of the terms."""
        missing = math.fsum(self.plan.neglected.mass)
        negative, zero, undecided, _ = (float(mass) for mass in terms.signs)
        rounded = (self.weight_error + 8.0 * UNIT) * (negative + zero + undecided)
        lost = (missing + rounded + self.n_states * UNDERFLOWN_WEIGHT) * OUTWARD
        worst = int(np.argmax(terms.bounds))
        part = float(terms.truncation[worst])
        rest = float(terms.bounds[worst]) * (1.0 + 4.0 * UNIT) - part
        return Value(
            loss=float(terms.found[0]),
            gradient=State(*terms.found[1:].tolist()),
            test_error=min(1.0, negative + zero + 0.5 * undecided),
            ties=min(1.0, zero),
            mean_sigmoid=float(terms.sums[0, 1]),
            bound=part + rest,
            bounds={"truncation": part, "rounding": rest},
            test_error_bound=lost + 0.5 * undecided * OUTWARD,
            loss_bound=float(terms.bounds[0]),
            gradient_bound=State(*terms.bounds[1:].tolist()),
            mean_sigmoid_bound=(float(terms.sums[2, 1]) + missing) * OUTWARD + TINY,
            ties_bound=lost + undecided * OUTWARD,
        )
