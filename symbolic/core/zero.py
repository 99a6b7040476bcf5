"""Decide whether an expression is identically zero by exact evaluation at random rational points.

Exponentials such as e^{beta/tau} are replaced by independent positive unknowns. This is exact: they
are algebraically independent of each other and of beta, gamma, rho and tau. The remaining rational
function of the unknowns and of powers b^p is evaluated in exact arithmetic, for all odd p at once
(`symbolic.core.odd_degree`).

A nonzero numerator of degree d vanishes at a random point with probability at most d/m, where 1/m
is the largest probability of a value (Schwartz-Zippel lemma; here m >= 499). With six points the
probability of a wrong "zero" is at most (d/499)^6. One nonzero value is a disproof.
"""

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import sympy as sp
from sympy.printing.pycode import PythonCodePrinter

from symbolic.core import odd_degree
from symbolic.core.identity import Identity
from symbolic.core.symbols import exponential_symbol, p, tau

DEGREES = (3, 5, 7)
LARGEST_DEGREE = 999
DRAWS_PER_POINT = 10
Point = dict[sp.Symbol, Fraction]


class NotRationalError(ValueError):
    """An expression has no exact rational value at a rational point."""


@dataclass(frozen=True)
class Decision:
    """Outcome of `decide`.

    Attributes
    ----------
    zero
        Whether the expression vanished at all points.
    points
        Number of points.
    simplified
        Whether ``sympy.simplify`` returned 0; ``None`` if not requested.
    counterexample, value
        A point with a nonzero value, and this value; ``None`` if there is none.
    """

    zero: bool
    points: int
    simplified: bool | None = None
    counterexample: Point | None = None
    value: Fraction | None = None


def rationalize(expression: Any) -> sp.Expr:
    """Replace e^{(i beta + j gamma + ...)/tau} by x_beta^i x_gamma^j ... for integers i, j, ...

    Raises
    ------
    NotRationalError
        If an exponent has another form.
    """

    def monomial(argument: sp.Expr) -> sp.Expr:
        exponents = sp.expand(argument * tau)
        counts = {name: exponents.coeff(name) for name in exponents.free_symbols - {tau}}
        rest = exponents - sum(count * name for name, count in counts.items())
        if sp.expand(rest) != 0 or not all(count.is_Integer for count in counts.values()):
            raise NotRationalError(f"exp({argument}) is not a product of exponentials e^(x/tau)")
        return sp.Mul(*(exponential_symbol(name) ** count for name, count in counts.items()))

    return sp.sympify(expression, strict=True).replace(sp.exp, monomial)


def random_point(unknowns: Iterable[sp.Symbol], rng: random.Random) -> Point:
    """Return one random rational value per symbol, subject to its assumptions (sign, parity)."""
    return {x: _value(x, rng) for x in sorted(unknowns, key=lambda x: x.name)}


def _value(x: sp.Symbol, rng: random.Random) -> Fraction:
    if x.is_odd:
        return Fraction(rng.choice(DEGREES))
    sign = 1 if x.is_nonnegative else rng.choice((-1, 1))
    if x.is_integer:
        return Fraction(sign * rng.randint(2, 997))
    return Fraction(sign * rng.randint(1, 499), rng.randint(2, 97))


def evaluate(expression: Any, point: Point) -> Fraction:
    """Return the exact value at a rational point.

    Raises
    ------
    NotRationalError
        If the value is not rational.
    """
    return _evaluate(sp.sympify(expression, strict=True), dict(point))


def _evaluate(node: sp.Basic, known: dict[sp.Basic, Fraction]) -> Fraction:
    """Return the value of an expression, cached in ``known``."""
    if node not in known:
        known[node] = _of_parts(node, known)
    return known[node]


def _of_parts(node: sp.Basic, known: dict[sp.Basic, Fraction]) -> Fraction:
    if node.is_Rational:
        return Fraction(int(node.p), int(node.q))
    if node.is_Add:
        return sum((_evaluate(term, known) for term in node.args), Fraction(0))
    if node.is_Mul:
        product = Fraction(1)
        for factor in node.args:
            product *= _evaluate(factor, known)
        return product
    if node.is_Pow:
        exponent = _evaluate(node.exp, known)
        if exponent.denominator == 1:
            return _evaluate(node.base, known) ** int(exponent)
    raise NotRationalError(f"{node} has no exact rational value")


def decide(
    statement: Any,
    *,
    points: int = 6,
    seed: int = 0,
    simplify: bool = False,
    given: Point | None = None,
) -> Decision:
    """Decide whether an identity holds, or whether an expression vanishes identically.

    The degree p, unless given, stands for all odd p >= 3. A counterexample has the smallest p with
    a nonzero value.

    Parameters
    ----------
    statement
        Identity or expression; rational functions of symbols, exponentials e^(x/tau) and powers
        b^p.
    points
        Number of random points.
    seed
        Seed of the points.
    simplify
        Whether to run ``sympy.simplify`` too.
    given
        Fixed values of some symbols. All others are random, and sampled again where a denominator
        vanishes.

    Raises
    ------
    NotRationalError
        If the expression has another form, or if a denominator vanishes at nearly every point.
    """
    expression = statement.difference if isinstance(statement, Identity) else statement
    rational = rationalize(expression)
    rng = random.Random(seed)
    done = 0
    for _ in range(DRAWS_PER_POINT * points):
        point = random_point(rational.free_symbols, rng) | (given or {})
        try:
            point, value = _value_at(rational, point, p in (given or {}))
        except ZeroDivisionError:
            continue
        done += 1
        if value != 0:
            return Decision(False, done, None, point, value)
        if done == points:
            simplified = sp.simplify(rational) == 0 if simplify else None
            return Decision(True, points, simplified)
    raise NotRationalError(f"a denominator vanishes at nearly every point of {expression}")


def _value_at(expression: sp.Expr, point: Point, fixed: bool) -> tuple[Point, Fraction]:
    """Return a point with a degree and the value there, 0 only if it is 0 for all odd degrees."""
    if fixed or p not in expression.free_symbols:
        return point, evaluate(expression, point)
    point = {name: x for name, x in point.items() if name != p}
    general = odd_degree.evaluate(expression, point, p)
    if general is None:
        raise NotRationalError(f"{expression} has no exact value for every odd p")
    if general.zero:
        return point, Fraction(0)
    for degree in range(3, LARGEST_DEGREE + 1, 2):
        full_point = point | {p: Fraction(degree)}
        try:
            value = evaluate(expression, full_point)
        except ZeroDivisionError:
            continue
        if value != 0:
            return full_point, value
    raise NotRationalError(f"{expression} vanishes at every p up to {LARGEST_DEGREE}, not at all p")


class _ExactPrinter(PythonCodePrinter):
    """Print Python source with `fractions.Fraction` literals."""

    def _print_Rational(self, expr: sp.Rational) -> str:
        return f"Fraction({int(expr.p)}, {int(expr.q)})"

    _print_Half = _print_Rational
    _print_Integer = _print_Rational
    _print_One = _print_NegativeOne = _print_Zero = _print_Rational

    def _print_Pow(self, expr: sp.Pow, rational: bool = False) -> str:
        if not expr.exp.is_Integer:
            raise NotRationalError(f"{expr} has no exact rational value")
        return f"({self._print(expr.base)})**({int(expr.exp)})"


def compile_exact(
    arguments: Sequence[sp.Symbol], expressions: Sequence[sp.Expr]
) -> Callable[..., list[Fraction]]:
    """Compile rational functions to a Python function of `Fraction` values.

    Parameters
    ----------
    arguments
        Symbols in the order of the arguments.
    expressions
        Rational functions of them; common subexpressions are computed once.

    Returns
    -------
    callable
        Returns the list of values; raises `NotRationalError` if a value is not a `Fraction`.
    """
    function = sp.lambdify(
        list(arguments),
        list(expressions),
        [{"Fraction": Fraction}],
        printer=_ExactPrinter,
        cse=True,
    )

    def exact(*values: Fraction) -> list[Fraction]:
        results = function(*values)
        if not all(isinstance(value, Fraction) for value in results):
            raise NotRationalError("an inexact number entered an exact evaluation")
        return results

    return exact
