"""The lifted reading: one value for each coincidence pattern of an expression's free indices.

On the invariant manifold an entry depends on the pattern of its indices only, so an expression
does, once the data are given up to symmetry (`symbolic.theory.orbit_data`). A sum over an axis is
a sum over the ways in which one index can be added to a pattern: an element in use, a new one of
the same larger element, or one of a new larger element. How many ways there are is a polynomial in
the sizes and in the counts of the data, so that a value holds for all sizes at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import sympy as sp
from sympy.core.function import AppliedUndef

from symbolic.theory.expression import FUNCTIONS, Node
from symbolic.theory.orbit_data import Home, Members
from symbolic.theory.patterns import NONE, Key, canonical
from symbolic.theory.sets import IndexSet
from symbolic.theory.tensors import Sequence, Tensor

#: Functions without evaluation rules of their own: what is nested stays cheap to build.
OPAQUE: Mapping[str, Callable[[sp.Expr], sp.Expr]] = {name: sp.Function(name) for name in FUNCTIONS}
#: Operations up to which a value is written where it is used, and up to which a sum or product is.
SHORT, LONG = 3, 30
_COSTLY = {*FUNCTIONS, "power", "softmax", "softmax_tangent"}
_FAMILIES = {sp.Symbol(f"f_{i}", integer=True) for i in range(16)}


def _family(number: int) -> sp.Symbol:
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
        number = {family: _family(i) for i, family in enumerate(families)}
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
class Step:
    """A named value, a function of families; ``depth`` sums lie within each other in it."""

    families: tuple[sp.Symbol, ...]
    value: sp.Expr
    depth: int


class Lift:
    """Values of expressions at patterns, as SymPy expressions in sizes, data and order parameters.

    Values are named, the same value once (``steps``), so that what is nested does not grow.

    Parameters
    ----------
    homes
        The larger sets.
    entries
        The value of every orbit of every tensor: a symbol, a fixed value or 0.
    """

    def __init__(
        self, homes: tuple[Home, ...], entries: Mapping[tuple[Tensor, Key], sp.Expr]
    ) -> None:
        self.homes, self.entries = homes, entries
        self._known: dict[tuple[Node, Pattern], sp.Expr] = {}
        self._norms: dict[tuple[Node, Pattern], sp.Expr] = {}
        self._names: dict[sp.Expr, sp.FunctionClass] = {}
        self.steps: dict[sp.FunctionClass, Step] = {}

    def value(self, x: Node, pattern: Pattern = Pattern()) -> sp.Expr:
        """Return the value of an expression where its free indices lie as in a pattern."""
        pattern, families = pattern.restricted(x.axes).canonical()
        if (x, pattern) not in self._known:
            short = LONG if x.op in ("add", "multiply") else 0 if x.op in _COSTLY else SHORT
            self._known[x, pattern] = self._named(self._value(x, pattern), short)
        return self._known[x, pattern].xreplace(families)

    def _named(self, value: sp.Expr, short: int = SHORT) -> sp.Expr:
        """Return a name for a value, a function of the families that it depends on."""
        if value.is_Atom or value.count_ops() <= short:
            return value
        families = tuple(sorted(value.free_symbols & _FAMILIES, key=lambda f: f.name))
        if value not in self._names:
            name = self._names[value] = sp.Function(f"_v{len(self.steps)}")
            self.steps[name] = Step(families, value, self._depth(value))
        return self._names[value](*families)

    def _depth(self, value: sp.Expr) -> int:
        """Return how many sums over families lie within each other in a value."""
        totals = value.atoms(sp.Sum)
        own = max((1 + self._depth(total.function) for total in totals), default=0)
        within = (self.steps[x.func].depth for x in value.atoms(AppliedUndef)
                  if x.func in self.steps)  # fmt: skip
        return max(own, *within, 0)

    def over(self, family: sp.Symbol, home: Home, value: sp.Expr) -> sp.Expr:
        """Return the sum of a value over all larger elements, family by family.

        The family is named by the number of sums below, so that no name is ever caught.
        """
        bound = sp.Symbol(f"b_{self._depth(value)}", integer=True)
        summand = (home.copies(family) * value).xreplace({family: bound})
        return sp.Sum(summand, (bound, 0, home.families - 1))

    def _value(self, x: Node, at: Pattern) -> sp.Expr:
        if x.op == "constant":
            return x.detail
        if x.op == "entry":
            return self._entry(x, at)
        if x.op == "orbit":
            return sp.Integer(at.key(x.indices) == x.detail)
        if x.op == "same":
            return sp.Integer(at.element(x.indices[0]) == at.element(x.indices[1]))
        if x.op == "part":
            return x.detail.values[self._part(at, x.indices[0])]
        if x.op == "inside":
            inner, outer = map(at.element, x.indices)
            return sp.Integer(inner.larger == outer.larger and inner.own != NONE)
        if x.op == "sum":
            (body,) = x.arguments
            return self.total(at, x.detail, body.axes[x.detail], lambda p: self.value(body, p))
        if x.op == "softmax":
            return self._raised(x, at) / self._norm(x, at)
        if x.op == "softmax_tangent":
            return self._softmax_tangent(x, at)
        values = [self.value(argument, at) for argument in x.arguments]
        if x.op == "add":
            return sp.Add(*values)
        if x.op == "multiply":
            return sp.Mul(*values)
        if x.op == "power":
            return values[0] ** x.detail
        return OPAQUE[x.op](values[0])

    def _entry(self, x: Node, at: Pattern) -> sp.Expr:
        if isinstance(x.detail, Tensor):
            return self.entries.get((x.detail, at.key(x.indices)), sp.Integer(0))
        element = at.element(x.indices[0])
        if isinstance(x.detail, Sequence):
            return sp.Integer(element.larger == at.element(x.indices[1]).larger)
        home, family = at.larger[element.larger]
        if element.members is None:
            return home.value(x.detail, family)
        kind = element.members.kinds[at.own[element.own][2]]
        return kind[element.members.sources.index(x.detail)]

    def _part(self, at: Pattern, index: str) -> IndexSet:
        """Return the set that an index points into."""
        element = at.element(index)
        part = at.larger[element.larger][0].root if element.members is None else (
            element.members.part)  # fmt: skip
        assert part is not None
        return part

    def _raised(self, x: Node, at: Pattern) -> sp.Expr:
        """Return e to the score of a softmax, for the element that its index points to."""
        at, families = at.restricted(x.axes).canonical()
        value = self.value(x.arguments[0], at)
        return self._named(OPAQUE["exp"](value), 0).xreplace(families)

    def _norm(self, x: Node, at: Pattern) -> sp.Expr:
        """Return what the weights of a softmax are divided by."""
        (score,), over = x.arguments, x.detail
        others = {name: where for name, where in x.axes.items() if name != over}
        rest, families = at.restricted(others).canonical()
        if (x, rest) not in self._norms:
            total = self.total(rest, over, score.axes[over], lambda p: self._raised(x, p))
            self._norms[x, rest] = self._named(total)
        return self._norms[x, rest].xreplace(families)

    def _softmax_tangent(self, x: Node, at: Pattern) -> sp.Expr:
        """Return p_j sum_k p_k (x_j' - x_k')."""
        (weights, slope), over = x.arguments, x.detail
        here, other = self.value(slope, at), f"other {over}"

        def term(p: Pattern) -> sp.Expr:
            moved = p.pointing(over, p.element(other))
            difference = here - self.value(slope, moved)
            return difference * self.value(weights, moved) if difference != 0 else sp.Integer(0)

        total = self.total(at, other, x.axes[over], term)
        return self.value(weights, at) * total

    def total(
        self, at: Pattern, index: str, where: IndexSet, body: Callable[[Pattern], sp.Expr]
    ) -> sp.Expr:
        """Return the sum of a body over all elements that an index can point to."""
        terms: list[sp.Expr] = []
        for home, members in (place for part in where.parts for place in self._homes(part)):
            used = [i for i, (there, _) in enumerate(at.larger) if there is home]
            terms += [self._inside(at, i, members, index, body) for i in used]

            def new(
                family: sp.Expr, home: Home = home, members: Members | None = members
            ) -> sp.Expr:
                grown = replace(at, larger=(*at.larger, (home, family)))
                return self._inside(grown, len(at.larger), members, index, body)

            if home.size == 1:
                terms += [new(sp.Integer(0))] if not used else []
                continue
            family = _family(len({family for _, family in at.larger if family.is_Symbol}))
            one = new(family)
            if one.has(family):
                terms.append(self.over(family, home, one))
                terms += [-new(at.larger[i][1]) for i in used]
            else:
                terms.append((home.size - len(used)) * one)
        return sp.Add(*terms)

    def _inside(
        self,
        at: Pattern,
        larger: int,
        members: Members | None,
        index: str,
        body: Callable[[Pattern], sp.Expr],
    ) -> sp.Expr:
        """Return the sum over one larger element: over those in use, and over each kind of rest."""
        if members is None:
            return body(at.pointing(index, Element(larger, None)))
        used = [
            i for i, (there, whose, _) in enumerate(at.own) if there == larger and whose is members
        ]
        terms = [body(at.pointing(index, Element(larger, members, i))) for i in used]
        kinds = range(len(members.kinds))
        fresh = []
        for kind in kinds:
            grown = replace(at, own=(*at.own, (larger, members, kind)))
            fresh.append(body(grown.pointing(index, Element(larger, members, len(at.own)))))
        if all(value == fresh[0] for value in fresh) and not members.strewn:
            return sp.Add(*terms, (members.part.size - len(used)) * fresh[0])
        family = at.larger[larger][1]
        for kind, value in zip(kinds, fresh):
            left = members.number(family, kind) - sum(at.own[i][2] == kind for i in used)
            terms.append(left * value)
        return sp.Add(*terms)

    def _homes(self, part: IndexSet) -> Iterator[tuple[Home, Members | None]]:
        """Yield the larger sets that a set is in, with its members (``None``: the larger set)."""
        for home in self.homes:
            if home.root is part:
                yield home, None
            yield from ((home, members) for members in home.inner if members.part is part)
