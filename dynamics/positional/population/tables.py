"""Sums over one table of states, with their truncation and rounding errors."""

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

_CANCELLATION = 2.0**-50  # relative to its terms: a smaller sum is a rounding error
_COLUMNS = np.array([0, 2, 3, 4])  # of the certified sums: all but E[s(-F)]


class GradientData(NamedTuple):
    """Data for the compiled gradient with an absolute tolerance.

    The table is that of a state if it neglects at most the tolerance there, and the next smaller
    table more than the tolerance.

    Attributes
    ----------
    states, neglected
        Images in the table, and groups of all other images.
    lower
        Groups of images outside the next smaller table; no groups if there is none.
    constants, tolerance
        Constants of the model, and error of each gradient entry.
    scaled
        Whether the tolerance is relative for entries above 1.
    """

    states: StateTable
    neglected: Neglected
    lower: Neglected
    constants: Constants
    tolerance: float
    scaled: bool


@kernel
def bounds_at(neglected, constants, alpha, gamma, rho):
    """Return bounds (4,) of the parts of the loss and gradient entries in neglected groups."""
    return np.sum(group_bounds(neglected, constants, alpha, gamma, rho), axis=0)


@gradient_of(GradientData)
@kernel
def gradient_within(data, theta, out):
    """Write the entrywise gradient to ``out``; return whether the table is that of the state."""
    constants = data.constants
    alpha, gamma, rho = theta[0], theta[1], theta[2]
    _, d_alpha, d_gamma, d_rho = gradient_sum(data.states, constants, alpha, gamma, rho)
    out[0] = d_alpha
    same, different = multiplicity(constants.C, constants.D)
    out[1], out[2] = d_gamma / same, d_rho / different
    size = max(1.0, abs(out[0]), abs(out[1]), abs(out[2])) if data.scaled else 1.0
    lost = np.max(bounds_at(data.neglected, constants, alpha, gamma, rho))
    if not lost <= data.tolerance * size:
        return False
    if data.lower.mass.size == 0:
        return True
    return bool(np.max(bounds_at(data.lower, constants, alpha, gamma, rho)) > data.tolerance)


class RelativeGradientData(NamedTuple):
    """Data for the gradient with a tolerance relative to each of its entries.

    An entry close to a change of sign, below `_CANCELLATION` times E[s(-F) |dF|], may have this
    error instead. A descent loop uses the table as long as it is accurate enough.
    """

    states: StateTable
    neglected: Neglected
    constants: Constants
    tolerance: float


@gradient_of(RelativeGradientData)
@kernel
def relative_gradient_within(data, theta, out):
    """Write the entrywise gradient to ``out``; return whether the table is accurate enough."""
    constants = data.constants
    sums = np.empty((2, 3))
    sized_gradient_sum(data.states, constants, theta[0], theta[1], theta[2], sums)
    lost = bounds_at(data.neglected, constants, theta[0], theta[1], theta[2])
    same, different = multiplicity(constants.C, constants.D)
    within = True
    for m in range(3):
        count = 1.0 if m == 0 else same if m == 1 else different
        out[m] = sums[0, m] / count
        target = max(data.tolerance * abs(out[m]), _CANCELLATION * sums[1, m] / count)
        within = within and lost[1 + m] <= target
        if m == 0 and vanishes(constants.beta, theta[0], theta[1], theta[2]):
            out[1:] = 0.0
            break
    return within


@kernel
def vanishes(beta, alpha, gamma, rho):
    """Return whether the gradient in A is exactly 0: no output, or uniform attention."""
    return alpha == 0.0 or (beta == gamma and gamma == rho)


class Terms(NamedTuple):
    """Loss and gradient at a state, with their errors.

    Attributes
    ----------
    values
        The loss and the three entries of the gradient, (4,).
    truncation, rounding
        The two parts of their errors, (4,) each.
    sums, signs
        Results of :func:`~dynamics.positional.population.expectation.certified_sums`.
    """

    values: np.ndarray
    truncation: np.ndarray
    rounding: np.ndarray
    sums: np.ndarray
    signs: np.ndarray

    @property
    def bounds(self) -> np.ndarray:
        """Errors of the values, (4,)."""
        return (self.truncation + self.rounding) * OUTWARD


@dataclass(frozen=True, eq=False)
class Table:
    """Immutable table of states.

    Attributes
    ----------
    problem
        Constants of data and model.
    level
        Refinement level.
    K
        Largest number of features outside the signal set; -1 for a sample.
    gradient_data
        Arguments of the compiled gradient: states, neglected groups, constants and tolerance.
    weight_error
        Bound of the relative error of the weights.
    """

    problem: Problem
    level: int
    K: int
    gradient_data: GradientData | RelativeGradientData
    weight_error: float

    @property
    def states(self) -> StateTable:
        """The states that are summed."""
        return self.gradient_data.states

    @property
    def n_states(self) -> int:
        """Number of multisets in the table."""
        return int(self.states.weight.size)

    def gradient(self, state: State) -> tuple[State, bool]:
        """Return the entrywise gradient, and whether this is the table for the state.

        Raises
        ------
        OverflowError
            If F or a derivative overflows.
        """
        gradient, within = self._gradient(state)
        require_finite(gradient, state)
        return gradient, within

    def own_gradient(self, state: State) -> State | None:
        """Return the gradient if this is the table for the state, else ``None``."""
        gradient, within = self._gradient(state)
        if not within:
            return None
        require_finite(gradient, state)
        return gradient

    def _gradient(self, state: State) -> tuple[State, bool]:
        """Return the result of the compiled gradient, which need not be finite."""
        out, relative = np.empty(3), isinstance(self.gradient_data, RelativeGradientData)
        evaluated = relative_gradient_within if relative else gradient_within
        within = evaluated(self.gradient_data, np.array(state, float), out)
        return State(*out.tolist()), within

    def cancellation(self, state: State) -> np.ndarray:
        """Return the allowed errors (3,) of gradient entries that cancel to nearly 0."""
        sums = np.empty((2, 3))
        sized_gradient_sum(self.states, self.gradient_data.constants, *state, sums)
        return _CANCELLATION * sums[1] / self.problem.multiplicity

    def jacobian(self, state: State) -> np.ndarray:
        """Return d gradient_i / d state_k, shape (3, 3)."""
        hessian = hessian_sum(self.states, self.gradient_data.constants, *state)
        return hessian / np.array(self.problem.multiplicity)[:, None]

    def truncation(self, state: State) -> np.ndarray:
        """Return the truncation errors of the loss and of the gradient entries, (4,)."""
        total = (
            bounds_at(
                self.gradient_data.neglected, self.gradient_data.constants, *map(float, state)
            )
            * OUTWARD
        )
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
            self.states, self.gradient_data.constants, *state, self.weight_error, tie
        )
        require_finite(tuple(sums[0].tolist()), state)
        counts = np.array([1.0, *self.problem.multiplicity])
        values = sums[0, _COLUMNS] / counts
        rounding = sums[2, _COLUMNS] / counts * OUTWARD + TINY
        if vanishes(self.problem.beta, *state):
            values[2:] = rounding[2:] = 0.0
        return Terms(values, self.truncation(state), rounding, sums, signs)

    def value(self, terms: Terms) -> Value:
        """Return the full value for the terms at a state."""
        missing = math.fsum(self.gradient_data.neglected.mass)
        negative, zero, undecided, _ = (float(mass) for mass in terms.signs)
        rounded = (self.weight_error + 8.0 * UNIT) * (negative + zero + undecided)
        lost = (missing + rounded + self.n_states * UNDERFLOWN_WEIGHT) * OUTWARD
        worst = int(np.argmax(terms.bounds))
        part = float(terms.truncation[worst])
        rest = float(terms.bounds[worst]) * (1.0 + 4.0 * UNIT) - part
        return Value(
            loss=float(terms.values[0]),
            gradient=State(*terms.values[1:].tolist()),
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
