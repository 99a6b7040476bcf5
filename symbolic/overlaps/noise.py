"""Second moments of the gradient of one datum, for stochastic gradient descent with one pass.

The gradient of the loss of a datum in a vector u_a is a sum of data and vectors with random
coefficients. The mean of the product of two of them, g_a g_b, is d N_ab + T_ab: the dimension d of
the space enters through the mean of |x|^2 f = d v f + x . grad f, with v the variance of x.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import sympy as sp

from symbolic.overlaps.expansion import Reduced, Sums, add, patterns, reduced
from symbolic.overlaps.gram import Pair
from symbolic.overlaps.language import Element, Expression, Family, Normal, renamed
from symbolic.overlaps.terms import Factor, Inner, Linear, Term, inner, merged, replaced, slopes
from symbolic.theory.errors import require
from symbolic.theory.sets import Exchangeable


class Noise(NamedTuple):
    """Mean inner product of two gradients of one datum: leading + correction.

    Attributes
    ----------
    leading
        The part that is proportional to the dimension.
    correction
        The rest.
    """

    leading: Reduced
    correction: Reduced


def noise(loss: Expression, pairs: Sequence[Pair]) -> list[Noise]:
    """Return the second moments of the gradients of pairs of trained vectors, for all sizes.

    Raises
    ------
    TheoryError
        If an expectation has more functions with different arguments than can be integrated.
    """
    copies = tuple(map(renamed, loss.terms))
    sums: list[Sums] = []
    for pair in pairs:
        given: dict[tuple[str, Exchangeable], int] = {}
        vectors = []
        for name, family in (("#a", pair.first), ("#b", pair.second)):
            if family.over is not None:
                given[name, family.over] = int(name == "#b" and pair.relation == "other")
            vectors.append(Element(family, None if family.over is None else name))
        leading: Sums = {}
        correction: Sums = {}
        for left, x in _gradient(loss.terms, vectors[0], loss.location):
            for right, y in _gradient(copies, vectors[1], loss.location):
                factors = merged((*left.factors, *right.factors))
                for number, numbers in patterns((*left.bound, *right.bound), given):
                    scale = left.coefficient * right.coefficient * number
                    product = replaced(factors, numbers)
                    own = _products(product, x.at(numbers), y.at(numbers))
                    for coefficient, chosen, is_leading in own:
                        add(leading if is_leading else correction, scale * coefficient, chosen)
        sums += [leading, correction]
    parts = reduced(sums, loss.location)
    return [Noise(*parts[k : k + 2]) for k in range(0, len(parts), 2)]


def require_gradient(loss: Expression, families: Iterable[Family]) -> None:
    """Raise `TheoryError` if the loss of a datum jumps where trained vectors move."""
    for family in families:
        element = Element(family, None if family.over is None else "#a")
        for _ in _gradient(loss.terms, element, loss.location):
            pass


def _gradient(
    terms: tuple[Term, ...], vector: Element, location: Any
) -> Iterator[tuple[Term, Element]]:
    """Yield the gradient in a vector: terms, each times a datum or another vector."""
    for term in terms:
        require(
            not any(factor.scores for factor in term.factors),
            "softmax over tokens is not allowed in one-pass SGD: the second moments of its "
            "gradients are not available; use gradient flow or descent",
            location,
        )
        for k, factor in enumerate(term.factors):
            rest = (*term.factors[:k], *term.factors[k + 1 :])
            for x, weight in factor.linear.products:
                for own, other in ((x.first, x.second), (x.second, x.first)):
                    if own.family is not vector.family:
                        continue
                    numbers: dict[str, str | int] = {}
                    if own.label is not None and vector.label is not None:
                        numbers[str(own.label)] = vector.label
                    bound = tuple(pair for pair in term.bound if pair[0] not in numbers)
                    for coefficient, slope in slopes(factor):
                        factors = replaced((*rest, *slope), numbers)
                        if _vanishes(factors):
                            continue
                        require(
                            all(x.function != "delta" for x in factors),
                            f"step of a field of {vector.family} is not allowed in one-pass SGD: "
                            "the loss of a datum jumps and has no gradient; use gradient flow or "
                            "descent, or erf of a large multiple",
                            location,
                        )
                        scale = term.coefficient * weight * coefficient
                        yield Term(scale, factors, bound), other.at(numbers)


def _products(
    factors: tuple[Factor, ...], x: Element, y: Element
) -> Iterator[tuple[sp.Expr, tuple[Factor, ...], bool]]:
    """Yield the mean of the inner product x y times factors as a sum of products of factors.

    Each has a coefficient, and is or is not proportional to the dimension.
    """
    if not isinstance(x.family, Normal) or not isinstance(y.family, Normal):
        yield sp.Integer(1), _with(factors, {(x, y): sp.Integer(1)}), False
        return
    if x.family.mean is not None:
        scale, direction = x.family.mean
        yield scale, _with(factors, {(Element(direction, None), y): sp.Integer(1)}), False
    variance = x.family.variance
    if x == y:
        yield variance * x.family.space.dimension, factors, True
    for k, factor in enumerate(factors):
        weights = {(p.first, y): c for p, c in factor.linear.products if p.second == x}
        if weights:
            for coefficient, slope in slopes(factor):
                product = (*factors[:k], *factors[k + 1 :], *slope)
                if not _vanishes(product):
                    yield variance * coefficient, _with(product, weights), False


def _vanishes(factors: tuple[Factor, ...]) -> bool:
    """Return whether a product contains x delta(x), which is 0."""
    zeros = {x.linear for x in factors if x.function == "delta"}
    return any(x.linear in zeros and not x.function for x in factors)


def _with(
    factors: tuple[Factor, ...], weights: dict[tuple[Element, Element], sp.Expr]
) -> tuple[Factor, ...]:
    """Return factors times a linear combination of inner products."""
    products: dict[Inner, sp.Expr] = {}
    for pair, weight in weights.items():
        products[inner(*pair)] = products.get(inner(*pair), sp.Integer(0)) + weight
    return merged((*factors, Factor("", Linear.of(products, sp.Integer(0)), 1)))
