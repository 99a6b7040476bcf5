"""The loss of a theory in overlaps at given numbers of elements, term by term.

It expands each sum over all values of its index, without patterns, orbits and expectations, for the
comparison with vectors in a finite dimension.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import NamedTuple

import sympy as sp

from symbolic.overlaps.language import Element, Family, Normal
from symbolic.overlaps.terms import Factor, replaced
from symbolic.overlaps.theory import OverlapTheory
from symbolic.theory.sets import Exchangeable


class ConcreteProduct(NamedTuple):
    """An inner product with a coefficient; the second factor is a datum or a vector.

    Vectors and data are numbered in the order of `members`.
    """

    coefficient: sp.Expr
    vector: int
    other: int
    is_datum: bool


class ConcreteFactor(NamedTuple):
    """A power of a function of a constant plus a sum of inner products.

    For a weight of a softmax, ``scores`` are the scores of all tokens.
    """

    function: str
    power: int
    constant: sp.Expr
    products: tuple[ConcreteProduct, ...]
    scores: tuple[ConcreteFactor, ...] = ()


def members(families: tuple[Family, ...], sizes: Mapping[Exchangeable, int]) -> list[Element]:
    """Return the vectors or data of families at given numbers of elements."""
    return [
        Element(family, k)
        for family in families
        for k in ([None] if family.over is None else range(sizes[family.over]))
    ]


def concrete(
    theory: OverlapTheory, sizes: Mapping[Exchangeable, int]
) -> Iterator[tuple[sp.Expr, tuple[ConcreteFactor, ...]]]:
    """Yield each term of the expanded loss: a coefficient and its factors."""
    vectors = {x: k for k, x in enumerate(members(theory.vectors, sizes))}
    data = {x: k for k, x in enumerate(members(theory.data, sizes))}

    def of(factor: Factor) -> ConcreteFactor:
        labels = ((s, [None] if s.over is None else range(sizes[s.over])) for s in factor.scores)
        scores = tuple(of(Factor("", s.at(k), 1)) for s, own in labels for k in own)
        products = tuple(
            ConcreteProduct(
                coefficient,
                vectors[x.first],
                data[x.second] if isinstance(x.second.family, Normal) else vectors[x.second],
                isinstance(x.second.family, Normal),
            )
            for x, coefficient in factor.linear.products
        )
        return ConcreteFactor(
            factor.function, factor.power, factor.linear.constant, products, scores
        )

    for term in theory.loss.terms:
        names = [name for name, _ in term.bound]
        for choice in product(*(range(sizes[over]) for _, over in term.bound)):
            factors = replaced(term.factors, dict(zip(names, choice)))
            yield term.coefficient, tuple(map(of, factors))
