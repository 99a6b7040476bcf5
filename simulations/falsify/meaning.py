"""What a conjecture means: how much it is violated, with an interval around the number.

A comparison a <= b is violated by a - b; ``and`` takes the larger violation, ``or`` the smaller;
``not`` is pushed down to the comparisons. Positive means false, at most 0 means true, and a number
whose interval holds 0 means that the numerical error does not let one tell.
"""

from collections.abc import Collection, Mapping

from simulations.falsify.bounded import Bounded, joined, pick
from simulations.falsify.grammar import (
    Arithmetic,
    Call,
    Comparison,
    Joined,
    Name,
    Negative,
    Node,
    Not,
    Number,
    children,
)

Environment = Mapping[str, Bounded]
_OPPOSITE = {"<=": ">", ">": "<=", ">=": "<", "<": ">=", "==": "!=", "!=": "=="}


def violation(node: Node, known: Environment, negated: bool = False) -> Bounded:
    """Return by how much a statement (or its negation) is violated, over time or as a scalar."""
    match node:
        case Comparison(operands=operands, operators=operators):
            numbers = [number(operand, known) for operand in operands]
            parts = [
                _compare(_OPPOSITE[operator] if negated else operator, left, right)
                for operator, left, right in zip(operators, numbers, numbers[1:])
            ]
            return joined("min" if negated else "max", parts)
        case Joined(operator=operator, parts=nodes):
            both = (operator == "and") != negated
            return joined("max" if both else "min", [violation(n, known, negated) for n in nodes])
        case Not(operand=operand):
            return violation(operand, known, not negated)
        case Call(function=function, arguments=(argument,)):
            everywhere = (function == "always") != negated
            return violation(argument, known, negated).along("max" if everywhere else "min")
    raise TypeError(node)


def holds(node: Node, known: Environment) -> bool:
    """Return whether a statement about exact numbers is true; one that is undefined is not."""
    return bool(violation(node, known).value <= 0.0)


def number(node: Node, known: Environment) -> Bounded:
    """Return a number over time or as a scalar."""
    match node:
        case Number(value=value):
            return Bounded.exact(value)
        case Name(name=name):
            return known[name]
        case Negative(operand=operand):
            return -number(operand, known)
        case Arithmetic(operator=operator, left=left, right=right):
            return _ARITHMETIC[operator](number(left, known), number(right, known))
        case Call(function=function, arguments=arguments):
            return _call(function, [number(argument, known) for argument in arguments])
    raise TypeError(node)


def depends_on_the_whole_run(node: Node, whole: Collection[str]) -> bool:
    """Return whether truth at one time needs the rest of the run: events, ends, extremes."""
    match node:
        case Name(name=name):
            return name in whole
        case Call(function=function, arguments=arguments):
            alone = function in ("min", "max") and len(arguments) == 1
            if alone or function in ("at_end", "always", "eventually"):
                return True
    return any(depends_on_the_whole_run(part, whole) for part in children(node))


def _compare(operator: str, left: Bounded, right: Bounded) -> Bounded:
    match operator:
        case "<=":
            return left - right
        case ">=":
            return right - left
        case "<":
            return (left - right).positive_at_zero()
        case ">":
            return (right - left).positive_at_zero()
        case "==":
            return (left - right).abs()
    return (-(left - right).abs()).positive_at_zero()


def _call(function: str, arguments: list[Bounded]) -> Bounded:
    import numpy as np

    first = arguments[0]
    match function:
        case "min" | "max":
            return first.along(function) if len(arguments) == 1 else pick(function, arguments)
        case "abs":
            return first.abs()
        case "exp":
            return first.map(np.exp)
        case "log":
            return first.log()
        case "sqrt":
            return first.sqrt()
        case "at_start":
            return first.at(0)
    return first.at(-1)


_ARITHMETIC = {
    "+": Bounded.__add__,
    "-": Bounded.__sub__,
    "*": Bounded.__mul__,
    "/": Bounded.__truediv__,
    "^": Bounded.__pow__,
}
