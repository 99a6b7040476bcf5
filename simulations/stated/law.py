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
from symbolic.theory.orbit_data import Home, Kind, Members
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
    homes = [home for home in theory.homes if home.has_data]
    used = {s for home in homes for s in home.sources}
    inner = [members for home in homes for members in home.inner]
    used |= {s for members in inner for s in members.sources}
    used |= {members.random_subset for members in inner if members.random_subset}
    subsets = [x for x in theory.data if isinstance(x, (Subset, Sequence)) and x in used]
    return Law(
        tuple(_larger(home, subsets, numbers) for home in homes),
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


def _larger(home: Home, subsets: List[Source], numbers: Numbers) -> Larger:
    kinds = Members(home.inner[0].part, home.sources).kinds
    return Larger(
        numbers.whole(home.size),
        _values(kinds, numbers),
        np.array([_chance(home.sources, kind, {}, numbers) for kind in kinds]),
        _uses(home.sources, kinds, subsets),
        tuple(_inner(home, kinds, members, subsets, numbers) for members in home.inner),
    )


def _inner(
    home: Home, roots: List[Kind], members: Members, subsets: List[Source], numbers: Numbers
) -> Inner:
    weight = [
        [
            _chance(members.sources, kind, dict(zip(home.sources, root)), numbers)
            for kind in members.kinds
        ]
        for root in roots
    ]
    size, mean = numbers.whole(members.part.size), 0.0
    if members.random_subset is not None and home.root is not None:
        chance = numbers.real(members.random_subset.chances[home.root])
        mean = size * chance / numbers.whole(home.size)
    return Inner(
        size,
        _values(members.kinds, numbers),
        np.array(weight),
        _uses((*members.sources, members.random_subset), members.kinds, subsets),
        members.random_subset is not None,
        mean,
    )


def _values(kinds: List[Kind], numbers: Numbers) -> Array:
    return np.array([[numbers.real(x) for x in kind] for kind in kinds]).reshape(len(kinds), -1)


def _uses(sources: List[Source | None], kinds: List[Kind], subsets: List[Source]) -> np.ndarray:
    """Return which subsets an element of each kind is in; a token is in its sequence."""

    def uses(kind: Kind, subset: Source) -> bool:
        if subset not in sources:
            return False
        return isinstance(subset, Sequence) or kind[sources.index(subset)] == 1

    return np.array(
        [[int(uses(kind, subset)) for subset in subsets] for kind in kinds], dtype=np.int64
    ).reshape(len(kinds), len(subsets))


def _chance(
    sources: List[Source], kind: Kind, root: Mapping[Source, sp.Expr], numbers: Numbers
) -> float:
    """Return the chance of a kind; the choice of subsets is counted elsewhere."""
    chance = 1.0
    for source, value in zip(sources, kind):
        if isinstance(source, Colouring):
            forced = [x for choice, x in source.given.items() if root.get(choice) == 1]
            given = float(value == forced[0]) if forced else numbers.real(source.law[value])
            chance *= given
    return chance
