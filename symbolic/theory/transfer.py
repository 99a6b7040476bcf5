"""Loss on a Markov chain as a sum over positions, each with two states and a number of ones.

Where the loss is a sum over positions t of functions of the state at t, the next state, and the
number of ones up to t, its mean needs only the joint law of these three, at each t. A transfer
matrix computes this law in O(T^2) steps, instead of the probabilities of 2^T sequences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import sympy as sp

from symbolic.theory.expression import FUNCTIONS, Node, multiply, node
from symbolic.theory.positions import Relation
from symbolic.theory.sets import MOST_POSITIONS, Ordered
from symbolic.theory.words import Chain

#: Columns of a data orbit: position, state, next state, number of ones up to the position.
POSITION, STATE, NEXT, ONES = range(4)


class _OtherFormError(Exception):
    """The loss is not a sum over positions of such functions."""


def transferred(loss: Node, chain: Chain) -> Node | None:
    """Return the loss with lookups in the columns of a data orbit instead of data.

    A node ``lookup`` has the detail (relation with one index, column). The mean of the loss is the
    sum over all data orbits, weighted by their probabilities; those of each position sum to 1.

    Returns
    -------
    Node or None
        ``None`` if the loss depends on the chain in another way, or the chain is too long.
    """
    if chain.over.count >= MOST_POSITIONS:
        return None
    try:
        return _Transfer(loss, chain).linear(loss)
    except _OtherFormError:
        return None


class _Transfer:
    """Replace the data in an expression by lookups."""

    def __init__(self, loss: Node, chain: Chain) -> None:
        self._chain, self._length = chain, int(chain.over.count)
        self._of_data: dict[Node, bool] = {}
        for x in loss.all:
            own = x.op == "entry" and x.detail is chain
            self._of_data[x] = own or any(self._of_data[y] for y in x.arguments)
        values = tuple(map(sp.Integer, range(self._length + 1)))
        numbers = Relation((Ordered("number", len(values)),), values)
        self._column = {k: _lookup(numbers, k) for k in (STATE, NEXT, ONES)}

    def linear(self, x: Node) -> Node:
        """Return an expression outside of the sum over positions."""
        if not self._of_data[x]:  # counted once, at the first position
            first = (sp.Integer(t == 0) for t in range(self._length))
            return multiply(x, self._at_position(first))
        if x.op == "add":
            left, right = map(self.linear, x.arguments)
            return left + right
        if x.op == "multiply":
            left, right = sorted(x.arguments, key=lambda y: self._of_data[y])
            if not self._of_data[left]:
                return multiply(left, self.linear(right))
        if x.op == "sum":
            (body,) = x.arguments
            if body.axes[x.detail] is self._chain.over:
                return self._body(body, x.detail)
        raise _OtherFormError

    def _body(self, x: Node, t: str) -> Node:
        """Return an expression at the position of a data orbit, the index t."""
        if t not in x.axes and not self._of_data[x]:
            return x
        if x.op == "relation" and set(x.indices) == {t}:
            rows = (_value(x, {t: i}) for i in range(self._length))
            return self._at_position(rows)
        if x.op == "entry" and x.detail is self._chain and x.indices == (t,):
            return self._column[STATE]
        if x.op == "sum" and x.arguments[0].axes[x.detail] is self._chain.over:
            return self._sum(x.arguments[0], t, x.detail)
        if x.op in ("add", "multiply", "power", *FUNCTIONS):
            arguments = tuple(self._body(y, t) for y in x.arguments)
            axes = {i: s for y in arguments for i, s in y.axes.items()}
            return Node(x.op, arguments, x.detail, axes=axes)
        raise _OtherFormError

    def _sum(self, x: Node, t: str, n: str) -> Node:
        """Return the sum over positions n of an expression that is linear in the states at n."""
        if x.op == "add":
            left, right = (self._sum(y, t, n) for y in x.arguments)
            return left + right
        pending, relations, states, others = [x], list[Node](), 0, node(1)
        while pending:
            y = pending.pop()
            if y.op == "multiply":
                pending += y.arguments
            elif y.op == "relation" and set(y.indices) <= {t, n}:
                relations.append(y)
            elif y.op == "entry" and y.detail is self._chain and y.indices == (n,):
                states += 1
            elif n not in y.axes:
                others = multiply(others, self._body(y, t))
            else:
                raise _OtherFormError

        def weight(i: int, j: int) -> sp.Expr:
            return sp.prod(_value(y, {t: i, n: j}) for y in relations)

        if states > 1:
            raise _OtherFormError
        return multiply(others, self._weighted(weight) if states else self._total(weight))

    def _total(self, weight: Callable[[int, int], sp.Expr]) -> Node:
        """Return the sum of weights at a position."""
        positions = range(self._length)
        return self._at_position(sp.Add(*(weight(t, n) for n in positions)) for t in positions)

    def _weighted(self, weight: Callable[[int, int], sp.Expr]) -> Node:
        """Return the weighted sum of states as a function of two states and the number of ones."""
        rows: dict[int, list[sp.Expr]] = {STATE: [], NEXT: [], ONES: []}
        for t in range(self._length):
            row = [weight(t, n) for n in range(self._length)]
            before = row[0] if t else sp.Integer(0)
            if any(x != before for x in row[:t]) or any(row[t + 2 :]):
                raise _OtherFormError
            rows[ONES].append(before)
            rows[STATE].append(row[t] - before)
            rows[NEXT].append(row[t + 1] if t + 1 < self._length else sp.Integer(0))
        total = node(0)
        for column, values in rows.items():
            if any(values):
                total = total + multiply(self._at_position(values), self._column[column])
        return total

    def _at_position(self, values: Iterable[sp.Expr]) -> Node:
        """Return a number that depends on the position."""
        return _lookup(Relation((self._chain.over,), tuple(values)), POSITION)


def _lookup(numbers: Relation, column: int) -> Node:
    return Node("lookup", (), (numbers, column))


def _value(x: Node, positions: Mapping[str, int]) -> sp.Expr:
    """Return an entry of a relation."""
    number = 0
    for index, index_set in zip(x.indices, x.detail.axes):
        number = number * int(index_set.count) + positions[index]
    return x.detail.values[number]
