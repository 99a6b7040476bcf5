"""The population expectation by truncated enumeration of multisets of set types."""

import math

import numpy as np

from dynamics.core.checks import scale
from dynamics.core.errors import ToleranceError
from dynamics.positional.population.levels import (
    LARGEST_K,
    Levels,
    learned_alpha,
    mass_beyond,
    ratio,
    tail,
)
from dynamics.positional.population.states import LARGEST_SET, count_states
from dynamics.positional.population.tables import (
    GradientData,
    RelativeGradientData,
    Table,
    Terms,
    bounds_at,
    vanishes,
)
from dynamics.positional.population.truncation import group_bounds
from dynamics.positional.population.value import Value
from dynamics.positional.problem import Problem, State

#: Seconds per state for one gradient, on one thread.
SECONDS_PER_STATE = 1.5e-8
_ENUMERATED = 0.4  # fraction of the multisets up to K whose weight is not negligible
_COARSE = 6  # level of the first estimate of a gradient, for relative tolerances
_LARGE = 1e-3  # relative to the tolerance: finer tables are only used for large gradients
_ENTRIES = ("the loss", "d/d alpha", "d/d gamma", "d/d rho")


class Enumeration:
    """Sum over all images with at most K features outside the signal set.

    Images of negligible weight are left out. K and these images are determined by a refinement
    level (:mod:`dynamics.positional.population.levels`), selected from the tolerance and the state
    alone. The cost does not depend on D.

    Parameters
    ----------
    problem
        Constants of data and model.
    tolerance
        Error of the loss and of each gradient entry, absolute below 1 and relative above.
    memory_budget
        Largest memory of the tables in bytes.
    relative
        Whether the tolerance is relative to the loss and to each gradient entry, however small.

    Raises
    ------
    ToleranceError
        If the K that the tolerance needs at the initial state exceeds the memory budget. This is
        predicted without a table. Evaluations raise it at other states, and if the tolerance is
        below the rounding error. The message contains the bound that can be reached.

    Notes
    -----
    Certified bounds are the sum of truncation (:mod:`dynamics.positional.population.truncation`)
    and rounding (:mod:`dynamics.positional.population.rounding`).
    """

    name = "enumeration"

    def __init__(
        self, problem: Problem, tolerance: float, memory_budget: float, relative: bool = False
    ) -> None:
        self.problem = problem
        self.tolerance = tolerance
        self.relative = relative
        if problem.C > LARGEST_SET:
            raise ToleranceError(
                f"enumeration is out of reach: a set of C = {problem.C} patches has "
                f"{(problem.C + 1) * (problem.C + 2) / 2:.2g} types; C may be at most {LARGEST_SET}"
            )
        self._levels = Levels(problem, memory_budget)
        shares = ratio(self._levels.total, np.full(4, _LARGE * tolerance)).max()
        steps = max(0, math.ceil(math.log(shares, 4.0))) if 0.0 < shares < math.inf else 0
        last = self._levels.top - (not self._levels.is_complete)
        self._large = min(steps, max(0, last))
        self._last: Table | None = None  # tried first at the next state
        self._check_start()

    def _check_start(self) -> None:
        """Raise ToleranceError if no table can reach the tolerance at the initial state.

        Loss and gradient there are replaced by their upper bounds over all images.
        """
        state = self.problem.initial_state
        target = self._target(bounds_at(self._levels.groups, self._levels.constants, *state))
        if not self._fits_memory(state, target):
            raise self._too_large(state, target)

    def certainly_reaches(self, state: State) -> bool:
        """Return whether the tolerance is met for every possible loss and gradient at a state.

        For a relative tolerance these are at least the terms of the image without features. For an
        absolute one the gradient may be small, so that the tolerance is not scaled.
        """
        if not self.relative:
            return self._fits_memory(state, np.full(4, self.tolerance))
        smallest = group_bounds(self._levels.groups, self._levels.constants, *map(float, state))[0]
        return self._fits_memory(state, self._target(smallest))

    def _target(self, sizes: np.ndarray) -> np.ndarray:
        """Return the errors allowed for loss and gradient of these sizes, (4,)."""
        return self.tolerance * (
            sizes if self.relative else np.full(4, scale(tuple(sizes.tolist())))
        )

    def _fits_memory(self, state: State, target: np.ndarray) -> bool:
        """Return whether an affordable K neglects at most ``target`` (4,) at a state."""
        beyond = mass_beyond(self._levels.groups, self.problem, state)
        enough = ratio(beyond, target).max(axis=1) <= 1.0
        return bool(enough[: self._levels.affordable + 1].any())

    def table(self, state: State) -> Table:
        """Return the table for the gradient at a state: a function of the state alone.

        Raises
        ------
        OverflowError, ToleranceError
            As :meth:`gradient`.
        """
        return self._select_table(state)[0]

    def gradient(self, state: State) -> State:
        """Return the entrywise gradient, within the tolerance.

        Raises
        ------
        OverflowError
            If F or a derivative overflows.
        ToleranceError
            If no table within the memory budget is accurate enough.
        """
        if self._last is not None:
            gradient = self._last.own_gradient(state)
            if gradient is not None:
                return gradient
        table, gradient = self._select_table(state)
        independent = not self.relative and table.level < self._large
        self._last = table if independent else None
        return table.gradient(state)[0] if gradient is None else gradient

    def _select_table(self, state: State) -> tuple[Table, State | None]:
        """Return the table for a state, and the gradient if the selection depends on it."""
        level = self._first_level(state)
        if not self.relative and level < self._large:
            return self._table(level), None
        while True:
            table = self._table(level)
            gradient, _ = table.gradient(state)
            truncation, values = table.truncation(state), np.array([math.inf, *gradient])
            if self.relative:
                target = np.maximum(
                    self.tolerance * np.abs(values), np.insert(table.cancellation(state), 0, 0.0)
                )
                target = self._without_zeros(state, target)
            else:
                target = np.full(4, self.tolerance * scale(gradient))
            if np.all(truncation <= target):
                return table, gradient
            aim = self._reliable(target, values, truncation) if self.relative else target
            level = self._higher_level(level, state, aim)

    def _first_level(self, state: State) -> int:
        """Return the level to begin with at a state."""
        if self.relative:
            return min(_COARSE, self._levels.top)
        level = self._levels.lowest(state, np.full(4, self.tolerance), last=self._large)
        return self._large if level is None else level

    def _higher_level(self, level: int, state: State, target: np.ndarray) -> int:
        """Return the lowest higher level that neglects at most ``target`` (4,), or raise."""
        higher = self._levels.lowest(state, target, above=level)
        if higher is None:
            raise self._too_large(state, target)
        return higher

    def _table(self, level: int) -> Table:
        """Return the table of a level for this tolerance."""
        levels = self._levels
        states, neglected = levels.states(level), levels.neglected(level)
        data: GradientData | RelativeGradientData
        if self.relative:
            data = RelativeGradientData(states, neglected, levels.constants, self.tolerance)
        else:
            lower = levels.neglected(min(level, self._large) - 1)
            scaled = level >= self._large
            data = GradientData(states, neglected, lower, levels.constants, self.tolerance, scaled)
        return Table(self.problem, level, levels.K(level), data, levels.weight_error(level))

    def _without_zeros(self, state: State, target: np.ndarray) -> np.ndarray:
        """Return the targets, infinite for the entries that are exactly 0."""
        if vanishes(self.problem.beta, *state):
            return np.array([*target[:2], math.inf, math.inf])
        return target

    def _reliable(
        self, target: np.ndarray, values: np.ndarray, truncation: np.ndarray
    ) -> np.ndarray:
        """Return the targets, replaced by intermediate ones for values that are not yet known."""
        unknown = np.isfinite(target) & (truncation > 0.1 * np.abs(values))
        return np.where(unknown, np.maximum(target, 1e-6 * truncation), target)

    def jacobian(self, state: State) -> np.ndarray:
        """Return d gradient_i / d state_k, shape (3, 3), from the table for the gradient."""
        return self.table(state).jacobian(state)

    def certified_loss(self, state: State) -> Value:
        """Return the full value; a relative tolerance is applied to the loss only."""
        return self._evaluated(state, entries=1 if self.relative else 4)

    def evaluate(self, state: State) -> Value:
        """Return the full value within the tolerance.

        Raises
        ------
        OverflowError
            If F or a derivative overflows.
        ToleranceError
            If no table is accurate enough, or if rounding exceeds the tolerance.
        """
        return self._evaluated(state, entries=4)

    def _evaluated(self, state: State, entries: int) -> Value:
        """Return the value, its first ``entries`` of (loss, alpha, gamma, rho) within tolerance."""
        level = self._first_level(state)
        while True:
            table = self._table(level)
            terms = table.terms(state)
            target = self.tolerance * np.abs(terms.values)
            if not self.relative:
                target[:] = self.tolerance * scale(tuple(terms.values.tolist()))
            if np.all(terms.bounds[:entries] <= target[:entries]):
                return table.value(terms)
            target[entries:] = math.inf
            aim = target
            if self.relative:
                aim = self._reliable(target, terms.values, terms.truncation)
            if np.all(aim == target):
                self._check_rounding(state, terms, target)
                aim = np.where(terms.rounding < target, target - terms.rounding, target)
            level = self._higher_level(level, state, self._without_zeros(state, aim))

    def _check_rounding(self, state: State, terms: Terms, target: np.ndarray) -> None:
        """Raise ToleranceError if rounding alone exceeds nine tenths of the allowed error."""
        share = ratio(terms.rounding, target)
        worst = int(np.argmax(share))
        if share[worst] <= 0.9:
            return
        reachable = float(terms.rounding[worst])
        if not self.relative:
            raise ToleranceError(
                f"tolerance = {self.tolerance:g} is below the rounding error {reachable:.1e} "
                f"of double precision at alpha = {state.alpha:.6g}",
                reachable=reachable,
            )
        raise ToleranceError(
            f"relative tolerance = {self.tolerance:g} is out of reach of double precision at "
            f"alpha = {state.alpha:.6g}: {_ENTRIES[worst]} can be computed within {reachable:.1e}",
            reachable=reachable,
        )

    def _too_large(self, state: State, target: np.ndarray) -> ToleranceError:
        """Return the error for a state at which no affordable table is accurate enough."""
        levels, name = self._levels, "relative tolerance" if self.relative else "tolerance"
        if levels.is_complete:
            return ToleranceError(
                f"{name} = {self.tolerance:g} cannot be met at alpha = {state.alpha:.6g}, gamma = "
                f"{state.gamma:.6g}, rho = {state.rho:.6g}: the bound of what a table of states "
                "neglects does not fall below it"
            )
        beyond = mass_beyond(levels.groups, self.problem, state)
        best = float(beyond[levels.affordable].max())
        enough = int(np.argmax(ratio(beyond, target).max(axis=1) <= 0.5))
        typical = self.problem.q * (self.problem.D - self.problem.C)
        needed = f"about {typical:.3g} and more"
        if levels.groups.mass.size - 2 >= enough:
            needed = f"up to {max(enough, levels.affordable + 1)}"
        return ToleranceError(
            f"{name} = {self.tolerance:g} needs all images with {needed} features, "
            f"more than the memory budget allows: with at most {levels.affordable} features "
            f"the certified bound is {best:.1e}",
            reachable=best,
        )


def predicted_states(problem: Problem, tolerance: float) -> float:
    """Return the approximate number of states in a table for trained alpha.

    A run needs more states after alpha has grown than at its start, so that the larger of the
    initial and the trained alpha is used. Infinite if there are too many states to count.

    Parameters
    ----------
    problem
        Constants of data and model.
    tolerance
        Absolute error of the loss and of each gradient entry.
    """
    if problem.C > LARGEST_SET:
        return math.inf
    start = problem.initial_state
    alpha = max(start.alpha, learned_alpha(problem, start))
    groups = tail(problem.D, problem.C, problem.q, problem.p)
    beyond = mass_beyond(groups, problem, (alpha, 0, 0))
    K = int(np.argmax(beyond.max(axis=1) <= 0.25 * tolerance))
    within = min(LARGEST_K, groups.mass.size - 2) >= K
    return _ENUMERATED * float(count_states(problem, K)[-1]) if within else math.inf
