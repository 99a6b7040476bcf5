"""Bounds of the loss of a single datum and of its gradient, valid for all data.

The expression of the theory is evaluated in interval arithmetic with ends rounded outwards. Softmax
weights are in [0, 1], and weighted means are in the range of the averaged quantity. The derivative
of such a mean is a covariance under the weights, at most a quarter of the product of both widths
(Popoviciu). Omitted data of probability at most r change a mean by at most r times the bound.
"""

import operator
from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from typing import Any

import numpy as np
import sympy as sp

from dynamics.core.balls.exact import above, below
from dynamics.core.balls.intervals import EVERYTHING, Interval
from simulations.stated.law import Balls
from symbolic.theory import Theory
from symbolic.theory.expression import Node
from symbolic.theory.sources import Colouring
from symbolic.theory.tangent import Tangent
from symbolic.theory.tensors import Tensor
from symbolic.theory.weights import parted

UNIT = Interval(0.0, 1.0)
FUNCTIONS: Mapping[str, Callable[[Interval], Interval]] = {
    "exp": lambda x: x.map(np.exp),
    "log": Interval.log,
    "tanh": lambda x: x.map(np.tanh),
    "sigmoid": lambda x: x.map(lambda end: 1.0 / (1.0 + np.exp(-end))),
    "softplus": lambda x: x.map(lambda end: np.logaddexp(0.0, end)),
    "modulus": lambda x: Interval(np.maximum(np.maximum(x.low, -x.high), 0.0), x.largest),
    "relu": lambda x: Interval(np.maximum(x.low, 0.0), np.maximum(x.high, 0.0)),
    "sign": lambda x: Interval(-1.0, 1.0),
    "step": lambda x: UNIT,
}


def bounds(
    theory: Theory, values: Mapping[str, float]
) -> Callable[[np.ndarray], tuple[float, np.ndarray]]:
    """Return a function of the state that bounds |loss| and each slope (n,) for any datum.

    Slopes are per entry, as in `dynamics.theory.risk.TheoryRisk`. A bound is infinite if interval
    arithmetic does not give a finite one.
    """
    loss = theory.mean.loss
    slopes = [Tangent(order.tensor, order.key).of(loss) for order in theory.orders]
    balls = Balls(values)
    counts = [max(float(below(balls.real(order.count))), 1.0) for order in theory.orders]

    def at(state: np.ndarray) -> tuple[float, np.ndarray]:
        values_of = {order.name: float(x) for order, x in zip(theory.orders, state)}
        ranges = _Ranges(theory, balls, values_of)
        with np.errstate(all="ignore"):  # overflow gives an infinite bound
            steep = [
                0.0 if slope is None else (ranges.of(slope) / _point(count)).largest
                for slope, count in zip(slopes, counts)
            ]
            return float(ranges.of(loss).largest), np.array(steep, float)

    return at


class _Ranges:
    """Ranges of expressions at one state."""

    def __init__(self, theory: Theory, balls: Balls, state: Mapping[str, float]) -> None:
        self._theory, self._balls, self._state = theory, balls, state
        self._known: dict[Node, Interval] = {}

    def of(self, x: Node) -> Interval:
        """Return an interval that contains every entry of an expression for all data."""
        if x not in self._known:
            self._known[x] = self._rule(x)
        return self._known[x]

    def _rule(self, x: Node) -> Interval:
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
            return _covariance(UNIT, self.of(x.arguments[1]))
        parts = [self.of(argument) for argument in x.arguments]
        if x.op == "add":
            return reduce(operator.add, parts)
        if x.op == "multiply":
            return reduce(operator.mul, parts)
        if x.op == "logsumexp":
            return parts[0] + self._hull([x.arguments[0].axes[x.detail].count]).log()
        if x.op == "power":
            exponent = self._balls.real(x.detail)
            return parts[0] ** _point(float(exponent)) if exponent.is_exact() else EVERYTHING
        return FUNCTIONS[x.op](parts[0])

    def _entries(self, x: Node) -> Interval:
        if isinstance(x.detail, Tensor):
            values = [
                value for (tensor, _), value in self._theory.entries.items() if tensor is x.detail
            ]
            signed = any(part.signed for where in x.detail.axes for part in where.parts)
            return self._hull([*values, *([sp.Integer(0)] if signed else [])])
        return self._hull(x.detail.law) if isinstance(x.detail, Colouring) else UNIT

    def _hull(self, values: Iterable[Any]) -> Interval:
        """Return the smallest interval that contains these values."""
        lows, highs = [], []
        for value in values:
            if str(value) in self._state:
                ends = (self._state[str(value)],) * 2
            else:
                ball = self._balls.real(value)
                ends = below(ball), above(ball)
            lows.append(ends[0])
            highs.append(ends[1])
        return Interval(min(lows), max(highs))

    def _sum(self, x: Node) -> Interval:
        (body,) = x.arguments
        factors = parted(body)[1]
        weights = [
            y for y in factors if y.op in ("softmax", "softmax_tangent") and y.detail == x.detail
        ]
        if len(weights) == 1:
            others = (*parted(body)[0], *(y for y in factors if y is not weights[0]))
            rest = reduce(operator.mul, map(self.of, others), _point(1.0))
            if weights[0].op == "softmax":
                return rest
            return _covariance(rest, self.of(weights[0].arguments[1]))
        return self.of(body) * self._hull([body.axes[x.detail].count])


def _point(x: float) -> Interval:
    return Interval(x, x)


def _covariance(x: Interval, y: Interval) -> Interval:
    """Return bounds of the covariance, under any weights, of two numbers in these intervals."""
    most = _point(x.width) * _point(y.width) * _point(0.25)
    return Interval(-most.high, most.high)
