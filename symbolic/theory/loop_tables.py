"""Arrays of an emitted program with loops: layout of the data, tables and orbits of entries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import prod
from typing import TYPE_CHECKING

import sympy as sp

from symbolic.theory.expression import Node
from symbolic.theory.lowering import lowered
from symbolic.theory.orbits import Orbit, canonical, orbits
from symbolic.theory.positions import Relation, empty_rows
from symbolic.theory.sets import Exchangeable, IndexSet, Ordered
from symbolic.theory.tensors import Tensor
from symbolic.theory.transfer import transferred
from symbolic.theory.words import Chain, Joint, Words

if TYPE_CHECKING:
    from symbolic.theory.theory import Theory

#: Largest number of states of a chain whose sequences are all enumerated, if there is another way.
MOST_STATES = 12


@dataclass(frozen=True)
class Layout:
    """Data arrays of a theory on ordered positions.

    Attributes
    ----------
    source
        The sequence, if there is one.
    sets
        Exchangeable sets; each has three columns in the array of blocks, behind those of the
        positions: numbers of blocks, of blocks and representatives, and of elements.
    representatives
        Largest number of representatives of each set.
    relations
        Different relations of the loss.
    loss
        The loss of a data orbit.
    parameters
        For each parameter of the loss, the value of each entry and the number of entries that it
        stands for, in the order of `sorted_orbits`.
    is_transferred
        Whether a data orbit is a position with two states and a number of ones
        (`symbolic.theory.transfer`), instead of a sequence.
    """

    source: Joint | None
    sets: tuple[Exchangeable, ...]
    representatives: tuple[int, ...]
    relations: tuple[Relation, ...]
    loss: Node
    parameters: Mapping[Tensor, Sequence[tuple[sp.Expr, sp.Expr]]]
    is_transferred: bool

    @property
    def length(self) -> int:
        """Number of columns of a data orbit, those of the sets not included."""
        if self.is_transferred:
            return 4
        return int(self.source.over.count) if self.source else 0

    def blocks(self, index_set: IndexSet) -> int:
        """Return the largest number of blocks of a set."""
        own = isinstance(self.source, Words) and self.source.token is index_set
        return self.length if own else 0


@cache
def layout(theory: Theory) -> Layout:
    """Return the data arrays of a theory on ordered positions."""
    if theory.is_framed:
        low = lowered(theory)
        return Layout(None, (), (), _relations(low.loss.all), low.loss, low.parameters, False)
    source = theory.data[0] if theory.data else None
    assert source is None or isinstance(source, Joint)
    loss, is_transferred = theory.mean.loss, False
    if isinstance(source, Chain) and source.over.count > MOST_STATES:
        transfer = transferred(loss, source)
        loss, is_transferred = (loss, False) if transfer is None else (transfer, True)
    nodes = loss.all
    sets = tuple(part for part in theory.sets if not isinstance(part, Ordered))
    most = tuple(
        max([sum(s is part for s in x.axes.values()) for x in nodes], default=0) for part in sets
    )
    parameters = {
        tensor: [(theory.entries[tensor, x.key], x.count) for x in sorted_orbits(tensor)]
        for tensor in theory.parameters
    }
    representatives = tuple(max(x, 1) for x in most)
    return Layout(
        source, sets, representatives, _relations(nodes), loss, parameters, is_transferred
    )


def _relations(nodes: Sequence[Node]) -> tuple[Relation, ...]:
    """Return the different relations of an expression."""
    relations: dict[tuple[object, ...], Relation] = {}
    for x in nodes:
        if x.op in ("relation", "lookup"):
            array = x.detail if x.op == "relation" else x.detail[0]
            relations.setdefault(relation_key(array), array)
        empty = hidden_rows(x)
        if empty is not None:
            relations.setdefault(relation_key(empty), empty)
    return tuple(relations.values())


def relation_key(relation: Relation) -> tuple[object, ...]:
    """Return a key that is equal for equal relations."""
    return (relation.axes, relation.values)


def hidden_rows(x: Node) -> Relation | None:
    """Return 1 where the mask of a softmax hides all elements, as a relation."""
    if x.op != "softmax" or len(x.arguments) == 1:
        return None
    mask = x.arguments[1]
    return empty_rows(mask.detail, mask.indices.index(x.detail))


@dataclass(eq=False)
class Table:
    """An array of the emitted code, with one row for all indices but the last."""

    number: int
    lengths: tuple[int, ...]

    def at(self, elements: Sequence[str]) -> str:
        """Return the code of an entry."""
        *rows, column = elements or ("0",)
        *lengths, _ = self.lengths or (1,)
        return f"_table{self.number}[{flat(rows, lengths)}, {column}]"

    @property
    def definition(self) -> str:
        """Code that allocates the array."""
        *lengths, columns = self.lengths or (1,)
        return f"_table{self.number} = _empty({prod(lengths)}, {columns})"


def flat(elements: Sequence[str], lengths: Sequence[int]) -> str:
    """Return the code of a row-major index."""
    text = "0"
    for element, length in zip(elements, lengths):
        text = element if text == "0" else f"({text}) * {length} + {element}"
    return text


@dataclass
class Code:
    """Lines of code with a current indentation."""

    lines: list[str] = field(default_factory=list)
    depth: int = 0

    def add(self, line: str) -> None:
        """Append a line."""
        self.lines.append("    " * self.depth + line)


def runs(codes: Sequence[int | str], step: int = 1) -> Iterator[tuple[int, int, int | str]]:
    """Yield first index, length and first code of runs of codes that are numbers in sequence."""
    first = 0
    for i in range(1, len(codes) + 1):
        before, own = codes[first], codes[i] if i < len(codes) else ""
        if isinstance(before, int) and isinstance(own, int) and own == before + step * (i - first):
            continue
        yield first, i - first, before
        first = i


def number_of_pattern(sets: tuple[IndexSet, ...]) -> dict[tuple[object, ...], int]:
    """Return the number of each pattern of coincidences of indices over exchangeable sets."""
    return {orbit.key: i for i, orbit in enumerate(orbits(sets))}


def sorted_orbits(tensor: Tensor) -> list[Orbit]:
    """Return the orbits of a tensor: by ordered elements, the last fastest, then by pattern."""
    rest = tuple(s for s in tensor.axes if not isinstance(s, Ordered))
    patterns = number_of_pattern(rest)

    def rank(orbit: Orbit) -> tuple[object, ...]:
        own = tuple(x for x in orbit.key if not isinstance(x[0], Ordered))
        elements = [i for part, i, _ in orbit.key if isinstance(part, Ordered)]
        return (*elements, patterns[canonical(own)])

    return sorted(orbits(tensor.axes), key=rank)


def pattern_code(
    rest: Sequence[tuple[str, IndexSet]], choice: str = "({yes} if {condition} else {no})"
) -> str:
    """Return the code of the number of the pattern of elements of exchangeable sets.

    ``choice`` is the code that chooses between two numbers.
    """
    sets = tuple(s for _, s in rest)
    patterns = number_of_pattern(sets)
    pairs = [(i, j) for j in range(len(rest)) for i in range(j) if sets[i] is sets[j]]
    if not pairs:
        return "0"
    known: dict[tuple[bool, ...], int] = {}
    for key, number in patterns.items():
        known[tuple(key[i] == key[j] for i, j in pairs)] = number

    def code(answers: tuple[bool, ...]) -> str:
        left = {row: n for row, n in known.items() if row[: len(answers)] == answers}
        if len(left) == 1:
            return str(*left.values())
        i, j = pairs[len(answers)]
        both = [code((*answers, x)) if _any(known, (*answers, x)) else None for x in (True, False)]
        if None in both:
            return both[0] or both[1] or ""
        condition = f"{rest[i][0]} == {rest[j][0]}"
        return choice.format(yes=both[0], no=both[1], condition=condition)

    return code(())


def _any(known: Mapping[tuple[bool, ...], int], answers: tuple[bool, ...]) -> bool:
    """Return whether a pattern begins with these coincidences."""
    return any(row[: len(answers)] == answers for row in known)
