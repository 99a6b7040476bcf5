"""Sums of products of functions of inner products, in a unique order.

The two vectors of an inner product are of class `symbolic.overlaps.language.Element`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import sympy as sp

from symbolic.theory.sets import Exchangeable

if TYPE_CHECKING:
    from symbolic.overlaps.language import Element


#: Index of the tokens of a set in a `Score`.
TOKEN = "#token"
#: Text of an expression as a sortable key.
_text = lru_cache(4096)(sp.srepr)


class Inner(NamedTuple):
    """Inner product of two elements: a field if the second is a datum, otherwise an overlap."""

    first: Element
    second: Element

    @property
    def key(self) -> tuple[tuple[str, str], tuple[str, str]]:
        """A sortable key."""
        return self.first.key, self.second.key

    def at(self, numbers: Mapping[str, str | int]) -> Inner:
        """Return the product with its indices replaced."""
        return inner(self.first.at(numbers), self.second.at(numbers))


def inner(first: Element, second: Element) -> Inner:
    """Return the product in a unique order: vector before datum, vectors sorted."""
    if first.family.is_datum or (not second.family.is_datum and first.key > second.key):
        first, second = second, first
    return Inner(first, second)


class Linear(NamedTuple):
    """A linear combination of inner products, sorted, and a constant."""

    products: tuple[tuple[Inner, sp.Expr], ...]
    constant: sp.Expr

    @classmethod
    def of(cls, products: Mapping[Inner, sp.Expr], constant: sp.Expr) -> Linear:
        """Return the combination without zero coefficients."""
        pairs = ((x, sp.sympify(c, strict=True)) for x, c in products.items())
        return cls(
            tuple(sorted(((x, c) for x, c in pairs if c != 0), key=lambda p: p[0].key)), constant
        )

    @property
    def key(self) -> tuple[Any, ...]:
        """A sortable key."""
        return tuple((x.key, _text(c)) for x, c in self.products), _text(self.constant)

    def at(self, numbers: Mapping[str, str | int]) -> Linear:
        """Return the combination with its indices replaced."""
        products: dict[Inner, sp.Expr] = {}
        for x, coefficient in self.products:
            renamed = x.at(numbers)
            products[renamed] = products.get(renamed, sp.Integer(0)) + coefficient
        return Linear.of(products, self.constant)

    @property
    def data(self) -> frozenset[Element]:
        """The data on which it depends."""
        return frozenset(x.second for x, _ in self.products if x.second.family.is_datum)


class Score(NamedTuple):
    """Score of a token, or of each token of a set, in a softmax.

    Attributes
    ----------
    linear
        The score; its data have the index `TOKEN` if there is a set.
    over
        The set of tokens; ``None`` for a single token.
    """

    linear: Linear
    over: Exchangeable | None

    @property
    def number(self) -> sp.Expr:
        """Number of tokens."""
        return sp.Integer(1) if self.over is None else self.over.size

    def at(self, label: str | int | None) -> Linear:
        """Return the score of one token."""
        return self.linear if label is None else self.linear.at({TOKEN: label})


class Factor(NamedTuple):
    """A power of a function of a linear combination; the function "" is the identity.

    The function "softmax" is the weight of the token with this score; ``scores`` are all scores.
    """

    function: str
    linear: Linear
    power: int
    scores: tuple[Score, ...] = ()

    @property
    def key(self) -> tuple[Any, ...]:
        """A sortable key."""
        return self.function, self.linear.key, self.power


def slopes(factor: Factor) -> list[tuple[int, tuple[Factor, ...]]]:
    """Return the derivative of a factor in its argument: coefficients and products of factors.

    The function "gauss" is the derivative of the error function, "delta" that of "step".
    """
    function, linear, n, _ = factor
    if function == "step":
        return [(1, (Factor("delta", linear, 1),))]
    lower = (factor._replace(power=n - 1),) if n > 1 else ()
    if function == "erf":
        return [(n, (*lower, Factor("gauss", linear, 1)))]
    if function == "gauss":
        return [(-2 * n, (factor, Factor("", linear, 1)))]
    if function == "sigmoid":
        return [(n, (factor,)), (-n, (factor._replace(power=n + 1),))]
    if function == "tanh":
        return [(n, lower), (-n, (factor._replace(power=n + 1),))]
    return [(n, lower)]


class Term(NamedTuple):
    """Coefficient times a product of factors, summed over bound indices."""

    coefficient: sp.Expr
    factors: tuple[Factor, ...]
    bound: tuple[tuple[str, Exchangeable], ...] = ()


def merged(factors: tuple[Factor, ...]) -> tuple[Factor, ...]:
    """Return the factors sorted, with equal functions of equal arguments in one power."""
    powers: dict[Factor, int] = {}
    for x in factors:
        base = x._replace(power=1)
        powers[base] = powers.get(base, 0) + x.power
    combined = (
        x if x.function == "step" else x._replace(power=n)  # all powers of a step are equal
        for x, n in powers.items()
    )
    return tuple(sorted(combined, key=lambda x: x.key))


def replaced(factors: tuple[Factor, ...], numbers: Mapping[str, str | int]) -> tuple[Factor, ...]:
    """Return the factors with indices replaced, merged again."""
    return merged(tuple(x._replace(linear=x.linear.at(numbers)) for x in factors))
