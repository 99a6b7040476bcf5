"""Deciding whether an expression is zero: exact rational evaluation at random points.

``simplify`` may fail to see a zero and floats cannot tell a zero from a small number. Here the
exponentials such as e^{beta/tau} and e^{gamma/tau} are replaced by independent positive unknowns
(they are algebraically independent of each other and of beta, gamma, rho, tau, so no true identity
is lost and no false one gained), integers such as C and D get integer values, and what remains is a
rational function of the unknowns and of the powers b^p. It is evaluated in exact arithmetic, for
every odd p at once (`symbolic.core.odd_degree`): b^(p+k) is b^k times b^p, and no relation but
those that hold for every odd p is used. A nonzero numerator of degree d in the unknowns vanishes at
a random point with probability at most d/m, m the inverse of the greatest probability of one value
(Schwartz, Zippel; here m >= 499), so a few points settle it ((d/499)^6 at six), and one nonzero
value is a disproof.
"""

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import sympy as sp
from sympy.printing.pycode import PythonCodePrinter

from symbolic.core import odd_degree
from symbolic.core.symbols import p, tau, unknown_of

DEGREES = (3, 5, 7)
LARGEST_DEGREE = 999
DRAWS_PER_POINT = 10
Point = dict[sp.Symbol, Fraction]


class NotRationalError(ValueError):
    """An expression has no exact rational value at a rational point."""


@dataclass(frozen=True)
class Decision:
    """Outcome of `decide`: a zero at every point, or a point and a value that disprove it.

    ``simplified`` says whether ``sympy.simplify`` reached 0 as well; ``None`` when not asked.
    """

    zero: bool
    points: int
    simplified: bool | None = None
    counterexample: Point | None = None
    value: Fraction | None = None


def rationalize(expression: Any) -> sp.Expr:
    """Replace e^{(i beta + j gamma + ...)/tau} by x_beta^i x_gamma^j ... (i, j, ... whole)."""

    def monomial(argument: sp.Expr) -> sp.Expr:
        exponents = sp.expand(argument * tau)
        counts = {name: exponents.coeff(name) for name in exponents.free_symbols - {tau}}
        rest = exponents - sum(count * name for name, count in counts.items())
        if sp.expand(rest) != 0 or not all(count.is_Integer for count in counts.values()):
            raise NotRationalError(f"exp({argument}) is not a product of exponentials e^(x/tau)")
        return sp.Mul(*(unknown_of(name) ** count for name, count in counts.items()))

    return sp.sympify(expression, strict=True).replace(sp.exp, monomial)


def random_point(unknowns: Iterable[sp.Symbol], rng: random.Random) -> Point:
    """Draw one exact value per symbol within its assumptions (sign, integer, odd)."""
    return {x: _value(x, rng) for x in sorted(unknowns, key=lambda x: x.name)}


def _value(x: sp.Symbol, rng: random.Random) -> Fraction:
    if x.is_odd:
        return Fraction(rng.choice(DEGREES))
    sign = 1 if x.is_nonnegative else rng.choice((-1, 1))
    if x.is_integer:
        return Fraction(sign * rng.randint(2, 997))
    return Fraction(sign * rng.randint(1, 499), rng.randint(2, 97))


def evaluate(expression: Any, point: Point) -> Fraction:
    """Return the exact value at a rational point; raise `NotRationalError` where there is none."""
    return _evaluate(sp.sympify(expression, strict=True), dict(point))


def _evaluate(node: sp.Basic, known: dict[sp.Basic, Fraction]) -> Fraction:
    """Return the value of an expression; what is written several times is computed once."""
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
    expression: Any,
    *,
    points: int = 6,
    seed: int = 0,
    simplify: bool = False,
    given: Point | None = None,
) -> Decision:
    """Decide whether an expression vanishes identically.

    ``given`` fixes some symbols; the degree p, unless given, stands for every odd p >= 3; all
    others are drawn at random, and drawn again where a denominator vanishes. A counterexample
    names the smallest p at which its value is not zero.
    """
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
            return Decision(True, points, sp.simplify(rational) == 0 if simplify else None)
    raise NotRationalError(f"a denominator vanishes at nearly every point of {expression}")


def _value_at(expression: sp.Expr, point: Point, fixed: bool) -> tuple[Point, Fraction]:
    """Return the point with a degree, and the value: 0 only if it is 0 for every odd degree."""
    if fixed or p not in expression.free_symbols:
        return point, evaluate(expression, point)
    point = {name: x for name, x in point.items() if name != p}
    general = odd_degree.evaluate(expression, point, p)
    if general is None:
        raise NotRationalError(f"{expression} has no exact value for every odd p")
    if general.zero:
        return point, Fraction(0)
    for degree in range(3, LARGEST_DEGREE + 1, 2):
        here = point | {p: Fraction(degree)}
        try:
            value = evaluate(expression, here)
        except ZeroDivisionError:
            continue
        if value != 0:
            return here, value
    raise NotRationalError(f"{expression} vanishes at every p up to {LARGEST_DEGREE}, not at all p")


class _ExactPrinter(PythonCodePrinter):
    """Python source whose literals keep `fractions.Fraction` arithmetic exact."""

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
    """Compile rational functions of ``arguments`` to a Python function on `Fraction` values.

    Subexpressions are shared. The function raises `NotRationalError` if anything inexact slips in.
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
