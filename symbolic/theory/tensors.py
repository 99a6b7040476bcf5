"""Trained parameters: the tensors of a theory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sympy as sp

from symbolic.theory.errors import TheoryError, calling_line, require
from symbolic.theory.expression import Array
from symbolic.theory.numbers import RANDOM, check_name, exact
from symbolic.theory.sets import IndexSet


def check_name_and_axes(name: Any, axes: tuple[Any, ...]) -> None:
    """Raise `TheoryError` unless the name is an identifier and each axis an index set."""
    check_name(name)
    for index_set in axes:
        require(
            isinstance(index_set, IndexSet),
            f"{name} has the axis {index_set!r}, which is not allowed: it must be an index set",
        )


def number(name: str, value: Any) -> sp.Expr:
    """Return an expression in sizes and constants with exact numbers, or raise `TheoryError`."""
    try:
        return exact(value)
    except (TypeError, ValueError, sp.SympifyError):
        raise TheoryError(
            f"{name} = {value!r} is not allowed: it must be a number, or an expression in sizes "
            "and constants"
        ) from None


def _initial(name: str, value: Any) -> sp.Expr:
    """Return an initial value of a tensor, a number or a random one."""
    return value if getattr(value, "func", None) is RANDOM else number(f"start of {name}", value)


class Tensor(Array):
    """A trained parameter with one axis per index set.

    Permutations of the index sets divide its entries into orbits. Entries of one orbit stay equal
    during training: they are one order parameter.

    Parameters
    ----------
    name
        The letter, a Python identifier.
    axes
        One index set or a tuple of them; empty for a scalar.
    start
        Initial value of every entry: a number or an expression in sizes and constants; or a mapping
        from orbit names to initial values, where the remaining orbits start at 0. An initial value
        may be random (`normal`). Orbit names are those in ``Theory.order_parameters`` without the
        letter: ``"diagonal"``, ``"same area"``.

    Raises
    ------
    TheoryError
        If an argument is not allowed.

    Examples
    --------
    A D x D matrix of attention scores that starts at 0 outside of its fixed diagonal:

    >>> from symbolic.theory import Exchangeable, Size, Tensor
    >>> D, C = Size("D"), Size("C", divides="D")
    >>> area = Exchangeable("area", D / C)
    >>> patch = Exchangeable("patch", C, inside=area)
    >>> A = Tensor("A", (patch, patch), start={"same area": 0.01})
    >>> A.fix("diagonal", 1)
    """

    def __init__(self, name: str, axes: Any = (), *, start: Any = 0) -> None:
        self.axes = tuple(axes) if isinstance(axes, (tuple, list)) else (axes,)
        check_name_and_axes(name, self.axes)
        self.name, self.location = name, calling_line()
        self.fixed: dict[str, sp.Expr] = {}
        if isinstance(start, Mapping):
            self.starts = {orbit: _initial(name, x) for orbit, x in start.items()}
            self.start = sp.Integer(0)
        else:
            self.starts, self.start = {}, _initial(name, start)

    def fix(self, orbit: str, value: Any) -> None:
        """Fix the entries of one orbit, which are then not trained.

        Parameters
        ----------
        orbit
            Name of the orbit, such as ``"diagonal"``.
        value
            A number or an expression in sizes and constants.
        """
        self.fixed[orbit] = number(f"{self.name} on {orbit!r}", value)
