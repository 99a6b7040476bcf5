"""Tabulate terms of sums that many configurations of the data share.

Without a softmax over the data, a term of a sum over families depends on the order parameters and
on a short *row* of numbers: data of the family and totals over all families. Many families of many
configurations have equal rows, so each term is computed once per distinct row and looked up. The
emitted function ``rows`` returns the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import sympy as sp

from symbolic.theory.lifted import SAME, Step
from symbolic.theory.orbit_data import OuterSet

#: Terms of at most this many operations are not tabulated: a look-up costs as much.
CHEAP = 10
#: Index of the family of a row, and the slice of all families of all configurations.
FAMILY, EVERY = sp.Symbol("_f0"), sp.Symbol(":")
#: Powers of data allowed in a total: those that are printed as products.
_POWERS = range(1, 5)


@dataclass
class Table:
    """Values that depend on a row of numbers per family and on no other data.

    Attributes
    ----------
    number
        Number of the table, used in emitted names.
    outer_set
        Outer set whose families have the rows.
    totals
        Sums of data over all families of a configuration, the first part of the row.
    columns
        Data of the family itself, the second part of the row; an ordered set.
    values
        Tabulated expressions in `FAMILY`, with their column numbers.
    """

    number: int
    outer_set: OuterSet
    totals: tuple[sp.Sum, ...]
    columns: dict[sp.Indexed, None] = field(default_factory=dict)
    values: dict[sp.Expr, int] = field(default_factory=dict)

    @property
    def row(self) -> tuple[sp.Expr, ...]:
        """Columns of the row, in order."""
        return *self.totals, *sorted(self.columns, key=str)

    @property
    def arguments(self) -> tuple[str, str]:
        """Names of the arrays of row numbers (families,) and of rows (rows, columns)."""
        return f"_row{self.number}", f"_rows{self.number}"

    @property
    def steps(self) -> dict[Any, Step]:
        """Row number and multiplicity of a family as named values, so that each is read once."""
        row, copies = map(sp.Function, (self.arguments[0], f"_copies{self.number}"))
        return {
            row: Step((FAMILY,), sp.IndexedBase(self.arguments[0])[FAMILY], 0),
            copies: Step((FAMILY,), self.outer_set.copies(FAMILY), 0),
        }

    def term(self, value: sp.Expr, family: sp.Symbol) -> sp.Expr:
        """Return the tabulated value at the row of a family, times the family's multiplicity."""
        row, copies = (name(family) for name in self.steps)
        column = self.values.setdefault(value, len(self.values))
        return copies * sp.IndexedBase(f"_table{self.number}")[row, column]


def shared(
    expressions: Iterable[sp.Expr], steps: Mapping[Any, Step], outer_sets: Sequence[OuterSet]
) -> tuple[list[sp.Expr], dict[Any, Step], list[Table]]:
    """Replace terms that many families share by look-ups in tables.

    Parameters
    ----------
    expressions
        Expressions with sums over families.
    steps
        Named values in them.
    outer_sets
        Outer sets of the theory that have data.

    Returns
    -------
    expressions, steps, tables
        The expressions and named values after the replacement, and the tables.
    """
    expressions = list(expressions)
    tables: dict[Any, Table] = {}
    rows = _Rows(steps)
    new: dict[sp.Expr, sp.Expr] = {}
    for x in (*expressions, *(step.value for step in steps.values())):
        for total in (y for y in sp.preorder_traversal(x) if isinstance(y, sp.Sum)):
            if total not in new:
                new[total] = _shared(total, rows, outer_sets, tables)
    values = {name: replace(x, value=x.value.xreplace(new)) for name, x in steps.items()}
    for table in tables.values():
        values |= table.steps
    return [x.xreplace(new) for x in expressions], values, list(tables.values())


def _shared(
    total: sp.Sum, rows: _Rows, outer_sets: Sequence[OuterSet], tables: dict[Any, Table]
) -> sp.Expr:
    """Return a sum over table entries if its terms depend on a row and are not cheap."""
    bound, _, last = total.limits[0]
    outer_set = next(outer_set for outer_set in outer_sets if outer_set.families == last + 1)
    factors = sp.Mul.make_args(total.function)
    if outer_set.copies(bound) not in factors or of_data(total.function, bound):
        return total
    value = sp.Mul(*(x for x in factors if x != outer_set.copies(bound))).xreplace({bound: FAMILY})
    row = rows.of(value)
    if row is None or rows.operations(value) <= CHEAP:
        return total
    columns, totals = row
    table = tables.setdefault((outer_set, totals), Table(len(tables) + 1, outer_set, totals))
    table.columns.update(dict.fromkeys(columns))
    return sp.Sum(table.term(value, bound), total.limits[0])


class _Rows:
    """Determine the data that values depend on, through their named values."""

    def __init__(self, steps: Mapping[Any, Step]) -> None:
        self._steps = steps

    def _parts(self, value: sp.Expr) -> dict[sp.Expr, None]:
        """Return every subexpression of a value, without looking into sums."""
        parts: dict[sp.Expr, None] = {}
        pending = [value]
        while pending:
            x = pending.pop()
            if x in parts:
                continue
            parts[x] = None
            if x.func in self._steps:
                step = self._steps[x.func]
                pending.append(step.value.xreplace(dict(zip(step.families, x.args))))
            elif not isinstance(x, (sp.Sum, sp.Indexed)):
                pending += x.args
        return parts

    def of(self, value: sp.Expr) -> tuple[tuple[sp.Indexed, ...], tuple[sp.Sum, ...]] | None:
        """Return the data of `FAMILY` and the totals that a value depends on.

        ``None`` if it depends on other data, or on a sum that contains order parameters.
        """
        parts = self._parts(value)
        columns = tuple(x for x in parts if isinstance(x, sp.Indexed))
        totals = sorted((x for x in parts if isinstance(x, sp.Sum)), key=str)
        if (
            any(x.indices[0] != FAMILY for x in columns)
            or any(x.func is SAME for x in parts)
            or not all(of_data(x.function, x.limits[0][0]) for x in totals)
        ):
            return None
        return columns, tuple(totals)

    def operations(self, value: sp.Expr) -> int:
        """Return the number of operations of a value, without those of totals."""
        own = (x for x in self._parts(value) if x.args and x.func not in self._steps)
        return sum(max(1, len(x.args) - 1) for x in own if not isinstance(x, (sp.Sum, sp.Indexed)))


def of_data(x: sp.Expr, family: sp.Symbol) -> bool:
    """Return whether a value is a polynomial in data of a family, without sizes or constants."""
    if isinstance(x, sp.Indexed):
        return bool(x.indices[0] == family)
    if isinstance(x, sp.Pow):
        return x.exp in _POWERS and of_data(x.base, family)
    return bool(x.is_Rational) or (
        isinstance(x, (sp.Add, sp.Mul)) and all(of_data(y, family) for y in x.args)
    )
