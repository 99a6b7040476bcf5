"""Every configuration of the data of a stated theory, one after another, with its chance."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import comb, log10, prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynamics.core.errors import ParameterError

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
#: Numbers in one array over all configurations, at most.
MOST_NUMBERS = 2**21


@dataclass(frozen=True)
class Elements:
    """The elements of an index set, (n,) each: set, larger element, number inside (-1: none)."""

    part: Integers
    larger: Integers
    own: Integers

    def __len__(self) -> int:
        return len(self.part)


class Values(NamedTuple):
    """Data on a set: a subset of ``size`` elements, or independent values with their chances.

    ``given`` holds (source, value): elements inside what that source has chosen have the value.
    Values on several sets have an entry for each tuple of elements; ``deviation`` multiplies the
    law, part by part of one of the sets: (place of the set, deviation by part). ``one_each``: each
    element of the first set is 1 at one of the second, whose chances by number are the law.
    """

    name: str
    over: tuple[str, ...]
    size: int | None
    law: Mapping[float, float]
    given: tuple[tuple[str, float], ...] = ()
    deviation: tuple[int, Mapping[int, float]] | None = None
    one_each: bool = False


def configurations(
    sources: Sequence[Values], sets: Mapping[str, Elements]
) -> tuple[Array, dict[str, Array]]:
    """Return the chance of every configuration, (n,), and the values of each source, (n, size)."""
    rows: list[tuple[float, dict[str, tuple[float, ...]]]] = [(1.0, {})]
    _require_few(sources, sets)
    for source in sources:
        number = prod(len(sets[name]) for name in source.over)
        grown: list[tuple[float, dict[str, tuple[float, ...]]]] = []
        own = None if source.given else list(_one_source(source, number, sets, sources, {}))
        for chance, known in rows:
            for p, values in own or _one_source(source, number, sets, sources, known):
                grown.append((chance * p, known | {source.name: values}))
                if len(grown) * number > MOST_NUMBERS:
                    raise ParameterError(
                        f"more than {len(grown):.2g} configurations of the data are too many for "
                        "the full model: choose smaller sizes"
                    )
        rows = grown
    weight = np.array([chance for chance, _ in rows])
    shapes = {s.name: tuple(len(sets[name]) for name in s.over) for s in sources}
    return weight, {
        name: np.array([known[name] for _, known in rows]).reshape(-1, *shape)
        for name, shape in shapes.items()
    }


def _require_few(sources: Sequence[Values], sets: Mapping[str, Elements]) -> None:
    """Refuse what would be too many before any is written."""
    digits = 0.0
    for source in sources:
        number = prod(len(sets[name]) for name in source.over)
        if source.one_each:
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
    """Yield chance and values of one source, given those before it."""
    if source.one_each:
        tokens, words = (len(sets[name]) for name in source.over)
        for found in product(range(words), repeat=tokens):
            chance = prod(source.law[i] for i in found)
            yield chance, tuple(float(k == i) for i in found for k in range(words))
        return
    if source.size is not None:
        chance = 1.0 / comb(size, source.size)
        for chosen in combinations(range(size), source.size):
            yield chance, tuple(float(i in chosen) for i in range(size))
        return
    forced: dict[int, float] = {}
    for name, value in source.given:
        over = sets[next(s.over for s in sources if s.name == name)[0]]
        elements = sets[source.over[0]]
        hits = {there for there, hit in zip(over.larger.tolist(), known[name]) if hit}
        own = {i: value for i, there in enumerate(elements.larger.tolist()) if there in hits}
        forced = own | forced  # an element inside what two sources have chosen: the first counts
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
    """Return what multiplies the value of each tuple of elements."""
    shape = [len(sets[name]) for name in source.over]
    scale = np.ones(shape)
    if source.deviation is not None:
        at, by_part = source.deviation
        own = np.array([by_part[part] for part in sets[source.over[at]].part.tolist()])
        scale = scale * own.reshape([-1 if i == at else 1 for i in range(len(shape))])
    return [float(x) for x in scale.ravel()]
