"""Relations of ordered positions: masks, shifts, lags and trees, as constant arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import Any

import sympy as sp

from symbolic.theory.errors import TheoryError, require, short_repr
from symbolic.theory.expression import Array, Node, node
from symbolic.theory.numbers import exact
from symbolic.theory.sets import IndexSet, Ordered

#: Largest number of entries of a relation.
MOST_ENTRIES = 10**6
_DATA_DEPENDENT = (
    "where = {0} is not allowed: a mask must be made of relations of ordered positions, because "
    "what a position sees must depend neither on data nor on parameters"
)


class Relation(Array):
    """Numbers that depend on ordered positions only.

    Attributes
    ----------
    values
        The numbers, in the order of `entries` over the axes.
    """

    op = "relation"

    def __init__(self, axes: tuple[IndexSet, ...], values: tuple[sp.Expr, ...]) -> None:
        self.name, self.axes, self.values = "relation", axes, values


def entries(axes: tuple[IndexSet, ...]) -> Iterator[tuple[int, ...]]:
    """Yield the positions of all entries of a relation, the last index fastest."""
    return product(*(range(int(index_set.count)) for index_set in axes))


def relation(rule: Callable[..., Any], /, **axes: Ordered) -> Node:
    """Return an array of numbers that depend on ordered positions: a mask, shift, lag or tree.

    Parameters
    ----------
    rule
        Function of positions that returns a number, or whether they are related.
    **axes
        The ordered set of each index.

    Raises
    ------
    TheoryError
        If an axis is no ordered set, or a value no number.

    Examples
    --------
    A causal mask, and the successor of a position:

    >>> from symbolic.theory import Ordered, relation
    >>> position = Ordered("position", 3)
    >>> visible = relation(lambda s, t: s <= t, s=position, t=position)
    >>> following = relation(lambda t, n: n == t + 1, t=position, n=position)
    """
    for index, index_set in axes.items():
        require(
            isinstance(index_set, Ordered),
            f"relation over {index} = {short_repr(index_set)} is not allowed: it must be an "
            "ordered set",
        )
    require(bool(axes), "relation without an index is not allowed: give index=ordered set")
    sets = tuple(axes.values())
    number = sp.prod(index_set.count for index_set in sets)
    require(
        number <= MOST_ENTRIES,
        f"a relation of {number} entries is not allowed: it must have at most {MOST_ENTRIES}",
    )
    values = tuple(_number(rule(*row), row) for row in entries(sets))
    return Relation(sets, values)[tuple(axes)]


def _number(value: Any, row: tuple[int, ...]) -> sp.Expr:
    """Return a value of a relation as an exact number."""
    try:
        number = sp.Integer(int(value)) if isinstance(value, bool) else exact(value)
        if not number.is_Rational:
            raise ValueError
    except (TypeError, ValueError, sp.SympifyError):
        raise TheoryError(
            f"relation at {', '.join(map(str, row))} = {short_repr(value)} is not allowed: it must "
            "be a rational number, or whether the positions are related"
        ) from None
    return number


def at(array: Array, element: int, indices: tuple[str, ...]) -> Node:
    """Return the entries of an array at one element of its first axis.

    Raises
    ------
    TheoryError
        If the first axis is no ordered set, or the element not one of it.
    """
    first = array.axes[0] if array.axes else None
    require(
        isinstance(first, Ordered),
        f"{array.name}.at({short_repr(element)}) is not allowed: the first axis of {array.name} "
        "must be an ordered set",
    )
    assert first is not None
    require(
        isinstance(element, int) and 0 <= element < first.count,
        f"{array.name}.at({short_repr(element)}) is not allowed: {first} must be a whole number "
        f"from 0 to {first.count - 1}",
    )
    index = next(name for name in _names() if name not in indices)
    chosen = relation(lambda i: i == element, **{index: first})  # type: ignore[arg-type]
    return (chosen * array[(index, *indices)]).sum(index)


def _names() -> Iterator[str]:
    """Yield names for an index that is summed over."""
    name = "position"
    while True:
        yield name
        name += "_"


def mask(where: Any, over: str, empty: str) -> Node:
    """Return a mask of a softmax as one relation.

    Parameters
    ----------
    where
        Expression of relations with values 0 and 1.
    over
        Index of the softmax.
    empty
        ``"zero"`` or ``"error"``, see `symbolic.theory.expression.Node.softmax`.

    Raises
    ------
    TheoryError
        If the mask depends on data or parameters, has other values, or hides all elements of a
        softmax although ``empty`` is not ``"zero"``.
    """
    require(
        empty in ("zero", "error"),
        f"empty = {short_repr(empty)} is not allowed: it must be 'zero' or 'error'",
    )
    expression = node(where)
    for x in expression.all:
        _require_relation(x)
    require(
        over in expression.axes,
        f"where = an expression without the index {over!r} is not allowed: it must be a relation "
        "of this index",
    )
    sets = tuple(expression.axes.values())
    names = tuple(expression.axes)
    values = tuple(_value(expression, dict(zip(names, row))) for row in entries(sets))
    for row, value in zip(entries(sets), values):
        require(
            value in (0, 1),
            f"where = {value} at {', '.join(map(str, row))} is not allowed: a mask must be 0 or 1",
        )
    table = Relation(sets, values)
    for others, visible in _rows(table, names.index(over)).items():
        described = ", ".join(f"{x} = {i}" for x, i in zip((x for x in names if x != over), others))
        require(
            visible > 0 or empty == "zero",
            f"where = a mask that is 0 for every {over!r} at {described or 'all of them'} is not "
            "allowed: a softmax needs at least one element; give empty='zero' for weights 0",
        )
    return table[names]


def _rows(table: Relation, axis: int) -> dict[tuple[int, ...], int]:
    """Return the number of visible elements for each position of the other axes."""
    rows: dict[tuple[int, ...], int] = {}
    for row, value in zip(entries(table.axes), table.values):
        others = (*row[:axis], *row[axis + 1 :])
        rows[others] = rows.get(others, 0) + int(value)
    return rows


def empty_rows(table: Relation, axis: int) -> Relation | None:
    """Return 1 where a mask hides all elements of an axis, as a relation; ``None`` if nowhere."""
    values = tuple(sp.Integer(visible == 0) for visible in _rows(table, axis).values())
    axes = (*table.axes[:axis], *table.axes[axis + 1 :])
    return Relation(axes, values) if any(values) else None


def _value(x: Node, positions: Mapping[str, int]) -> sp.Expr:
    """Return the value of an expression of relations at positions."""
    if x.op == "constant":
        return x.detail
    if x.op == "relation":
        number = 0
        for index, index_set in zip(x.indices, x.detail.axes):
            number = number * int(index_set.count) + positions[index]
        return x.detail.values[number]
    if x.op == "same":
        return sp.Integer(positions[x.indices[0]] == positions[x.indices[1]])
    if x.op == "power":
        return _value(x.arguments[0], positions) ** x.detail
    left, right = (_value(y, positions) for y in x.arguments)
    return left + right if x.op == "add" else left * right


def _require_relation(x: Node) -> None:
    """Raise `TheoryError` unless a node of a mask is a relation, a number or a sum or product."""
    numbers = x.op in ("add", "multiply", "relation")
    numbers |= x.op in ("constant", "power") and bool(x.detail.is_Rational)
    numbers |= x.op == "same" and all(isinstance(s, Ordered) for s in x.axes.values())
    named = getattr(x.detail, "name", x.op) if x.op == "entry" else f"an expression with {x.op}"
    require(numbers, _DATA_DEPENDENT.format(named))
