"""Comparison of a theory in overlaps with gradient descent on vectors at small sizes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from itertools import product
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from dynamics.overlaps.dense import DenseDatum, DenseFactor, DenseModel, DenseProduct
from simulations.stated.overlaps import Numbers, risk
from symbolic.overlaps import OverlapTheory, Vectors
from symbolic.overlaps.concrete import ConcreteFactor, concrete, members
from symbolic.overlaps.gram import Pair, pair_of
from symbolic.overlaps.language import Element
from symbolic.theory import TheoryError

#: Elements of each set in the comparison, and with a softmax of more than three tokens.
_ELEMENTS, _FEWER, _TOKENS = 3, 2, 3
#: Largest difference that is allowed, relative to 1 + |value|.
TOLERANCE = 1e-10
#: Steps of the comparison and their learning rate.
_STEPS, _RATE = 2, 0.3


class OverlapCheck(NamedTuple):
    """Differences between a theory in overlaps and vectors in a finite dimension.

    Attributes
    ----------
    values
        Sizes and constants of the comparison.
    loss, overlaps
        Largest difference of the loss and of the overlaps over all steps, relative to 1 + |value|.
    """

    values: dict[str, float]
    loss: float
    overlaps: float

    @property
    def agrees(self) -> bool:
        """Whether both differences are within the tolerance."""
        return self.loss <= TOLERANCE and self.overlaps <= TOLERANCE


@cache
def check(theory: OverlapTheory, given: tuple[tuple[str, float], ...] = ()) -> OverlapCheck:
    """Compare some steps of descent from random vectors, and the losses.

    Parameters
    ----------
    theory
        The theory.
    given
        Names and values of sizes and constants of the check; the other sizes are small.
    """
    values = small_values(theory, dict(given))
    reduced, dense = risk(theory, values), dense_model(theory, values)
    vectors = random_vectors(theory, values, np.random.default_rng(0))
    pairs = list(orbits(theory, values).values())
    loss = overlaps = 0.0
    for _ in range(_STEPS):
        state = state_of(vectors, pairs)
        moved, value = reduced.step(state, _RATE), reduced.loss(state)
        try:
            dense_loss, vectors, _ = dense.step(vectors, _RATE)
        except ValueError as error:
            raise TheoryError(f"{theory.name} is not allowed: {error}", theory.location) from None
        loss = max(loss, abs(value - dense_loss) / (1.0 + abs(value)))
        change = np.abs(moved - state_of(vectors, pairs)) / (1.0 + np.abs(moved))
        overlaps = max(overlaps, float(np.max(change)))
    return OverlapCheck(values, loss, overlaps)


def require_agreement(theory: OverlapTheory) -> None:
    """Raise `TheoryError` if overlaps and vectors disagree."""
    result = check(theory)
    if not result.agrees:
        raise TheoryError(
            f"{theory.name} fails its check: descent on overlaps and on vectors differ by "
            f"{max(result.loss, result.overlaps):.1e}",
            theory.location,
        )


def small_values(
    theory: OverlapTheory, given: Mapping[str, float] = MappingProxyType({})
) -> dict[str, float]:
    """Return given and small sizes, and the given, default or example constants."""
    in_dimension = {
        x.name for family in theory.vectors for x in family.space.dimension.free_symbols
    }
    values: dict[str, float] = {}
    tokens = theory.tokens.subs({size.name: _ELEMENTS for size in theory.sizes})
    elements = _ELEMENTS if tokens <= _TOKENS else _FEWER
    for size in theory.sizes:
        if size.name not in in_dimension:
            least = min(max(size.least, elements), size.most)
            values[size.name] = given.get(size.name, least)
    number = sum(int(x.number.subs(values)) for x in theory.vectors)
    for size in theory.sizes:
        if size.name in in_dimension:
            least = min(max(size.least, number + 1), size.most)
            values[size.name] = given.get(size.name, least)
    for name, constant in theory.free_constants.items():
        values[name] = theory.defaults.get(name, constant.example)
    return theory.checked({**values, **given})


def _elements(theory: OverlapTheory, values: dict[str, float]) -> dict[Any, int]:
    """Return the number of elements of each set."""
    return {over: Numbers(values).integer(over.size) for over in theory.sets}


def dense_model(theory: OverlapTheory, values: dict[str, float]) -> DenseModel:
    """Return the loss over vectors at checked sizes and constants."""
    numbers, sizes = Numbers(values), _elements(theory, values)
    vectors, data = members(theory.vectors, sizes), members(theory.data, sizes)
    terms = []
    for coefficient, factors in concrete(theory, sizes):
        dense = tuple(_dense_factor(x, numbers) for x in _with_relu(factors))
        terms.append((numbers.float(coefficient), dense))
    laws = []
    for element in data:
        mean = element.family.mean
        direction = vectors.index(Element(mean[1], None)) if mean else -1
        deviation = np.sqrt(numbers.float(element.family.variance))
        laws.append(DenseDatum(deviation, numbers.float(mean[0]) if mean else 0.0, direction))
    trained = np.array([isinstance(x.family, Vectors) for x in vectors])
    sphere = np.array([getattr(x.family, "sphere", False) for x in vectors])
    return DenseModel(tuple(terms), tuple(laws), trained, sphere)


def _dense_factor(factor: ConcreteFactor, numbers: Numbers) -> DenseFactor:
    """Return a factor with its constants as floats."""
    products = (DenseProduct(numbers.float(y.coefficient), *y[1:]) for y in factor.products)
    return DenseFactor(
        factor.function,
        factor.power,
        numbers.float(factor.constant),
        tuple(products),
        tuple(_dense_factor(x, numbers) for x in factor.scores),
    )


def _with_relu(factors: Iterable[ConcreteFactor]) -> list[ConcreteFactor]:
    """Return factors with x^n step(x) as a power of relu; other steps remain."""
    factors = list(factors)
    steps = {x.products for x in factors if x.function == "step"}
    fields = {x.products for x in factors if not x.function}
    others = (x for x in factors if x.function != "step" or x.products not in fields)
    return [
        x._replace(function="relu") if not x.function and x.products in steps else x for x in others
    ]


def random_vectors(
    theory: OverlapTheory, values: dict[str, float], rng: np.random.Generator
) -> np.ndarray:
    """Return vectors (n, d) with random overlaps; directions have their fixed products."""
    levels = {pair: 0.15 * rng.uniform(-1.0, 1.0) for pair in theory.entries}
    levels |= {pair: 0.7 for pair in theory.entries if pair.is_diagonal}
    return vectors_of(theory, values, levels)


def vectors_of(
    theory: OverlapTheory, values: dict[str, float], overlaps: Mapping[Pair, float]
) -> np.ndarray:
    """Return vectors (n, d) with given overlaps, the same for all pairs of an orbit.

    Raises
    ------
    TheoryError
        If no vectors have these overlaps.
    """
    numbers, vectors = Numbers(values), members(theory.vectors, _elements(theory, values))
    dimension = int(max(numbers.float(x.space.dimension) for x in theory.vectors))
    gram = np.zeros((len(vectors), len(vectors)))
    for (i, x), (j, y) in product(enumerate(vectors), repeat=2):
        pair = _pair_of(x, y)
        if pair is not None:
            value = theory.fixed(pair)
            gram[i, j] = overlaps[pair] if value is None else numbers.float(value)
    squares, rows = np.linalg.eigh(gram)
    if not squares[0] >= -1e-10 * squares[-1]:
        raise TheoryError(f"{theory.name}: no vectors have these overlaps", theory.location)
    factor = rows * np.sqrt(np.maximum(squares, 0.0))
    return np.hstack([factor, np.zeros((len(vectors), max(0, dimension - len(vectors))))])


def _pair_of(x: Element, y: Element) -> Pair | None:
    """Return the orbit of unordered pairs of two vectors; ``None`` in different spaces."""
    return pair_of(x, y).unordered if x.family.space is y.family.space else None


def orbits(theory: OverlapTheory, values: dict[str, float]) -> dict[Pair, np.ndarray]:
    """Return the pairs of vectors (pairs, 2) of each order parameter that exists at these sizes."""
    vectors = members(theory.vectors, _elements(theory, values))
    pairs: dict[Pair, list[tuple[int, int]]] = {}
    for (i, x), (j, y) in product(enumerate(vectors), repeat=2):
        pair = _pair_of(x, y)
        if pair is not None:
            pairs.setdefault(pair, []).append((i, j))
    return {pair: np.array(pairs[pair]) for pair in theory.overlaps if pair in pairs}


def state_of(vectors: np.ndarray, pairs: Iterable[np.ndarray]) -> np.ndarray:
    """Return the overlaps of vectors, the first of each orbit, (n,)."""
    return np.array([vectors[own[0, 0]] @ vectors[own[0, 1]] for own in pairs])
