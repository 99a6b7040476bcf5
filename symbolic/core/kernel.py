"""Scalar kernels to be emitted as Python source, and the helper functions they can call."""

from dataclasses import dataclass, field
from typing import Any

import sympy as sp

from symbolic.core.symbols import p


class power(sp.Function):
    """x^n by repeated multiplication, n >= 0; bitwise equal in compiled code and plain Python."""

    nargs = 2

    def fdiff(self, argindex: int = 1) -> sp.Expr:
        """Return n x^(n-1)."""
        x, n = self.args
        return n * power(x, n - 1)

    def _eval_rewrite_as_Pow(self, x: sp.Expr, n: sp.Expr, **_: Any) -> sp.Expr:
        return x**n


class power_difference(sp.Function):
    """x^n - y^n as a product with ``difference = x - y``, without cancellation."""

    nargs = 4

    def _eval_rewrite_as_Pow(
        self, x: sp.Expr, y: sp.Expr, difference: sp.Expr, n: sp.Expr, **_: Any
    ) -> sp.Expr:
        return x**n - y**n


class expm1(sp.Function):
    """e^x - 1."""

    def _eval_rewrite_as_Pow(self, x: sp.Expr, **_: Any) -> sp.Expr:
        return sp.exp(x) - 1


class copysign(sp.Function):
    """x with the sign of y, for x >= 0."""

    nargs = 2

    def _eval_rewrite_as_Pow(self, x: sp.Expr, y: sp.Expr, **_: Any) -> sp.Expr:
        return x * sp.sign(y)


Step = tuple[sp.Symbol, sp.Expr]


@dataclass(frozen=True)
class Kernel:
    """A function to be emitted.

    Attributes
    ----------
    name
        Name of the function.
    arguments
        Symbols of its arguments.
    steps
        Intermediate values: symbols and definitions, in order.
    results
        Names and expressions of the returned values.
    doc
        Docstring.
    shared
        Mapping from subexpressions to variable names. Of the common subexpressions only these
        become variables.
    """

    name: str
    arguments: tuple[sp.Symbol, ...]
    steps: tuple[Step, ...]
    results: tuple[tuple[str, sp.Expr], ...]
    doc: str
    shared: dict[sp.Expr, str] = field(default_factory=dict)

    def expanded(self, index: int) -> sp.Expr:
        """Return a result in terms of the arguments, with helper functions written as powers."""
        return self.in_arguments(self.results[index][1])

    def in_arguments(self, expression: sp.Expr) -> sp.Expr:
        """Return an expression with its intermediate values substituted."""
        for name, step in reversed(self.steps):
            expression = expression.subs(name, step)
        return expression.rewrite(sp.Pow)


def powers(expression: sp.Expr) -> sp.Expr:
    """Replace powers whose exponent depends on p by `power`: x^(p-1) by power(x, p - 1)."""
    return expression.replace(lambda e: e.is_Pow and e.exp.has(p), lambda e: power(e.base, e.exp))
