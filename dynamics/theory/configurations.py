"""Enumeration of all configurations of the data of a theory, with their probabilities."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import comb, log10, prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynamics.core.errors import ParameterError

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
#: Largest number of entries of an array over all configurations.
MOST_NUMBERS = 2**21


@dataclass(frozen=True)
class Elements:
    """Elements of an index set, as arrays of shape (n,).

    Attributes
    ----------
    part
        Part that each element belongs to.
    larger
        Number of the larger element that contains each element.
    own
        Number of each element inside its larger element; -1 for a larger element.
    """

    part: Integers
    larger: Integers
    own: Integers

    def __len__(self) -> int:
        return len(self.part)


class Values(NamedTuple):
    """A data source: random values on the elements of index sets.

    Attributes
    ----------
    name, over
        Name of the source, and names of its index sets, one for each axis of the values.
    size
        Number of elements of a random subset; ``None`` for independent values.
    law
        Mapping from value to probability.
    given
        Pairs (source, value): elements inside an element that this source selects have the value.
    deviation
        (axis, mapping from part to factor): factors of the values, by part of one of the sets.
    one_each
        Each element of the first set is 1 at exactly one element of the second; ``law`` maps the
        number of that element to its probability.
    joint
        Probability of the values of all elements together, or of the numbers of ``one_each``;
        ``law`` then has the possible values.
    rows
        The values that ``joint`` is given for; ``None`` for all.
    """

    name: str
    over: tuple[str, ...]
    size: int | None
    law: Mapping[float, float]
    given: tuple[tuple[str, float], ...] = ()
    deviation: tuple[int, Mapping[int, float]] | None = None
    one_each: bool = False
    joint: Callable[[tuple[int, ...]], float] | None = None
    rows: Sequence[tuple[int, ...]] | None = None


def configurations(
    sources: Sequence[Values], sets: Mapping[str, Elements]
) -> tuple[Array, dict[str, Array]]:
    """Return the probabilities (n,) of all configurations, and the values (n, ...) of each source.

    Raises
    ------
    ParameterError
        If there are too many configurations.
    """
    rows: list[tuple[float, dict[str, tuple[float, ...]]]] = [(1.0, {})]
    _require_few(sources, sets)
    for source in sources:
        number = prod(len(sets[name]) for name in source.over)
        grown: list[tuple[float, dict[str, tuple[float, ...]]]] = []
        own = None if source.given else list(_one_source(source, number, sets, sources, {}))
        for probability, known in rows:
            for p, values in own or _one_source(source, number, sets, sources, known):
                grown.append((probability * p, known | {source.name: values}))
                if len(grown) * number > MOST_NUMBERS:
                    raise ParameterError(
                        f"more than {len(grown):.2g} configurations of the data are too many for "
                        "the full model: choose smaller sizes"
                    )
        rows = grown
    weight = np.array([probability for probability, _ in rows])
    shapes = {s.name: tuple(len(sets[name]) for name in s.over) for s in sources}
    return weight, {
        name: np.array([known[name] for _, known in rows]).reshape(-1, *shape)
        for name, shape in shapes.items()
    }


def _require_few(sources: Sequence[Values], sets: Mapping[str, Elements]) -> None:
    """Raise ParameterError if there are too many configurations, before any is generated."""
    digits = 0.0
    for source in sources:
        number = prod(len(sets[name]) for name in source.over)
        if source.rows is not None:
            digits += log10(len(source.rows))
        elif source.one_each:
            digits += len(sets[source.over[0]]) * log10(len(sets[source.over[1]]))
        elif source.size is not None:
            digits += log10(comb(number, source.size))
        elif not source.given:
            digits += number * log10(sum(p > 0.0 for p in source.law.values()))
        if digits + log10(number) > log10(MOST_NUMBERS) + 1e-9:
            raise ParameterError(
                f"10^{digits:.2g} configurations of the data are too many for the full model: "
                "choose smaller sizes"
            )


def _one_source(
    source: Values,
    size: int,
    sets: Mapping[str, Elements],
    sources: Sequence[Values],
    known: Mapping[str, tuple[float, ...]],
) -> Iterator[tuple[float, tuple[float, ...]]]:
    """Yield probability and values of a source, conditional on the previous sources."""
    if source.one_each:
        tokens, words = (len(sets[name]) for name in source.over)
        for positions in source.rows or product(range(words), repeat=tokens):
            if source.joint is not None:
                probability = source.joint(positions)
            else:
                probability = prod(source.law[i] for i in positions)
            yield probability, tuple(float(k == i) for i in positions for k in range(words))
        return
    if source.joint is not None:
        for states in source.rows or product(range(len(source.law)), repeat=size):
            yield source.joint(states), tuple(map(float, states))
        return
    if source.size is not None:
        probability = 1.0 / comb(size, source.size)
        for chosen in combinations(range(size), source.size):
            yield probability, tuple(float(i in chosen) for i in range(size))
        return
    forced: dict[int, float] = {}
    for name, value in source.given:
        over = sets[next(s.over for s in sources if s.name == name)[0]]
        elements = sets[source.over[0]]
        hits = {there for there, hit in zip(over.larger.tolist(), known[name]) if hit}
        own = {i: value for i, there in enumerate(elements.larger.tolist()) if there in hits}
        forced = own | forced  # if two sources apply, the first one determines the value
    free = [
        [(x, p) for x, p in source.law.items() if p > 0.0]
        if i not in forced
        else [(forced[i], 1.0)]
        for i in range(size)
    ]
    scale = _deviations(source, sets)
    for row in product(*free):
        yield prod(p for _, p in row), tuple(d * x for d, (x, _) in zip(scale, row))


def _deviations(source: Values, sets: Mapping[str, Elements]) -> list[float]:
    """Return the factor of the value of each tuple of elements."""
    shape = [len(sets[name]) for name in source.over]
    scale = np.ones(shape)
    if source.deviation is not None:
        at, by_part = source.deviation
        own = np.array([by_part[part] for part in sets[source.over[at]].part.tolist()])
        scale = scale * own.reshape([-1 if i == at else 1 for i in range(len(shape))])
    return [float(x) for x in scale.ravel()]
