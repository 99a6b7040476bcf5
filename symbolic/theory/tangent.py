"""Derivatives of expressions with respect to an order parameter.

The derivative of softmax weights is written in differences, p_j sum_k p_k (x_j' - x_k'), so that no
digits cancel where one weight is nearly 1, late in training.
"""

from collections.abc import Mapping

import sympy as sp

from symbolic.theory.expression import Node, multiply
from symbolic.theory.orbits import Key
from symbolic.theory.tensors import Tensor


class Tangent:
    """Derivatives of expressions with respect to the common value of the entries of an orbit.

    Parameters
    ----------
    tensor, key
        The tensor, and the orbit in it.
    """

    def __init__(self, tensor: Tensor, key: Key) -> None:
        self.tensor, self.key = tensor, key
        self._known: dict[Node, Node | None] = {}

    def of(self, expression: Node) -> Node | None:
        """Return the derivative of an expression; ``None`` if it is 0."""
        if expression not in self._known:
            derivative = self._rule(expression)
            if derivative is not None:
                derivative.location = expression.location
            self._known[expression] = derivative
        return self._known[expression]

    def _rule(self, x: Node) -> Node | None:
        """Apply the rule of the outermost operation."""
        if x.op == "entry":
            if x.detail is not self.tensor:
                return None
            return Node("orbit", (), self.key, x.indices, x.axes)
        if x.op in ("sign", "step"):  # constant but at 0
            return None
        slopes = [self.of(argument) for argument in x.arguments]
        if x.op == "multiply":
            (left, right), (d_left, d_right) = x.arguments, slopes
            terms = [
                multiply(d, factor)
                for d, factor in ((d_left, right), (d_right, left))
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
            if x.detail not in slope.axes:  # the derivative does not depend on the index
                return multiply(argument.axes[x.detail].count, slope)
            return Node("sum", (slope,), x.detail, axes=x.axes)
        if x.op == "logsumexp":
            if x.detail not in slope.axes:
                return slope
            weights = Node("softmax", (argument,), x.detail, axes=argument.axes)
            return Node("sum", (multiply(weights, slope),), x.detail, axes=x.axes)
        if x.op == "softmax":
            return Node("softmax_tangent", (x, slope), x.detail, axes=x.axes)
        return multiply(_slope(x, argument), slope)


def _plain_sum(terms: list[Node]) -> Node:
    """Return the sum of one or two terms, which can be odd in different indices."""
    if len(terms) == 1:
        return terms[0]
    axes = {**terms[0].axes, **terms[1].axes}
    return Node("add", tuple(terms), axes=axes)


def _slope(x: Node, argument: Node) -> Node:
    """Return the derivative of an elementwise function with respect to its argument."""
    if x.op == "power":
        return multiply(x.detail, Node("power", (argument,), x.detail - 1, axes=argument.axes))
    minus_one = sp.Integer(-1)
    rules: Mapping[str, Node] = {
        "exp": x,
        "log": Node("power", (argument,), minus_one, axes=argument.axes),
        "tanh": _plain_product(1 - x, 1 + x) if x.op == "tanh" else x,
        "softplus": Node("sigmoid", (argument,), axes=argument.axes),
        "modulus": Node("sign", (argument,), axes=argument.axes),
        "relu": Node("step", (argument,), axes=argument.axes),
        "sigmoid": _plain_product(x, Node("sigmoid", (-argument,), axes=argument.axes)),
    }
    return rules[x.op]


def _plain_product(left: Node, right: Node) -> Node:
    """Return a product of factors with the same free indices."""
    return Node("multiply", (left, right), axes=left.axes)
