"""Vectors, normal data and expressions in their inner products.

A *field* is the inner product of a vector and a datum, such as ``J["k"] @ x``; an *overlap* is the
inner product of two vectors. Expressions are polynomials in overlaps, fields and functions of
linear combinations of them, with sums over exchangeable indices.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any, NamedTuple

import sympy as sp

from symbolic.overlaps.terms import Factor, Linear, Term, inner, merged, replaced
from symbolic.theory.errors import TheoryError, calling_line, require, short_repr
from symbolic.theory.numbers import check_name, exact
from symbolic.theory.sets import Exchangeable

#: Largest exponent of an expression.
LARGEST_POWER = 6
_FRESH = count()


class Euclidean:
    """A space of vectors without preferred directions.

    Parameters
    ----------
    name
        What one coordinate is called.
    dimension
        Its dimension: an integer, a `Size` or an expression. The dynamics of overlaps depends on it
        only where the theory mentions it, and is exact if it is at least the number of vectors.
    """

    def __init__(self, name: str, dimension: Any) -> None:
        check_name(name)
        self.name, self.dimension = name, _number("dimension", dimension)

    def __repr__(self) -> str:
        return self.name


class Element(NamedTuple):
    """A vector or datum, possibly with an index: a free or bound index, or an element's number."""

    family: Any
    label: str | int | None

    def at(self, numbers: Mapping[str, str | int]) -> Element:
        """Return the element with its index renamed or replaced by a number."""
        return Element(self.family, numbers.get(self.label, self.label))  # type: ignore[arg-type]

    @property
    def key(self) -> tuple[str, str]:
        """A sortable key."""
        return self.family.name, "" if self.label is None else str(self.label)

    def __matmul__(self, other: Any) -> Expression:
        return inner_product(self, other)


class Family:
    """Base class of vectors and data, optionally indexed by an exchangeable set.

    Attributes
    ----------
    name
        Its name.
    over
        The index set; ``None`` for a single vector.
    space
        The space of the vectors.
    is_datum
        Whether its elements are random.
    """

    is_datum = False

    def __init__(self, name: str, axes: Any) -> None:
        check_name(name)
        self.name, self.location = name, calling_line()
        axes = tuple(axes) if isinstance(axes, (tuple, list)) else (axes,)
        good = len(axes) in (1, 2) and isinstance(axes[-1], Euclidean)
        good = good and (len(axes) == 1 or type(axes[0]) is Exchangeable)
        require(
            good and (len(axes) == 1 or axes[0].inside is None),
            f"{name} over {short_repr(axes)} is not allowed: give a Euclidean space, or an "
            "Exchangeable set and a Euclidean space, as in (unit, space); a single coordinate "
            "cannot be named, because rotations mix all coordinates",
        )
        self.over: Exchangeable | None = axes[0] if len(axes) == 2 else None
        self.space: Euclidean = axes[-1]

    @property
    def number(self) -> sp.Expr:
        """Number of vectors."""
        return sp.Integer(1) if self.over is None else self.over.size

    def __getitem__(self, index: Any) -> Element:
        require(
            self.over is not None and isinstance(index, str),
            f"{self.name}[{short_repr(index)}] is not allowed: "
            + (
                f"{self.name} is one vector, whose coordinates cannot be named because rotations "
                "mix them"
                if self.over is None
                else "an index is a word in quotes"
            ),
        )
        return Element(self, index)

    def __matmul__(self, other: Any) -> Expression:
        return inner_product(self, other)

    def __repr__(self) -> str:
        return self.name


class Vectors(Family):
    """Trained vectors.

    Parameters
    ----------
    name
        A Python identifier.
    axes
        A space, or a set and a space: ``(unit, space)``.
    sphere
        Whether the vectors have norm 1; gradients are projected and each step is normalized.
    """

    def __init__(self, name: str, axes: Any, *, sphere: bool = False) -> None:
        super().__init__(name, axes)
        self.sphere = bool(sphere)


class Directions(Family):
    """Fixed vectors, orthogonal to each other and to other directions.

    Parameters
    ----------
    name, axes
        As for `Vectors`.
    gram
        Squared norm: a number, a constant or an expression.
    overlaps
        Mapping from earlier directions to their inner product with each of these vectors; 0 where
        missing.
    """

    def __init__(
        self,
        name: str,
        axes: Any,
        *,
        gram: Any = 1,
        overlaps: Mapping[Directions, Any] | None = None,
    ) -> None:
        super().__init__(name, axes)
        self.gram = _number(f"gram of {name}", gram)
        self.overlaps = {
            other: _number(f"overlap of {name}", value) for other, value in (overlaps or {}).items()
        }


class Normal(Family):
    """Independent normal data with covariance ``variance`` times the identity.

    Parameters
    ----------
    name, axes
        As for `Vectors`; each element of the set is an independent datum.
    variance
        Variance of each coordinate: a number, a constant or an expression.
    mean
        A pair of a number and a direction: the mean of the datum is their product.
    """

    is_datum = True

    def __init__(
        self, name: str, axes: Any, *, variance: Any = 1, mean: tuple[Any, Directions] | None = None
    ) -> None:
        super().__init__(name, axes)
        require(
            not isinstance(variance, (Mapping, list, tuple)),
            f"variance = {short_repr(variance)} of {name} is not allowed: a variance by coordinate "
            "is not invariant under rotations; use one Euclidean space for each variance",
        )
        self.variance = _number(f"variance of {name}", variance)
        self.mean: tuple[sp.Expr, Directions] | None = None
        if mean is not None:
            good = isinstance(mean, tuple) and len(mean) == 2 and isinstance(mean[1], Directions)
            require(
                good and mean[1].over is None and mean[1].space is self.space,
                f"mean = {short_repr(mean)} of {name} is not allowed: it must be a pair of a "
                "number and one direction of the same space",
            )
            self.mean = _number(f"mean of {name}", mean[0]), mean[1]


class Expression:
    """A sum of terms, or a linear combination; made by operators, never by users directly.

    Attributes
    ----------
    terms
        The terms of the sum.
    linear
        The linear combination, if it is one.
    free
        Mapping from free indices to their sets.
    """

    __array_ufunc__ = None

    def __init__(
        self,
        terms: tuple[Term, ...],
        free: Mapping[str, Exchangeable],
        linear: Linear | None = None,
    ) -> None:
        self.terms, self.free, self.linear = terms, dict(free), linear
        self.location = calling_line()

    @classmethod
    def of_linear(cls, linear: Linear, free: Mapping[str, Exchangeable]) -> Expression:
        """Return a linear combination as an expression."""
        if not linear.products:
            return cls((Term(linear.constant, ()),), free, linear)
        return cls((Term(sp.Integer(1), (Factor("", linear, 1),)),), free, linear)

    def __add__(self, other: Any) -> Expression:
        right = expression(other)
        free = _joined(self.free, right.free)
        if self.linear is not None and right.linear is not None:
            products = dict(self.linear.products)
            for x, c in right.linear.products:
                products[x] = products.get(x, sp.Integer(0)) + c
            constant = self.linear.constant + right.linear.constant
            return Expression.of_linear(Linear.of(products, constant), free)
        return Expression(self.terms + right.terms, free)

    __radd__ = __add__

    def __mul__(self, other: Any) -> Expression:
        right = expression(other)
        free = _joined(self.free, right.free)
        for number, factor in ((self, right), (right, self)):
            if number.linear is not None and not number.linear.products:
                return _scaled(factor, number.linear.constant, free)
        return Expression(
            tuple(_product(x, renamed(y)) for x in self.terms for y in right.terms), free
        )

    __rmul__ = __mul__

    def __neg__(self) -> Expression:
        return self * -1

    def __sub__(self, other: Any) -> Expression:
        return self + -expression(other)

    def __rsub__(self, other: Any) -> Expression:
        return -self + other

    def __truediv__(self, other: Any) -> Expression:
        if isinstance(other, Expression):
            raise TheoryError(
                "a division by an expression in fields or overlaps is not allowed: its mean has "
                "no closed form; divide by numbers and constants"
            )
        return self * (1 / _number("divisor", other))

    def __pow__(self, exponent: Any) -> Expression:
        require(
            type(exponent) is int and 1 <= exponent <= LARGEST_POWER,
            f"exponent = {short_repr(exponent)} is not allowed: it must be a whole number from 1 "
            f"to {LARGEST_POWER}",
        )
        result = self
        for _ in range(exponent - 1):
            result = result * self
        return result

    def _apply(self, function: str, name: str = "") -> Expression:
        require(
            self.linear is not None,
            f"{name or function} of a product, a sum over an index or a function is not allowed: "
            "its argument must be a linear combination of fields, so that it is normal",
        )
        assert self.linear is not None
        factor = Factor(function, self.linear, 1)
        return Expression((Term(sp.Integer(1), (factor,)),), self.free)

    def erf(self) -> Expression:
        """Return the error function."""
        return self._apply("erf")

    def sigmoid(self) -> Expression:
        """Return the logistic function 1 / (1 + exp(-x)), softmax attention of two tokens."""
        return self._apply("sigmoid")

    def tanh(self) -> Expression:
        """Return the hyperbolic tangent."""
        return self._apply("tanh")

    def relu(self) -> Expression:
        """Return max(x, 0) of a linear combination x."""
        return self * self._apply("step", "relu")

    def step(self) -> Expression:
        """Return the Heaviside function: 1 where a linear combination is positive, otherwise 0.

        Its mean has a gradient, but a datum has none: one-pass SGD requires a step of fixed
        directions only.
        """
        return self._apply("step")

    def softmax(self, over: str = "") -> Expression:
        """Raise `TheoryError`: `softmax` is a function of the scores of all tokens."""
        raise TheoryError(
            f"x.softmax(over={over!r}) is not allowed: write softmax(x), or softmax(x, y) with the "
            "scores of all tokens"
        )

    def sum(self, index: str) -> Expression:
        """Return the sum over a free index."""
        require(
            index in self.free,
            f"sum({short_repr(index)}) is not allowed: the free indices are "
            f"{', '.join(self.free) or '(none)'}",
        )
        free = dict(self.free)
        over = free.pop(index)
        terms = tuple(Term(x.coefficient, x.factors, (*x.bound, (index, over))) for x in self.terms)
        return Expression(tuple(map(renamed, terms)), free)


def _number(name: str, value: Any) -> sp.Expr:
    """Return a number or an expression in sizes and constants; raise `TheoryError` otherwise."""
    try:
        return exact(value)
    except (TypeError, ValueError, sp.SympifyError):
        raise TheoryError(
            f"{name} = {short_repr(value)} is not allowed: it must be a number, or an expression "
            "in sizes and constants"
        ) from None


def sqrt(value: Any) -> sp.Expr:
    """Return the exact square root of a number, size, constant or expression in them."""
    return sp.sqrt(_number("argument of sqrt", value))


def expression(value: Any) -> Expression:
    """Return an expression: itself, or a number."""
    if isinstance(value, Expression):
        return value
    return Expression.of_linear(Linear((), _number("number", value)), {})


def inner_product(first: Any, second: Any) -> Expression:
    """Return the inner product of two vectors, or of a vector and a datum."""
    pair = [x if isinstance(x, Element) else Element(x, None) for x in (first, second)]
    for x in pair:
        require(
            isinstance(x.family, Family) and (x.family.over is None) == (x.label is None),
            f"{short_repr(x.family)} in a product @ is not allowed: it must be a vector or a "
            "datum, with an index where it has a set, as in J['k']",
        )
    a, b = pair
    require(
        a.family.space is b.family.space,
        f"{a.family} @ {b.family} is not allowed: they lie in different spaces",
    )
    require(
        not (isinstance(a.family, Normal) and isinstance(b.family, Normal)),
        f"{a.family} @ {b.family} is not allowed: inner products of two data are no fields; only "
        "vectors may be multiplied with data",
    )
    free: dict[str, Exchangeable] = {}
    for x in pair:
        if isinstance(x.label, str):
            free = _joined(free, {x.label: x.family.over})
    return Expression.of_linear(Linear.of({inner(a, b): sp.Integer(1)}, sp.Integer(0)), free)


def _joined(
    left: Mapping[str, Exchangeable], right: Mapping[str, Exchangeable]
) -> dict[str, Exchangeable]:
    """Return the union of free indices, each with one set."""
    for name, index_set in right.items():
        require(
            left.get(name, index_set) is index_set,
            f"index {name!r} is not allowed for {left.get(name)} and {index_set}: use two names",
        )
    return {**left, **right}


def _scaled(value: Expression, number: sp.Expr, free: Mapping[str, Exchangeable]) -> Expression:
    """Return the product of an expression and a number."""
    if value.linear is not None:
        products = {x: number * c for x, c in value.linear.products}
        return Expression.of_linear(Linear.of(products, number * value.linear.constant), free)
    return Expression(
        tuple(x._replace(coefficient=number * x.coefficient) for x in value.terms), free
    )


def _product(left: Term, right: Term) -> Term:
    return Term(
        left.coefficient * right.coefficient,
        merged((*left.factors, *right.factors)),
        (*left.bound, *right.bound),
    )


def renamed(term: Term) -> Term:
    """Return a term with new names of its bound indices."""
    names: dict[str, str | int] = {name: f"#{next(_FRESH)}" for name, _ in term.bound}
    bound = tuple((str(names[name]), over) for name, over in term.bound)
    return Term(term.coefficient, replaced(term.factors, names), bound)
