r"""Refinement levels of the tables of the enumeration.

The images of level r neglect at most the fraction :math:`4^{-r}` of the upper bounds of loss and
gradient at two trained reference states, one with uniform attention and one with patch association.
The last affordable level drops no image with at most K features. The images of a level depend on
the problem alone, and the level for a state on the state alone: results do not depend on earlier
evaluations. At D = 64 the table for a state is as small as one optimized for that state.
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
    no_groups,
    state_bounds,
)
from dynamics.positional.problem import Problem, State

_LEARNED_OUTPUT = 10.0  # output F on the signal set at a trained state
#: Largest number of features for which multisets are counted; there are too many beyond it.
LARGEST_K = 120
_BYTES_PER_STATE = 300  # table and the buffers while it is built, measured at C = 2 .. 8
_STEP = 4.0  # ratio of the neglected fractions of two successive levels
_LAST = 100  # the highest level
_LOW = 4  # level at which the first guess of the level for a state is computed


class Levels:
    """The tables of all refinement levels of one problem.

    Parameters
    ----------
    problem
        Constants of data and model.
    memory_budget
        Largest memory of the stored tables in bytes.
    """

    def __init__(self, problem: Problem, memory_budget: float) -> None:
        self.problem = problem
        self.constants = Constants.of(problem)
        self.groups = tail(problem.D, problem.C, problem.q, problem.p)
        counts = count_states(problem, min(self.groups.mass.size - 2, LARGEST_K))
        self.affordable = int(np.searchsorted(counts, memory_budget / _BYTES_PER_STATE)) - 1
        self._budget = memory_budget
        self._references = _references(problem)
        totals = [bounds_at(self.groups, self.constants, *state) for state in self._references]
        #: Upper bounds of loss and gradient at the reference states, (2, 4).
        self.total = np.array(totals)
        worst = np.max(
            [
                _shares(mass_beyond(self.groups, problem, state), total)
                for state, total in zip(self._references, totals)
            ],
            axis=0,
        )
        self._K = [int(np.argmax(worst <= share)) for share in 0.5 * _STEP ** -np.arange(_LAST + 1)]
        count = int(np.searchsorted(self._K, self.affordable, side="right"))
        #: Whether all levels are within the memory budget.
        self.is_complete = count > _LAST
        if not self.is_complete and self.affordable >= 0:
            self._K[count:] = [self.affordable]
        #: The last affordable level, which drops no image; -1 if there is none.
        self.top = len(self._K) - 1 if self.affordable >= 0 else -1
        self._ranked: tuple[int, StateTable, np.ndarray] | None = None
        self._neglected: dict[int, Neglected] = {}
        self._states: OrderedDict[int, StateTable] = OrderedDict()

    def K(self, level: int) -> int:
        """Return the largest number of features outside the signal set in a table."""
        return self._K[level]

    def neglected(self, level: int) -> Neglected:
        """Return the images that the table of a level leaves out, in groups; none below level 0."""
        if level < 0:
            return no_groups()
        if level not in self._neglected:
            _, states, dropped = self._cut(level)
            left_out = groups_by_sum(self.problem, states, dropped, self.weight_error(level))
            self._neglected[level] = self.groups.beyond(self._K[level]).joined(left_out)
        return self._neglected[level]

    def states(self, level: int) -> StateTable:
        """Return the states in the table of a level, from a cache within the memory budget."""
        if level not in self._states:
            _, states, dropped = self._cut(level)
            self._states[level] = select_states(states, ~dropped)
            stored = sum(table.nbytes for table in self._states.values())
            while stored > self._budget and len(self._states) > 1:
                stored -= self._states.popitem(last=False)[1].nbytes
        self._states.move_to_end(level)
        return self._states[level]

    def weight_error(self, level: int) -> float:
        """Return the relative error of the weights in the table of a level."""
        return weight_error(self.problem, self._K[level])

    def bounds(self, level: int, state: State) -> np.ndarray:
        """Return bounds (4,) of the parts of loss and gradient that a level neglects at a state."""
        return bounds_at(self.neglected(level), self.constants, *map(float, state))

    def lowest(
        self, state: State, target: np.ndarray, above: int = -1, last: int | None = None
    ) -> int | None:
        """Return the lowest level that is accurate enough at a state.

        The search starts at a guess from the bounds of a low level. The bounds decrease from level
        to level, so that the result does not depend on the guess.

        Parameters
        ----------
        state
            Order parameters.
        target
            Allowed errors of the loss and of the three gradient entries, (4,).
        above
            Only levels above this one are considered.
        last
            The last level that is considered; ``None`` for the last affordable one.

        Returns
        -------
        int or None
            ``None`` if there is no such level.
        """
        last = self.top if last is None else last
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
        """Return whether the last affordable K is accurate enough, without making a table."""
        beyond = mass_beyond(self.groups, self.problem, state)[self._K[self.top]]
        return bool(np.all(beyond <= target))

    def _cut(self, level: int) -> tuple[int, StateTable, np.ndarray]:
        """Return K, the states with at most K features, and which of them the level drops."""
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
    """Return trained states with uniform attention and with patch association."""
    associated = problem.tau * math.log(4.0 * problem.D / problem.C)
    states = []
    for gamma in (0.0, max(0.0, problem.beta) + associated):
        state = State(learned_alpha(problem, State(0.0, gamma, 0.0)), gamma, 0.0)
        states.append(tuple(map(float, state)))
    return tuple(states)


def learned_alpha(problem: Problem, state: State) -> float:
    """Return alpha at a trained state: F is about 10 on an image with only the signal set."""
    output = (_LEARNED_OUTPUT / problem.C) ** (1.0 / problem.p)
    return output * problem.D / (problem.kappa * attention(problem, state).G)


def _shares(bounds: np.ndarray, total: np.ndarray) -> np.ndarray:
    """Return the largest of the ratios of bounds (n, 4) to the total (4,), shape (n,)."""
    return (bounds / np.where(total > 0.0, total, 1.0)).max(axis=1)


def ratio(bounds: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Return bounds / target, 0 where both vanish, nan where both are infinite."""
    positive = target > 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        return np.where(
            positive,
            bounds / np.where(positive, target, 1.0),
            np.where(bounds > 0, math.inf, 0.0),
        )


def mass_beyond(groups: Neglected, problem: Problem, state: tuple[float, ...]) -> np.ndarray:
    """Return, for each K, bounds of the contribution of all groups after it, shape (K, 4).

    The columns are the loss and the entries of the gradient.
    """
    bounds = group_bounds(groups, Constants.of(problem), *map(float, state))
    return np.vstack([np.cumsum(bounds[::-1], axis=0)[::-1][1:], np.zeros(4)])


@lru_cache(maxsize=64)
def tail(D: int, C: int, q: float, p: int) -> Neglected:
    """Return the images grouped by number of features, from a cache for sweeps."""
    return binomial_tail(Problem(D=D, C=C, q=q, p=p))
