"""Emit the derived risk and gradient of a theory as Python source.

Loop-invariant values are computed outside of loops, values independent of the data once, and values
that many configurations share once for all of them (`symbolic.theory.sharing`). Emitted names begin
with an underscore, names of a user's file never do.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import sympy as sp
from sympy.core.function import AppliedUndef
from sympy.printing.precedence import PRECEDENCE
from sympy.printing.pycode import PythonCodePrinter

from symbolic.theory import loops
from symbolic.theory.errors import TheoryError
from symbolic.theory.lifted import HIGHEST, SAME, TOP, Step
from symbolic.theory.orbit_data import OuterSet
from symbolic.theory.sharing import EVERY, FAMILY, Table, shared
from symbolic.theory.theory import Theory

#: Limit of the number of nested loops over families.
MOST_NESTED = 3

_HEADER = '''\
"""Risk of {name} and its gradient: the mean over configurations of the data up to symmetry.

Derived from the statement of the theory ({paper}).
"""

import math as _math

from dynamics.theory.functions import (
    empty as _empty,
    highest as _highest,
    modulus as _modulus,
    power as _power,
    raised as _raised,
    relu as _relu,
    shifted_log as _shifted_log,
    sigmoid as _sigmoid,
    sign as _sign,
    softplus as _softplus,
    step as _step,
)
from dynamics.theory.rows import total as _total

{rows}
def mean({arguments}):
    """Write the gradient per entry ({orders}) to ``_out`` and return the risk."""
'''
_MULTIPLICITY = "    clear as _clear,\n    multiplicity as _multiplicity,\n    modulus as"
_ROWS = '''
def rows({arguments}):
    """Return the columns of each table of rows, with one entry per family."""
'''


class Printer(PythonCodePrinter):
    """Print scalar code, with small powers as products."""

    def __init__(self, begins: Mapping[str, str]) -> None:
        super().__init__({"fully_qualified_modules": False})
        self._begins = begins

    def _print_Indexed(self, expr: sp.Indexed) -> str:
        name = str(expr.base.label)
        family, *types = expr.indices
        first = self._begins[name] if family.is_Integer else self._print(family)
        return f"{name}[{', '.join([first, *map(self._print, types)])}]"

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
            left, right = map(self._print, expr.args)
            return f"(1.0 if {left} == {right} else 0.0)"
        prefix = "_math." if name in ("exp", "log", "tanh") else "_"
        return f"{prefix}{name}({', '.join(map(self._print, expr.args))})"

    _print_exp = _print_log = _print_tanh = _print_sigmoid = _print_softplus = _print_Function

    def _largest(self, scores: Sequence[sp.Expr]) -> str:
        """Print the maximum of the scores that at least one element has."""
        text = "-_math.inf"
        for x in scores:
            number, score = x.args if x.func is HIGHEST else (sp.Integer(1), x)
            text = f"_highest({self._print(number)}, {self._print(score)}, {text})"
        return text


def source(theory: Theory) -> str:
    """Return the source of a module with the function ``mean`` and, if values are shared, ``rows``.

    ``mean(_theta, _out, _constants, _weight, ...)`` returns the risk and writes the gradient per
    entry to ``_out``. Its arguments are arrays:

    - ``_theta`` (n,): order parameters; ``_out`` (n,): result
    - ``_constants``: sizes and constants in the order of the theory
    - ``_weight`` (b,): probability of each configuration of the data
    - for each outer set with data, ``_first_SET`` (b + 1,): number of the first family of each
      configuration in the arrays of `symbolic.theory.orbit_data.OuterSet.arrays`, which follow
    - for each table of shared values, ``_row`` (families,): row of each family, and ``_rows``
      (rows, columns): the data that the values depend on

    ``rows`` returns these columns with one entry per family.

    Raises
    ------
    TheoryError
        If the code needs too many nested loops, or the derivation too many steps.
    """
    if theory.is_ordered:
        return loops.source(theory, _HEADER.replace("    modulus as", _MULTIPLICITY))
    reduced = theory.reduced
    outer_sets = [outer_set for outer_set in theory.outer_sets if outer_set.has_data]
    data = [
        name for outer_set in outer_sets for name in (f"_first_{outer_set.name}", *outer_set.arrays)
    ]
    totals = [slope * order.count for slope, order in zip(reduced.gradient.values(), theory.orders)]
    wanted, steps, tables = shared([reduced.loss, *totals], reduced.steps, outer_sets)
    rows = [name for table in tables for name in table.arguments]
    header = _HEADER.format(
        name=theory.name,
        paper=theory.paper.replace("\\", "\\\\").replace('"', '\\"'),
        rows=_rows_function(tables, outer_sets, data) if tables else "",
        arguments=", ".join(["_theta", "_out", "_constants", "_weight", *data, *rows]),
        orders=", ".join(theory.order_parameters),
    )
    spelled = {
        order.symbol: sp.Symbol(order.name if order.name.isidentifier() else f"_o{i}")
        for i, order in enumerate(theory.orders)
    }
    writer = _Writer(theory, spelled, outer_sets, steps)
    filled = [line for table in tables for line in writer.table(table)]
    counts = [order.count for order in theory.orders]
    loss, *texts = writer.block([*wanted, *counts], {}, 0)
    names = [size.name for size in theory.sizes] + list(theory.free_constants)
    lines = [f"{symbol} = _theta[{i}]" for i, symbol in enumerate(spelled.values())]
    lines += [f"{name} = _constants[{i}]" for i, name in enumerate(names)]
    lines += [*writer.before, *filled, "_loss = 0.0"]
    lines += [f"_out[{i}] = 0.0" for i in range(len(totals))]
    lines += ["for _b in range(_weight.shape[0]):", "    _w = _weight[_b]"]
    for outer_set in outer_sets:
        lines += [
            f"    _begin_{outer_set.name} = _first_{outer_set.name}[_b]",
            f"    _end_{outer_set.name} = _first_{outer_set.name}[_b + 1]",
        ]
    lines += [f"    {line}" for line in [*writer.lines, f"_loss += _w * ({loss})"]]
    lines += [f"    _out[{i}] += _w * ({slope})" for i, slope in enumerate(texts[: len(totals)])]
    for i, count in enumerate(texts[len(totals) :]):  # an orbit may have no entry at small sizes
        lines += [f"_n = {count}", f"_out[{i}] = _out[{i}] / _n if _n > 0 else 0.0"]
    return header + "".join(f"    {line}\n" for line in [*lines, "return _loss"])


def _rows_function(
    tables: Sequence[Table], outer_sets: Sequence[OuterSet], data: Sequence[str]
) -> str:
    """Return the source of the function ``rows``."""
    printer, text = Printer({}), _ROWS.format(arguments=", ".join(data))
    names = []
    for table in tables:
        columns = []
        for x in table.row:
            if isinstance(x, sp.Sum):
                bound, _, last = x.limits[0]
                (of,) = [
                    outer_set.name for outer_set in outer_sets if outer_set.families == last + 1
                ]
                summand = printer.doprint(x.function.xreplace({bound: EVERY}))
                columns.append(f"_total({summand}, _first_{of}, _first_{table.outer_set.name})")
            else:
                columns.append(printer.doprint(x.xreplace({FAMILY: EVERY})))
        text += f"    _columns{table.number} = ({', '.join(columns)},)\n"
        names.append(f"_columns{table.number}")
    return f"{text}    return ({', '.join(names)},)\n\n"


Known = dict[sp.Expr, sp.Symbol]


class _Writer:
    """Write lines of code with named values and loops over families, each as far out as possible.

    An *item* of a block is a named value or a sum that depends only on the loops around the block.
    The *rank* of an item is the number of consecutive sums that it needs. Sums of the same rank
    over the same set share a loop.

    Attributes
    ----------
    before
        Lines that do not depend on the data.
    lines
        Lines that are executed for each configuration of the data.
    """

    def __init__(
        self,
        theory: Theory,
        spelled: Mapping[sp.Symbol, sp.Symbol],
        outer_sets: Sequence[OuterSet],
        steps: Mapping[Any, Step],
    ) -> None:
        self._theory, self._spelled, self._steps = theory, spelled, steps
        self._home = {outer_set.families: outer_set.name for outer_set in outer_sets}
        self._printer = Printer(
            {
                array: f"_begin_{outer_set.name}"
                for outer_set in outer_sets
                for array in outer_set.arrays
            }
        )
        self._contents: dict[sp.Expr, sp.Expr] = {}
        self._of_data: dict[sp.Expr, bool] = {}
        self._everywhere: Known = {}
        self._number = 0
        self.before: list[str] = []
        self.lines: list[str] = []

    def block(self, expressions: Sequence[sp.Expr], known: Known, depth: int) -> list[str]:
        """Write all items of some expressions.

        Parameters
        ----------
        expressions
            Expressions to be evaluated in this block.
        known
            Items that are already computed, with their variables.
        depth
            Number of loops around the block.

        Returns
        -------
        list of str
            The expressions as Python code in terms of the variables.

        Raises
        ------
        TheoryError
            If there are more than `MOST_NESTED` nested loops.
        """
        if depth > MOST_NESTED:
            raise TheoryError(
                f"{depth} nested loops over families (most: {MOST_NESTED})",
                self._theory.loss.location,
            )
        known = {**self._everywhere, **known}
        ranks: dict[sp.Expr, int] = {}
        for expression in expressions:
            self._rank(expression, known, ranks)
        for rank in range(max(ranks.values(), default=-1) + 1):
            items = sorted((x for x, own in ranks.items() if own == rank), key=self._needs_data)
            sums = [item for item in items if isinstance(item, sp.Sum)]
            for limit in dict.fromkeys(item.limits[0][2] for item in sums):
                self._loop([x for x in sums if x.limits[0][2] == limit], known, depth)
            for item in items:
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
        outer_lines, self.lines = self.lines, []
        values = self.block(list(table.values), known, 1)
        body, self.lines = self.lines, outer_lines
        name = f"_table{table.number}"
        return [
            f"{name} = _empty({rows}.shape[0], {len(values)})",
            f"for _r in range({rows}.shape[0]):",
            *(f"    _d{i} = {rows}[_r, {i}]" for i in range(len(table.row))),
            *body,
            *(f"    {name}[_r, {i}] = {value}" for i, value in enumerate(values)),
        ]

    def _loop(self, sums: Sequence[sp.Sum], known: Known, depth: int) -> None:
        """Write one loop that computes several sums over the same families."""
        family = sp.Symbol(f"_f{depth}")
        bodies = [x.function.xreplace({x.limits[0][0]: family}) for x in sums]
        totals = [self._new(x, known) for x in sums]
        for total, body in zip(totals, bodies):
            self._write(depth, f"{total} = {'-_math.inf' if body.func is HIGHEST else '0.0'}")
        outer_set = self._home[sums[0].limits[0][2] + 1]
        self._write(depth, f"for {family} in range(_begin_{outer_set}, _end_{outer_set}):")
        needed = [body.args if body.func is HIGHEST else (body,) for body in bodies]
        texts = iter(self.block([x for row in needed for x in row], known, depth + 1))
        for total, row in zip(totals, needed):
            if len(row) == 1:
                self._write(depth + 1, f"{total} += {next(texts)}")
            else:
                line = f"{total} = _highest({next(texts)}, {next(texts)}, {total})"
                self._write(depth + 1, line)

    def _rank(self, expression: sp.Expr, known: Known, ranks: dict[sp.Expr, int]) -> int:
        """Return the number of consecutive sums that an expression needs.

        Adds the rank of every item to ``ranks``, each item after those that it needs.
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
            elif _in_inner_loop(x):  # not an item of this block, but its parts may be
                pending.append(self._content(x))
            else:
                if x not in ranks:
                    own = self._rank(self._content(x), known, ranks)
                    ranks[x] = own + isinstance(x, sp.Sum)
                highest = max(highest, ranks[x])
        return highest

    def _needs_data(self, item: sp.Expr) -> bool:
        """Return whether an item depends on the configuration of the data."""
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
        """Return the summand of a sum, or the definition of a named value."""
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


def _in_inner_loop(x: sp.Expr) -> bool:
    """Return whether an expression depends on the family of a sum around it."""
    return any(symbol.name.startswith("b_") and symbol.is_integer for symbol in x.free_symbols)
