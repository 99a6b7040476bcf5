"""Orbits of index tuples under permutations of the index sets, with multiplicities for all sizes.

Two tuples are in the same orbit if and only if the same indices agree and the same indices lie in
the same outer element; indices of ordered sets must be equal. Orbits are enumerated index by index:
with k elements of a set of n in use, n - k choices remain for a new element, so that multiplicities
are polynomials in the sizes.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import sympy as sp

from symbolic.theory.errors import require
from symbolic.theory.sets import Exchangeable, IndexSet, Ordered, Signed, Turned

#: An element: its exchangeable set, the label of its outer element, and its label inside it.
Position = tuple[Exchangeable, int, int]
#: Positions of all indices, labelled in order of first appearance.
Key = tuple[Position, ...]
#: Inner label of an index of an outer set, and of the other coordinate of a plane that is in use.
NONE, OTHER = -1, 0
#: Limit of the number of orbits of one tensor, and of one over ordered sets.
MOST_ORBITS, MOST_ORDERED_ORBITS = 500, 5000
DIAGONAL, EQUAL, TURNED = "diagonal", "equal", "turned"


def outermost(part: Exchangeable) -> Exchangeable:
    """Return the outer set of a set, or the set itself if it is not inside another."""
    return part if part.inside is None else part.inside


@dataclass(frozen=True)
class Orbit:
    """An orbit of index tuples.

    Attributes
    ----------
    key
        Coincidences of the indices.
    name
        Description such as ``"same set"``; see `name_of`.
    count
        Number of tuples, a polynomial in the sizes.
    """

    key: Key
    name: str
    count: sp.Expr


def orbits(axes: tuple[IndexSet, ...]) -> tuple[Orbit, ...]:
    """Return the orbits of the entries of a tensor that do not vanish by symmetry.

    An entry in which a coordinate of a signed set occurs an odd number of times is 0, because it
    is odd in this coordinate. The coordinates of a plane of a turned set count together; there may
    be at most two indices of turned sets.

    Parameters
    ----------
    axes
        Index sets of the tensor.

    Raises
    ------
    TheoryError
        If there are more orbits than the limit, including those that vanish.
    """
    counts: list[tuple[Key, sp.Expr]] = [((), sp.Integer(1))]
    most = MOST_ORDERED_ORBITS if any(isinstance(x, Ordered) for x in axes) else MOST_ORBITS
    for index_set in axes:
        counts = [
            ((*key, position), count * ways)
            for key, count in counts
            for position, ways in _extensions(key, index_set)
            if ways != 0
        ]
        require(
            len(counts) <= most,
            f"a tensor over {', '.join(map(str, axes))} has more than {most} orbits of "
            "entries, too many to derive: state fewer indices, or fewer sets",
        )
    return tuple(
        Orbit(key, name_of(key, axes), _factored(count)) for key, count in counts if _even(key)
    )


@cache
def _factored(count: sp.Expr) -> sp.Expr:
    """Return the factored expression without a minus sign in front: D (D - C), not -D (C - D)."""
    product = sp.factor(count)
    if product.could_extract_minus_sign():
        factor = next((x for x in sp.Mul.make_args(product) if x.is_Add), None)
        if factor is not None:
            return sp.Mul(-product / factor, sp.Add(*(-x for x in factor.args)), evaluate=True)
    return product


def _extensions(key: Key, index_set: IndexSet) -> Iterator[tuple[Position, sp.Expr]]:
    """Yield each position of one more index, and the number of elements that it stands for."""
    for part in index_set.parts:
        if isinstance(part, Ordered):
            yield from (((part, i, NONE), sp.Integer(1)) for i in range(int(part.size)))
            continue
        root = outermost(part)
        used = sorted({outer for other, outer, _ in key if outermost(other) is root})
        groups = (outer for other, outer, _ in key if not isinstance(other, Ordered))
        new = max(groups, default=-1) + 1
        for outer in used:
            if part is root:
                yield (part, outer, NONE), sp.Integer(1)
                if isinstance(part, Turned):
                    yield (part, outer, OTHER), sp.Integer(1)
                continue
            labels = sorted({label for *position, label in key if position == [part, outer]})
            for label in labels:
                yield (part, outer, label), sp.Integer(1)
            yield (part, outer, len(labels)), part.size - len(labels)
        first = NONE if part is root else 0
        choices = sp.Integer(1) if part is root else part.size
        in_use = 2 * len(used) if isinstance(part, Turned) else len(used)
        yield (part, new, first), (root.size - in_use) * choices


def canonical(positions: Key) -> Key:
    """Return the key with elements labelled in order of appearance."""
    outer_labels: dict[tuple[Exchangeable, int], int] = {}
    labels: dict[tuple[Exchangeable, int, int], int] = {}
    numbers: dict[tuple[Exchangeable, int], int] = {}
    key: list[Position] = []
    for part, outer, label in positions:
        if isinstance(part, Ordered):
            key.append((part, outer, label))
            continue
        group = outer_labels.setdefault((outermost(part), outer), len(outer_labels))
        if label != NONE:
            if (part, group, label) not in labels:
                labels[part, group, label] = numbers.get((part, group), 0)
                numbers[part, group] = labels[part, group, label] + 1
            label = labels[part, group, label]
        key.append((part, group, label))
    return tuple(key)


def _even(key: Key) -> bool:
    """Return whether every element of a signed set, or plane, occurs an even number of times."""
    signed = [position[:2] for position in key if isinstance(position[0], Signed)]
    return all(signed.count(element) % 2 == 0 for element in signed)


def name_of(key: Key, axes: tuple[IndexSet, ...]) -> str:
    """Return the name of an orbit, "" if no indices are related.

    - ``diagonal``: all indices agree
    - ``same set``, ``other set``: two indices in the same or in different outer elements
    - ``own area``: an index and the outer element that it lies in
    - ``1=3``, ``1-2 same set``: relations of more than two indices
    - ``2,0``: the elements of ordered sets

    Elements of ordered sets and parts of a union come first.
    """
    if any(isinstance(part, Ordered) for part, *_ in key):
        elements = ",".join(str(i) for part, i, _ in key if isinstance(part, Ordered))
        rest = [(x, y) for x, y in zip(key, axes) if not isinstance(y, Ordered)]
        other = name_of(tuple(x for x, _ in rest), tuple(y for _, y in rest))
        return ", ".join(filter(None, (elements, other)))
    parts = " to ".join(
        part.name for (part, *_), index_set in zip(key, axes) if len(index_set.parts) > 1
    )
    if len(key) > 1 and all(position == key[0] for position in key):
        return ", ".join(filter(None, (parts, DIAGONAL)))
    if len(key) == 2:
        return ", ".join(filter(None, (parts, _relation(*key))))
    relations = []
    for b in range(len(key)):
        for a in range(b):
            relation = _relation(key[a], key[b])
            if relation == EQUAL:
                relations.append(f"{a + 1}={b + 1}")
            elif relation and not relation.startswith("other"):
                relations.append(f"{a + 1}-{b + 1} {relation}")
    if not relations and len(key) > 2:
        relations = ["no two agree"]
    return ", ".join(filter(None, (parts, *relations)))


def _relation(first: Position, second: Position) -> str:
    """Return how two elements are related; "" if their sets are unrelated."""
    (part, outer, label), (other_part, other_outer, other_label) = first, second
    if outermost(part) is not outermost(other_part):
        return ""
    root = outermost(part)
    if outer != other_outer:
        return f"other {root.name}"
    if isinstance(part, Turned) and label != other_label:
        return TURNED
    if part is other_part and label == other_label:
        return EQUAL
    if root.size == 1:
        return ""
    return f"own {root.name}" if NONE in (label, other_label) else f"same {root.name}"
