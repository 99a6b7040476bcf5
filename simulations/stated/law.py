"""What a theory states about its data, as numbers."""

from collections.abc import Mapping
from collections.abc import Sequence as List
from math import comb
from typing import Any

import numpy as np
import sympy as sp
from flint import arb, fmpq

from dynamics.core.balls.exact import exact
from dynamics.core.errors import ParameterError
from dynamics.theory.data import Array, Inner, Larger, Law, poisson
from dynamics.theory.reference import power
from symbolic.theory.orbit_data import ElementType, InnerSet, OuterSet
from symbolic.theory.tensors import Colouring, Sequence, Source, Subset
from symbolic.theory.theory import Theory


class Numbers:
    """Expressions in sizes and constants, at given values of them."""

    def __init__(self, values: Mapping[str, float]) -> None:
        self._values = {
            sp.Symbol(name): sp.Float(x, 17) if isinstance(x, float) else x
            for name, x in values.items()
        }

    def real(self, expression: sp.Expr) -> float:
        """Return its value."""
        return float(self._at(expression))

    def whole(self, expression: sp.Expr) -> int:
        """Return its value, which is a whole number."""
        return int(self._at(expression))

    def _at(self, expression: sp.Expr) -> sp.Expr:
        asked = expression.free_symbols & self._values.keys()
        return expression.subs({x: self._values[x] for x in asked})

    def of(self, number: int) -> float:
        """Return a whole number as one of those that ``real`` returns."""
        return float(number)


class Balls(Numbers):
    """Expressions in sizes and constants as balls, in the precision that is set."""

    def __init__(self, values: Mapping[str, float]) -> None:
        super().__init__(values)
        self._balls = {name: exact(x) for name, x in values.items()}

    def real(self, expression: sp.Expr) -> Any:
        """Return a ball that holds its value."""
        x = sp.sympify(expression, strict=True)
        if x.is_Symbol:
            return self._balls[x.name]
        if x.is_Rational:
            return arb(fmpq(int(x.p), int(x.q)))
        arguments = [self.real(y) for y in x.args]
        if x.is_Add:
            return sum(arguments[1:], arguments[0])
        if x.is_Mul:
            found = arguments[0]
            for y in arguments[1:]:
                found = found * y
            return found
        if x.is_Pow:
            return power(*arguments)
        raise ParameterError(f"{x} is no number that balls know")

    def of(self, number: int) -> Any:
        """Return a whole number as a ball."""
        return arb(number)


def law(theory: Theory, values: Mapping[str, float], numbers: Numbers | None = None) -> Law:
    """Return the law of the data at checked values, for the sets whose elements can differ.

    With other ``numbers``, chances and values of data are of their kind.
    """
    numbers = numbers or Numbers(values)
    outer_sets = [outer_set for outer_set in theory.outer_sets if outer_set.has_data]
    used = {s for outer_set in outer_sets for s in outer_set.sources}
    inner = [inner_set for outer_set in outer_sets for inner_set in outer_set.inner]
    used |= {s for inner_set in inner for s in inner_set.sources}
    used |= {inner_set.sequence for inner_set in inner if inner_set.sequence}
    subsets = [x for x in theory.data if isinstance(x, (Subset, Sequence)) and x in used]
    return Law(
        tuple(_larger(outer_set, subsets, numbers) for outer_set in outer_sets),
        tuple(numbers.whole(subset.size) for subset in subsets),
        tuple(_ways(subset, numbers) for subset in subsets),
    )


def _ways(subset: Source, numbers: Numbers) -> float:
    """Return in how many ways a subset is chosen; of a sequence the chance of its length.

    Counts of words are Poisson with the mean that they have, given that they sum to the length.
    """
    if isinstance(subset, Sequence):
        size = numbers.whole(subset.size)
        return poisson(size, numbers.of(size))
    assert isinstance(subset, Subset)
    of = sum(numbers.whole(part.count) for part in subset.over.parts)
    return numbers.of(comb(of, numbers.whole(subset.size)))


def _larger(outer_set: OuterSet, subsets: List[Source], numbers: Numbers) -> Larger:
    kinds = InnerSet(outer_set.inner[0].part, outer_set.sources).types
    return Larger(
        numbers.whole(outer_set.size),
        _values(kinds, numbers),
        np.array([_chance(outer_set.sources, kind, {}, numbers) for kind in kinds]),
        _uses(outer_set.sources, kinds, subsets),
        tuple(
            _inner(outer_set, kinds, inner_set, subsets, numbers) for inner_set in outer_set.inner
        ),
    )


def _inner(
    outer_set: OuterSet,
    roots: List[ElementType],
    inner_set: InnerSet,
    subsets: List[Source],
    numbers: Numbers,
) -> Inner:
    weight = [
        [
            _chance(inner_set.sources, kind, dict(zip(outer_set.sources, root)), numbers)
            for kind in inner_set.types
        ]
        for root in roots
    ]
    size, mean = numbers.whole(inner_set.part.size), 0.0
    if inner_set.sequence is not None and outer_set.root is not None:
        chance = numbers.real(inner_set.sequence.probabilities[outer_set.root])
        mean = size * chance / numbers.whole(outer_set.size)
    return Inner(
        size,
        _values(inner_set.types, numbers),
        np.array(weight),
        _uses((*inner_set.sources, inner_set.sequence), inner_set.types, subsets),
        inner_set.sequence is not None,
        mean,
    )


def _values(kinds: List[ElementType], numbers: Numbers) -> Array:
    return np.array([[numbers.real(x) for x in kind] for kind in kinds]).reshape(len(kinds), -1)


def _uses(
    sources: List[Source | None], kinds: List[ElementType], subsets: List[Source]
) -> np.ndarray:
    """Return which subsets an element of each kind is in; a token is in its sequence."""

    def uses(kind: ElementType, subset: Source) -> bool:
        if subset not in sources:
            return False
        return isinstance(subset, Sequence) or kind[sources.index(subset)] == 1

    return np.array(
        [[int(uses(kind, subset)) for subset in subsets] for kind in kinds], dtype=np.int64
    ).reshape(len(kinds), len(subsets))


def _chance(
    sources: List[Source], kind: ElementType, root: Mapping[Source, sp.Expr], numbers: Numbers
) -> float:
    """Return the chance of a kind; the choice of subsets is counted elsewhere."""
    chance = 1.0
    for source, value in zip(sources, kind):
        if isinstance(source, Colouring):
            forced = [x for choice, x in source.given.items() if root.get(choice) == 1]
            given = float(value == forced[0]) if forced else numbers.real(source.law[value])
            chance *= given
    return chance
