"""Entries of the Gram matrix of a theory in overlaps, up to permutations of its elements."""

from __future__ import annotations

import re
from typing import NamedTuple

import sympy as sp

from symbolic.overlaps.language import Directions, Element, Family


class Pair(NamedTuple):
    """Orbit of ordered pairs of vectors: two families, and how their indices coincide.

    ``relation`` is ``"same"`` or ``"other"`` for two vectors over the same set, otherwise ``""``.
    """

    first: Family
    second: Family
    relation: str

    @property
    def unordered(self) -> Pair:
        """The orbit of unordered pairs, an entry of the Gram matrix."""
        first, second = sorted((self.first, self.second), key=lambda x: x.name)
        return Pair(first, second, self.relation)

    @property
    def transposed(self) -> Pair:
        """The orbit of the pairs in the other order."""
        return Pair(self.second, self.first, self.relation)

    @property
    def is_diagonal(self) -> bool:
        """Whether the pairs consist of twice the same vector."""
        return self.first is self.second and self.relation in ("", "same")

    @property
    def number(self) -> sp.Expr:
        """Number of unordered pairs."""
        n = self.first.number
        if self.relation == "other":
            return n * (n - 1) / (2 if self.first is self.second else 1)
        if self.relation == "same" or self.is_diagonal:
            return n
        return n * self.second.number

    @property
    def name(self) -> str:
        """Derived name, trained vectors first, such as ``J.B[same]``."""
        trained_first = sorted((self.first, self.second), key=lambda x: isinstance(x, Directions))
        names = ".".join(x.name for x in trained_first)
        return f"{names}[{self.relation}]" if self.relation else names


class Overlap(NamedTuple):
    """An order parameter.

    Attributes
    ----------
    name, orbit
        Name, and derived name.
    number
        Number of unordered pairs of vectors, in the sizes.
    start
        Initial value, in sizes and constants.
    """

    name: str
    orbit: str
    number: sp.Expr
    start: sp.Expr
    scale: None = None

    @property
    def identifier(self) -> str:
        """Name as an identifier, for options."""
        return re.sub(r"\W+", "_", self.name).strip("_")


def pair_of(first: Element, second: Element) -> Pair:
    """Return the orbit of a pair of vectors with numbered indices."""
    over = first.family.over
    shared = over is not None and over is second.family.over
    relation = ("same" if first.label == second.label else "other") if shared else ""
    return Pair(first.family, second.family, relation)
