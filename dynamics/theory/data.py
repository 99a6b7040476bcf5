"""Orbits of the data of a theory: configurations up to symmetry with their probabilities.

Data are values on the elements of index sets. Each larger element has a *root class* (the values of
the sources on it) and contains inner elements, each with its own *class*. Values are independent,
except for *subsets* of prescribed size. Up to symmetry, a larger element is described by its
*type*: its root class and the number of inner elements of each class. N larger elements are a
multiset of types with probability N! prod w^k / k!, where a type has probability w and multiplicity
k.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from flint import arb
from numpy.typing import NDArray

from dynamics.core.balls.exact import above, below
from dynamics.core.errors import ParameterError

if TYPE_CHECKING:
    from dynamics.theory.sequences import SequenceLaw

Array = NDArray[np.float64]
#: Largest number of orbits, and of entries in all their arrays.
MOST_ORBITS, MOST_NUMBERS = 10**6, 2**24
#: Largest number of steps for counting orbits; they take a few seconds.
MOST_STEPS = 10**7
#: Largest number of types of a set.
MOST_TYPES = 600
UNIT = 2.0**-53
#: Smaller products of probabilities are computed in balls: floats lose digits below 2.2e-308.
LEAST_FACTOR = 1e-290


@dataclass(frozen=True)
class Inner:
    """Elements inside a larger element.

    Attributes
    ----------
    size
        Number of elements in each larger element, or in all of them (``random_subset``).
    values
        Values of the sources for each class, shape (classes, sources).
    weight
        Probabilities of the classes for each root class, shape (root classes, classes).
    uses
        1 where a class belongs to a subset, shape (classes, subsets).
    random_subset
        Whether the elements are distributed at random among the larger elements; they then form a
        subset of their own.
    mean
        Mean number of elements in a larger element (``random_subset``).
    """

    size: int
    values: Array
    weight: Array
    uses: NDArray[np.int64]
    random_subset: bool = False
    mean: float = 0.0

    @property
    def choices(self) -> int:
        """Number of possible contents of a larger element, up to symmetry."""
        if self.random_subset:
            return self.size + 1
        return math.comb(self.size + len(self.values) - 1, len(self.values) - 1)


@dataclass(frozen=True)
class Larger:
    """A set of ``size`` larger elements; values, weight and uses of root classes as in `Inner`."""

    size: int
    values: Array
    weight: Array
    uses: NDArray[np.int64]
    inner: tuple[Inner, ...]

    @property
    def types(self) -> int:
        """Number of types of its elements."""
        return len(self.weight) * math.prod(inner.choices for inner in self.inner)


@dataclass(frozen=True)
class Law:
    """Distribution of all data.

    Attributes
    ----------
    larger
        The sets of larger elements.
    subset_size
        Number of elements of each subset.
    subset_ways
        Normalising constant of each subset.
    """

    larger: tuple[Larger, ...]
    subset_size: tuple[int, ...]
    subset_ways: tuple[float, ...]

    @property
    def normaliser(self) -> float:
        """Normalising constant of the product of the probabilities of types."""
        return math.prod(self.subset_ways)

    @property
    def in_balls(self) -> bool:
        """Whether any probability is a ball; then all are treated as balls."""
        weights = [x.weight for x in self.larger]
        weights += [inner.weight for x in self.larger for inner in x.inner]
        return any(weight.dtype == object for weight in weights) or any(
            isinstance(x, arb) for x in self.subset_ways
        )


@dataclass(frozen=True)
class Type:
    """A larger element up to symmetry: root class, numbers of inner classes, probability, uses."""

    root: int
    numbers: tuple[tuple[int, ...], ...]
    weight: float
    uses: tuple[int, ...]


@dataclass(frozen=True)
class Orbits:
    """Configurations up to symmetry. A family is a type with its multiplicity.

    Attributes
    ----------
    weight
        Probability of each configuration, shape (n,).
    first
        For each set s, the families of configuration b are the rows ``first[s][b]`` to
        ``first[s][b + 1]`` of its arrays.
    arrays
        For each set: counts (families,), values of each source (families,), and numbers (families,
        classes) of each inner set.
    remainder
        Bound of the probability of omitted configurations.
    errors
        Relative errors of the weight and of each array, set by set (see `relative_errors`); empty
        if all are exact.
    form
        ``"sample"``: the configurations are a random sample, so that means are estimates.
        ``"steps"``: a configuration is a position of a chain with two states and a number of ones;
        the weights of each position sum to 1. Else empty.
    """

    weight: Array
    first: tuple[NDArray[np.int64], ...]
    arrays: tuple[tuple[Array, ...], ...]
    remainder: float = 0.0
    errors: tuple[float, ...] = ()
    form: str = ""


def types_of(larger: Larger) -> list[Type]:
    """Return all types of positive probability."""
    results = []
    for root, weight in enumerate(larger.weight.tolist()):
        choices = [list(_fillings(inner)) for inner in larger.inner]
        for numbers in product(*choices):
            probability, uses = weight, larger.uses[root].copy()
            for inner, held in zip(larger.inner, numbers):
                if inner.random_subset:
                    probability *= poisson(held[0], inner.mean)
                    uses = uses + np.array(held) @ inner.uses
                    continue
                probability *= _multinomial(held) * math.prod(
                    w**k for w, k in zip(inner.weight[root].tolist(), held) if k
                )
                uses = uses + np.array(held) @ inner.uses
            if not probability <= 0.0:  # a ball around 0 may be positive
                results.append(Type(root, numbers, probability, tuple(int(u) for u in uses)))
    return results


def orbits(law: "Law | SequenceLaw") -> Orbits:
    """Return all configurations up to symmetry.

    Raises
    ------
    ParameterError
        If there are more than `MOST_ORBITS`.
    """
    if not isinstance(law, Law):
        return law.orbits()
    number = count_orbits(law)
    if number > MOST_ORBITS:
        raise ParameterError(
            f"{number:.2g} data orbits are too many (most {MOST_ORBITS:g}): choose smaller sizes"
        )
    types = [types_of(larger) for larger in law.larger]
    results = list(_configurations(law, types, 0, law.subset_size))
    weights = [probability / law.normaliser for probability, _ in results]
    return collected(law, weights, [families for _, families in results])


def relative_errors(law: "Law | SequenceLaw", exact: "Law | SequenceLaw") -> tuple[float, ...]:
    """Return the relative errors of the orbits of a law in floats (`Orbits.errors`).

    A probability is a product over families, at most one per type. Each factor contributes 16 u:
    8 u for its power by the C library, u for each of four operations, and slack for balls.

    Parameters
    ----------
    law
        Distribution in floats.
    exact
        The same distribution in balls.
    """
    if not isinstance(law, Law):
        return law.orbits().errors
    assert isinstance(exact, Law)
    probability, values = _error(law.normaliser, exact.normaliser) + 8.0 * UNIT, []
    for larger, balls in zip(law.larger, exact.larger):
        floats = {(x.root, x.numbers): x.weight for x in types_of(larger)}
        weights = {(x.root, x.numbers): x.weight for x in types_of(balls)}
        own = [_error(floats.get(key, 0.0), x) for key, x in weights.items()]
        families = min(len(own), larger.size)
        probability += larger.size * max(own, default=0.0) + 16.0 * UNIT * (families + 1)
        columns = zip(larger.values.T.tolist(), balls.values.T.tolist())
        inner = sum(len(x.values) > 1 or x.random_subset for x in larger.inner)
        values += [0.0, *(max(map(_error, *pair)) for pair in columns), *[0.0] * inner]
    return math.expm1(1.001 * probability) if probability < 1.0 else math.inf, *values


def _error(number: float, ball: Any) -> float:
    """Return a bound of the relative error of a float, given a ball around the exact value."""
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
    """Convert configurations, given by probability and families of each set, to arrays."""
    by_set = [[families[s] for families in rows] for s in range(len(law.larger))]
    first = tuple(np.cumsum([0, *map(len, results)], dtype=np.int64) for results in by_set)
    arrays = tuple(_columns(larger, results) for larger, results in zip(law.larger, by_set))
    probabilities = weights if law.in_balls else [float(weight) for weight in weights]
    return Orbits(np.array(probabilities), first, arrays, remainder)


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
    """Yield probability and families of the sets from ``s`` on, for the remaining subset sizes."""
    if s == len(law.larger):
        if not any(left):
            yield 1.0, []
        return
    for probability, own, unused in _multisets(types[s], 0, law.larger[s].size, left):
        for others, rest in _configurations(law, types, s + 1, unused):
            yield times(probability, others), [own, *rest]


def _multisets(
    types: list[Type], at: int, size: int, left: tuple[int, ...]
) -> Iterator[tuple[float, list[tuple[int, Type]], tuple[int, ...]]]:
    """Yield probability, (count, type) pairs and remaining subset sizes, for types from ``at``."""
    if size == 0:
        yield 1.0, [], left
        return
    if at == len(types):
        return
    element_type = types[at]
    for count in range(size + 1):
        unused = tuple(have - count * use for have, use in zip(left, element_type.uses))
        if min(unused, default=0) < 0:
            break
        probability = ways(size, count, element_type.weight)
        own = [(count, element_type)] if count else []
        for others, rest, last in _multisets(types, at + 1, size - count, unused):
            yield times(probability, others), own + rest, last


def ways(size: int, count: int, weight: Any) -> Any:
    """Return binomial(size, count) weight^count, as a ball where a float is out of range.

    The relative error of a probability is therefore bounded however small its factors are.
    """
    number, probability = math.comb(size, count), weight**count
    if not isinstance(probability, float):
        return number * probability
    if probability < LEAST_FACTOR or number > 2**1000:
        return arb(number) * arb(weight) ** count
    return number * probability


def times(x: Any, y: Any) -> Any:
    """Return the product of two probabilities, as a ball where a float would underflow."""
    result = x * y
    underflows = isinstance(result, float) and result < LEAST_FACTOR
    return arb(x) * arb(y) if underflows else result


def require_few_types(law: Law) -> None:
    """Raise ParameterError if a set has more types than can be enumerated."""
    for larger in law.larger:
        if larger.types > MOST_TYPES:
            raise ParameterError(
                f"{larger.size} larger elements of {larger.types:.3g} types are too many to "
                f"enumerate (most {MOST_TYPES} types): choose smaller sizes"
            )


def count_orbits(law: "Law | SequenceLaw") -> int:
    """Return the number of configurations up to symmetry without enumerating them.

    Raises
    ------
    ParameterError
        If there are too many larger elements or types to count.
    """
    if not isinstance(law, Law):
        return law.count
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
        for element_type in own:
            grown: dict[tuple[int, tuple[int, ...]], int] = {}
            for (size, left), ways in table.items():
                for count in range(size + 1):
                    unused = tuple(have - count * use for have, use in zip(left, element_type.uses))
                    if min(unused, default=0) < 0:
                        break
                    key = size - count, unused
                    grown[key] = grown.get(key, 0) + ways
            table = grown
        total = {left: ways for (size, left), ways in table.items() if size == 0}
    return total.get((0,) * len(law.subset_size), 0)


def poisson(number: int, mean: Any) -> Any:
    """Return the Poisson probability of a number, as a ball if the mean is one."""
    if mean == 0.0:
        return float(number == 0)
    if not isinstance(mean, float):  # a ball
        return mean**number * (-mean).exp() / math.factorial(number)
    return math.exp(number * math.log(mean) - mean - math.lgamma(number + 1.0))


def _fillings(inner: Inner) -> Iterator[tuple[int, ...]]:
    """Yield the possible numbers of elements of each class in a larger element."""
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
