"""The derived loss and gradient as Python source: loops over families, nothing computed twice.

A sum that does not depend on the loops around it is moved out of them, and so is whatever else is
the same in every turn. The names of the user's file never begin with an underscore; those of the
emitted code do.
"""

from __future__ import annotations

from collections.abc import Sequence

import sympy as sp
from sympy.printing.precedence import PRECEDENCE
from sympy.printing.pycode import PythonCodePrinter

from symbolic.theory.errors import TheoryError
from symbolic.theory.theory import Theory

#: Loops within each other, at most.
MOST_NESTED = 2
#: Operations in an expression that common subexpressions are looked for in, at most.
MOST_OPERATIONS = 200_000

_HEADER = '''\
"""Loss and gradient of {name} for one configuration of the data up to symmetry.

Derived from the statement of the theory ({paper}).
"""

import math as _math

from dynamics.theory.functions import sigmoid as _sigmoid, softplus as _softplus


def orbit({arguments}):
    """Write the gradient per entry ({orders}) to ``_out`` and return the loss."""
'''


class _Printer(PythonCodePrinter):
    """Scalar code; small powers by multiplication."""

    def _print_Pow(self, expr: sp.Pow, rational: bool = False) -> str:
        base, exponent = expr.args
        if exponent.is_Integer and 1 < abs(int(exponent)) <= 4:
            factor = self.parenthesize(base, PRECEDENCE["Pow"])
            product = " * ".join([factor] * abs(int(exponent)))
            return f"({product})" if exponent > 0 else f"(1.0 / ({product}))"
        if exponent == -1:
            return f"(1.0 / {self.parenthesize(base, PRECEDENCE['Pow'])})"
        if exponent == sp.Rational(1, 2):
            return f"_math.sqrt({self._print(base)})"
        return f"_math.pow({self._print(base)}, {self._print(exponent)})"

    def _print_Rational(self, expr: sp.Rational) -> str:
        return f"({int(expr.p)}.0 / {int(expr.q)}.0)"

    def _print_Function(self, expr: sp.Function) -> str:
        name = type(expr).__name__
        where = "_" if name in ("sigmoid", "softplus") else "_math."
        return f"{where}{name}({', '.join(map(self._print, expr.args))})"

    _print_exp = _print_log = _print_tanh = _print_sigmoid = _print_softplus = _print_Function


def source(theory: Theory) -> str:
    """Return the module with the function ``orbit(_theta, _constants, ...arrays, _out)``.

    ``_theta`` (n,) holds the order parameters, ``_constants`` sizes and constants in the order of
    the theory.

    Raises
    ------
    TheoryError
        If the expressions are too large, or need too many nested loops.
    """
    reduced = theory.reduced
    results = [reduced.loss, *reduced.gradient.values()]
    operations = sum(int(sp.count_ops(x)) for x in results)
    if operations > MOST_OPERATIONS:
        raise TheoryError(
            f"the derived gradient has {operations} operations (most: {MOST_OPERATIONS})",
            theory.where,
        )
    spelled = {
        order.symbol: sp.Symbol(order.name if order.name.isidentifier() else f"_o{i}")
        for i, order in enumerate(theory.orders)
    }
    arguments = [
        "_theta",
        "_constants",
        *(name for home in theory.homes for name in home.arrays),
        "_out",
    ]
    lines = [f"{symbol} = _theta[{i}]" for i, symbol in enumerate(spelled.values())]
    names = [size.name for size in theory.sizes] + list(theory.unknown)
    lines += [f"{name} = _constants[{i}]" for i, name in enumerate(names)]
    lines += [
        f"{home.families} = count_{home.name}.shape[0]" for home in theory.homes if home.has_data
    ]
    body = _Block(theory, [x.xreplace(spelled) for x in results], 0)
    lines += body.lines
    loss, *gradient = body.results
    lines += [f"_out[{i}] = {slope}" for i, slope in enumerate(gradient)]
    header = _HEADER.format(
        name=theory.name,
        paper=theory.paper,
        arguments=", ".join(arguments),
        orders=", ".join(theory.order_parameters),
    )
    return header + "".join(f"    {line}\n" for line in [*lines, f"return {loss}"])


class _Block:
    """Lines that compute some expressions, and their results as text; ``depth`` loops around."""

    def __init__(self, theory: Theory, expressions: Sequence[sp.Expr], depth: int) -> None:
        if depth > MOST_NESTED:
            raise TheoryError(
                f"{depth} nested loops over families (most: {MOST_NESTED})", theory.loss.where
            )
        self.theory, self.depth = theory, depth
        self.lines: list[str] = []
        self._print = _Printer({"fully_qualified_modules": False}).doprint
        self._named = 0
        left = list(expressions)
        while ready := self._ready(left):
            totals = self._loop(ready)
            left = [x.xreplace(totals) for x in left]
        self.results = self._assign(left)

    def _ready(self, expressions: Sequence[sp.Expr]) -> list[sp.Sum]:
        """Return the sums over one set that need no other sum of this block, sorted."""
        found = set().union(*(x.atoms(sp.Sum) for x in expressions))
        families = {limit[0] for total in found for limit in total.limits}
        closed = {total for total in found if not total.free_symbols & families}
        ready = [x for x in closed if not any(y in closed for y in x.function.atoms(sp.Sum))]
        ready.sort(key=str)
        return [x for x in ready if x.limits[0][2] == ready[0].limits[0][2]]

    def _loop(self, sums: Sequence[sp.Sum]) -> dict[sp.Sum, sp.Symbol]:
        """Write one loop that adds up several sums; return the names of their totals."""
        family = sp.Symbol(f"_f{self.depth}")
        bodies = [x.function.xreplace({x.limits[0][0]: family}) for x in sums]
        bodies = self._invariant(bodies, family)
        inner = _Block(self.theory, bodies, self.depth + 1)
        totals = {x: sp.Symbol(self._name("t")) for x in sums}
        self.lines += [f"{total} = 0.0" for total in totals.values()]
        self.lines.append(f"for {family} in range({sums[0].limits[0][2] + 1}):")
        self.lines += [f"    {line}" for line in inner.lines]
        self.lines += [f"    {total} += {x}" for total, x in zip(totals.values(), inner.results)]
        return totals

    def _invariant(self, bodies: Sequence[sp.Expr], family: sp.Symbol) -> list[sp.Expr]:
        """Compute before a loop what is the same in every turn; return the bodies without it."""
        names: dict[sp.Expr, sp.Symbol] = {}
        known: dict[sp.Expr, sp.Expr] = {}

        def named(x: sp.Expr) -> sp.Expr:
            if x.is_Atom or x.is_Indexed:
                return x
            return names.setdefault(x, sp.Symbol(self._name("c")))

        def visit(x: sp.Expr) -> sp.Expr:
            if x not in known:
                known[x] = split(x)
            return known[x]

        def split(x: sp.Expr) -> sp.Expr:
            varies = x.has(family) or bool(x.atoms(sp.Sum))
            if not varies:
                return named(x)
            if x.is_Add or x.is_Mul:
                same = [y for y in x.args if not (y.has(family) or y.atoms(sp.Sum))]
                rest = [visit(y) for y in x.args if y.has(family) or y.atoms(sp.Sum)]
                return x.func(named(x.func(*same)), *rest) if same else x.func(*rest)
            if x.is_Indexed or isinstance(x, sp.Sum):
                return x
            return x.func(*map(visit, x.args))

        left = [visit(x) for x in bodies]
        for symbol, text in zip(names.values(), self._assign(list(names))):
            self.lines.append(f"{symbol} = {text}")
        return left

    def _assign(self, expressions: Sequence[sp.Expr]) -> list[str]:
        """Write what several expressions share; return what is left of them as text."""
        fresh = iter(lambda: sp.Symbol(self._name("x")), None)
        shared, left = sp.cse(list(expressions), symbols=fresh, order="none")
        self.lines += [f"{name} = {self._print(x)}" for name, x in shared]
        return [self._print(x) for x in left]

    def _name(self, letter: str) -> str:
        self._named += 1
        return f"_{letter}{self.depth}_{self._named}"
