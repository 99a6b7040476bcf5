"""Coincidence patterns of indices, and the extensions of a pattern by one more index.

The next index can point to an element in use, to a new element of an outer element in use, or to an
element of a new outer element. The number of choices is a polynomial in the sizes and in the counts
of the data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import sympy as sp

from symbolic.theory.orbit_data import InnerSet, OuterSet
from symbolic.theory.orbits import NONE, Key, canonical
from symbolic.theory.sets import IndexSet

#: Symbols of the families of outer elements in a pattern.
FAMILIES = {sp.Symbol(f"f_{i}", integer=True) for i in range(16)}


def family_symbol(number: int) -> sp.Symbol:
    """Return the symbol of a family."""
    return sp.Symbol(f"f_{number}", integer=True)


@dataclass(frozen=True)
class Element:
    """The element that an index points to.

    Attributes
    ----------
    outer
        Number of the outer element in the pattern.
    inner_set
        Set of the element; ``None`` for the outer element itself.
    inner
        Number of the element in the pattern.
    """

    outer: int
    inner_set: InnerSet | None
    inner: int = NONE


@dataclass(frozen=True)
class Pattern:
    """Which elements the free indices of an expression point to, up to symmetry.

    Attributes
    ----------
    outer
        Outer elements in use: the outer set and the family of each.
    inner
        Elements in use: number of the outer element, set, and type of each.
    indices
        Indices in alphabetical order, each with its element.
    """

    outer: tuple[tuple[OuterSet, sp.Expr], ...] = ()
    inner: tuple[tuple[int, InnerSet, int], ...] = ()
    indices: tuple[tuple[str, Element], ...] = ()

    def element(self, index: str) -> Element:
        """Return the element of an index."""
        return dict(self.indices)[index]

    def pointing(self, index: str, element: Element) -> Pattern:
        """Return the pattern in which an index, new or not, points to an element."""
        indices = {**dict(self.indices), index: element}
        return replace(self, indices=tuple(sorted(indices.items(), key=lambda pair: pair[0])))

    def restricted(self, indices: Mapping[str, IndexSet]) -> Pattern:
        """Return the pattern of some of the indices, numbered in the order of their names."""
        outer: dict[int, int] = {}
        inner: dict[int, int] = {}
        pairs = []
        for index, element in self.indices:
            if index in indices:
                outer_number = outer.setdefault(element.outer, len(outer))
                number = element.inner
                if number != NONE:
                    number = inner.setdefault(number, len(inner))
                pairs.append((index, Element(outer_number, element.inner_set, number)))
        remaining = tuple((outer[self.inner[i][0]], *self.inner[i][1:]) for i in inner)
        return Pattern(tuple(self.outer[i] for i in outer), remaining, tuple(pairs))

    def canonical(self) -> tuple[Pattern, dict[sp.Symbol, sp.Symbol]]:
        """Return the pattern with families numbered in order, and a mapping to the old symbols."""
        families = dict.fromkeys(family for _, family in self.outer if family.is_Symbol)
        number = {family: family_symbol(i) for i, family in enumerate(families)}
        outer = tuple((outer_set, number.get(family, family)) for outer_set, family in self.outer)
        return replace(self, outer=outer), {new: old for old, new in number.items()}

    def key(self, indices: tuple[str, ...]) -> Key:
        """Return the orbit of an index tuple."""
        positions = []
        for index in indices:
            element = self.element(index)
            outer_set = self.outer[element.outer][0]
            if element.inner_set is None:
                assert outer_set.root is not None
                positions.append((outer_set.root, element.outer, NONE))
            elif outer_set.root is None:
                positions.append((element.inner_set.part, len(self.outer) + element.inner, NONE))
            else:
                positions.append((element.inner_set.part, element.outer, element.inner))
        return canonical(tuple(positions))


@dataclass(frozen=True)
class New:
    """A new outer element.

    Attributes
    ----------
    outer_set
        The set that it belongs to.
    family
        Symbol of its family.
    used
        Families of the outer elements in use, which it differs from.
    """

    outer_set: OuterSet
    family: sp.Symbol
    used: tuple[sp.Expr, ...]

    @property
    def number(self) -> sp.Expr:
        """Number of choices."""
        return self.outer_set.size - len(self.used)


@dataclass(frozen=True)
class Extensions:
    """Patterns with one more index that points into a given outer element.

    Attributes
    ----------
    used
        Patterns with the index at an element in use.
    fresh
        For each type of element, the number of elements not in use and the pattern with the index
        at one of them.
    unused
        Number of elements not in use; ``None`` if it depends on the data.
    new
        The outer element if it is new; ``None`` if it is in use, or the only one.
    """

    used: tuple[Pattern, ...]
    fresh: tuple[tuple[sp.Expr, Pattern], ...]
    unused: sp.Expr | None
    new: New | None

    def each(self, body: Callable[[Pattern], sp.Expr]) -> list[tuple[sp.Expr, sp.Expr]]:
        """Return pairs of multiplicity and value of a function of patterns."""
        values = [(sp.Integer(1), body(pattern)) for pattern in self.used]
        others = [(number, body(pattern)) for number, pattern in self.fresh]
        if self.unused is not None and len({value for _, value in others}) == 1:
            others = [(self.unused, others[0][1])]
        return values + others


def extensions(
    outer_sets: tuple[OuterSet, ...], pattern: Pattern, index: str, index_set: IndexSet
) -> Iterator[Extensions]:
    """Yield the extensions of a pattern by an index, one outer element at a time.

    Parameters
    ----------
    outer_sets
        Outer sets of the theory.
    pattern
        Pattern of the other indices.
    index
        The new index.
    index_set
        Set that it runs over.
    """
    for outer_set, inner_set in (
        pair for part in index_set.parts for pair in _containing(outer_sets, part)
    ):
        used = [i for i, (other, _) in enumerate(pattern.outer) if other is outer_set]
        for i in used:
            yield _extended(pattern, i, inner_set, index, None)
        if outer_set.size == 1:
            if not used:
                larger = replace(pattern, outer=(*pattern.outer, (outer_set, sp.Integer(0))))
                yield _extended(larger, len(pattern.outer), inner_set, index, None)
            continue
        family = family_symbol(len({family for _, family in pattern.outer if family.is_Symbol}))
        larger = replace(pattern, outer=(*pattern.outer, (outer_set, family)))
        new = New(outer_set, family, tuple(pattern.outer[i][1] for i in used))
        yield _extended(larger, len(pattern.outer), inner_set, index, new)


def _containing(
    outer_sets: tuple[OuterSet, ...], part: IndexSet
) -> Iterator[tuple[OuterSet, InnerSet | None]]:
    """Yield each outer set that contains a set, and the inner set (``None``: the outer set)."""
    for outer_set in outer_sets:
        if outer_set.root is part:
            yield outer_set, None
        yield from (
            (outer_set, inner_set) for inner_set in outer_set.inner if inner_set.part is part
        )


def _extended(
    pattern: Pattern, outer: int, inner_set: InnerSet | None, index: str, new: New | None
) -> Extensions:
    """Return the extensions by an index that points into one outer element of the pattern."""
    if inner_set is None:
        return Extensions((pattern.pointing(index, Element(outer, None)),), (), None, new)
    used = [
        i
        for i, (other, other_set, _) in enumerate(pattern.inner)
        if other == outer and other_set is inner_set
    ]
    family = pattern.outer[outer][1]
    fresh = []
    for element_type in range(len(inner_set.types)):
        larger = replace(pattern, inner=(*pattern.inner, (outer, inner_set, element_type)))
        in_use = sum(pattern.inner[i][2] == element_type for i in used)
        number = inner_set.number(family, element_type) - in_use
        element = Element(outer, inner_set, len(pattern.inner))
        fresh.append((number, larger.pointing(index, element)))
    unused = None if inner_set.sequence else inner_set.part.size - len(used)
    at_used = tuple(pattern.pointing(index, Element(outer, inner_set, i)) for i in used)
    return Extensions(at_used, tuple(fresh), unused, new)
