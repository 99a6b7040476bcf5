"""Sums over families whose terms many configurations share: a table of values, looked up.

A larger element is one of few types, and what surrounds it enters a term by totals of the data, if
the terms of a sum have no softmax that ends in the data. Such a term depends on the order
parameters and on a *row* of numbers, the same for many families of many configurations; its value
is computed once for each distinct row. Which rows there are the emitted function ``rows`` tells.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import sympy as sp

from symbolic.theory.lifted import SAME, Step
from symbolic.theory.orbit_data import Home

#: Operations up to which a term is written in the sum: to look it up takes as long.
CHEAP = 10
#: The family whose row a value of a table belongs to, and all families of all configurations.
FAMILY, EVERY = sp.Symbol("_f0"), sp.Symbol(":")
#: Powers of data that a total may have: those that are printed as products.
_POWERS = range(1, 5)


@dataclass
class Table:
    """Values that depend on a row of numbers of a family of ``home``, and on no other data.

    ``totals`` are sums of data over all families of a configuration, ``columns`` data of the family
    itself; both make up the row. ``values`` are in terms of `FAMILY`.
    """

    number: int
    home: Home
    totals: tuple[sp.Sum, ...]
    columns: dict[sp.Indexed, None] = field(default_factory=dict)
    values: dict[sp.Expr, int] = field(default_factory=dict)

    @property
    def row(self) -> tuple[sp.Expr, ...]:
        """What the values depend on, in order."""
        return *self.totals, *sorted(self.columns, key=str)

    @property
    def arguments(self) -> tuple[str, str]:
        """The arrays of the row that each family has (families,), and of rows (rows, columns)."""
        return f"_row{self.number}", f"_rows{self.number}"

    @property
    def steps(self) -> dict[Any, Step]:
        """The row of a family, and how many elements it has, as named values: each is read once."""
        row, copies = map(sp.Function, (self.arguments[0], f"_copies{self.number}"))
        return {
            row: Step((FAMILY,), sp.IndexedBase(self.arguments[0])[FAMILY], 0),
            copies: Step((FAMILY,), self.home.copies(FAMILY), 0),
        }

    def term(self, value: sp.Expr, family: sp.Symbol) -> sp.Expr:
        """Return the entry of a value at the row of a family, times its number of elements."""
        row, copies = (name(family) for name in self.steps)
        place = self.values.setdefault(value, len(self.values))
        return copies * sp.IndexedBase(f"_table{self.number}")[row, place]


def shared(
    expressions: Iterable[sp.Expr], steps: Mapping[Any, Step], homes: Sequence[Home]
) -> tuple[list[sp.Expr], dict[Any, Step], list[Table]]:
    """Return expressions and named values with terms that are shared looked up, and the tables."""
    expressions = list(expressions)
    tables: dict[Any, Table] = {}
    rows = _Rows(steps)
    found: dict[sp.Expr, sp.Expr] = {}
    for x in (*expressions, *(step.value for step in steps.values())):
        for total in (y for y in sp.preorder_traversal(x) if isinstance(y, sp.Sum)):
            if total not in found:
                found[total] = _shared(total, rows, homes, tables)
    values = {name: replace(x, value=x.value.xreplace(found)) for name, x in steps.items()}
    for table in tables.values():
        values |= table.steps
    return [x.xreplace(found) for x in expressions], values, list(tables.values())


def _shared(total: sp.Sum, rows: _Rows, homes: Sequence[Home], tables: dict[Any, Table]) -> sp.Expr:
    """Return a sum with its terms looked up, if they depend on a row and are not cheap."""
    bound, _, last = total.limits[0]
    home = next(home for home in homes if home.families == last + 1)
    factors = sp.Mul.make_args(total.function)
    if home.copies(bound) not in factors or of_data(total.function, bound):
        return total
    value = sp.Mul(*(x for x in factors if x != home.copies(bound))).xreplace({bound: FAMILY})
    row = rows.of(value)
    if row is None or rows.operations(value) <= CHEAP:
        return total
    columns, totals = row
    table = tables.setdefault((home, totals), Table(len(tables) + 1, home, totals))
    table.columns.update(dict.fromkeys(columns))
    return sp.Sum(table.term(value, bound), total.limits[0])


class _Rows:
    """What values depend on, names looked into."""

    def __init__(self, steps: Mapping[Any, Step]) -> None:
        self._steps = steps

    def _parts(self, value: sp.Expr) -> dict[sp.Expr, None]:
        """Return every expression that a value is made of, totals of data as they are."""
        found: dict[sp.Expr, None] = {}
        pending = [value]
        while pending:
            x = pending.pop()
            if x in found:
                continue
            found[x] = None
            if x.func in self._steps:
                step = self._steps[x.func]
                pending.append(step.value.xreplace(dict(zip(step.families, x.args))))
            elif not (isinstance(x, (sp.Sum, sp.Indexed))):
                pending += x.args
        return found

    def of(self, value: sp.Expr) -> tuple[tuple[sp.Indexed, ...], tuple[sp.Sum, ...]] | None:
        """Return the data of `FAMILY` and the totals that a value depends on.

        ``None`` if it depends on other data, or on a sum of what the order parameters change.
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
        """Return how many operations a value takes, each name once; totals take none."""
        own = (x for x in self._parts(value) if x.args and x.func not in self._steps)
        return sum(max(1, len(x.args) - 1) for x in own if not isinstance(x, (sp.Sum, sp.Indexed)))


def of_data(x: sp.Expr, family: sp.Symbol) -> bool:
    """Tell whether a value is a polynomial in data of a family, without sizes or constants."""
    if isinstance(x, sp.Indexed):
        return bool(x.indices[0] == family)
    if isinstance(x, sp.Pow):
        return x.exp in _POWERS and of_data(x.base, family)
    return bool(x.is_Rational) or (
        isinstance(x, (sp.Add, sp.Mul)) and all(of_data(y, family) for y in x.args)
    )
