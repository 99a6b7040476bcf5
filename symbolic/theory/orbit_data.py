"""Configurations of the data up to symmetry: counts of outer elements and of inner elements.

Up to permutations, a configuration is a list of *families* of equal outer elements: ``count[f]``
outer elements, each with ``n[f, c]`` inner elements of type ``c``. A type is a tuple of one value
per source on that set. A set that is not inside another forms one family by itself.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from math import prod

import sympy as sp

from symbolic.theory.orbits import outermost
from symbolic.theory.sets import Exchangeable
from symbolic.theory.sources import Colouring, Sequence, Source, Subset

ElementType = tuple[sp.Expr, ...]


@dataclass(frozen=True, eq=False)
class InnerSet:
    """A set inside an outer set, with the data on it.

    Attributes
    ----------
    part
        The index set.
    sources
        Data indexed by it.
    sequence
        The `Sequence` whose tokens these are, each in a random element of the vocabulary; or
        ``None``.
    root
        The outer set; ``None`` where it does not matter.
    """

    part: Exchangeable
    sources: tuple[Source, ...]
    sequence: Sequence | None = None
    root: Exchangeable | None = None

    @property
    def array(self) -> str:
        """Name of the array of the numbers of elements of each type."""
        name = "n_" + identifier(self.part)
        parts = len(self.sequence.vocabulary.parts) if self.sequence else 1
        return f"{name}_{identifier(self.root)}" if parts > 1 and self.root else name

    @property
    def known(self) -> sp.Expr | None:
        """Size of the subset that is the only source and determines the counts; else ``None``."""
        if self.part.inside is None and len(self.sources) == 1:
            (source,) = self.sources
            if isinstance(source, Subset) and source.over is self.part:
                return source.size
        return None

    @property
    def varies(self) -> bool:
        """Whether the numbers of each type can differ between outer elements."""
        return self.number_of_types > 1 or self.sequence is not None

    @property
    def number_of_types(self) -> int:
        """Number of combinations of values."""
        return prod(len(_values(source)) for source in self.sources)

    @property
    def types(self) -> tuple[ElementType, ...]:
        """Every combination of values, one per source."""
        return tuple(product(*(_values(source) for source in self.sources)))

    def number(self, family: sp.Expr, element_type: int) -> sp.Expr:
        """Return the number of elements of a type in one outer element of a family."""
        if self.number_of_types == 1 and not self.sequence:
            return self.part.size
        if self.known is not None:
            return (self.known, self.part.size - self.known)[element_type]
        return sp.IndexedBase(self.array)[family, element_type]


@dataclass(frozen=True, eq=False)
class OuterSet:
    """An outer set and the sets inside it.

    Attributes
    ----------
    name
        Name in symbols.
    root
        The outer set; ``None`` for a set that is not inside another, which is then the only set in
        ``inner`` of a formal outer set with one element.
    inner
        The sets inside it.
    sources
        Data indexed by the outer set itself.
    """

    name: str
    root: Exchangeable | None
    inner: tuple[InnerSet, ...]
    sources: tuple[Source, ...]

    @property
    def size(self) -> sp.Expr:
        """Number of outer elements."""
        return sp.Integer(1) if self.root is None else self.root.size

    @property
    def has_data(self) -> bool:
        """Whether its elements can differ in a way that the sizes do not determine."""
        undetermined = (
            inner_set.sequence or (inner_set.sources and inner_set.known is None)
            for inner_set in self.inner
        )
        return bool(self.sources) or any(undetermined)

    @property
    def families(self) -> sp.Symbol:
        """Symbol of the number of families."""
        return sp.Symbol(f"families_{self.name}")

    @property
    def arrays(self) -> tuple[str, ...]:
        """Names of the arrays that describe its families; empty if all elements are equal.

        ``count_SET`` (families,), ``SOURCE_SET`` (families,) for each source on it, and ``n_INNER``
        (families, types) for each set inside whose counts vary.
        """
        if not self.has_data:
            return ()
        values = (f"{source.name}_{self.name}" for source in self.sources)
        inner = (x.array for x in self.inner if x.varies)
        return f"count_{self.name}", *values, *inner

    def copies(self, family: sp.Expr) -> sp.Expr:
        """Return the number of elements of a family."""
        return sp.IndexedBase(f"count_{self.name}")[family]

    def value(self, source: Source, family: sp.Expr) -> sp.Expr:
        """Return the value of a source on the elements of a family."""
        return sp.IndexedBase(f"{source.name}_{self.name}")[family]


def outer_sets(parts: Iterable[Exchangeable], sources: Iterable[Source]) -> tuple[OuterSet, ...]:
    """Return the outer sets of a theory.

    Parameters
    ----------
    parts
        Exchangeable sets of the theory.
    sources
        Its data without Gaussian sources. Tokens of a sequence count as inside its vocabulary.
    """
    parts, sources = list(dict.fromkeys(parts)), tuple(sources)
    sequences = {x.over: x for x in sources if isinstance(x, Sequence)}
    sources = tuple(x for x in sources if not isinstance(x, Sequence))

    def outer(part: Exchangeable) -> tuple[Exchangeable, ...]:
        return sequences[part].vocabulary.parts if part in sequences else (outermost(part),)

    def on(part: Exchangeable) -> tuple[Source, ...]:
        return tuple(source for source in sources if part in source.over.parts)

    result = []
    for root in dict.fromkeys(root for part in parts for root in outer(part)):
        inner = [part for part in parts if part is not root and root in outer(part)]
        if inner:
            inner_sets = tuple(
                InnerSet(part, on(part), sequences.get(part), root) for part in inner
            )
            result.append(OuterSet(identifier(root), root, inner_sets, on(root)))
        else:
            result.append(OuterSet(identifier(root), None, (InnerSet(root, on(root)),), ()))
    return tuple(result)


def identifier(part: Exchangeable) -> str:
    """Return the name of a set in symbols."""
    return part.name.replace(" ", "_")


def _values(source: Source) -> tuple[sp.Expr, ...]:
    """Return the values that a source can have."""
    if isinstance(source, Colouring):
        return tuple(source.law)
    return sp.Integer(1), sp.Integer(0)
