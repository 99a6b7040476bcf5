"""What a theory states about its data, as numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import sympy as sp

from dynamics.theory.data import Array, Inner, Larger, Law
from symbolic.theory.orbit_data import Home, Kind, Members
from symbolic.theory.tensors import Colouring, Source, Subset
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
        return float(expression.subs(self._values))

    def whole(self, expression: sp.Expr) -> int:
        """Return its value, which is a whole number."""
        return int(expression.subs(self._values))


def law(theory: Theory, values: Mapping[str, float]) -> Law:
    """Return the law of the data at checked values, for the sets whose elements can differ."""
    numbers = Numbers(values)
    homes = [home for home in theory.homes if home.has_data]
    used = {s for home in homes for s in home.sources}
    used |= {s for home in homes for members in home.inner for s in members.sources}
    subsets = [source for source in theory.data if isinstance(source, Subset) and source in used]
    return Law(
        tuple(_larger(home, subsets, numbers) for home in homes),
        tuple(numbers.whole(subset.size) for subset in subsets),
        tuple(sum(numbers.whole(part.count) for part in subset.over.parts) for subset in subsets),
    )


def _larger(home: Home, subsets: Sequence[Source], numbers: Numbers) -> Larger:
    kinds = Members(home.inner[0].part, home.sources).kinds
    return Larger(
        numbers.whole(home.size),
        _values(kinds, numbers),
        np.array([_chance(home.sources, kind, {}, numbers) for kind in kinds]),
        _uses(home.sources, kinds, subsets),
        tuple(_inner(home, kinds, members, subsets, numbers) for members in home.inner),
    )


def _inner(
    home: Home, roots: Sequence[Kind], members: Members, subsets: Sequence[Source], numbers: Numbers
) -> Inner:
    weight = [
        [
            _chance(members.sources, kind, dict(zip(home.sources, root)), numbers)
            for kind in members.kinds
        ]
        for root in roots
    ]
    return Inner(
        numbers.whole(members.part.size),
        _values(members.kinds, numbers),
        np.array(weight),
        _uses(members.sources, members.kinds, subsets),
    )


def _values(kinds: Sequence[Kind], numbers: Numbers) -> Array:
    return np.array([[numbers.real(x) for x in kind] for kind in kinds]).reshape(len(kinds), -1)


def _uses(
    sources: Sequence[Source], kinds: Sequence[Kind], subsets: Sequence[Source]
) -> np.ndarray:
    return np.array(
        [[int(s in sources and kind[sources.index(s)] == 1) for s in subsets] for kind in kinds],
        dtype=np.int64,
    ).reshape(len(kinds), len(subsets))


def _chance(
    sources: Sequence[Source], kind: Kind, root: Mapping[Source, sp.Expr], numbers: Numbers
) -> float:
    """Return the chance of a kind; the choice of subsets is counted elsewhere."""
    chance = 1.0
    for source, value in zip(sources, kind):
        if isinstance(source, Colouring):
            forced = [x for choice, x in source.given.items() if root.get(choice) == 1]
            given = float(value == forced[0]) if forced else numbers.real(source.law[value])
            chance *= given
    return chance
