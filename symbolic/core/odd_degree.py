"""Exact evaluation for all odd degrees p at once.

If all symbols but p are rational numbers, and p occurs as a number or in exponents, an expression
is a quotient of sums of q_c(p) c^p with polynomials q_c and rational c, because b^(k p + m) =
b^m (b^k)^p. For odd p, (-c)^p = -c^p, so c > 0 without loss of generality. On the odd numbers the
functions c^p for different c > 0 are linearly independent over the polynomials. Hence such a sum
vanishes for all odd p if and only if every q_c is zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import sympy as sp

#: Coefficients of 1, p, p^2, ... without trailing zeros.
Polynomial = tuple[Fraction, ...]
ONE: Polynomial = (Fraction(1),)


def _plus(left: Polynomial, right: Polynomial) -> Polynomial:
    """Return the sum of two polynomials."""
    longer, shorter = (left, right) if len(left) >= len(right) else (right, left)
    total = [x + y for x, y in zip(longer, shorter)] + list(longer[len(shorter) :])
    while total and total[-1] == 0:
        total.pop()
    return tuple(total)


def _times(left: Polynomial, right: Polynomial) -> Polynomial:
    """Return the product of two polynomials."""
    total = [Fraction(0)] * max(len(left) + len(right) - 1, 0)
    for i, x in enumerate(left):
        for j, y in enumerate(right):
            total[i + j] += x * y
    return tuple(total)


class Sum(dict[Fraction, Polynomial]):
    """The sum of q_c(p) c^p, as a mapping from c > 0 to q_c without zero terms."""

    def __add__(self, other: Sum) -> Sum:
        total = Sum(self)
        for c, q in other.items():
            total[c] = _plus(total.get(c, ()), q)
        return Sum({c: q for c, q in total.items() if q})

    def __mul__(self, other: Sum) -> Sum:
        total = Sum()
        for c, q in self.items():
            for e, r in other.items():
                total[c * e] = _plus(total.get(c * e, ()), _times(q, r))
        return Sum({c: q for c, q in total.items() if q})


@dataclass(frozen=True)
class Value:
    """The quotient of two sums, ``over / under``."""

    over: Sum
    under: Sum

    def __add__(self, other: Value) -> Value:
        if self.under == other.under:
            return Value(self.over + other.over, self.under)
        over = self.over * other.under + other.over * self.under
        return Value(over, self.under * other.under)

    def __mul__(self, other: Value) -> Value:
        return Value(self.over * other.over, self.under * other.under)

    def __pow__(self, exponent: int) -> Value:
        base = self if exponent >= 0 else Value(self.under, self.over)
        if not base.under:
            raise ZeroDivisionError("a denominator is zero for every odd p")
        if (number := base.number) is not None:
            return constant(number ** abs(exponent))  # one number, so that denominators agree
        result = constant(Fraction(1))
        for _ in range(abs(exponent)):
            result = result * base
        return result

    @property
    def zero(self) -> bool:
        """Whether the value is 0 for all odd p."""
        return not self.over

    @property
    def number(self) -> Fraction | None:
        """The value as a number if p does not occur in it, else ``None``."""
        if set(self.over) | set(self.under) <= {Fraction(1)}:
            over, under = self.over.get(Fraction(1), ()), self.under[Fraction(1)]
            if len(over) <= 1 and len(under) == 1:
                return (over[0] if over else Fraction(0)) / under[0]
        return None


def constant(x: Fraction) -> Value:
    """Convert a rational number to a value."""
    return Value(Sum({Fraction(1): (x,)} if x else {}), Sum({Fraction(1): ONE}))


def _degree() -> Value:
    return Value(Sum({Fraction(1): (Fraction(0), Fraction(1))}), Sum({Fraction(1): ONE}))


def evaluate(node: sp.Expr, point: Mapping[sp.Symbol, Fraction], p: sp.Symbol) -> Value | None:
    """Return the value of an expression as a function of odd p.

    Parameters
    ----------
    node
        The expression.
    point
        Values of all symbols but ``p``.
    p
        The degree.

    Returns
    -------
    Value or None
        ``None`` if the expression has not the form of this module.

    Raises
    ------
    ZeroDivisionError
        If a denominator vanishes for all p.
    """
    known: dict[sp.Basic, Value | None] = {x: constant(value) for x, value in point.items()}
    return _evaluate(node, known | {p: _degree()})


def _evaluate(node: sp.Expr, known: dict[sp.Basic, Value | None]) -> Value | None:
    """Return the value of an expression, cached in ``known``."""
    if node not in known:
        known[node] = _of_parts(node, known)
    return known[node]


def _of_parts(node: sp.Expr, known: dict[sp.Basic, Value | None]) -> Value | None:
    if node.is_Rational:
        return constant(Fraction(int(node.p), int(node.q)))
    if node.is_Add or node.is_Mul:
        total = constant(Fraction(int(node.is_Mul)))
        for value in [_evaluate(argument, known) for argument in node.args]:
            if value is None:
                return None
            total = total * value if node.is_Mul else total + value
        return total
    if not node.is_Pow:
        return None
    return _power(_evaluate(node.base, known), _evaluate(node.exp, known))


def _power(base: Value | None, exponent: Value | None) -> Value | None:
    """Return the value of a power; ``None`` if base and exponent have not the right form."""
    linear = _linear(exponent)
    if base is None or linear is None:
        return None
    whole, times_p = linear
    if times_p == 0:
        return base**whole
    b = base.number
    if b is None:
        return None
    if b == 0:
        if times_p < 0 or whole + 3 * times_p <= 0:
            raise ZeroDivisionError("zero to a power that is not positive for every p >= 3")
        return constant(Fraction(0))
    c = abs(b) ** times_p
    sign = -1 if b < 0 and times_p % 2 else 1
    under = constant(Fraction(1)).under
    return Value(Sum({c: (sign * b**whole,)}), under)


def _linear(exponent: Value | None) -> tuple[int, int] | None:
    """Return the integers m and k of an exponent m + k p; ``None`` if it has another form."""
    if exponent is None or exponent.under != constant(Fraction(1)).under:
        return None
    if exponent.over.keys() - {Fraction(1)}:  # an exponential such as 2^p
        return None
    q = exponent.over.get(Fraction(1), ())
    if len(q) > 2 or any(x.denominator != 1 for x in q):
        return None
    whole, times_p = (*map(int, q), 0, 0)[:2]
    return whole, times_p
