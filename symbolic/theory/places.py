"""Where indices point: patterns of elements in use, and the ways to add one index more.

An index can point to an element in use, to a new one of a larger element in use, or to one of a new
larger element. How many ways there are is a polynomial in the sizes and in the counts of the data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import sympy as sp

from symbolic.theory.orbit_data import Home, Members
from symbolic.theory.patterns import NONE, Key, canonical
from symbolic.theory.sets import IndexSet

#: Symbols that name families of larger elements in a pattern.
FAMILIES = {sp.Symbol(f"f_{i}", integer=True) for i in range(16)}


def family_symbol(number: int) -> sp.Symbol:
    """Return the symbol of a family."""
    return sp.Symbol(f"f_{number}", integer=True)


@dataclass(frozen=True)
class Element:
    """Where an index points: a larger element of the pattern, and which element inside it."""

    larger: int
    members: Members | None  # None: the larger element itself
    own: int = NONE


@dataclass(frozen=True)
class Pattern:
    """Larger elements in use, each of a family; elements in use inside them; the indices."""

    larger: tuple[tuple[Home, sp.Expr], ...] = ()
    own: tuple[tuple[int, Members, int], ...] = ()  # larger element, set, kind
    at: tuple[tuple[str, Element], ...] = ()

    def element(self, index: str) -> Element:
        """Return where an index points."""
        return dict(self.at)[index]

    def pointing(self, index: str, element: Element) -> Pattern:
        """Return the pattern with one more index, or with an index elsewhere."""
        return replace(
            self,
            at=tuple(sorted({**dict(self.at), index: element}.items(), key=lambda pair: pair[0])),
        )

    def restricted(self, indices: Mapping[str, IndexSet]) -> Pattern:
        """Return what these indices use of it, numbered in the order of their names."""
        larger: dict[int, int] = {}
        own: dict[int, int] = {}
        at = []
        for index, element in self.at:
            if index in indices:
                there = larger.setdefault(element.larger, len(larger))
                place = element.own
                if place != NONE:
                    place = own.setdefault(place, len(own))
                at.append((index, Element(there, element.members, place)))
        kept = tuple((larger[self.own[i][0]], *self.own[i][1:]) for i in own)
        return Pattern(tuple(self.larger[i] for i in larger), kept, tuple(at))

    def canonical(self) -> tuple[Pattern, dict[sp.Symbol, sp.Symbol]]:
        """Return the pattern with families numbered in order, and what they were called."""
        families = dict.fromkeys(family for _, family in self.larger if family.is_Symbol)
        number = {family: family_symbol(i) for i, family in enumerate(families)}
        larger = tuple((home, number.get(family, family)) for home, family in self.larger)
        return replace(self, larger=larger), {new: old for old, new in number.items()}

    def key(self, indices: tuple[str, ...]) -> Key:
        """Return the orbit of an index tuple."""
        spots = []
        for index in indices:
            element = self.element(index)
            home = self.larger[element.larger][0]
            if element.members is None:
                assert home.root is not None
                spots.append((home.root, element.larger, NONE))
            elif home.root is None:
                spots.append((element.members.part, len(self.larger) + element.own, NONE))
            else:
                spots.append((element.members.part, element.larger, element.own))
        return canonical(tuple(spots))


@dataclass(frozen=True)
class New:
    """A new larger element: of any family but that it is none of those in use."""

    home: Home
    family: sp.Symbol
    used: tuple[sp.Expr, ...]

    @property
    def number(self) -> sp.Expr:
        """How many there are in all."""
        return self.home.size - len(self.used)


@dataclass(frozen=True)
class Places:
    """The elements of one larger element that an index can point to.

    Attributes
    ----------
    used, fresh
        Patterns with the index at an element in use; how many others there are of each kind, and
        the pattern with the index at one.
    among
        How many others there are in all; ``None``: as many as the data say.
    new
        The larger element; ``None``: one in use, or the only one.
    """

    used: tuple[Pattern, ...]
    fresh: tuple[tuple[sp.Expr, Pattern], ...]
    among: sp.Expr | None
    new: New | None

    def each(self, body: Callable[[Pattern], sp.Expr]) -> list[tuple[sp.Expr, sp.Expr]]:
        """Return how often each value of a body occurs."""
        found = [(sp.Integer(1), body(pattern)) for pattern in self.used]
        others = [(number, body(pattern)) for number, pattern in self.fresh]
        if self.among is not None and len({value for _, value in others}) == 1:
            others = [(self.among, others[0][1])]
        return found + others


def places(homes: tuple[Home, ...], at: Pattern, index: str, where: IndexSet) -> Iterator[Places]:
    """Yield all elements that one more index can point to, larger element by larger element."""
    for home, members in (one for part in where.parts for one in _homes(homes, part)):
        used = [i for i, (there, _) in enumerate(at.larger) if there is home]
        for i in used:
            yield _inside(at, i, members, index, None)
        if home.size == 1:
            if not used:
                grown = replace(at, larger=(*at.larger, (home, sp.Integer(0))))
                yield _inside(grown, len(at.larger), members, index, None)
            continue
        family = family_symbol(len({family for _, family in at.larger if family.is_Symbol}))
        grown = replace(at, larger=(*at.larger, (home, family)))
        new = New(home, family, tuple(at.larger[i][1] for i in used))
        yield _inside(grown, len(at.larger), members, index, new)


def _homes(homes: tuple[Home, ...], part: IndexSet) -> Iterator[tuple[Home, Members | None]]:
    """Yield the larger sets that a set is in, with its members (``None``: the larger set)."""
    for home in homes:
        if home.root is part:
            yield home, None
        yield from ((home, members) for members in home.inner if members.part is part)


def _inside(
    at: Pattern, larger: int, members: Members | None, index: str, new: New | None
) -> Places:
    """Return the places in one larger element of a pattern."""
    if members is None:
        return Places((at.pointing(index, Element(larger, None)),), (), None, new)
    used = [i for i, (there, whose, _) in enumerate(at.own) if there == larger and whose is members]
    family = at.larger[larger][1]
    fresh = []
    for kind in range(len(members.kinds)):
        grown = replace(at, own=(*at.own, (larger, members, kind)))
        left = members.number(family, kind) - sum(at.own[i][2] == kind for i in used)
        fresh.append((left, grown.pointing(index, Element(larger, members, len(at.own)))))
    among = None if members.random_subset else members.part.size - len(used)
    known = tuple(at.pointing(index, Element(larger, members, i)) for i in used)
    return Places(known, tuple(fresh), among, new)
