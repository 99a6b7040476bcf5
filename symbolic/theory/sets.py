"""Index sets, whose elements can be permuted without changing the theory, and ordered sets.

The elements of an *ordered* set differ: its symmetry group is trivial. The symmetry group of an
*exchangeable* set of n elements is the symmetric group S_n. A set *inside*
another has n elements in each element of the outer set; the symmetry group of both is a wreath
product. The coordinates of a *signed* set can also change sign (hyperoctahedral group); those of a
*turned* set change sign in pairs. A *union* is a disjoint union of such sets.
"""

from __future__ import annotations

import unicodedata
from functools import cached_property
from typing import Any

import sympy as sp

from symbolic.theory.errors import calling_line, require, short_repr
from symbolic.theory.numbers import LONGEST_NAME, exact

#: Largest number of elements of an ordered set.
MOST_POSITIONS = 1000


def check_set_name(name: Any) -> None:
    """Raise `TheoryError` unless ``name`` consists of words that form an identifier."""
    require(
        isinstance(name, str)
        and name.replace(" ", "_").isidentifier()
        and unicodedata.normalize("NFKC", name) == name
        and len(name) <= LONGEST_NAME,
        f"name = {short_repr(name)} is not allowed: an index set is named by words, of at most "
        f"{LONGEST_NAME} characters together",
    )


class IndexSet:
    """Range of an index; base class of `Exchangeable`, `Signed` and `Union`.

    Attributes
    ----------
    name
        What one element is called.
    parts
        The exchangeable sets whose disjoint union it is.
    signed
        Whether coordinates can change sign.
    """

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
    """A set whose elements can be permuted.

    Parameters
    ----------
    name
        What one element is called, such as ``"patch"``; used in the names of order parameters.
    size
        Number of elements, per element of ``inside`` if that is given: an integer, a `Size` or an
        expression such as ``D / C``.
    inside
        Outer set: each of its elements contains ``size`` elements of this set. Sets are nested at
        most once.

    Raises
    ------
    TheoryError
        If an argument is not allowed.

    Examples
    --------
    D patches in D / C areas of C patches each:

    >>> from symbolic.theory import Exchangeable, Size
    >>> D, C = Size("D"), Size("C", divides="D")
    >>> area = Exchangeable("area", D / C)
    >>> patch = Exchangeable("patch", C, inside=area)
    >>> patch.count
    D
    """

    def __init__(self, name: str, size: Any, *, inside: Exchangeable | None = None) -> None:
        check_set_name(name)
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
                isinstance(inside, Exchangeable)
                and not inside.signed
                and not isinstance(inside, Ordered),
                f"inside = {inside!r} is not allowed: it must be an exchangeable set",
            )
            require(
                inside.inside is None,
                f"{name} lies inside {inside}, which lies inside "
                f"{inside.inside}: at most one set inside another",
            )
        self.name, self.location = name, calling_line()
        self.inside: Exchangeable | None = inside
        self.parts = (self,)

    @cached_property
    def count(self) -> sp.Expr:
        """How many elements there are in all."""
        return self.size if self.inside is None else sp.factor(self.inside.size * self.size)


class Signed(Exchangeable):
    """Coordinates that can be permuted and change sign (hyperoctahedral group).

    Tensor entries in which a coordinate occurs an odd number of times vanish by symmetry.

    Parameters
    ----------
    name
        What one coordinate is called.
    size
        Number of coordinates: an integer, a `Size` or an expression.

    Examples
    --------
    A matrix over coordinates has one order parameter, its diagonal:

    >>> from symbolic.theory import Signed, Size
    >>> from symbolic.theory.orbits import orbits
    >>> coordinate = Signed("coordinate", Size("n"))
    >>> [orbit.name for orbit in orbits((coordinate, coordinate))]
    ['diagonal']
    """

    signed = True

    def __init__(self, name: str, size: Any) -> None:
        super().__init__(name, size)


class Turned(Signed):
    """Coordinates in planes, which can be permuted and turned by a quarter.

    The quarter turn M maps coordinate 2k to 2k + 1, and 2k + 1 to minus 2k, so that M^2 = -1. The
    symmetry group commutes with M. A matrix over the coordinates has two order parameters, the
    numbers before the identity and before M. Such a set is part of a `Frame`.

    Parameters
    ----------
    name
        What one coordinate is called.
    planes
        Number of planes, an integer: half the number of coordinates.

    Raises
    ------
    TheoryError
        If an argument is not allowed.

    Examples
    --------
    >>> from symbolic.theory import Turned
    >>> from symbolic.theory.orbits import orbits
    >>> site = Turned("site", 3)
    >>> [(orbit.name, orbit.count) for orbit in orbits((site, site))]
    [('diagonal', 6), ('turned', 6)]
    """

    def __init__(self, name: str, planes: int) -> None:
        require(
            isinstance(planes, int) and not isinstance(planes, bool) and planes >= 1,
            f"planes = {short_repr(planes)} is not allowed: the number of planes of {name} must be "
            "a whole number, at least 1",
        )
        super().__init__(name, 2 * planes)


class Ordered(Exchangeable):
    """Positions of a sequence: elements 0, 1, ..., none of which can be exchanged for another.

    The symmetry group is trivial, so that every entry of a tensor over positions is an order
    parameter of its own, and relations of positions (`symbolic.theory.relation`) are allowed.

    Parameters
    ----------
    name
        What one element is called, such as ``"position"``.
    size
        Number of elements, an integer.

    Raises
    ------
    TheoryError
        If an argument is not allowed.

    Examples
    --------
    >>> from symbolic.theory import Ordered
    >>> from symbolic.theory.orbits import orbits
    >>> [orbit.name for orbit in orbits((Ordered("position", 3),))]
    ['0', '1', '2']
    """

    def __init__(self, name: str, size: int) -> None:
        super().__init__(name, size)
        require(
            bool(self.size.is_Integer) and 1 <= self.size <= MOST_POSITIONS,
            f"size = {self.size} is not allowed: the number of elements of {name} must be a "
            f"whole number from 1 to {MOST_POSITIONS}, because every position is an order "
            "parameter of its own",
        )


class Union(IndexSet):
    """Disjoint union of exchangeable sets, such as coordinates of two variances.

    Parameters
    ----------
    name
        What one element is called.
    *parts
        Two or more different sets, either all of them `Signed` or none.

    Raises
    ------
    TheoryError
        If there are fewer than two parts, or if only some of them are signed.

    Examples
    --------
    >>> from symbolic.theory import Signed, Size, Union
    >>> coordinate = Union("coordinate", Signed("first", Size("m")), Signed("second", Size("n")))
    >>> coordinate.count
    m + n
    """

    def __init__(self, name: str, *parts: Exchangeable) -> None:
        check_set_name(name)
        require(
            len(parts) >= 2
            and len(set(parts)) == len(parts)
            and all(isinstance(part, Exchangeable) for part in parts)
            and not any(isinstance(part, Ordered) for part in parts)
            and len({part.signed for part in parts}) == 1,
            f"Union {name!r} is not allowed: it must have two or more different exchangeable sets, "
            "all of them signed or none",
        )
        self.signed = parts[0].signed
        self.name, self.parts, self.location = name, parts, calling_line()
