r"""Statements about a proved tube of a user-defined theory: true, false or undecided over time.

A comparison a <= b is decided by bounds of d = b - a on parts of the tube. The tube consists of
polynomials P(u) and bounds of the distance e of the solution from them. On a part,

.. math:: d(P + e) = d(P) + \nabla d(\xi)\, e,

where d(P) is a Taylor polynomial with the remainder of Lagrange, and the gradient is enclosed on
the whole part. All numbers are balls.

If d vanishes at the start, its sign after the start follows from Taylor's theorem along the
solution: if the first k derivatives at the start are at least 0, and derivative k is at least 0 at
all states of the first part, then d >= 0 there. The derivatives are computed from the velocity.

Along gradient flow the loss does not increase, because its derivative is
:math:`-\sum_i m_i\theta_i'^2`, with m_i entries of order parameter i. A bound of the loss that is
proved at one time therefore holds at all later times.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, reduce
from typing import Any, NamedTuple

from flint import arb, arb_series, ctx

from dynamics import ParameterError
from dynamics.core.balls.exact import above, below, exact
from dynamics.core.tube.clocks import Clock, Flow
from dynamics.core.tube.piece import BITS, Piece
from dynamics.core.tube.polynomials import around
from dynamics.core.tube.tube import Tube
from dynamics.theory import jets
from simulations.falsify.language import depends_on_the_whole_run
from simulations.outward import up, within
from symbolic.theory import Theory

#: Order of the Taylor polynomial of d on a part, and of derivatives at the start.
_ORDER, _START_ORDER = 3, 6
#: Number of halvings of a part on which a statement is undecided: the first part, and the others.
_HALVINGS_AT_START, _HALVINGS = 4, 1
_FUNCTIONS: Mapping[str, Callable[[Any], Any]] = {
    "exp": jets.exp,
    "log": jets.log,
    "sqrt": jets.sqrt,
    "abs": jets.modulus,
}
_ARITHMETIC: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
Interval = tuple[float, float]


@dataclass(frozen=True)
class Statement:
    """A statement of a file or of the user, with its syntax tree.

    Attributes
    ----------
    text
        The formula.
    tree
        Its syntax tree (`symbolic.core.grammar.parse`).
    """

    text: str
    tree: ast.expr

    @classmethod
    def of(cls, text: str, tree: ast.expr, events: Sequence[str]) -> Statement:
        """Return a statement about each time of a trajectory.

        Raises
        ------
        ParameterError
            If it depends on the whole run.
        """
        while isinstance(tree, ast.Call) and getattr(tree.func, "id", "") == "always":
            tree = tree.args[0]
        if depends_on_the_whole_run(tree, events):
            raise ParameterError(
                f"claim = {text} is not allowed: only statements about single times are proved, "
                "without at_end, eventually, events and extremes over time"
            )
        return cls(text, tree)

    @property
    def bounds_loss(self) -> bool:
        """Whether it is an upper bound of the loss that does not depend on time."""
        match self.tree:
            case ast.Compare(left=loss, ops=[ast.LtE() | ast.Lt()], comparators=[bound]):
                pass
            case ast.Compare(left=bound, ops=[ast.GtE() | ast.Gt()], comparators=[loss]):
                pass
            case _:
                return False
        return isinstance(loss, ast.Name) and loss.id == "loss" and _is_constant(bound)


def _is_constant(node: ast.expr) -> bool:
    """Return whether a number depends on no name but those within ``at_start``."""
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "at_start":
        return True
    parts = [x for x in ast.iter_child_nodes(node) if isinstance(x, ast.expr)]
    arguments = node.args if isinstance(node, ast.Call) else parts
    return not isinstance(node, ast.Name) and all(map(_is_constant, arguments))


class Decided(NamedTuple):
    """What is proved about a statement along a tube.

    Attributes
    ----------
    text
        The statement.
    true, false
        Maximal time intervals on which it is proved, or its negation; 0 means right after the
        start.
    time
        Time at which the tube ends.
    at_end
        Whether it is proved at the end of the tube.
    forever
        Whether it is also proved for all later times.
    """

    text: str
    true: tuple[Interval, ...]
    false: tuple[Interval, ...]
    time: float
    at_end: bool
    forever: bool

    @property
    def since(self) -> float:
        """Time from which it is proved to the end of the tube; inf if it is not at the end."""
        return self.true[-1][0] if self.at_end else math.inf

    @property
    def sentence(self) -> str:
        """Summary in one sentence."""
        if self.at_end:
            until = "for ever" if self.forever else f"to time {self.time:g}"
            result = f"proved from time {up(self.since)} on, {until}"
        else:
            result = "not proved at the end"
            if self.true:
                result += ", proved " + _listed(self.true)
        return result + (f"; false {_listed(self.false)}" if self.false else "")


def _listed(intervals: Sequence[Interval]) -> str:
    return " and ".join(within(*times) for times in intervals)


class Scope(Mapping[str, Any]):
    """Numbers that a formula may use, at one state or along one curve.

    Parameters
    ----------
    along
        The tube with its names.
    theta
        Order parameters as numbers of `dynamics.theory.jets`.
    time
        The time as such a number.
    """

    def __init__(self, along: Along, theta: Sequence[Any], time: Any) -> None:
        self._along, self._theta = along, theta
        self._known = {**along.constants, **dict(zip(along.names, theta)), "time": time}

    def __getitem__(self, name: str) -> Any:
        if name not in self._known:
            if name == "loss":
                self._known[name] = self._along.function(self._theta)[0]
            else:
                self._known[name] = self.number(self._along.observables[name])
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter([*self._known, "loss", *self._along.observables])

    def __len__(self) -> int:
        return len(list(iter(self)))

    def number(self, node: ast.expr) -> Any:
        """Return the value of an arithmetic expression."""
        match node:
            case ast.Constant(value=float(value)):
                return exact(value)
            case ast.Name(id=name):
                return self[name]
            case ast.UnaryOp(op=sign, operand=operand):
                value = self.number(operand)
                return -value if isinstance(sign, ast.USub) else value
            case ast.BinOp(left=left, op=ast.Pow(), right=right):
                return _power(self.number(left), self.number(right))
            case ast.BinOp(left=left, op=op, right=right):
                return _ARITHMETIC[type(op)](self.number(left), self.number(right))
            case ast.Call(func=ast.Name(id="at_start"), args=[argument]):
                return jets.constant_term(self._along.start_scope.number(argument))
            case ast.Call(func=ast.Name(id=function), args=arguments):
                numbers = [self.number(argument) for argument in arguments]
                if function in ("min", "max"):
                    return reduce(_larger if function == "max" else _smaller, numbers)
                return _FUNCTIONS[function](numbers[0])
        raise TypeError(node)


def _power(x: Any, exponent: Any) -> Any:
    if isinstance(exponent, (arb_series, jets.Jet)):
        return jets.exp(jets.log(x) * exponent)
    return jets.power(x, exponent)


def _larger(x: Any, y: Any) -> Any:
    return (x + y + jets.modulus(x - y)) / 2


def _smaller(x: Any, y: Any) -> Any:
    return (x + y - jets.modulus(x - y)) / 2


@dataclass(frozen=True, eq=False)
class Along:
    """A tube of a theory, along which statements are decided.

    Attributes
    ----------
    theory
        The theory.
    constants
        Sizes, constants and initial values as balls.
    start
        Initial state as balls, in the order of ``names``.
    function
        Loss and gradient.
    clock, tube
        Gradient flow or descent, and its tube.
    """

    theory: Theory
    constants: Mapping[str, arb]
    start: Sequence[arb]
    function: jets.EmittedFunction
    clock: Clock
    tube: Tube

    @property
    def names(self) -> list[str]:
        """Identifiers of the order parameters."""
        return [order.identifier for order in self.theory.orders]

    @property
    def observables(self) -> Mapping[str, ast.expr]:
        """Formulas of the observables of the file."""
        return self.theory.formulas.observables

    @cached_property
    def start_scope(self) -> Scope:
        """The numbers at the start."""
        return Scope(self, self.start, arb(0))

    def loss_at_end(self) -> Interval:
        """Return (low, high) of the loss at the end of the tube."""
        with ctx.workprec(BITS):
            if not self.tube.pieces:
                loss = arb(jets.constant_term(self.function(self.start)[0]))
                return below(loss), above(loss)
            end = _Region(self, len(self.tube.pieces) - 1, -1, (1.0, 1.0))
            low, high = end.bounds(ast.Name("loss"), ast.Constant(0.0))
            return low, high

    def decide(self, statement: Statement) -> Decided:
        """Decide a statement on each part of the tube."""
        true: list[tuple[Fraction, Fraction]] = []
        false: list[tuple[Fraction, Fraction]] = []
        monotone = statement.bounds_loss and isinstance(self.clock, Flow)
        with ctx.workprec(BITS):
            for region in self._regions():
                settled = monotone and bool(true)
                for part, truth in [(region, True)] if settled else region.decided(statement.tree):
                    if truth is not None:
                        _append(true if truth else false, part.counts)
        at_end = bool(true) and true[-1][1] == Fraction(self.tube.end)
        return Decided(
            statement.text,
            tuple(map(self._times, true)),
            tuple(map(self._times, false)),
            self.tube.end * self.clock.unit,
            at_end,
            at_end and monotone,
        )

    def _times(self, counts: tuple[Fraction, Fraction]) -> Interval:
        """Return the ends of an interval in time, rounded inwards."""
        low, high = (count * Fraction(self.clock.unit) for count in counts)
        ends = [float(low), float(high)]
        if ends[0] < low:
            ends[0] = math.nextafter(ends[0], math.inf)
        if ends[1] > high:
            ends[1] = math.nextafter(ends[1], -math.inf)
        return ends[0], ends[1]

    def _regions(self) -> Iterator[_Region]:
        for k, parts in enumerate(self.tube.parts):
            number = len(parts)
            for j in range(number):
                ends = 2.0 * j / number - 1.0, 2.0 * (j + 1) / number - 1.0  # exact: powers of two
                yield _Region(self, k, j, ends)


def _append(intervals: list[tuple[Fraction, Fraction]], counts: tuple[Fraction, Fraction]) -> None:
    """Append an interval, joined with the last one if they touch."""
    if intervals and intervals[-1][1] == counts[0]:
        intervals[-1] = (intervals[-1][0], counts[1])
    else:
        intervals.append(counts)


@dataclass(frozen=True, eq=False)
class _Region:
    """Times of a part of the tube: u from ``ends[0]`` to ``ends[1]`` on a piece."""

    along: Along
    k: int
    j: int
    ends: Interval

    @property
    def piece(self) -> Piece:
        """The polynomial."""
        return self.along.tube.pieces[self.k]

    @property
    def is_at_start(self) -> bool:
        """Whether it begins at time 0."""
        return self.k == 0 and self.ends[0] == -1.0

    @property
    def counts(self) -> tuple[Fraction, Fraction]:
        """Its ends in counts of the clock (time or steps)."""
        start, end = Fraction(self.piece.start), Fraction(self.piece.end)
        low, high = (start + (end - start) * (Fraction(u) + 1) / 2 for u in self.ends)
        return low, high

    def decided(self, tree: ast.expr, depth: int = 0) -> Iterator[tuple[_Region, bool | None]]:
        """Yield truth values of a statement on parts of the region."""
        truth = self.truth(tree)
        if truth is None and depth < (_HALVINGS_AT_START if self.is_at_start else _HALVINGS):
            low, high = self.ends
            middle = 0.5 * (low + high)
            for ends in ((low, middle), (middle, high)):
                yield from _Region(self.along, self.k, self.j, ends).decided(tree, depth + 1)
        else:
            yield self, truth

    def truth(self, node: ast.expr, negated: bool = False) -> bool | None:
        """Return the truth value of a statement or its negation on the region, None if unknown."""
        match node:
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self.truth(operand, not negated)
            case ast.BoolOp(op=op, values=nodes):
                return _joined(
                    [self.truth(x, negated) for x in nodes], isinstance(op, ast.And) != negated
                )
            case ast.Compare(left=left, ops=ops, comparators=others):
                pairs = zip(ops, [left, *others], others)
                truths = [self._compared(op, *pair) for op, *pair in pairs]
                if negated:
                    truths = [None if truth is None else not truth for truth in truths]
                return _joined(truths, not negated)
        raise TypeError(node)

    def _compared(self, op: ast.cmpop, left: ast.expr, right: ast.expr) -> bool | None:
        """Return whether a comparison is true on the region, None if unknown."""
        if isinstance(op, (ast.Eq, ast.NotEq)):
            low, high = self.bounds(left, right, sign=True)
            differs = low > 0.0 or high < 0.0
            equal = low == high == 0.0
            return isinstance(op, ast.NotEq) == differs if differs or equal else None
        if isinstance(op, (ast.LtE, ast.Lt)):
            left, right = right, left
        low, high = self.bounds(left, right, sign=True)
        strict = isinstance(op, (ast.Lt, ast.Gt))
        if low > 0.0 or (low == 0.0 and not strict):
            return True
        if high < 0.0 or (high == 0.0 and strict):
            return False
        return self._after_start(left, right, strict) if self.is_at_start else None

    def bounds(self, left: ast.expr, right: ast.expr, *, sign: bool = False) -> Interval:
        """Return (low, high) of left - right on the region; infinite if undefined.

        With ``sign`` the first bounds that determine the sign are returned.
        """
        along, reach = self.along, [exact(x) for x in self._reach]
        centre = (exact(self.ends[0]) + exact(self.ends[1])) / 2
        width = (exact(self.ends[1]) - exact(self.ends[0])) / 2
        columns = [
            [c * width**k for k, c in enumerate(around(column, centre))] for column in self._columns
        ]
        try:
            with jets.truncated(0):
                box = [
                    x + arb(0, 1) * r for x, r in zip((_hull(c, 0)[0] for c in columns[:-1]), reach)
                ]
                around_box = jets.variables([arb_series([x]) for x in box])
                scope = Scope(along, around_box, _hull(columns[-1], 0)[0])
                difference = scope.number(left) - scope.number(right)
                whole = jets.constant_term(difference)
                slopes = difference.slopes if isinstance(difference, jets.Jet) else {}
                error = sum((abs(s[0]) * reach[i] for i, s in slopes.items()), arb(0))
            if not slopes or (sign and (whole > 0 or whole < 0)):
                return below(whole), above(whole)
            thin = self._along_curve([c[: _ORDER + 1] for c in columns], left, right, _ORDER)
            rest = self._along_curve(
                [_hull(c, _ORDER + 1) for c in columns], left, right, _ORDER + 1
            )
        except jets.UNDEFINED:
            return -math.inf, math.inf
        spread = sum((abs(x) for x in (*thin[1:], rest[-1])), error)
        ball = thin[0] + arb(0, 1) * spread.upper()
        return max(below(ball), below(whole)), min(above(ball), above(whole))

    def _along_curve(
        self, columns: list[list[arb]], left: ast.expr, right: ast.expr, order: int
    ) -> list[arb]:
        """Return the coefficients of left - right along a curve."""
        with jets.truncated(order):
            *theta, time = (arb_series(c, prec=order + 1) for c in columns)
            scope = Scope(self.along, theta, time)
            result = jets.coefficients(scope.number(left) - scope.number(right))
        return result + [arb(0)] * (order + 1 - len(result))

    def _after_start(self, left: ast.expr, right: ast.expr, strict: bool) -> bool | None:
        """Decide left >= right, or left > right, right after the start by derivatives."""
        if not isinstance(self.along.clock, Flow):
            return None
        if _without_at_start(left) == _without_at_start(right):
            first = [arb(0)]
        else:
            first = []
        u = exact(self.ends[0]).union(exact(self.ends[1]))
        values = [sum((c * u**k for k, c in enumerate(column)), arb(0)) for column in self._columns]
        box = [x + arb(0, 1) * exact(r) for x, r in zip(values, self._reach)]
        try:
            at_start = self._derivatives(self.along.start, arb(0), left, right)
            on_region = self._derivatives(box, values[-1], left, right)
        except jets.UNDEFINED:
            return None
        at_start[: len(first)] = first
        for k in range(1, _START_ORDER + 1):
            lowest = [below(x) for x in (*at_start[:k], on_region[k])]
            if min(lowest) >= 0.0 and (max(lowest) > 0.0 or not strict):
                return True
            if all(above(x) <= 0.0 for x in at_start[:k]) and above(on_region[k]) < 0.0:
                return False
        return None

    def _derivatives(
        self, state: Sequence[arb], time: arb, left: ast.expr, right: ast.expr
    ) -> list[arb]:
        """Return Taylor coefficients of left - right along the flow from a box of states."""
        columns = [[x] for x in state]
        for order in range(_START_ORDER):
            with jets.truncated(order):
                theta = [arb_series(c, prec=order + 1) for c in columns]
                gradient = self.along.function(theta)[1]
                for column, slope in zip(columns, gradient):
                    terms = jets.coefficients(slope)
                    value = terms[order] if order < len(terms) else arb(0)
                    column.append(-value / (order + 1))
        return self._along_curve([*columns, [time, arb(1)]], left, right, _START_ORDER)

    @cached_property
    def _columns(self) -> list[list[arb]]:
        """Coefficients of the order parameters on the piece, and of the time, in powers of u."""
        unit, half = exact(self.along.clock.unit), self.piece.length / 2
        time = [(exact(self.piece.start) + half) * unit, half * unit]
        return [*([exact(x) for x in c] for c in self.piece.coefficients.T.tolist()), time]

    @property
    def _reach(self) -> list[float]:
        return self.along.tube.parts[self.k][self.j].reach


def _hull(column: Sequence[arb], order: int) -> list[arb]:
    """Return balls around the Taylor coefficients at all points of [-1, 1]."""
    results = []
    for j in range(order + 1):
        total = arb(0)
        for k in range(j, len(column)):
            term = math.comb(k, j) * column[k]
            if k == j:
                total += term
            else:
                total += term * (arb(0.5, 0.5) if (k - j) % 2 == 0 else arb(0, 1))
        results.append(total)
    return results


def _joined(truths: Sequence[bool | None], conjunction: bool) -> bool | None:
    """Return the conjunction or disjunction of truth values; None is unknown."""
    if (not conjunction) in truths:
        return not conjunction
    return None if None in truths else conjunction


def _without_at_start(node: ast.expr) -> str:
    """Return a text of an expression, in which ``at_start(x)`` is x."""

    class Strip(ast.NodeTransformer):
        def visit_Call(self, call: ast.Call) -> ast.AST:
            self.generic_visit(call)
            return call.args[0] if getattr(call.func, "id", "") == "at_start" else call

    return ast.dump(Strip().visit(ast.parse(ast.unparse(node), mode="eval")))
