r"""Refinement levels of the tables: the level for a state is a function of the state alone.

Level r leaves out at most the share :math:`4^{-r}` of what bounds loss and gradient at two
reference states, one with uniform attention and one with association, both learned; the last one
that the memory budget holds leaves out no image of its K. Which images these are
depends on the problem and on nothing that was evaluated before, so that a cache of them holds
values. Measured at D = 64: the table for a state is as small as one made for that state.
"""

import math
from collections import OrderedDict
from functools import lru_cache

import numpy as np

from dynamics.positional.attention import attention
from dynamics.positional.population.expectation import Constants
from dynamics.positional.population.states import (
    StateTable,
    count_states,
    enumerate_states,
    select_states,
    weight_error,
)
from dynamics.positional.population.tables import bounds_at
from dynamics.positional.population.truncation import (
    Neglected,
    binomial_tail,
    group_bounds,
    groups_by_sum,
    nothing,
    state_bounds,
)
from dynamics.positional.problem import Problem, State

_LEARNED_OUTPUT = 10.0
#: Beyond it the number of multisets is astronomical, and slow to count.
LARGEST_K = 120
_BYTES_PER_STATE = 300  # table and the buffers while it is built, measured at C = 2 .. 8
_STEP = 4.0  # between the shares that two neighbours neglect
_LAST = 100  # level that is ever needed
_LOW = 4  # level by which the one for a state is guessed


class Levels:
    """The tables of one problem, each a value; :meth:`first` names the one for a state."""

    def __init__(self, problem: Problem, memory_budget: float) -> None:
        self.problem = problem
        self.constants = Constants.of(problem)
        self.groups = tail(problem.D, problem.C, problem.q, problem.p)
        counts = count_states(problem, min(self.groups.mass.size - 2, LARGEST_K))
        self.affordable = int(np.searchsorted(counts, memory_budget / _BYTES_PER_STATE)) - 1
        self._budget = memory_budget
        self._references = _references(problem)
        every = [bounds_at(self.groups, self.constants, *state) for state in self._references]
        #: What bounds loss and gradient at the reference states in all, (2, 4).
        self.total = np.array(every)
        worst = np.max(
            [
                _shares(mass_beyond(self.groups, problem, state), total)
                for state, total in zip(self._references, every)
            ],
            axis=0,
        )
        self._K = [int(np.argmax(worst <= share)) for share in 0.5 * _STEP ** -np.arange(_LAST + 1)]
        held = int(np.searchsorted(self._K, self.affordable, side="right"))
        #: Whether the memory budget holds all levels.
        self.is_complete = held > _LAST
        if not self.is_complete and self.affordable >= 0:
            self._K[held:] = [self.affordable]
        #: The last level, which drops no image of its K; -1 if the budget holds none.
        self.top = len(self._K) - 1 if self.affordable >= 0 else -1
        self._ranked: tuple[int, StateTable, np.ndarray] | None = None
        self._neglected: dict[int, Neglected] = {}
        self._states: OrderedDict[int, StateTable] = OrderedDict()

    def K(self, level: int) -> int:
        """Return the largest number of features outside the signal set in a table."""
        return self._K[level]

    def neglected(self, level: int) -> Neglected:
        """Return what a table leaves out; nothing is known of it below the first."""
        if level < 0:
            return nothing()
        if level not in self._neglected:
            _, states, dropped = self._cut(level)
            left_out = groups_by_sum(self.problem, states, dropped, self.weight_error(level))
            self._neglected[level] = self.groups.beyond(self._K[level]).joined(left_out)
        return self._neglected[level]

    def states(self, level: int) -> StateTable:
        """Return the states of a table; few tables are kept."""
        if level not in self._states:
            _, states, dropped = self._cut(level)
            self._states[level] = select_states(states, ~dropped)
            held = sum(table.nbytes for table in self._states.values())
            while held > self._budget and len(self._states) > 1:
                held -= self._states.popitem(last=False)[1].nbytes
        self._states.move_to_end(level)
        return self._states[level]

    def weight_error(self, level: int) -> float:
        """Return the relative error of the weights of a table."""
        return weight_error(self.problem, self._K[level])

    def bounds(self, level: int, state: State) -> np.ndarray:
        """Return what a table neglects of loss and gradient at a state, at most, (4,)."""
        return bounds_at(self.neglected(level), self.constants, *map(float, state))

    def first(
        self, state: State, target: np.ndarray, above: int = -1, most: int | None = None
    ) -> int | None:
        """Return the lowest level above one that neglects at most ``target`` (4,) at a state.

        The first guess is by proportion to what a low level neglects there; from it the search goes
        level by level. What is neglected falls from level to level, so that the answer is that of a
        search through all of them. ``None`` if there is no such level up to ``most`` (None: the
        last that the budget holds).
        """
        last = self.top if most is None else most
        low = min(_LOW, last)
        excess = ratio(self.bounds(low, state), target).max()
        level = last
        if excess < math.inf:
            ahead = math.ceil(math.log(excess) / math.log(_STEP)) if excess > 0.0 else -low
            level = min(max(low + ahead, above + 1), last)
        if level <= above or (level == self.top and not self._reaches(state, target)):
            return None

        def enough(level: int) -> bool:
            return bool((self.bounds(level, state) <= target).all())

        if enough(level):
            while level > above + 1 and enough(level - 1):
                level -= 1
            return level
        return next((higher for higher in range(level + 1, last + 1) if enough(higher)), None)

    def _reaches(self, state: State, target: np.ndarray) -> bool:
        """Tell whether the budget holds a K beyond which little enough lies, without a table."""
        beyond = mass_beyond(self.groups, self.problem, state)[self._K[self.top]]
        return bool(np.all(beyond <= target))

    def _cut(self, level: int) -> tuple[int, StateTable, np.ndarray]:
        """Return K, the states up to it, and which of them the level drops."""
        K = self._K[level]
        if self._ranked is None or self._ranked[0] != K:
            states = enumerate_states(self.problem, K)
            shares = [
                _shares(state_bounds(states, self.constants, *state), total)
                for state, total in zip(self._references, self.total)
            ]
            self._ranked = K, states, np.max(shares, axis=0)
        _, states, share = self._ranked
        order = np.argsort(share, kind="stable")
        dropped = np.zeros(share.size, bool)
        most = 0.0 if level == self.top else 0.5 * _STEP**-level
        dropped[order[: int(np.searchsorted(np.cumsum(share[order]), most))]] = True
        return K, states, dropped


def _references(problem: Problem) -> tuple[tuple[float, ...], ...]:
    """Return a state with uniform attention and one with association, both learned."""
    associated = problem.tau * math.log(4.0 * problem.D / problem.C)
    found = []
    for gamma in (0.0, max(0.0, problem.beta) + associated):
        state = State(learned_alpha(problem, State(0.0, gamma, 0.0)), gamma, 0.0)
        found.append(tuple(map(float, state)))
    return tuple(found)


def learned_alpha(problem: Problem, state: State) -> float:
    """Return the alpha at which F is about `_LEARNED_OUTPUT` on the signal set alone."""
    output = (_LEARNED_OUTPUT / problem.C) ** (1.0 / problem.p)
    return output * problem.D / (problem.kappa * attention(problem, state).G)


def _shares(bounds: np.ndarray, total: np.ndarray) -> np.ndarray:
    """Return bounds (n, 4) as shares of the total (4,), at the worst quantity."""
    return (bounds / np.where(total > 0.0, total, 1.0)).max(axis=1)


def ratio(bounds: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Return bounds / target, 0 where both vanish, nan where both are infinite."""
    some = target > 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        return np.where(
            some, bounds / np.where(some, target, 1.0), np.where(bounds > 0, math.inf, 0.0)
        )


def mass_beyond(groups: Neglected, problem: Problem, state: tuple[float, ...]) -> np.ndarray:
    """Return, for each K, what all groups after it do to loss and gradient at most, (K, 4)."""
    bounds = group_bounds(groups, Constants.of(problem), *map(float, state))
    return np.vstack([np.cumsum(bounds[::-1], axis=0)[::-1][1:], np.zeros(4)])


@lru_cache(maxsize=64)
def tail(D: int, C: int, q: float, p: int) -> Neglected:
    """Return the images grouped by number of features; a sweep asks for the same ones."""
    return binomial_tail(Problem(D=D, C=C, q=q, p=p))
