"""How large the loss of one datum can be at a state, and its slopes: a bound for all data.

Interval arithmetic on the statement itself, every end rounded outwards. Softmax weights are within
[0, 1] and their means within what they are the mean of; a derivative of such a mean is a covariance
under the weights, at most a quarter of the product of both widths (Popoviciu). What is left out of
a mean over data, a chance of at most r, is at most r times the bound.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import sympy as sp

from dynamics.core.balls.exact import above, below
from simulations.stated.law import Balls
from symbolic.theory import Theory
from symbolic.theory.expression import Node
from symbolic.theory.sets import IndexSet
from symbolic.theory.tangent import Tangent
from symbolic.theory.tensors import Colouring, Tensor
from symbolic.theory.weights import parted

#: More than the rounding of one operation or function, relative, and what underflows.
ROUNDING, TINY = 2.0**-50, 1e-300


class Range(NamedTuple):
    """All numbers from ``low`` to ``high``; infinite where nothing is known."""

    low: float
    high: float

    @property
    def largest(self) -> float:
        """The largest modulus."""
        return max(abs(self.low), abs(self.high))

    @property
    def width(self) -> float:
        """The largest difference of two numbers in it."""
        return _around([self.high - self.low]).high


ANY, UNIT = Range(-math.inf, math.inf), Range(0.0, 1.0)
FUNCTIONS: Mapping[str, Callable[[float], float]] = {
    "exp": lambda x: math.exp(x) if x < 709.0 else math.inf,
    "log": lambda x: math.log(x) if x > 0.0 else -math.inf,
    "tanh": math.tanh,
    "sigmoid": lambda x: 0.5 * (1.0 + math.tanh(0.5 * x)),
    "softplus": lambda x: max(x, 0.0) + math.log1p(math.exp(-abs(x))),
}


def bounds(
    theory: Theory, values: Mapping[str, float]
) -> Callable[[np.ndarray], tuple[float, np.ndarray]]:
    """Return a function of the state: a bound of |loss| of any datum, and of each slope, (n,).

    A slope is per entry, as that of `dynamics.theory.risk.StatedRisk`. Infinite where the loss of a
    datum has no bound that interval arithmetic finds.
    """
    loss = theory.mean.loss
    slopes = [Tangent(order.tensor, order.key).of(loss) for order in theory.orders]
    balls = Balls(values)
    counts = [max(float(below(balls.real(order.count))), 1.0) for order in theory.orders]

    def at(state: np.ndarray) -> tuple[float, np.ndarray]:
        named = {order.name: float(x) for order, x in zip(theory.orders, state)}
        reading = _Reading(theory, balls, named)
        found = [0.0 if slope is None else reading.of(slope).largest for slope in slopes]
        steep = [_around([x / count]).high for x, count in zip(found, counts)]
        return reading.of(loss).largest, np.array(steep)

    return at


class _Reading:
    """The ranges of expressions at one state."""

    def __init__(self, theory: Theory, balls: Balls, state: Mapping[str, float]) -> None:
        self._theory, self._balls, self._state = theory, balls, state
        self._known: dict[Node, Range] = {}

    def of(self, x: Node) -> Range:
        """Return a range that holds every entry of an expression, for all data."""
        if x not in self._known:
            found = self._rule(x)
            broken = math.isnan(found.low) or math.isnan(found.high)
            self._known[x] = ANY if broken else found
        return self._known[x]

    def _rule(self, x: Node) -> Range:
        if x.op == "constant":
            return self._hull([x.detail])
        if x.op == "entry":
            return self._entries(x)
        if x.op in ("same", "inside", "orbit", "softmax"):
            return UNIT
        if x.op == "part":
            return self._hull(x.detail.values.values())
        if x.op == "sum":
            return self._sum(x)
        if x.op == "softmax_tangent":
            width = self.of(x.arguments[1]).width / 4.0
            return _around([-width, width])
        ranges = [self.of(argument) for argument in x.arguments]
        if x.op == "add":
            return _around([sum(row.low for row in ranges), sum(row.high for row in ranges)])
        if x.op == "multiply":
            return _product(*ranges)
        if x.op == "power":
            exponent = self._balls.real(x.detail)
            return _power(ranges[0], float(exponent)) if exponent.is_exact() else ANY
        ends = [FUNCTIONS[x.op](end) for end in ranges[0]]
        return _around(ends)

    def _entries(self, x: Node) -> Range:
        if isinstance(x.detail, Tensor):
            values = [
                value for (tensor, _), value in self._theory.entries.items() if tensor is x.detail
            ]
            signed = any(part.signed for where in x.detail.axes for part in where.parts)
            return self._hull([*values, *([sp.Integer(0)] if signed else [])])
        return self._hull(x.detail.law) if isinstance(x.detail, Colouring) else UNIT

    def _hull(self, values: Iterable[Any]) -> Range:
        """Return the least range with these values in it."""
        lows, highs = [], []
        for value in values:
            if str(value) in self._state:
                ends = (self._state[str(value)],) * 2
            else:
                ball = self._balls.real(value)
                ends = below(ball), above(ball)
            lows.append(ends[0])
            highs.append(ends[1])
        return Range(min(lows), max(highs))

    def _sum(self, x: Node) -> Range:
        (body,) = x.arguments
        factors = parted(body)[1]
        weights = [
            y for y in factors if y.op in ("softmax", "softmax_tangent") and y.detail == x.detail
        ]
        if len(weights) == 1:
            rest = Range(1.0, 1.0)
            for y in (*parted(body)[0], *(y for y in factors if y is not weights[0])):
                rest = _product(rest, self.of(y))
            if weights[0].op == "softmax":
                return rest
            width = rest.width * self.of(weights[0].arguments[1]).width / 4.0
            return _around([-width, width])
        return _product(self.of(body), self._number(body.axes[x.detail]))

    def _number(self, where: IndexSet) -> Range:
        """Return how many elements a set has."""
        return self._hull([where.count])


def _around(ends: list[float]) -> Range:
    """Return the range of some numbers that are rounded, outwards."""
    low, high = min(ends), max(ends)
    return Range(low - ROUNDING * abs(low) - TINY, high + ROUNDING * abs(high) + TINY)


def _product(one: Range, other: Range) -> Range:
    ends = [0.0 if x == 0.0 or y == 0.0 else x * y for x in one for y in other]
    return _around(ends)


def _power(base: Range, p: float) -> Range:
    if base.low <= 0.0 and (p < 0.0 or not p.is_integer()):
        return ANY
    try:
        ends = [float(end**p) for end in base]
    except OverflowError:
        return ANY
    if p % 2.0 == 0.0 and base.low < 0.0 < base.high:
        ends.append(0.0)
    return _around(ends)
