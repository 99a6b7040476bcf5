"""The derivative of an expression in one order parameter, an expression of the same language.

The derivative of softmax weights is written in differences, p_j sum_k p_k (x_j' - x_k'): where one
weight is nearly 1 nothing cancels, so that no digits are lost late in training.
"""

from collections.abc import Mapping

from symbolic.theory.expression import Node, multiply, node
from symbolic.theory.patterns import Key
from symbolic.theory.tensors import Tensor


class Tangent:
    """The derivatives of expressions in all entries of one orbit of a tensor at once."""

    def __init__(self, tensor: Tensor, key: Key) -> None:
        self.tensor, self.key = tensor, key
        self._known: dict[Node, Node | None] = {}

    def of(self, expression: Node) -> Node | None:
        """Return the derivative; ``None`` where it is 0."""
        if expression not in self._known:
            found = self._rule(expression)
            if found is not None:
                found.where = expression.where
            self._known[expression] = found
        return self._known[expression]

    def _rule(self, x: Node) -> Node | None:
        if x.op == "entry":
            mine = x.detail is self.tensor
            return Node("orbit", (), self.key, x.indices, x.axes) if mine else None
        slopes = [self.of(argument) for argument in x.arguments]
        if x.op == "multiply":
            (one, other), (d_one, d_other) = x.arguments, slopes
            terms = [
                multiply(d, factor)
                for d, factor in ((d_one, other), (d_other, one))
                if d is not None
            ]
        else:
            terms = [slope for slope in slopes if slope is not None]
        if not terms:
            return None
        if x.op in ("add", "multiply"):
            return _plain_sum(terms)
        (slope,) = terms
        (argument,) = x.arguments
        if x.op == "sum":
            if x.detail not in slope.axes:  # of a sum of which one term alone has the index
                return multiply(argument.axes[x.detail].count, slope)
            return Node("sum", (slope,), x.detail, axes=x.axes)
        if x.op == "softmax":
            return Node("softmax_tangent", (x, slope), x.detail, axes=x.axes)
        return multiply(_slope(x, argument), slope)


def _plain_sum(terms: list[Node]) -> Node:
    if len(terms) == 1:
        return terms[0]
    axes = {**terms[0].axes, **terms[1].axes}
    return Node("add", tuple(terms), axes=axes)


def _slope(x: Node, argument: Node) -> Node:
    """Return the derivative of an elementwise function in its argument."""
    if x.op == "power":
        return multiply(x.detail, Node("power", (argument,), x.detail - 1, axes=argument.axes))
    one = node(1)
    rules: Mapping[str, Node] = {
        "exp": x,
        "log": Node("power", (argument,), one.detail * -1, axes=argument.axes),
        "tanh": _plain_product(one - x, one + x) if x.op == "tanh" else one,
        "softplus": Node("sigmoid", (argument,), axes=argument.axes),
        "sigmoid": _plain_product(x, Node("sigmoid", (-argument,), axes=argument.axes)),
    }
    return rules[x.op]


def _plain_product(one: Node, other: Node) -> Node:
    return Node("multiply", (one, other), axes=one.axes)
