"""Numerical distribution of the data of a user-defined theory."""

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
from dynamics.theory.sequences import SequenceLaw
from simulations.seeds import rng_at
from simulations.stated.sequences import sequence_law
from symbolic.theory.orbit_data import ElementType, InnerSet, OuterSet
from symbolic.theory.sources import Colouring, Sequence, Source, Subset
from symbolic.theory.theory import Theory


class Numbers:
    """Evaluation of expressions in sizes and constants at given values."""

    def __init__(self, values: Mapping[str, float]) -> None:
        self._values = {
            sp.Symbol(name): sp.Float(x, 17) if isinstance(x, float) else x
            for name, x in values.items()
        }

    def real(self, expression: sp.Expr) -> float:
        """Return the value of an expression as a float."""
        return float(self._at(expression))

    def whole(self, expression: sp.Expr) -> int:
        """Return the value of an integer expression."""
        return int(self._at(expression))

    def _at(self, expression: sp.Expr) -> sp.Expr:
        symbols = expression.free_symbols & self._values.keys()
        return expression.subs({x: self._values[x] for x in symbols})

    def of(self, number: int) -> float:
        """Convert an integer to the type that ``real`` returns."""
        return float(number)


class Balls(Numbers):
    """Evaluation of expressions in sizes and constants as balls, at the current precision."""

    def __init__(self, values: Mapping[str, float]) -> None:
        super().__init__(values)
        self._balls = {name: exact(x) for name, x in values.items()}

    def real(self, expression: sp.Expr) -> Any:
        """Return a ball that contains the value of an expression."""
        x = sp.sympify(expression, strict=True)
        if x.is_Symbol:
            return self._balls[x.name]
        if x.is_Rational:
            return arb(fmpq(int(x.p), int(x.q)))
        arguments = [self.real(y) for y in x.args]
        if x.is_Add:
            return sum(arguments[1:], arguments[0])
        if x.is_Mul:
            result = arguments[0]
            for y in arguments[1:]:
                result = result * y
            return result
        if x.is_Pow:
            return power(*arguments)
        raise ParameterError(f"{x} is not supported in ball arithmetic")

    def of(self, number: int) -> Any:
        """Convert an integer to a ball."""
        return arb(number)


def initial_values(theory: Theory, values: Mapping[str, float], seed: int = 0) -> dict[str, float]:
    """Return the initial values of the order parameters.

    Parameters
    ----------
    theory, values
        The theory, with sizes and constants as returned by ``theory.checked``.
    seed
        Seed of random starts, at least 0. The standard normal number of an order parameter depends
        only on the seed and on the position of the order parameter.
    """
    numbers, start = Numbers(values), {}
    for position, order in enumerate(theory.orders):
        if order.scale is None:
            start[order.name] = numbers.real(order.start)
            continue
        start[order.name] = numbers.real(order.scale) * rng_at(seed, position).normal()
    return start


def law(
    theory: Theory, values: Mapping[str, float], numbers: Numbers | None = None
) -> Law | SequenceLaw:
    """Return the distribution of the data, for the sets whose elements can differ.

    Parameters
    ----------
    theory, values
        The theory, with sizes and constants as returned by ``theory.checked``.
    numbers
        Evaluator that determines the type of probabilities and values; by default floats.
    """
    if theory.is_ordered:
        return sequence_law(theory, values, in_balls=isinstance(numbers, Balls))
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
    """Return the number of choices of a subset, or the probability of the length of a sequence.

    Counts of words are Poisson variables with the given means, conditional on their sum, the
    length of the sequence.
    """
    if isinstance(subset, Sequence):
        size = numbers.whole(subset.size)
        return poisson(size, numbers.of(size))
    assert isinstance(subset, Subset)
    of = sum(numbers.whole(part.count) for part in subset.over.parts)
    return numbers.of(comb(of, numbers.whole(subset.size)))


def _larger(outer_set: OuterSet, subsets: List[Source], numbers: Numbers) -> Larger:
    types = InnerSet(outer_set.inner[0].part, outer_set.sources).types
    return Larger(
        numbers.whole(outer_set.size),
        _values(types, numbers),
        np.array(
            [_probability(outer_set.sources, element_type, {}, numbers) for element_type in types]
        ),
        _uses(outer_set.sources, types, subsets),
        tuple(
            _inner(outer_set, types, inner_set, subsets, numbers) for inner_set in outer_set.inner
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
            _probability(
                inner_set.sources, element_type, dict(zip(outer_set.sources, root)), numbers
            )
            for element_type in inner_set.types
        ]
        for root in roots
    ]
    size, mean = numbers.whole(inner_set.part.size), 0.0
    if inner_set.sequence is not None and outer_set.root is not None:
        probability = numbers.real(inner_set.sequence.probabilities[outer_set.root])
        mean = size * probability / numbers.whole(outer_set.size)
    return Inner(
        size,
        _values(inner_set.types, numbers),
        np.array(weight),
        _uses((*inner_set.sources, inner_set.sequence), inner_set.types, subsets),
        inner_set.sequence is not None,
        mean,
    )


def _values(types: List[ElementType], numbers: Numbers) -> Array:
    return np.array([[numbers.real(x) for x in element_type] for element_type in types]).reshape(
        len(types), -1
    )


def _uses(
    sources: List[Source | None], types: List[ElementType], subsets: List[Source]
) -> np.ndarray:
    """Return 1 where elements of a type belong to a subset; a sequence contains all tokens."""

    def uses(element_type: ElementType, subset: Source) -> bool:
        if subset not in sources:
            return False
        return isinstance(subset, Sequence) or element_type[sources.index(subset)] == 1

    return np.array(
        [[int(uses(element_type, subset)) for subset in subsets] for element_type in types],
        dtype=np.int64,
    ).reshape(len(types), len(subsets))


def _probability(
    sources: List[Source],
    element_type: ElementType,
    root: Mapping[Source, sp.Expr],
    numbers: Numbers,
) -> float:
    """Return the probability of an element type, without the factor of random subsets."""
    probability = 1.0
    for source, value in zip(sources, element_type):
        if isinstance(source, Colouring):
            forced = [x for choice, x in source.given.items() if root.get(choice) == 1]
            given = float(value == forced[0]) if forced else numbers.real(source.law[value])
            probability *= given
    return probability
