"""Data up to symmetry: how many larger elements look alike, and how many elements of each kind.

A configuration of the data is, up to the group, a list of *families*: larger elements that look
alike, ``count[f]`` of them, each holding ``n[f, c]`` elements of kind ``c``. A kind is one value
for every source on that set. Sets that are not inside another lie in a family of their own.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from math import prod

import sympy as sp

from symbolic.theory.patterns import tree
from symbolic.theory.sets import Exchangeable
from symbolic.theory.tensors import Colouring, Sequence, Source, Subset

Kind = tuple[sp.Expr, ...]


@dataclass(frozen=True, eq=False)
class Members:
    """An index set as data sees it: its sources, and the kinds of its elements.

    ``random_subset``: a sequence whose tokens these are, each in a random larger element.
    """

    part: Exchangeable
    sources: tuple[Source, ...]
    random_subset: Sequence | None = None
    root: Exchangeable | None = None

    @property
    def array(self) -> str:
        """The name of the array of how many elements there are of each kind."""
        name = "n_" + identifier(self.part)
        among = len(self.random_subset.vocabulary.parts) if self.random_subset else 1
        return f"{name}_{identifier(self.root)}" if among > 1 and self.root else name

    @property
    def known(self) -> sp.Expr | None:
        """The size of a subset where that alone says how many elements there are of each kind."""
        if self.part.inside is None and len(self.sources) == 1:
            (source,) = self.sources
            if isinstance(source, Subset) and source.over is self.part:
                return source.size
        return None

    @property
    def varies(self) -> bool:
        """Whether larger elements can hold different numbers of each kind."""
        return self.number_of_kinds > 1 or self.random_subset is not None

    @property
    def number_of_kinds(self) -> int:
        """How many combinations of values there are."""
        return prod(len(_values(source)) for source in self.sources)

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Every combination of values, one per source."""
        return tuple(product(*(_values(source) for source in self.sources)))

    def number(self, family: sp.Expr, kind: int) -> sp.Expr:
        """Return how many elements of a kind one element of a family holds."""
        if self.number_of_kinds == 1 and not self.random_subset:
            return self.part.size
        if self.known is not None:
            return (self.known, self.part.size - self.known)[kind]
        return sp.IndexedBase(self.array)[family, kind]


@dataclass(frozen=True, eq=False)
class Home:
    """A larger set and what lies inside it; without ``root`` its one element is the whole."""

    name: str
    root: Exchangeable | None
    inner: tuple[Members, ...]
    sources: tuple[Source, ...]

    @property
    def size(self) -> sp.Expr:
        """How many larger elements there are."""
        return sp.Integer(1) if self.root is None else self.root.size

    @property
    def has_data(self) -> bool:
        """Whether its elements can differ in ways that are not known beforehand."""
        unknown = (
            members.random_subset or (members.sources and members.known is None)
            for members in self.inner
        )
        return bool(self.sources) or any(unknown)

    @property
    def families(self) -> sp.Symbol:
        """How many families there are."""
        return sp.Symbol(f"families_{self.name}")

    @property
    def arrays(self) -> tuple[str, ...]:
        """The arrays that describe its families, in order; none where its elements are alike.

        ``count_SET`` (families,), ``SOURCE_SET`` (families,) for each source on it, ``n_INNER``
        (families, kinds) for each set inside that has kinds.
        """
        if not self.has_data:
            return ()
        values = (f"{source.name}_{self.name}" for source in self.sources)
        inner = (x.array for x in self.inner if x.varies)
        return f"count_{self.name}", *values, *inner

    def copies(self, family: sp.Expr) -> sp.Expr:
        """Return how many elements a family has."""
        return sp.IndexedBase(f"count_{self.name}")[family]

    def value(self, source: Source, family: sp.Expr) -> sp.Expr:
        """Return the value of a source on the elements of a family."""
        return sp.IndexedBase(f"{source.name}_{self.name}")[family]


def homes(parts: Iterable[Exchangeable], sources: Iterable[Source]) -> tuple[Home, ...]:
    """Return the larger sets of a theory that uses these index sets and data."""
    parts, sources = list(dict.fromkeys(parts)), tuple(sources)
    scattered = {x.over: x for x in sources if isinstance(x, Sequence)}
    sources = tuple(x for x in sources if not isinstance(x, Sequence))

    def outer(part: Exchangeable) -> tuple[Exchangeable, ...]:
        return scattered[part].vocabulary.parts if part in scattered else (tree(part),)

    def on(part: Exchangeable) -> tuple[Source, ...]:
        return tuple(source for source in sources if part in source.over.parts)

    found = []
    for root in dict.fromkeys(root for part in parts for root in outer(part)):
        inner = [part for part in parts if part is not root and root in outer(part)]
        if inner:
            members = tuple(Members(part, on(part), scattered.get(part), root) for part in inner)
            found.append(Home(identifier(root), root, members, on(root)))
        else:
            found.append(Home(identifier(root), None, (Members(root, on(root)),), ()))
    return tuple(found)


def identifier(part: Exchangeable) -> str:
    """Return the name of a set as it appears in symbols."""
    return part.name.replace(" ", "_")


def _values(source: Source) -> tuple[sp.Expr, ...]:
    if isinstance(source, Colouring):
        return tuple(source.law)
    return sp.Integer(1), sp.Integer(0)
