"""Rewrite averages over softmax weights so that no digits cancel late in training.

The weights sum to 1, hence u + sum_j p_j x_j = sum_j p_j (u + x_j). Where nearly all weight is at
u + x_j = 0, the left-hand side returns the rounding error of u; the right-hand side is accurate.
The rewriting applies where u consists of numbers, data and indicators, for which u + x_j can be 0
exactly. It does not apply to derivatives of softmax, whose weights sum to 0.
"""

from functools import reduce

from symbolic.theory.expression import Node, multiply, node
from symbolic.theory.tensors import Tensor

_MADE_OF = {"constant", "entry", "same", "inside", "part", "add", "multiply", "power"}


def centred(expression: Node) -> Node:
    """Return an equal expression with constant terms moved into averages over softmax weights."""
    known: dict[Node, Node] = {}
    for x in expression.all:
        arguments = tuple(known[y] for y in x.arguments)
        known[x] = x
        if any(new is not old for new, old in zip(arguments, x.arguments)):
            known[x] = Node(x.op, arguments, x.detail, x.indices, x.axes, x.odd)
        for target, average in (arguments, arguments[::-1]) if x.op == "add" else ():
            mean = _mean(target, average)
            known[x] = known[x] if mean is None else mean
        known[x].location = x.location
    return known[expression]


def _mean(target: Node, total: Node) -> Node | None:
    """Return target + total as one average; ``None`` if the total is not an average."""
    numbers, sums = parted(total)
    if len(sums) != 1 or sums[0].op != "sum" or not _is_given(target):
        return None
    over, (body,) = sums[0].detail, sums[0].arguments
    own, factors = parted(body)
    weights = [x for x in factors if x.op == "softmax" and x.detail == over]
    if len(weights) != 1 or over in target.axes:
        return None
    others = [x for x in factors if x is not weights[0]]
    value = reduce(multiply, [*numbers, *own, *others], node(1))
    return (weights[0] * (target + value)).sum(over)


def parted(x: Node) -> tuple[list[Node], list[Node]]:
    """Return the constant factors and the other factors of a product."""
    factors = _factors(x)
    return [y for y in factors if y.op == "constant"], [y for y in factors if y.op != "constant"]


def _factors(x: Node) -> list[Node]:
    """Return the factors of nested products."""
    return [x] if x.op != "multiply" else [y for z in x.arguments for y in _factors(z)]


def _is_given(x: Node) -> bool:
    """Return whether an expression consists of numbers, data and indicators only."""
    return all(
        y.op in _MADE_OF and not (y.op == "entry" and isinstance(y.detail, Tensor)) for y in x.all
    )
