"""The expectation by truncated enumeration of multisets of set types, with a certified bound."""

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
    RelativePlan,
    StatePlan,
    Table,
    Terms,
    bounds_at,
    vanishes,
)
from dynamics.positional.population.truncation import group_bounds
from dynamics.positional.population.value import Value
from dynamics.positional.problem import Problem, State

SECONDS_PER_STATE = 1.5e-8  # of one gradient, on one thread
_KEPT = 0.4  # share of the multisets up to K whose weight is not negligible
_COARSE = 6  # level of the first estimate of a gradient, where accuracy is relative to it
_LARGE = 1e-3  # of the tolerance at the references: finer tables are relative to large gradients
_ENTRIES = ("the loss", "d/d alpha", "d/d gamma", "d/d rho")


class Enumeration:
    """All images with at most K features outside the signal set, less those of negligible weight.

    K and the weight follow the tolerance and the state: :meth:`table` returns a refinement level
    that the problem fixes (:mod:`dynamics.positional.population.levels`). What is evaluated at a
    state depends on that state alone. Cost does not depend on D. With ``relative`` the tolerance
    is relative to the loss and to each entry of the gradient, however small.

    Every bound is one: what the table neglects by :mod:`dynamics.positional.population.truncation`,
    rounding by the running error analysis of :mod:`dynamics.positional.population.rounding`.

    Raises
    ------
    ToleranceError
        If the memory budget does not allow the K that the tolerance needs at the problem's own
        start, as predicted without a table; at other states, and where double precision does not
        reach the tolerance, evaluations raise it. The message names the bound that can be reached.
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
        last = self._levels.top - (not self._levels.is_complete)  # the very last is for refusals
        self._large = min(steps, max(0, last))
        self._last: Table | None = None  # looked at first: whether it is the one is its to say
        self._refuse_start()

    def _refuse_start(self) -> None:
        """Refuse the problem's own start if no table reaches it whatever the loss is there.

        Loss and gradient are at most what bounds them over all images.
        """
        state = self.problem.initial_state
        target = self._target(bounds_at(self._levels.groups, self._levels.constants, *state))
        if not self._is_held(state, target):
            raise self._too_large(state, target)

    def surely_reaches(self, state: State) -> bool:
        """Return whether tables reach a state however little images with features add to it.

        They may also take from a large slope, so that an absolute tolerance counts as it is.
        """
        if not self.relative:
            return self._is_held(state, np.full(4, self.tolerance))
        bare = group_bounds(self._levels.groups, self._levels.constants, *map(float, state))[0]
        return self._is_held(state, self._target(bare))

    def _target(self, sizes: np.ndarray) -> np.ndarray:
        """Return the errors allowed for loss and gradient of these sizes, (4,)."""
        return self.tolerance * (
            sizes if self.relative else np.full(4, scale(tuple(sizes.tolist())))
        )

    def _is_held(self, state: State, target: np.ndarray) -> bool:
        """Tell whether little enough lies beyond what the memory budget holds."""
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
        return self._found(state)[0]

    def gradient(self, state: State) -> State:
        """Return the entrywise gradient, within the tolerance.

        Raises
        ------
        OverflowError
            If F or a derivative overflows.
        ToleranceError
            If no table that the memory budget holds is accurate enough.
        """
        if self._last is not None:
            found = self._last.own_gradient(state)
            if found is not None:
                return found
        table, gradient = self._found(state)
        plain = not self.relative and table.level < self._large
        self._last = table if plain else None
        return table.gradient(state)[0] if gradient is None else gradient

    def _found(self, state: State) -> tuple[Table, State | None]:
        """Return the table for a state, and the gradient where that had to be looked at."""
        level = self._start(state)
        if not self.relative and level < self._large:
            return self._table(level), None
        while True:
            table = self._table(level)
            gradient, _ = table.gradient(state)
            truncation, found = table.truncation(state), np.array([math.inf, *gradient])
            if self.relative:
                target = np.maximum(
                    self.tolerance * np.abs(found), np.insert(table.sizes(state), 0, 0.0)
                )
                target = self._reachable(state, target)
            else:
                target = np.full(4, self.tolerance * scale(gradient))
            if np.all(truncation <= target):
                return table, gradient
            aim = self._reliable(target, found, truncation) if self.relative else target
            level = self._above(level, state, aim)

    def _start(self, state: State) -> int:
        """Return the level to begin with at a state."""
        if self.relative:
            return min(_COARSE, self._levels.top)
        level = self._levels.first(state, np.full(4, self.tolerance), most=self._large)
        return self._large if level is None else level

    def _above(self, level: int, state: State, target: np.ndarray) -> int:
        """Return the first higher level that neglects less than ``target`` (4,), or refuse."""
        higher = self._levels.first(state, target, above=level)
        if higher is None:
            raise self._too_large(state, target)
        return higher

    def _table(self, level: int) -> Table:
        """Return a level as a table for this tolerance."""
        levels = self._levels
        states, neglected = levels.states(level), levels.neglected(level)
        plan: StatePlan | RelativePlan
        if self.relative:
            plan = RelativePlan(states, neglected, levels.constants, self.tolerance)
        else:
            lower = levels.neglected(min(level, self._large) - 1)
            scaled = level >= self._large
            plan = StatePlan(states, neglected, lower, levels.constants, self.tolerance, scaled)
        return Table(self.problem, level, levels.K(level), plan, levels.weight_error(level))

    def _reachable(self, state: State, target: np.ndarray) -> np.ndarray:
        """Return the targets without those of the entries that are exactly 0."""
        if vanishes(self.problem.beta, *state):
            return np.array([*target[:2], math.inf, math.inf])
        return target

    def _reliable(
        self, target: np.ndarray, found: np.ndarray, truncation: np.ndarray
    ) -> np.ndarray:
        """Return the targets, or where a table neglects too much to know them, a step to them."""
        unknown = np.isfinite(target) & (truncation > 0.1 * np.abs(found))
        return np.where(unknown, np.maximum(target, 1e-6 * truncation), target)

    def jacobian(self, state: State) -> np.ndarray:
        """Return d gradient_i / d state_k, shape (3, 3), by the table of the gradient."""
        return self.table(state).jacobian(state)

    def certified_loss(self, state: State) -> Value:
        """Return the full value, of which the loss alone is held to a relative tolerance."""
        return self._evaluated(state, entries=1 if self.relative else 4)

    def evaluate(self, state: State) -> Value:
        """Return the full :class:`Value`, within the tolerance or not at all."""
        return self._evaluated(state, entries=4)

    def _evaluated(self, state: State, entries: int) -> Value:
        """Return the value, its first ``entries`` of (loss, alpha, gamma, rho) within tolerance."""
        level = self._start(state)
        while True:
            table = self._table(level)
            terms = table.terms(state)
            target = self.tolerance * np.abs(terms.found)
            if not self.relative:
                target[:] = self.tolerance * scale(tuple(terms.found.tolist()))
            if np.all(terms.bounds[:entries] <= target[:entries]):
                return table.value(terms)
            target[entries:] = math.inf
            aim = target
            if self.relative:
                aim = self._reliable(target, terms.found, terms.truncation)
            if np.all(aim == target):
                self._refuse_rounding(state, terms, target)
                aim = np.where(terms.rounding < target, target - terms.rounding, target)
            level = self._above(level, state, self._reachable(state, aim))

    def _refuse_rounding(self, state: State, terms: Terms, target: np.ndarray) -> None:
        """Refuse where rounding alone takes nine tenths of what may be lost."""
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
            f"alpha = {state.alpha:.6g}: {_ENTRIES[worst]} can be had within {reachable:.1e}",
            reachable=reachable,
        )

    def _too_large(self, state: State, target: np.ndarray) -> ToleranceError:
        """Return the refusal of a state at which a table would have to neglect less than it can."""
        levels, asked = self._levels, "relative tolerance" if self.relative else "tolerance"
        if levels.is_complete:
            return ToleranceError(
                f"{asked} = {self.tolerance:g} cannot be met at alpha = {state.alpha:.6g}, gamma = "
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
            f"{asked} = {self.tolerance:g} needs all images with {needed} features, "
            f"more than the memory budget holds: with at most {levels.affordable} features "
            f"the certified bound is {best:.1e}",
            reachable=best,
        )


def predicted_states(problem: Problem, tolerance: float) -> float:
    """Return about how many states a table needs once alpha has settled, without making one.

    A start below a learned state needs fewer states than the run will. Infinite where even to count
    them is pointless.
    """
    if problem.C > LARGEST_SET:
        return math.inf
    start = problem.initial_state
    alpha = max(start.alpha, learned_alpha(problem, start))
    groups = tail(problem.D, problem.C, problem.q, problem.p)
    beyond = mass_beyond(groups, problem, (alpha, 0, 0))
    K = int(np.argmax(beyond.max(axis=1) <= 0.25 * tolerance))
    within = min(LARGEST_K, groups.mass.size - 2) >= K
    return _KEPT * float(count_states(problem, K)[-1]) if within else math.inf
