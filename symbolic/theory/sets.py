"""Index sets: whose elements may be exchanged without changing the theory.

An *exchangeable* set of n elements has the symmetric group S_n; one *inside* another has n elements
in each element of that one, so that together they have the wreath product (patches inside sets:
exchange two patches of one set, or two whole sets). The coordinates of a *signed* set can also be
flipped. A *union* puts such sets side by side: attention may run over patches of two kinds.
"""

from __future__ import annotations

import unicodedata
from functools import cached_property
from typing import Any

import sympy as sp

from symbolic.theory.errors import here, require, shown
from symbolic.theory.numbers import LONGEST_NAME, exact


def named_by_words(name: Any) -> None:
    """Refuse what is no name of an index set."""
    require(
        isinstance(name, str)
        and name.replace(" ", "_").isidentifier()
        and unicodedata.normalize("NFKC", name) == name
        and len(name) <= LONGEST_NAME,
        f"name = {shown(name)} is not allowed: an index set is named by words, of at most "
        f"{LONGEST_NAME} characters together",
    )


class IndexSet:
    """What an index runs over: its parts, each of them exchangeable."""

    name: str
    parts: tuple[Exchangeable, ...]
    signed: bool = False

    @cached_property
    def count(self) -> sp.Expr:
        """How many elements there are in all."""
        return sp.Add(*(part.count for part in self.parts))

    def __repr__(self) -> str:
        return self.name


class Exchangeable(IndexSet):
    """A set whose elements are alike.

    Parameters
    ----------
    name
        What one element is called: it appears in the names of order parameters.
    size
        How many there are, in each element of ``inside`` if that is given: a number, a `Size` or
        an expression such as ``D / C``.
    inside
        The set that each element belongs to an element of.
    """

    def __init__(self, name: str, size: Any, *, inside: Exchangeable | None = None) -> None:
        named_by_words(name)
        try:
            self.size: sp.Expr = exact(size)
        except (TypeError, ValueError, sp.SympifyError):
            require(
                False,
                f"size = {size!r} is not allowed: the size of {name} must be a number, "
                "a Size, or an expression in them",
            )
        if inside is not None:
            require(
                isinstance(inside, Exchangeable) and not inside.signed,
                f"inside = {inside!r} is not allowed: it must be an exchangeable set",
            )
            require(
                inside.inside is None,
                f"{name} lies inside {inside}, which lies inside "
                f"{inside.inside}: at most one set inside another",
            )
        self.name, self.where = name, here()
        self.inside: Exchangeable | None = inside
        self.parts = (self,)

    @cached_property
    def count(self) -> sp.Expr:
        """How many elements there are in all."""
        return self.size if self.inside is None else sp.factor(self.inside.size * self.size)


class Signed(Exchangeable):
    """Coordinates that may be exchanged and flipped: the hyperoctahedral group.

    An entry in which a coordinate occurs an odd number of times is 0.
    """

    signed = True

    def __init__(self, name: str, size: Any) -> None:
        super().__init__(name, size)


class Union(IndexSet):
    """Several sets side by side, such as the patches of a large area and those of small ones.

    Either all of them are signed, such as coordinates of two variances, or none.
    """

    def __init__(self, name: str, *parts: Exchangeable) -> None:
        named_by_words(name)
        require(
            len(parts) >= 2
            and len(set(parts)) == len(parts)
            and all(isinstance(part, Exchangeable) for part in parts)
            and len({part.signed for part in parts}) == 1,
            f"Union {name!r} is not allowed: it must have two or more different exchangeable sets, "
            "all of them signed or none",
        )
        self.signed = parts[0].signed
        self.name, self.parts, self.where = name, parts, here()
