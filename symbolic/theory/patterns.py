"""Orbits of index tuples: which indices agree, and which lie in the same element of a larger set.

Under wreath products of symmetric groups two tuples are in one orbit exactly if these coincidences
are the same. A tuple is built index by index, and an index that is new among k used elements of a
set of n has n - k ways: multiplicities are polynomials in the sizes, for all sizes at once.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import sympy as sp

from symbolic.theory.errors import require
from symbolic.theory.sets import Exchangeable, IndexSet, Signed

#: An element: its exchangeable set, the number of the larger element it is in, and its own.
Spot = tuple[Exchangeable, int, int]
Key = tuple[Spot, ...]
#: The number of an index of the larger set itself.
NONE = -1
#: Orbits of one tensor, at most.
MOST_ORBITS = 500
DIAGONAL, EQUAL = "diagonal", "equal"


def tree(part: Exchangeable) -> Exchangeable:
    """Return the outermost set of a set: itself, or what it lies inside."""
    return part if part.inside is None else part.inside


@dataclass(frozen=True)
class Orbit:
    """An orbit of index tuples, its name, and how many tuples it has."""

    key: Key
    name: str
    count: sp.Expr


def orbits(axes: tuple[IndexSet, ...]) -> tuple[Orbit, ...]:
    """Return the orbits of entries of a tensor that need not vanish.

    An entry in which a coordinate of a signed set occurs an odd number of times changes sign when
    it is flipped: under the group it is 0.

    Raises
    ------
    TheoryError
        If there are more than `MOST_ORBITS`, those counted that vanish.
    """
    found: list[tuple[Key, sp.Expr]] = [((), sp.Integer(1))]
    for where in axes:
        found = [
            ((*key, spot), count * ways)
            for key, count in found
            for spot, ways in _extensions(key, where)
            if ways != 0
        ]
        require(
            len(found) <= MOST_ORBITS,
            f"a tensor over {', '.join(map(str, axes))} has more than {MOST_ORBITS} orbits of "
            "entries, too many to derive: state fewer indices, or fewer sets",
        )
    return tuple(Orbit(key, name_of(key, axes), _tidy(count)) for key, count in found if _even(key))


def _tidy(count: sp.Expr) -> sp.Expr:
    """Return a product without a sign in front: D (D - C), not -D (C - D)."""
    found = sp.factor(count)
    if found.could_extract_minus_sign():
        turned = next((x for x in sp.Mul.make_args(found) if x.is_Add), None)
        if turned is not None:
            return sp.Mul(-found / turned, sp.Add(*(-x for x in turned.args)), evaluate=True)
    return found


def _extensions(key: Key, where: IndexSet) -> Iterator[tuple[Spot, sp.Expr]]:
    """Yield each place of one more index, and how many elements it stands for."""
    for part in where.parts:
        root = tree(part)
        used = sorted({larger for at, larger, _ in key if tree(at) is root})
        new = max((larger for _, larger, _ in key), default=-1) + 1
        for larger in used:
            if part is root:
                yield (part, larger, NONE), sp.Integer(1)
                continue
            own = sorted({own for at, there, own in key if (at, there) == (part, larger)})
            for place in own:
                yield (part, larger, place), sp.Integer(1)
            yield (part, larger, len(own)), part.size - len(own)
        place = NONE if part is root else 0
        inside = sp.Integer(1) if part is root else part.size
        yield (part, new, place), (root.size - len(used)) * inside


def canonical(spots: Key) -> Key:
    """Return the key with its elements numbered in order of appearance."""
    larger: dict[tuple[Exchangeable, int], int] = {}
    own: dict[tuple[Exchangeable, int, int], int] = {}
    numbers: dict[tuple[Exchangeable, int], int] = {}
    key = []
    for part, there, place in spots:
        group = larger.setdefault((tree(part), there), len(larger))
        if place != NONE:
            if (part, group, place) not in own:
                own[part, group, place] = numbers.get((part, group), 0)
                numbers[part, group] = own[part, group, place] + 1
            place = own[part, group, place]
        key.append((part, group, place))
    return tuple(key)


def _even(key: Key) -> bool:
    signed = [spot for spot in key if isinstance(spot[0], Signed)]
    return all(signed.count(spot) % 2 == 0 for spot in signed)


def name_of(key: Key, axes: tuple[IndexSet, ...]) -> str:
    """Return the coincidences in words, "" if there is nothing to tell.

    ``diagonal``: all indices agree; ``same set``, ``other set``: in one element of the larger set,
    or not; ``own area``: the larger element that an index lies in. Parts of a union are named
    first. Of more than two indices those are told that agree or lie in one element (``1=3``,
    ``1-2 same set``).
    """
    parts = " to ".join(part.name for (part, *_), where in zip(key, axes) if len(where.parts) > 1)
    if len(key) > 1 and all(spot == key[0] for spot in key):
        return ", ".join(filter(None, (parts, DIAGONAL)))
    if len(key) == 2:
        return ", ".join(filter(None, (parts, _relation(*key))))
    told = []
    for b in range(len(key)):
        for a in range(b):
            relation = _relation(key[a], key[b])
            if relation == EQUAL:
                told.append(f"{a + 1}={b + 1}")
            elif relation and not relation.startswith("other"):
                told.append(f"{a + 1}-{b + 1} {relation}")
    return ", ".join(filter(None, (parts, *(told or (["no two agree"] if len(key) > 2 else [])))))


def _relation(one: Spot, other: Spot) -> str:
    """Return how two elements are related; "" if they are of unrelated sets."""
    (part, larger, place), (another, there, its) = one, other
    if tree(part) is not tree(another):
        return ""
    whole = tree(part).name
    if larger != there:
        return f"other {whole}"
    if part is another and place == its:
        return EQUAL
    if tree(part).size == 1:
        return ""
    return f"own {whole}" if NONE in (place, its) else f"same {whole}"
