"""The derived risk and its gradient as Python source: loops over data, nothing computed twice.

A value that does not depend on the loops around it is computed before them: what does not depend on
the data, once; what many configurations share, once for all of them (`symbolic.theory.sharing`).
The names of a user's file never begin with an underscore; those of the emitted code do.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import sympy as sp
from sympy.core.function import AppliedUndef
from sympy.printing.precedence import PRECEDENCE
from sympy.printing.pycode import PythonCodePrinter

from symbolic.theory.errors import TheoryError
from symbolic.theory.lifted import HIGHEST, SAME, TOP, Step
from symbolic.theory.orbit_data import Home
from symbolic.theory.sharing import EVERY, FAMILY, Table, shared
from symbolic.theory.theory import Theory

#: Loops over families within each other, at most.
MOST_NESTED = 3

_HEADER = '''\
"""Risk of {name} and its gradient: the mean over configurations of the data up to symmetry.

Derived from the statement of the theory ({paper}).
"""

import math as _math

from dynamics.theory.functions import (
    empty as _empty,
    highest as _highest,
    power as _power,
    raised as _raised,
    sigmoid as _sigmoid,
    softplus as _softplus,
)
from dynamics.theory.rows import total as _total

{rows}
def mean({arguments}):
    """Write the gradient per entry ({orders}) to ``_out`` and return the risk."""
'''
_ROWS = '''
def rows({arguments}):
    """Return what each table depends on, columns with an entry for each family."""
'''


class _Printer(PythonCodePrinter):
    """Scalar code; small powers by multiplication; families counted from those of this data."""

    def __init__(self, begins: Mapping[str, str]) -> None:
        super().__init__({"fully_qualified_modules": False})
        self._begins = begins

    def _print_Indexed(self, expr: sp.Indexed) -> str:
        name = str(expr.base.label)
        family, *kinds = expr.indices
        first = self._begins[name] if family.is_Integer else self._print(family)
        return f"{name}[{', '.join([first, *map(self._print, kinds)])}]"

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
        return f"_power({self._print(base)}, {self._print(exponent)})"

    def _print_Integer(self, expr: sp.Integer) -> str:
        return f"{int(expr)}.0" if abs(expr) >= 2**53 else str(int(expr))

    def _print_Rational(self, expr: sp.Rational) -> str:
        return f"({int(expr.p)}.0 / {int(expr.q)}.0)"

    def _print_Function(self, expr: sp.Function) -> str:
        name = type(expr).__name__
        if expr.func is TOP:
            return self._largest(expr.args)
        if expr.func is SAME:
            one, other = map(self._print, expr.args)
            return f"(1.0 if {one} == {other} else 0.0)"
        where = "_" if name in ("sigmoid", "softplus", "raised") else "_math."
        return f"{where}{name}({', '.join(map(self._print, expr.args))})"

    _print_exp = _print_log = _print_tanh = _print_sigmoid = _print_softplus = _print_Function

    def _largest(self, scores: Sequence[sp.Expr]) -> str:
        """Write the largest of scores that some element has."""
        text = "-_math.inf"
        for x in scores:
            number, score = x.args if x.func is HIGHEST else (sp.Integer(1), x)
            text = f"_highest({self._print(number)}, {self._print(score)}, {text})"
        return text


def source(theory: Theory) -> str:
    """Return a module with the function ``mean(_theta, _constants, _weight, ..., _out)``.

    ``_theta`` (n,) holds the order parameters, ``_constants`` sizes and constants in the order of
    the theory, ``_weight`` (b,) the chance of each configuration. For each larger set whose
    elements can differ ``_first`` (b + 1,) tells where the families of each configuration begin, in
    the arrays of the set that follow (`symbolic.theory.orbit_data.Home`). For each table of values
    that families share ``_row`` (families,) tells the row of each, and ``_rows`` (rows, columns)
    what they depend on; the function ``rows`` returns these columns family by family.

    Raises
    ------
    TheoryError
        If it needs too many nested loops, or too many steps.
    """
    reduced = theory.reduced
    homes = [home for home in theory.homes if home.has_data]
    data = [name for home in homes for name in (f"_first_{home.name}", *home.arrays)]
    totals = [slope * order.count for slope, order in zip(reduced.gradient.values(), theory.orders)]
    wanted, steps, tables = shared([reduced.loss, *totals], reduced.steps, homes)
    rows = [name for table in tables for name in table.arguments]
    header = _HEADER.format(
        name=theory.name,
        paper=theory.paper.replace("\\", "\\\\").replace('"', '\\"'),
        rows=_rows_function(tables, homes, data) if tables else "",
        arguments=", ".join(["_theta", "_constants", "_weight", *data, *rows, "_out"]),
        orders=", ".join(theory.order_parameters),
    )
    spelled = {
        order.symbol: sp.Symbol(order.name if order.name.isidentifier() else f"_o{i}")
        for i, order in enumerate(theory.orders)
    }
    writer = _Writer(theory, spelled, homes, steps)
    filled = [line for table in tables for line in writer.table(table)]
    loss, *found = writer.block([*wanted, *(order.count for order in theory.orders)], {}, 0)
    names = [size.name for size in theory.sizes] + list(theory.unknown)
    lines = [f"{symbol} = _theta[{i}]" for i, symbol in enumerate(spelled.values())]
    lines += [f"{name} = _constants[{i}]" for i, name in enumerate(names)]
    lines += [*writer.before, *filled, "_loss = 0.0"]
    lines += [f"_out[{i}] = 0.0" for i in range(len(totals))]
    lines += ["for _b in range(_weight.shape[0]):", "    _w = _weight[_b]"]
    for home in homes:
        lines += [
            f"    _begin_{home.name} = _first_{home.name}[_b]",
            f"    _end_{home.name} = _first_{home.name}[_b + 1]",
        ]
    lines += [f"    {line}" for line in [*writer.lines, f"_loss += _w * ({loss})"]]
    lines += [f"    _out[{i}] += _w * ({slope})" for i, slope in enumerate(found[: len(totals)])]
    for i, count in enumerate(found[len(totals) :]):  # an orbit may have no entry at small sizes
        lines += [f"_n = {count}", f"_out[{i}] = _out[{i}] / _n if _n > 0 else 0.0"]
    return header + "".join(f"    {line}\n" for line in [*lines, "return _loss"])


def _rows_function(tables: Sequence[Table], homes: Sequence[Home], data: Sequence[str]) -> str:
    """Return the function that tells what the values of tables depend on, family by family."""
    printer, text = _Printer({}), _ROWS.format(arguments=", ".join(data))
    found = []
    for table in tables:
        columns = []
        for x in table.row:
            if isinstance(x, sp.Sum):
                bound, _, last = x.limits[0]
                (of,) = [home.name for home in homes if home.families == last + 1]
                summand = printer.doprint(x.function.xreplace({bound: EVERY}))
                columns.append(f"_total({summand}, _first_{of}, _first_{table.home.name})")
            else:
                columns.append(printer.doprint(x.xreplace({FAMILY: EVERY})))
        text += f"    _columns{table.number} = ({', '.join(columns)},)\n"
        found.append(f"_columns{table.number}")
    return f"{text}    return ({', '.join(found)},)\n\n"


Known = dict[sp.Expr, sp.Symbol]


class _Writer:
    """Writes lines: named values and loops over families, each as far out as it can be.

    An *item* of a block is a named value or a sum that depends on no loop but those around the
    block. A sum comes after what its summand needs; sums over one set of one rank share a loop.

    Attributes
    ----------
    before, lines
        What does not depend on the data, and what is written for each configuration of them.
    """

    def __init__(
        self,
        theory: Theory,
        spelled: Mapping[sp.Symbol, sp.Symbol],
        homes: Sequence[Home],
        steps: Mapping[Any, Step],
    ) -> None:
        self._theory, self._spelled, self._steps = theory, spelled, steps
        self._home = {home.families: home.name for home in homes}
        self._printer = _Printer(
            {array: f"_begin_{home.name}" for home in homes for array in home.arrays}
        )
        self._contents: dict[sp.Expr, sp.Expr] = {}
        self._of_data: dict[sp.Expr, bool] = {}
        self._everywhere: Known = {}
        self._number = 0
        self.before: list[str] = []
        self.lines: list[str] = []

    def block(self, expressions: Sequence[sp.Expr], known: Known, depth: int) -> list[str]:
        """Write all that some expressions need; return what is left of them as text."""
        if depth > MOST_NESTED:
            raise TheoryError(
                f"{depth} nested loops over families (most: {MOST_NESTED})", self._theory.loss.where
            )
        known = {**self._everywhere, **known}
        ranks: dict[sp.Expr, int] = {}
        for expression in expressions:
            self._rank(expression, known, ranks)
        for rank in range(max(ranks.values(), default=-1) + 1):
            here = sorted((x for x, own in ranks.items() if own == rank), key=self._needs_data)
            sums = [item for item in here if isinstance(item, sp.Sum)]
            for limit in dict.fromkeys(item.limits[0][2] for item in sums):
                self._loop([x for x in sums if x.limits[0][2] == limit], known, depth)
            for item in here:
                if not isinstance(item, sp.Sum):
                    text = self._text(self._content(item), known)
                    line = f"{self._new(item, known)} = {text}"
                    if not self._needs_data(item):
                        self._everywhere[item] = known[item]
                        self.before.append(line)
                    else:
                        self._write(depth, line)
        return [self._text(expression, known) for expression in expressions]

    def table(self, table: Table) -> list[str]:
        """Return the lines that compute the values of a table, row by row."""
        _, rows = table.arguments
        known = {x: sp.Symbol(f"_d{i}") for i, x in enumerate(table.row)}
        above, self.lines = self.lines, []
        values = self.block(list(table.values), known, 1)
        found, self.lines = self.lines, above
        name = f"_table{table.number}"
        return [
            f"{name} = _empty({rows}.shape[0], {len(values)})",
            f"for _r in range({rows}.shape[0]):",
            *(f"    _d{i} = {rows}[_r, {i}]" for i in range(len(table.row))),
            *found,
            *(f"    {name}[_r, {i}] = {value}" for i, value in enumerate(values)),
        ]

    def _loop(self, sums: Sequence[sp.Sum], known: Known, depth: int) -> None:
        """Write one loop that adds up several sums over the same families."""
        family = sp.Symbol(f"_f{depth}")
        bodies = [x.function.xreplace({x.limits[0][0]: family}) for x in sums]
        totals = [self._new(x, known) for x in sums]
        for total, body in zip(totals, bodies):
            self._write(depth, f"{total} = {'-_math.inf' if body.func is HIGHEST else '0.0'}")
        home = self._home[sums[0].limits[0][2] + 1]
        self._write(depth, f"for {family} in range(_begin_{home}, _end_{home}):")
        needed = [body.args if body.func is HIGHEST else (body,) for body in bodies]
        texts = iter(self.block([x for row in needed for x in row], known, depth + 1))
        for total, row in zip(totals, needed):
            if len(row) == 1:
                self._write(depth + 1, f"{total} += {next(texts)}")
            else:
                line = f"{total} = _highest({next(texts)}, {next(texts)}, {total})"
                self._write(depth + 1, line)

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

    def _needs_data(self, item: sp.Expr) -> bool:
        """Tell whether an item depends on the configuration of the data."""
        if item not in self._of_data:
            content = self._content(item)
            items = (x for x in content.atoms(AppliedUndef) if x.func in self._steps)
            self._of_data[item] = content.has(sp.Indexed, sp.Sum) or any(
                self._needs_data(x) for x in items
            )
        return self._of_data[item]

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
