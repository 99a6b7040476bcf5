"""The derived loss and gradient as Python source: loops over families, nothing computed twice.

A value that does not depend on the loops around it is computed before them. The names of a user's
file never begin with an underscore; those of the emitted code do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import sympy as sp
from sympy.printing.precedence import PRECEDENCE
from sympy.printing.pycode import PythonCodePrinter

from symbolic.theory.errors import TheoryError
from symbolic.theory.theory import Theory

#: Loops within each other, at most.
MOST_NESTED = 3

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
    the theory; the arrays are those of its larger sets (`symbolic.theory.orbit_data.Home`).

    Raises
    ------
    TheoryError
        If it needs too many nested loops, or too many steps.
    """
    reduced = theory.reduced
    spelled = {
        order.symbol: sp.Symbol(order.name if order.name.isidentifier() else f"_o{i}")
        for i, order in enumerate(theory.orders)
    }
    data = [name for home in theory.homes for name in home.arrays]
    arguments = ["_theta", "_constants", *data, "_out"]
    lines = [f"{symbol} = _theta[{i}]" for i, symbol in enumerate(spelled.values())]
    names = [size.name for size in theory.sizes] + list(theory.unknown)
    lines += [f"{name} = _constants[{i}]" for i, name in enumerate(names)]
    lines += [f"{x.families} = count_{x.name}.shape[0]" for x in theory.homes if x.has_data]
    writer = _Writer(theory, spelled)
    totals = [slope * order.count for slope, order in zip(reduced.gradient.values(), theory.orders)]
    counts = [order.count for order in theory.orders]
    found = writer.block([reduced.loss, *totals, *counts], {}, 0)
    lines += writer.lines
    loss, *slopes = found[: len(totals) + 1]
    for i, (slope, count) in enumerate(zip(slopes, found[len(slopes) + 1 :])):
        lines.append(f"_n = {count}")  # an orbit may have no entry at small sizes
        lines.append(f"_out[{i}] = ({slope}) / _n if _n > 0 else 0.0")
    header = _HEADER.format(
        name=theory.name,
        paper=theory.paper,
        arguments=", ".join(arguments),
        orders=", ".join(theory.order_parameters),
    )
    return header + "".join(f"    {line}\n" for line in [*lines, f"return {loss}"])


Known = dict[sp.Expr, sp.Symbol]


class _Writer:
    """Writes lines: named values and loops over families, each as far out as it can be.

    An *item* of a block is a named value or a sum that depends on no loop but those around the
    block. A sum comes after what its summand needs; sums over one set of one rank share a loop.
    """

    def __init__(self, theory: Theory, spelled: Mapping[sp.Symbol, sp.Symbol]) -> None:
        self._theory, self._spelled = theory, spelled
        self._steps = theory.reduced.steps
        self._printer = _Printer({"fully_qualified_modules": False})
        self._contents: dict[sp.Expr, sp.Expr] = {}
        self._number = 0
        self.lines: list[str] = []

    def block(self, expressions: Sequence[sp.Expr], known: Known, depth: int) -> list[str]:
        """Write all that some expressions need; return what is left of them as text."""
        if depth > MOST_NESTED:
            raise TheoryError(
                f"{depth} nested loops over families (most: {MOST_NESTED})", self._theory.loss.where
            )
        known = dict(known)
        ranks: dict[sp.Expr, int] = {}
        for expression in expressions:
            self._rank(expression, known, ranks)
        for rank in range(max(ranks.values(), default=-1) + 1):
            here = [item for item, own in ranks.items() if own == rank]
            sums = [item for item in here if isinstance(item, sp.Sum)]
            for limit in dict.fromkeys(item.limits[0][2] for item in sums):
                self._loop([x for x in sums if x.limits[0][2] == limit], known, depth)
            for item in here:
                if not isinstance(item, sp.Sum):
                    text = self._text(self._content(item), known)
                    self._write(depth, f"{self._new(item, known)} = {text}")
        return [self._text(expression, known) for expression in expressions]

    def _loop(self, sums: Sequence[sp.Sum], known: Known, depth: int) -> None:
        """Write one loop that adds up several sums over the same families."""
        family = sp.Symbol(f"_f{depth}")
        bodies = [x.function.xreplace({x.limits[0][0]: family}) for x in sums]
        totals = [self._new(x, known) for x in sums]
        for total in totals:
            self._write(depth, f"{total} = 0.0")
        self._write(depth, f"for {family} in range({sums[0].limits[0][2] + 1}):")
        for total, text in zip(totals, self.block(bodies, known, depth + 1)):
            self._write(depth + 1, f"{total} += {text}")

    def _rank(self, expression: sp.Expr, known: Known, ranks: dict[sp.Expr, int]) -> int:
        """Return how many sums, one after the other, an expression needs; note those of items.

        What is noted comes after all that it needs.
        """
        highest, seen = 0, set()
        pending = [expression]
        while pending:
            x = pending.pop()
            if x in seen or x in known:
                continue
            seen.add(x)
            if not self._is_item(x):
                pending += x.args
            elif _caught(x):  # of a loop further in; what it needs may still be an item
                pending.append(self._content(x))
            else:
                if x not in ranks:
                    own = self._rank(self._content(x), known, ranks)
                    ranks[x] = own + isinstance(x, sp.Sum)
                highest = max(highest, ranks[x])
        return highest

    def _is_item(self, x: sp.Expr) -> bool:
        return isinstance(x, sp.Sum) or x.func in self._steps

    def _content(self, x: sp.Expr) -> sp.Expr:
        """Return the summand of a sum, or what a name stands for."""
        if isinstance(x, sp.Sum):
            return x.function
        if x not in self._contents:
            step = self._steps[x.func]
            self._contents[x] = step.value.xreplace(dict(zip(step.families, x.args)))
        return self._contents[x]

    def _new(self, item: sp.Expr, known: Known) -> sp.Symbol:
        self._number += 1
        known[item] = sp.Symbol(f"_x{self._number}")
        return known[item]

    def _text(self, expression: sp.Expr, known: Known) -> str:
        text: str = self._printer.doprint(expression.xreplace(known).xreplace(self._spelled))
        return text

    def _write(self, depth: int, line: str) -> None:
        self.lines.append("    " * depth + line)


def _caught(x: sp.Expr) -> bool:
    """Tell whether an expression depends on the family of a sum around it."""
    return any(symbol.name.startswith("b_") and symbol.is_integer for symbol in x.free_symbols)
