"""Validate the sizes and constants of a theory: given values and the defaults of its file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import sympy as sp

from symbolic.theory.errors import require, short_repr
from symbolic.theory.numbers import exact, is_number, text_of

if TYPE_CHECKING:
    from symbolic.overlaps.theory import OverlapTheory
    from symbolic.theory.theory import Theory

#: Largest modulus of a number of a theory at given sizes and constants; its square is finite.
LARGEST_NUMBER = 10**150


def checked(theory: Theory, values: Mapping[str, Any]) -> dict[str, float]:
    """Return validated sizes and constants; see `symbolic.theory.Theory.checked`.

    Raises
    ------
    TheoryError
        If the values are not allowed.
    """
    numbers = checked_numbers(theory, values)
    for order in theory.orders:
        require(
            order.scale is None or bool(_substitute(order.scale, numbers) > 0),
            f"{order.start} is not allowed at these values: the scale must be positive",
            theory.location,
        )
    fractions = {name: exact(x) for name, x in numbers.items()}  # 0.1 + 0.2 + 0.7 is 1
    for source in theory.data:
        source.require_law(partial(_substitute, values=fractions))
    return numbers


def checked_numbers(theory: Theory | OverlapTheory, values: Mapping[str, Any]) -> dict[str, float]:
    """Return validated sizes and constants, without the conditions on data and start.

    Raises
    ------
    TheoryError
        If the values are not allowed.
    """
    names = [size.name for size in theory.sizes] + list(theory.free_constants)
    for name in names:
        require(name in values, f"{name} is missing: give {', '.join(names)}", theory.location)
    for name in values:
        require(
            name in names,
            f"{text_of(name)} = {text_of(values[name])} is not allowed: there are "
            f"{', '.join(names)}",
            theory.location,
        )
    numbers: dict[str, float] = {
        size.name: size.checked(values[size.name], values) for size in theory.sizes
    }
    numbers |= {
        name: constant.checked(values[name]) for name, constant in theory.free_constants.items()
    }
    for part in theory.sets:
        number = _substitute(part.size, numbers)
        require(
            bool(number.is_integer and number >= 1),
            f"{part} has {part.size} = {number} elements: it must be a whole number, at least 1",
            part.location,
        )
    _require_finite(theory, numbers)
    return numbers


def _require_finite(theory: Theory | OverlapTheory, values: Mapping[str, float]) -> None:
    """Raise `TheoryError` if a start, a variance or another number of a theory is singular."""
    listed = ", ".join(f"{name} = {value:g}" for name, value in values.items()) or "any values"
    for expression in set(theory.scalars()):
        number = _substitute(expression, values)
        require(
            bool(number.is_real and number.is_finite) and bool(abs(number) <= LARGEST_NUMBER),
            f"{expression} is not allowed at {listed}: it must be real and at most "
            f"10^{math.log10(LARGEST_NUMBER):g} in modulus",
            theory.location,
        )


def check_defaults(theory: Theory | OverlapTheory) -> None:
    """Validate the ``defaults`` of a theory: sizes, constants and ``horizon``.

    Raises
    ------
    TheoryError
        If a name is unknown, or a value is outside its domain.
    """
    given = {name: x for name, x in theory.defaults.items() if name != "horizon"}
    sizes = {size.name: size for size in theory.sizes}
    for name, value in given.items():
        known = ", ".join([*sizes, *theory.free_constants, "horizon"])
        require(
            name in sizes or name in theory.free_constants,
            f"defaults: {short_repr(name)} is not allowed: there are {known}",
            theory.location,
        )
        if name in sizes:
            sizes[name].checked(value, given)
        else:
            theory.free_constants[name].checked(value)
    horizon = theory.defaults.get("horizon", 1.0)
    require(
        is_number(horizon) and horizon > 0,
        f"defaults: horizon = {text_of(horizon)} is not allowed: it must be positive and finite",
        theory.location,
    )
    if all(name in given for name in sizes):
        examples = {name: constant.example for name, constant in theory.free_constants.items()}
        theory.checked(examples | given)


def _substitute(expression: sp.Expr, values: Mapping[str, float]) -> sp.Expr:
    """Return an expression at values; substitutes only its own symbols, to be fast."""
    return expression.subs({x: values[x.name] for x in expression.free_symbols if x.name in values})
