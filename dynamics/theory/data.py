"""The data of a stated theory: every configuration, or every one up to symmetry with its chance.

Data are values on the elements of a few sets. Larger elements are of a *root kind* (one value for
each source on them), the elements inside of a *kind*. Values are independent but for *subsets*,
which have a given number of elements in all. Up to symmetry a larger element is of a type: its root
kind and how many elements of each kind it holds; N larger elements are a multiset of types, with
chance N! prod w^k / k!, w the chance of a type and k how often it occurs.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import NDArray

from dynamics.core.balls.exact import above, below
from dynamics.core.errors import ParameterError

Array = NDArray[np.float64]
#: Configurations up to symmetry, and numbers in all configurations one by one, at most.
MOST_ORBITS, MOST_NUMBERS = 10**6, 2**24
#: Steps in which they are counted, at most: some seconds.
MOST_STEPS = 10**7
#: Types of one set, which are nested in turn.
MOST_TYPES = 600
UNIT = 2.0**-53
#: Products of chances below are taken in balls: floats lose digits below 2.2e-308.
LEAST_FACTOR = 1e-290


@dataclass(frozen=True)
class Inner:
    """Elements inside a larger one.

    ``size`` of them; ``values`` (kinds, sources), ``weight`` (root kinds, kinds) their chances,
    ``uses`` (kinds, subsets) 1 where a kind is in a subset. ``random_subset``: ``size`` is how many
    there are in all, each in any of the larger elements, and they are a subset of their own;
    ``mean`` of them in each of these.
    """

    size: int
    values: Array
    weight: Array
    uses: NDArray[np.int64]
    random_subset: bool = False
    mean: float = 0.0

    @property
    def choices(self) -> int:
        """In how many ways one larger element can be filled."""
        if self.random_subset:
            return self.size + 1
        return math.comb(self.size + len(self.values) - 1, len(self.values) - 1)


@dataclass(frozen=True)
class Larger:
    """A set of ``size`` larger elements: values, weight and uses of root kinds as in `Inner`."""

    size: int
    values: Array
    weight: Array
    uses: NDArray[np.int64]
    inner: tuple[Inner, ...]

    @property
    def types(self) -> int:
        """How many types its elements may be of."""
        return len(self.weight) * math.prod(inner.choices for inner in self.inner)


@dataclass(frozen=True)
class Law:
    """All data: the sets, how many elements each subset has, what chances are divided by for it."""

    larger: tuple[Larger, ...]
    subset_size: tuple[int, ...]
    subset_ways: tuple[float, ...]

    @property
    def normaliser(self) -> float:
        """What the product of the chances of types is divided by."""
        return math.prod(self.subset_ways)

    @property
    def in_balls(self) -> bool:
        """Whether chances are balls; where one is, all are taken to be."""
        weights = [x.weight for x in self.larger]
        weights += [inner.weight for x in self.larger for inner in x.inner]
        return any(weight.dtype == object for weight in weights) or any(
            isinstance(x, arb) for x in self.subset_ways
        )


@dataclass(frozen=True)
class Type:
    """A larger element up to symmetry: root kind, numbers of each kind inside, chance, uses."""

    root: int
    numbers: tuple[tuple[int, ...], ...]
    weight: float
    uses: tuple[int, ...]


@dataclass(frozen=True)
class Orbits:
    """Configurations up to symmetry: ``weight`` (n,), and one block of families for each set.

    Families of set s in configuration b are rows ``first[s][b]`` to ``first[s][b + 1]`` of its
    arrays: ``arrays[s]`` holds count (families,), values of each source, numbers (families, kinds)
    of each inner set. ``remainder`` bounds the chance of configurations that were left out.
    ``errors`` holds relative errors of the weight and of each array, set after set, that is not
    ``first`` (`relative_errors`); empty: all are exact.
    """

    weight: Array
    first: tuple[NDArray[np.int64], ...]
    arrays: tuple[tuple[Array, ...], ...]
    remainder: float = 0.0
    errors: tuple[float, ...] = ()


def types_of(larger: Larger) -> list[Type]:
    """Return every type that has a chance."""
    found = []
    for root, weight in enumerate(larger.weight.tolist()):
        choices = [list(_fillings(inner)) for inner in larger.inner]
        for numbers in product(*choices):
            chance, uses = weight, larger.uses[root].copy()
            for inner, held in zip(larger.inner, numbers):
                if inner.random_subset:
                    chance *= poisson(held[0], inner.mean)
                    uses = uses + np.array(held) @ inner.uses
                    continue
                chance *= _multinomial(held) * math.prod(
                    w**k for w, k in zip(inner.weight[root].tolist(), held) if k
                )
                uses = uses + np.array(held) @ inner.uses
            if chance > 0.0:
                found.append(Type(root, numbers, chance, tuple(int(u) for u in uses)))
    return found


def orbits(law: Law) -> Orbits:
    """Return every configuration up to symmetry.

    Raises
    ------
    ParameterError
        If there are more than `MOST_ORBITS`.
    """
    number = how_many(law)
    if number > MOST_ORBITS:
        raise ParameterError(
            f"{number:.2g} data orbits are too many (most {MOST_ORBITS:g}): choose smaller sizes"
        )
    types = [types_of(larger) for larger in law.larger]
    found = list(_configurations(law, types, 0, law.subset_size))
    weights = [chance / law.normaliser for chance, _ in found]
    return collected(law, weights, [families for _, families in found])


def relative_errors(law: Law, exact: Law) -> tuple[float, ...]:
    """Return relative errors of the orbits of a law in floats: see `Orbits`.

    A chance is a product over at most so many families as there are types. Each of these has 16 u:
    8 u of its power by the C library, u of each of four operations, and what is left for balls.

    Parameters
    ----------
    exact
        The same law, its numbers balls.
    """
    chance, values = _error(law.normaliser, exact.normaliser) + 8.0 * UNIT, []
    for larger, balls in zip(law.larger, exact.larger):
        floats = {(x.root, x.numbers): x.weight for x in types_of(larger)}
        weights = {(x.root, x.numbers): x.weight for x in types_of(balls)}
        own = [_error(floats.get(key, 0.0), x) for key, x in weights.items()]
        families = min(len(own), larger.size)
        chance += larger.size * max(own, default=0.0) + 16.0 * UNIT * (families + 1)
        columns = zip(larger.values.T.tolist(), balls.values.T.tolist())
        inner = sum(len(x.values) > 1 or x.random_subset for x in larger.inner)
        values += [0.0, *(max(map(_error, *pair)) for pair in columns), *[0.0] * inner]
    return math.expm1(1.001 * chance) if chance < 1.0 else math.inf, *values


def _error(number: float, ball: Any) -> float:
    """Return a bound of the relative error of a float."""
    if ball == 0:
        return 0.0 if number == 0.0 else math.inf
    ball = arb(ball)
    least = below(abs(ball))
    return above(abs(number - ball) / least) if least > 0.0 else math.inf


def collected(
    law: Law,
    weights: Sequence[float],
    rows: Sequence[Sequence[list[tuple[int, Type]]]],
    remainder: float = 0.0,
) -> Orbits:
    """Return configurations, each given by its chance and the families of every set, as arrays."""
    by_set = [[families[s] for families in rows] for s in range(len(law.larger))]
    first = tuple(np.cumsum([0, *map(len, found)], dtype=np.int64) for found in by_set)
    arrays = tuple(_columns(larger, found) for larger, found in zip(law.larger, by_set))
    chances = weights if law.in_balls else [float(weight) for weight in weights]
    return Orbits(np.array(chances), first, arrays, remainder)


def _columns(larger: Larger, rows: list[list[tuple[int, Type]]]) -> tuple[Array, ...]:
    families = [family for own in rows for family in own]
    count = np.array([k for k, _ in families], float)
    values = [
        larger.values[[t.root for _, t in families], s] for s in range(larger.values.shape[1])
    ]
    numbers = [
        np.array([t.numbers[i] for _, t in families], float)
        for i, inner in enumerate(larger.inner)
        if len(inner.values) > 1 or inner.random_subset
    ]
    return count, *values, *numbers


def _configurations(
    law: Law, types: Sequence[list[Type]], s: int, left: tuple[int, ...]
) -> Iterator[tuple[float, list[list[tuple[int, Type]]]]]:
    """Yield chance and families of the sets from ``s`` on, with so many of each subset left."""
    if s == len(law.larger):
        if not any(left):
            yield 1.0, []
        return
    for chance, own, unused in _multisets(types[s], 0, law.larger[s].size, left):
        for others, rest in _configurations(law, types, s + 1, unused):
            yield times(chance, others), [own, *rest]


def _multisets(
    types: list[Type], at: int, size: int, left: tuple[int, ...]
) -> Iterator[tuple[float, list[tuple[int, Type]], tuple[int, ...]]]:
    """Yield chance, (count, type) pairs and what is left, of types from ``at`` on."""
    if size == 0:
        yield 1.0, [], left
        return
    if at == len(types):
        return
    kind = types[at]
    for count in range(size + 1):
        unused = tuple(have - count * use for have, use in zip(left, kind.uses))
        if min(unused, default=0) < 0:
            break
        chance = ways(size, count, kind.weight)
        own = [(count, kind)] if count else []
        for others, rest, last in _multisets(types, at + 1, size - count, unused):
            yield times(chance, others), own + rest, last


def ways(size: int, count: int, weight: Any) -> Any:
    """Return binomial(size, count) weight^count: a ball where a float would overflow or underflow.

    So that the relative error of a chance has a bound, however small its factors.
    """
    number, chance = math.comb(size, count), weight**count
    if not isinstance(chance, float):
        return number * chance
    if chance < LEAST_FACTOR or number > 2**1000:
        return arb(number) * arb(weight) ** count
    return number * chance


def times(one: Any, other: Any) -> Any:
    """Return the product of two chances: a ball where a float would underflow."""
    found = one * other
    return arb(one) * arb(other) if isinstance(found, float) and found < LEAST_FACTOR else found


def require_few_types(law: Law) -> None:
    """Refuse sets whose elements are of more types than can be nested."""
    for larger in law.larger:
        if larger.types > MOST_TYPES:
            raise ParameterError(
                f"{larger.size} larger elements of {larger.types:.3g} types are too many to "
                f"enumerate (most {MOST_TYPES} types): choose smaller sizes"
            )


def how_many(law: Law) -> int:
    """Count the configurations up to symmetry without listing them.

    Raises
    ------
    ParameterError
        If there are so many larger elements, or types of them, that this alone is too much.
    """
    require_few_types(law)
    for larger in law.larger:
        number = larger.types
        steps = number * (1 + larger.size) ** 2 * math.prod(1 + n for n in law.subset_size)
        if steps > MOST_STEPS:
            raise ParameterError(
                f"{larger.size} larger elements of {number:.3g} types are too many to enumerate: "
                "choose smaller sizes"
            )
    types = [types_of(larger) for larger in law.larger]
    total = {law.subset_size: 1}
    for larger, own in zip(law.larger, types):
        table = {(larger.size, left): ways for left, ways in total.items()}
        for kind in own:
            grown: dict[tuple[int, tuple[int, ...]], int] = {}
            for (size, left), ways in table.items():
                for count in range(size + 1):
                    unused = tuple(have - count * use for have, use in zip(left, kind.uses))
                    if min(unused, default=0) < 0:
                        break
                    key = size - count, unused
                    grown[key] = grown.get(key, 0) + ways
            table = grown
        total = {left: ways for (size, left), ways in table.items() if size == 0}
    return total.get((0,) * len(law.subset_size), 0)


def poisson(number: int, mean: Any) -> Any:
    """Return the chance of a number that has a Poisson law, of the kind of its mean."""
    if mean == 0.0:
        return float(number == 0)
    if not isinstance(mean, float):  # a ball
        return mean**number * (-mean).exp() / math.factorial(number)
    return math.exp(number * math.log(mean) - mean - math.lgamma(number + 1.0))


def _fillings(inner: Inner) -> Iterator[tuple[int, ...]]:
    """Yield how many elements of each kind one larger element may hold."""
    if inner.random_subset:
        yield from ((held,) for held in range(inner.size + 1))
    else:
        yield from _compositions(inner.size, len(inner.values))


def _compositions(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    if parts == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in _compositions(total - first, parts - 1):
            yield (first, *rest)


def _multinomial(numbers: Sequence[int]) -> int:
    ways, total = 1, 0
    for k in numbers:
        total += k
        ways *= math.comb(total, k)
    return ways
