"""Predict the cost of a derivation before it starts.

A value is derived for every node of the loss and every coincidence pattern of its free indices,
once for the loss and once for each order parameter. Patterns are counted without being enumerated:
the extensions of a pattern depend only on how many elements are in use.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING

from symbolic.theory.errors import require
from symbolic.theory.expression import Node
from symbolic.theory.orbit_data import InnerSet, OuterSet
from symbolic.theory.sets import IndexSet
from symbolic.theory.tensors import Tensor

if TYPE_CHECKING:
    from symbolic.theory.theory import Theory

#: Limit of the number of derived values: some minutes, and less than a gigabyte.
MOST_VALUES = 200_000
#: An outer element in use: the number of its outer set, and pairs of inner set and elements in use.
_Used = tuple[int, tuple[tuple[int, int], ...]]


class Patterns:
    """Count coincidence patterns of indices.

    Parameters
    ----------
    outer_sets
        Outer sets of the theory, with their data.

    Attributes
    ----------
    number
        Function from a tuple of index sets to the number of patterns of indices over them; cached,
        and only a lower bound above `MOST_VALUES`.
    """

    def __init__(self, outer_sets: tuple[OuterSet, ...]) -> None:
        self._outer_sets = outer_sets
        self.number = cache(self._number)

    def _number(self, sets: tuple[IndexSet, ...]) -> int:
        """Return the number of patterns, or a number above the limit."""
        states: Counter[tuple[_Used, ...]] = Counter({(): 1})
        for index_set in sets:
            grown: Counter[tuple[_Used, ...]] = Counter()
            for state, number in states.items():
                for after, ways in self._extended(state, index_set):
                    grown[after] += number * ways
            states = grown
            if sum(states.values()) > MOST_VALUES:  # further indices only add patterns
                break
        return sum(states.values())

    def _extended(
        self, state: tuple[_Used, ...], index_set: IndexSet
    ) -> Iterator[tuple[tuple[_Used, ...], int]]:
        """Yield the elements in use after one more index, with multiplicities."""
        for i_outer, i_inner, inner_set in self._containing(index_set):
            used = [i for i, (other, _) in enumerate(state) if other == i_outer]
            for i in used:
                rest = state[:i] + state[i + 1 :]
                for in_use, ways in _inside(dict(state[i][1]), i_inner, inner_set):
                    yield tuple(sorted((*rest, (i_outer, in_use)))), ways
            if not used or self._outer_sets[i_outer].size != 1:
                for in_use, ways in _inside({}, i_inner, inner_set):
                    yield tuple(sorted((*state, (i_outer, in_use)))), ways

    def _containing(self, index_set: IndexSet) -> Iterator[tuple[int, int, InnerSet | None]]:
        """Yield the numbers of outer and inner set of each part (-1 and None: an outer set)."""
        for i_outer, outer_set in enumerate(self._outer_sets):
            for part in index_set.parts:
                if outer_set.root is part:
                    yield i_outer, -1, None
                for i_inner, inner_set in enumerate(outer_set.inner):
                    if inner_set.part is part:
                        yield i_outer, i_inner, inner_set


def _inside(
    in_use: dict[int, int], i_inner: int, inner_set: InnerSet | None
) -> Iterator[tuple[tuple[tuple[int, int], ...], int]]:
    """Yield the elements in use in one outer element after one more index, with multiplicities."""
    before = tuple(sorted(in_use.items()))
    if inner_set is None:
        yield before, 1
        return
    number = in_use.get(i_inner, 0)
    if number:
        yield before, number
    yield tuple(sorted((in_use | {i_inner: number + 1}).items())), inner_set.number_of_types


def require_affordable(theory: Theory) -> None:
    """Raise `TheoryError` if the derivation would take too much time or memory.

    Raises
    ------
    TheoryError
        With the line of the expression that needs most values.
    """
    patterns = Patterns(theory.outer_sets)
    nodes = theory.mean.loss.all
    tensors = _tensors(nodes)
    orders = Counter(order.tensor for order in theory.orders)
    total, largest, most = 0, theory.loss, 0
    for x in nodes:
        number = patterns.number(tuple(x.axes.values()))
        derivatives = sum(orders[tensor] for tensor in tensors[x])
        normalised = x.op in ("softmax", "logsumexp")
        extra = [x.arguments[0].axes[x.detail]] if normalised else []
        values = number + derivatives * patterns.number((*x.axes.values(), *extra))
        total += values
        if values > most:
            largest, most = x, values
    require(
        total <= MOST_VALUES,
        f"the derivation needs at least {total:.2g} values (most: {MOST_VALUES}), {most:.2g} of "
        f"them for an expression in this line with {len(largest.axes)} free indices, for "
        f"{len(theory.orders)} order parameters: sum over an index as far inside as it can be, or "
        "state fewer indices, values of data or sets",
        largest.location,
    )


def _tensors(nodes: Iterable[Node]) -> dict[Node, frozenset[Tensor]]:
    """Return the tensors that each node depends on; nodes are in topological order."""
    tensors: dict[Node, frozenset[Tensor]] = {}
    for x in nodes:
        own = {x.detail} if x.op == "entry" and isinstance(x.detail, Tensor) else set()
        tensors[x] = frozenset(own).union(*(tensors[y] for y in x.arguments))
    return tensors
