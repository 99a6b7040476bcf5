"""Whether sizes and constants are allowed: those that are given, and those a file has as usual."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import sympy as sp

from symbolic.theory.errors import require, shown
from symbolic.theory.numbers import is_number, text_of
from symbolic.theory.tensors import Subset

if TYPE_CHECKING:
    from symbolic.theory.theory import Theory

#: Largest modulus of a number of a theory at given sizes and constants: squares stay finite.
LARGEST_NUMBER = 10**150


def checked(theory: Theory, values: Mapping[str, Any]) -> dict[str, float]:
    """Return sizes and constants as numbers, each within its domain.

    Raises
    ------
    TheoryError
        As of `symbolic.theory.Theory.checked`.
    """
    names = [size.name for size in theory.sizes] + list(theory.unknown)
    for name in names:
        require(name in values, f"{name} is missing: give {', '.join(names)}", theory.where)
    for name in values:
        require(
            name in names,
            f"{text_of(name)} = {text_of(values[name])} is not allowed: there are "
            f"{', '.join(names)}",
            theory.where,
        )
    found: dict[str, float] = {
        size.name: size.checked(values[size.name], values) for size in theory.sizes
    }
    found |= {name: constant.checked(values[name]) for name, constant in theory.unknown.items()}
    for part in theory.sets:
        number = _at(part.size, found)
        require(
            bool(number.is_integer and number >= 1),
            f"{part} has {part.size} = {number} elements: it must be a whole number, at least 1",
            part.where,
        )
    for source in theory.data:
        if isinstance(source, Subset):
            of = _at(source.over.count, found)
            size = _at(source.size, found)
            require(
                bool(size.is_integer and 0 <= size <= of),
                f"{source.name} has {source.size} = {size} of {of} elements: it must be a "
                "whole number, at most all of them",
                source.where,
            )
    _require_finite(theory, found)
    return found


def _require_finite(theory: Theory, values: Mapping[str, float]) -> None:
    """Refuse values at which a start, a variance or another number of a theory is singular."""
    listed = ", ".join(f"{name} = {value:g}" for name, value in values.items()) or "any values"
    for expression in set(theory.scalars()):
        number = _at(expression, values)
        require(
            bool(number.is_real and number.is_finite) and bool(abs(number) <= LARGEST_NUMBER),
            f"{expression} is not allowed at {listed}: it must be real and at most "
            f"10^{math.log10(LARGEST_NUMBER):g} in modulus",
            theory.where,
        )
    for source in theory.data:
        for variance in getattr(source, "variances", ()):
            require(
                bool(_at(variance, values) > 0),
                f"variance of {source.name} = {variance} is not allowed at {listed}: it must be "
                "positive",
                source.where,
            )


def check_usual(theory: Theory) -> None:
    """Refuse sizes and constants in ``usual`` that no run can have.

    Raises
    ------
    TheoryError
        If a name is unknown, or a value is outside its domain.
    """
    given = {name: x for name, x in theory.usual.items() if name != "horizon"}
    sizes = {size.name: size for size in theory.sizes}
    for name, value in given.items():
        known = ", ".join([*sizes, *theory.unknown, "horizon"])
        require(
            name in sizes or name in theory.unknown,
            f"usual: {shown(name)} is not allowed: there are {known}",
            theory.where,
        )
        if name in sizes:
            sizes[name].checked(value, given)
        else:
            theory.unknown[name].checked(value)
    horizon = theory.usual.get("horizon", 1.0)
    require(
        is_number(horizon) and horizon > 0,
        f"usual: horizon = {text_of(horizon)} is not allowed: it must be positive and finite",
        theory.where,
    )
    if all(name in given for name in sizes):
        examples = {name: constant.example for name, constant in theory.unknown.items()}
        checked(theory, examples | given)


def _at(expression: sp.Expr, values: Mapping[str, float]) -> sp.Expr:
    """Return an expression at values of the names in it: to try all names takes far longer."""
    asked = [x for x in expression.free_symbols if x.name in values]
    return expression.subs({x: values[x.name] for x in asked})
