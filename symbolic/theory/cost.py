"""How much work a derivation is, predicted before it begins.

A value is derived for every node of the loss and every coincidence pattern of its free indices,
once for the loss and once for each order parameter. Patterns are counted here without being made:
what an index more can point to depends on how many elements are in use, not on which.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING

from symbolic.theory.errors import require
from symbolic.theory.expression import Node
from symbolic.theory.orbit_data import Home, Members
from symbolic.theory.sets import IndexSet
from symbolic.theory.tensors import Tensor

if TYPE_CHECKING:
    from symbolic.theory.theory import Theory

#: Values that a derivation may need, at most: some minutes, and less than a gigabyte.
MOST_VALUES = 200_000
#: A larger element in use: the number of its home, and elements of it in use by their members.
_Used = tuple[int, tuple[tuple[int, int], ...]]


class Patterns:
    """Numbers of coincidence patterns of indices, for the larger sets and data of a theory."""

    def __init__(self, homes: tuple[Home, ...]) -> None:
        self._homes = homes
        self.number = cache(self._number)

    def _number(self, sets: tuple[IndexSet, ...]) -> int:
        """Return how many patterns indices over these sets have, or a number above the limit."""
        states: Counter[tuple[_Used, ...]] = Counter({(): 1})
        for where in sets:
            grown: Counter[tuple[_Used, ...]] = Counter()
            for state, number in states.items():
                for after, ways in self._extended(state, where):
                    grown[after] += number * ways
            states = grown
            if sum(states.values()) > MOST_VALUES:  # an index more adds patterns
                break
        return sum(states.values())

    def _extended(
        self, state: tuple[_Used, ...], where: IndexSet
    ) -> Iterator[tuple[tuple[_Used, ...], int]]:
        """Yield what is in use after one more index, and in how many ways."""
        for h, m, members in self._places(where):
            used = [i for i, (home, _) in enumerate(state) if home == h]
            for i in used:
                rest = state[:i] + state[i + 1 :]
                for own, ways in _inside(dict(state[i][1]), m, members):
                    yield tuple(sorted((*rest, (h, own)))), ways
            if not used or self._homes[h].size != 1:
                for own, ways in _inside({}, m, members):
                    yield tuple(sorted((*state, (h, own)))), ways

    def _places(self, where: IndexSet) -> Iterator[tuple[int, int, Members | None]]:
        for h, home in enumerate(self._homes):
            for part in where.parts:
                if home.root is part:
                    yield h, -1, None
                for m, members in enumerate(home.inner):
                    if members.part is part:
                        yield h, m, members


def _inside(
    own: dict[int, int], m: int, members: Members | None
) -> Iterator[tuple[tuple[tuple[int, int], ...], int]]:
    """Yield the elements of one larger element in use after one more index, with the ways."""
    before = tuple(sorted(own.items()))
    if members is None:
        yield before, 1
        return
    if own.get(m):
        yield before, own[m]
    yield tuple(sorted((own | {m: own.get(m, 0) + 1}).items())), members.number_of_kinds


def require_affordable(theory: Theory) -> None:
    """Refuse a theory whose derivation would take too long or too much memory.

    Raises
    ------
    TheoryError
        With the node of the loss that needs most values.
    """
    patterns = Patterns(theory.homes)
    nodes = theory.mean.loss.all
    tensors = _tensors(nodes)
    orders = Counter(order.tensor for order in theory.orders)
    total, largest, most = 0, theory.loss, 0
    for x in nodes:
        number = patterns.number(tuple(x.axes.values()))
        sloped = sum(orders[tensor] for tensor in tensors[x])
        again = [x.axes[x.detail]] if x.op == "softmax" else []
        own = number + sloped * patterns.number((*x.axes.values(), *again))
        total += own
        if own > most:
            largest, most = x, own
    require(
        total <= MOST_VALUES,
        f"the derivation needs at least {total:.2g} values (most: {MOST_VALUES}), {most:.2g} of "
        f"them for an expression in this line with {len(largest.axes)} free indices, for "
        f"{len(theory.orders)} order parameters: sum over an index as far inside as it can be, or "
        "state fewer indices, values of data or sets",
        largest.where,
    )


def _tensors(nodes: Iterable[Node]) -> dict[Node, frozenset[Tensor]]:
    """Return the tensors that each node depends on; arguments come first."""
    found: dict[Node, frozenset[Tensor]] = {}
    for x in nodes:
        own = {x.detail} if x.op == "entry" and isinstance(x.detail, Tensor) else set()
        found[x] = frozenset(own).union(*(found[y] for y in x.arguments))
    return found
