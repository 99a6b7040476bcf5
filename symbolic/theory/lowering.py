"""Theories with frames as theories on ordered positions: coordinates are contracted.

At one rotation the vectors of a `Frame` are unit vectors, and a parameter with two indices of
coordinates is a sum of constant matrices, the identity and the quarter turn of a `Turned` set,
times order parameters. All sums over coordinates that involve constants only are carried out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import sympy as sp

from symbolic.theory.errors import require
from symbolic.theory.expression import Node, multiply, node
from symbolic.theory.frames import Frame
from symbolic.theory.orbits import OTHER, Key, canonical, orbits
from symbolic.theory.positions import MOST_ENTRIES, Relation, entries
from symbolic.theory.sets import IndexSet, Ordered
from symbolic.theory.tensors import Tensor

if TYPE_CHECKING:
    from symbolic.theory.theory import Theory

#: Largest number of terms of an expression that is a sum of constants times parameters.
_MOST_TERMS = 32


class _Table(NamedTuple):
    """A sparse constant array: the sets of its indices, and its entries that are not 0."""

    axes: dict[str, IndexSet]
    rows: dict[tuple[int, ...], sp.Expr]

    @classmethod
    def of(
        cls,
        indices: Sequence[str],
        sets: Sequence[IndexSet],
        rows: Iterable[tuple[tuple[int, ...], Any]],
    ) -> _Table:
        """Return an array with the entries at which repeated indices are equal."""
        axes = dict(zip(indices, sets))
        values = {}
        for row, value in rows:
            at = dict(zip(indices, row))
            if value != 0 and all(at[index] == i for index, i in zip(indices, row)):
                values[tuple(at.values())] = sp.sympify(value, strict=True)
        return cls(axes, values)

    def times(self, other: _Table) -> _Table:
        """Return the product."""
        axes = {**self.axes, **other.axes}
        shared = [i for i, index in enumerate(self.axes) if index in other.axes]
        names = list(self.axes)
        there = [list(other.axes).index(names[i]) for i in shared]
        new = [i for i, index in enumerate(other.axes) if index not in self.axes]
        rows: dict[tuple[int, ...], list[tuple[tuple[int, ...], sp.Expr]]] = {}
        for row, value in other.rows.items():
            tail = tuple(row[i] for i in new), value
            rows.setdefault(tuple(row[i] for i in there), []).append(tail)
        values = {
            (*row, *tail): value * factor
            for row, value in self.rows.items()
            for tail, factor in rows.get(tuple(row[i] for i in shared), [])
        }
        return _Table(axes, values)

    def summed(self, index: str) -> _Table:
        """Return the sum over an index."""
        at = list(self.axes).index(index)
        axes = {name: own for name, own in self.axes.items() if name != index}
        values: dict[tuple[int, ...], sp.Expr] = {}
        for row, value in self.rows.items():
            rest = (*row[:at], *row[at + 1 :])
            values[rest] = values.get(rest, sp.Integer(0)) + value
        return _Table(axes, {row: value for row, value in values.items() if value != 0})

    @property
    def node(self) -> Node:
        """The array as an expression."""
        sets = tuple(self.axes.values())
        number = prod(int(index_set.count) for index_set in sets)
        require(
            number <= MOST_ENTRIES,
            f"a sum over coordinates of a frame has {number} entries over "
            f"{', '.join(map(str, sets))}, too many to derive: sum over fewer factors at once",
        )
        values = tuple(self.rows.get(row, sp.Integer(0)) for row in entries(sets))
        if not sets:
            return node(values[0])
        return Node("relation", (), Relation(sets, values), tuple(self.axes), self.axes)


class _Term(NamedTuple):
    """A product of an expression and of constant arrays."""

    factor: Node
    tables: tuple[_Table, ...]

    @property
    def node(self) -> Node:
        """The product as an expression."""
        product = self.factor
        for table in self.tables:
            product = table.node if _is_one(product) else multiply(product, table.node)
        return product


@dataclass(frozen=True)
class Lowered:
    """A theory with frames as a theory on ordered positions only.

    Attributes
    ----------
    loss
        The loss.
    parameters
        For each of its parameters the values of its entries, an order parameter or a number, and
        the number of entries of the original parameter that each stands for.
    """

    loss: Node
    parameters: dict[Tensor, list[tuple[sp.Expr, sp.Expr]]]


def lowered(theory: Theory) -> Lowered:
    """Return the loss of a theory with frames at one rotation, on the invariant manifold."""
    lowering = _Lowering(theory)
    loss = lowering.node_of(theory.loss)
    return Lowered(loss, lowering.parameters)


class _Lowering:
    """Replace coordinates of frames by ordered elements, and contract constant arrays."""

    def __init__(self, theory: Theory) -> None:
        self._theory = theory
        self._ordered: dict[IndexSet, Ordered] = {}
        self._terms: dict[Node, list[_Term]] = {}
        self._nodes: dict[Node, Node] = {}
        self._blocks: dict[Tensor, list[tuple[Tensor, Key]]] = {}
        self.parameters: dict[Tensor, list[tuple[sp.Expr, sp.Expr]]] = {}
        self._of_frames: dict[Node, bool] = {}
        for x in theory.nodes:
            self._of_frames[x] = any(s.signed for s in x.axes.values()) or any(
                self._of_frames[y] for y in x.arguments
            )
        for tensor in theory.parameters:
            self._blocks[tensor] = list(self._blocks_of(tensor))

    def _set(self, index_set: IndexSet) -> Ordered:
        """Return the ordered set of the coordinates of a frame, or the ordered set itself."""
        if isinstance(index_set, Ordered):
            return index_set
        if index_set not in self._ordered:
            self._ordered[index_set] = Ordered(index_set.name, int(index_set.count))
        return self._ordered[index_set]

    def _blocks_of(self, tensor: Tensor) -> Iterator[tuple[Tensor, Key]]:
        """Yield the parameters on ordered sets that replace a tensor, each before one matrix."""
        ordered = tuple(s for s in tensor.axes if isinstance(s, Ordered))
        patterns: dict[Key, list[tuple[tuple[int, ...], sp.Expr, sp.Expr]]] = {}
        for orbit in orbits(tensor.axes):
            pattern = canonical(tuple(x for x in orbit.key if not isinstance(x[0], Ordered)))
            elements = tuple(i for part, i, _ in orbit.key if isinstance(part, Ordered))
            value = self._theory.entries[tensor, orbit.key]
            patterns.setdefault(pattern, []).append((elements, value, orbit.count))
        for number, (pattern, rows) in enumerate(patterns.items()):
            block = Tensor(f"{tensor.name}_block_{number}", ordered)
            self.parameters[block] = [row[1:] for row in sorted(rows, key=lambda row: row[0])]
            yield block, pattern

    def node_of(self, x: Node) -> Node:
        """Return an expression without coordinates of frames."""
        if not self._of_frames[x]:
            return x
        if x not in self._nodes:
            terms = self.terms(x)
            total = terms[0].node if terms else node(0)
            for term in terms[1:]:
                total = total + term.node
            for index, index_set in x.axes.items():
                if index not in total.axes:
                    total = multiply(total, self._ones(index, index_set).node)
            self._nodes[x] = total
        return self._nodes[x]

    def _ones(self, index: str, index_set: IndexSet) -> _Table:
        own = self._set(index_set)
        return _Table.of((index,), (own,), (((i,), 1) for i in range(int(own.count))))

    def terms(self, x: Node) -> list[_Term]:
        """Return an expression as a sum of products."""
        if x not in self._terms:
            self._terms[x] = self._terms_of(x)
        return self._terms[x]

    def _terms_of(self, x: Node) -> list[_Term]:
        if x.op == "relation":
            rows = zip(entries(x.detail.axes), x.detail.values)
            return [_Term(node(1), (_Table.of(x.indices, x.detail.axes, rows),))]
        if x.op == "entry" and isinstance(x.detail, Frame):
            return [_Term(node(1), (self._vectors(x),))]
        if x.op == "entry" and self._of_frames[x]:
            return list(self._matrices(x))
        if not self._of_frames[x]:
            return [_Term(x, ())]
        terms: list[_Term] = []
        if any(self._is_mixed(y) for y in x.arguments):
            return [_Term(self._renewed(x), ())]
        if x.op == "add":
            terms = [term for y in x.arguments for term in self.terms(y)]
        elif x.op == "multiply" and any(s.signed for s in x.axes.values()):
            terms = list(self._products(x))
        elif x.op == "sum":
            return list(self._sum(x))
        return terms if 0 < len(terms) <= _MOST_TERMS else [_Term(self._renewed(x), ())]

    def _is_mixed(self, x: Node) -> bool:
        """Return whether coordinates of frames occur in more than constant arrays."""
        coordinates = [index for index, s in x.axes.items() if s.signed]
        return any(index in term.factor.axes for term in self.terms(x) for index in coordinates)

    def _products(self, x: Node) -> Iterator[_Term]:
        for left, right in product(*map(self.terms, x.arguments)):
            yield _Term(_product(left.factor, right.factor), (*left.tables, *right.tables))

    def _renewed(self, x: Node) -> Node:
        """Return the same operation on arguments without coordinates of frames."""
        arguments = [self.node_of(y) for y in x.arguments]
        axes = {i: s for y in arguments for i, s in y.axes.items()}
        if x.op in ("sum", "logsumexp"):
            del axes[x.detail]
        return Node(x.op, tuple(arguments), x.detail, axes=axes)

    def _vectors(self, x: Node) -> _Table:
        """Return the vectors of a frame at one rotation: unit vectors."""
        position, coordinate = x.detail.axes
        starts = _starts(coordinate)
        rows = (
            ((t, starts[part] + number), 1)
            for part, numbers in x.detail.vectors.items()
            for t, number in enumerate(numbers)
        )
        return _Table.of(x.indices, (position, self._set(coordinate)), rows)

    def _matrices(self, x: Node) -> Iterator[_Term]:
        """Yield the order parameters of a tensor, each with its constant matrix."""
        pairs = list(zip(x.indices, x.detail.axes))
        ordered = tuple(index for index, s in pairs if isinstance(s, Ordered))
        (i, first), (j, second) = (pair for pair in pairs if not isinstance(pair[1], Ordered))
        for block, ((part, *_), (_, _, label)) in self._blocks[x.detail]:
            row, column = _starts(first)[part], _starts(second)[part]
            rows = [((row + a, column + b), value) for a, b, value in matrix(part, label == OTHER)]
            axes = {index: s for index, s in pairs if isinstance(s, Ordered)}
            table = _Table.of((i, j), (self._set(first), self._set(second)), rows)
            yield _Term(Node("entry", (), block, ordered, axes), (table,))

    def _sum(self, x: Node) -> Iterator[_Term]:
        """Yield the terms of a sum; constant arrays are summed at once."""
        (body,), index = x.arguments, x.detail
        for factor, tables in self.terms(body):
            with_index = [table for table in tables if index in table.axes]
            if not with_index and index not in factor.axes:
                with_index = [self._ones(index, body.axes[index])]
            rest = tuple(table for table in tables if index not in table.axes)
            if index in factor.axes:
                summand = _Term(factor, tuple(with_index)).node
                yield _Term(summand.sum(index), rest)
                continue
            total = with_index[0]
            for table in with_index[1:]:
                total = total.times(table)
            total = total.summed(index)
            if total.rows:
                yield _Term(factor, (total, *rest))


def matrix(part: IndexSet, turned: bool) -> list[tuple[int, int, int]]:
    """Return rows, columns and values of the identity, or of the quarter turn of a set."""
    size = int(part.count)
    if not turned:
        return [(i, i, 1) for i in range(size)]
    return [row for i in range(0, size, 2) for row in ((i + 1, i, 1), (i, i + 1, -1))]


def _starts(index_set: IndexSet) -> dict[IndexSet, int]:
    """Return the number of the first coordinate of each part of a set."""
    starts: dict[IndexSet, int] = {}
    first = 0
    for part in index_set.parts:
        starts[part] = first
        first += int(part.count)
    return starts


def _is_one(x: Node) -> bool:
    return x.op == "constant" and x.detail == 1


def _product(left: Node, right: Node) -> Node:
    if _is_one(left):
        return right
    return left if _is_one(right) else multiply(left, right)
