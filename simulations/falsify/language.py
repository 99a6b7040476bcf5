"""Conjectures: parse a statement, and evaluate its violation with an interval that contains it.

The language is that of `symbolic.core.grammar`; errors are those of bad input. The violation of a
<= b is a - b. That of a conjunction is the larger one, that of a disjunction the smaller one;
negations are moved to the comparisons. A positive violation means false, a violation of at most 0
means true. If the interval contains 0, the numerical error does not allow a decision.
"""

import ast
from collections.abc import Collection, Mapping

from dynamics import ParameterError
from simulations.falsify.bounded import Bounded, joined, pick
from symbolic.core import grammar

Environment = Mapping[str, Bounded]
_OPPOSITE = {
    ast.LtE: ast.Gt,
    ast.Gt: ast.LtE,
    ast.GtE: ast.Lt,
    ast.Lt: ast.GtE,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
}


class ConjectureError(grammar.FormulaError, ParameterError):
    """A conjecture is not valid: a sentence, the text, and a caret under the character."""


def parse(text: str, names: Collection[str]) -> ast.expr:
    """Parse a statement over the given names (`symbolic.core.grammar.parse`).

    Raises
    ------
    ConjectureError
        If the text is not valid, uses an unknown name, or is a number instead of a statement.
    """
    if not isinstance(text, str):
        raise ParameterError(f"conjecture = {text!r} is not allowed: it must be text")
    try:
        return grammar.parse(text, names)
    except grammar.FormulaError as error:
        raise ConjectureError(error.sentence, error.text, error.at) from None


def violation(node: ast.expr, known: Environment, negated: bool = False) -> Bounded:
    """Return the violation of a statement (or of its negation), over time or as a scalar."""
    match node:
        case ast.Compare(left=left, ops=operators, comparators=others):
            numbers = [number(operand, known) for operand in (left, *others)]
            types = [_OPPOSITE[type(op)] if negated else type(op) for op in operators]
            parts = [_compare(*each) for each in zip(types, numbers, numbers[1:])]
            return joined("min" if negated else "max", parts)
        case ast.BoolOp(op=operator, values=nodes):
            both = isinstance(operator, ast.And) != negated
            return joined("max" if both else "min", [violation(n, known, negated) for n in nodes])
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return violation(operand, known, not negated)
        case ast.Call(func=ast.Name(id=function), args=[argument]):
            everywhere = (function == "always") != negated
            return violation(argument, known, negated).along("max" if everywhere else "min")
    raise TypeError(node)


def holds(node: ast.expr, known: Environment) -> bool:
    """Return whether a statement about exact numbers is true; an undefined one is not."""
    return bool(violation(node, known).value <= 0.0)


def number(node: ast.expr, known: Environment) -> Bounded:
    """Evaluate an arithmetic expression, over time or as a scalar."""
    match node:
        case ast.Constant(value=float(value)):
            return Bounded.exact(value)
        case ast.Name(id=name):
            return known[name]
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return number(operand, known)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -number(operand, known)
        case ast.BinOp(left=left, op=operator, right=right):
            return _ARITHMETIC[type(operator)](number(left, known), number(right, known))
        case ast.Call(func=ast.Name(id=function), args=arguments):
            return _call(function, [number(argument, known) for argument in arguments])
    raise TypeError(node)


def depends_on_the_whole_run(node: ast.AST, whole: Collection[str]) -> bool:
    """Return whether a statement depends on the whole run: on events, its ends or extremes."""
    parts: list[ast.expr]
    match node:
        case ast.Name(id=name):
            return name in whole
        case ast.Call(func=ast.Name(id=function), args=parts):
            alone = function in ("min", "max") and len(parts) == 1
            if alone or function in ("at_end", "always", "eventually"):
                return True
            return any(depends_on_the_whole_run(part, whole) for part in parts)
    return any(depends_on_the_whole_run(part, whole) for part in ast.iter_child_nodes(node))


def _compare(operator: type[ast.cmpop], left: Bounded, right: Bounded) -> Bounded:
    if operator is ast.LtE:
        return left - right
    if operator is ast.GtE:
        return right - left
    if operator is ast.Lt:
        return (left - right).positive_at_zero()
    if operator is ast.Gt:
        return (right - left).positive_at_zero()
    distance = (left - right).abs()
    return distance if operator is ast.Eq else (-distance).positive_at_zero()


def _call(function: str, arguments: list[Bounded]) -> Bounded:
    first = arguments[0]
    match function:
        case "min" | "max":
            return first.along(function) if len(arguments) == 1 else pick(function, arguments)
        case "abs" | "exp" | "log" | "sqrt":
            result: Bounded = getattr(first, function)()
            return result
    return first.at(0 if function == "at_start" else -1)


_ARITHMETIC = {
    ast.Add: Bounded.__add__,
    ast.Sub: Bounded.__sub__,
    ast.Mult: Bounded.__mul__,
    ast.Div: Bounded.__truediv__,
    ast.Pow: Bounded.__pow__,
}
