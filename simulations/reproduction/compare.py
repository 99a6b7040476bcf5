"""Compare two reports: changed verdicts, and numbers that changed by more than their tolerance.

Tables are compared row by row. A number is unchanged in any of these cases:

* Both reports contain its confidence interval, as columns ``NAME_low`` and ``NAME_high``, and each
  of the two numbers is inside the interval of the other. Intervals of a name without a number are
  unchanged if they overlap.
* The change is at most the relative tolerance of the comparison, or that of its column.
* The change is at most the absolute tolerance of its column, or the tolerance of its claim if that
  is smaller than the relative tolerance of the comparison: such a claim allows only rounding.

Wall times (unit ``s``) are not compared.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeGuard

#: Default relative tolerance of numbers.
SHARE = 1e-6
_LOW, _HIGH = "_low", "_high"
Record = Mapping[str, Any]


@dataclass(frozen=True)
class Change:
    """A difference between two reports.

    Attributes
    ----------
    claim
        Id of the claim.
    what
        ``"claim"`` (in one report only), ``"verdict"`` or ``"number"``.
    old, new
        Verdict or number in each report; ``None`` if it is missing.
    table, row, column
        Position of a number: name of the table, mapping from index level to value, column name.
    label, unit
        Heading and unit of the column.
    """

    claim: str
    what: str
    old: Any
    new: Any
    table: str = ""
    row: Mapping[str, Any] = field(default_factory=dict)
    column: str = ""
    label: str = ""
    unit: str = ""


class _Row(NamedTuple):
    """A row of a table: its position, and mappings from column name to column and to value."""

    position: Mapping[str, Any]
    columns: Mapping[str, Mapping[str, Any]]
    values: Mapping[str, Any]


_ABSENT = _Row({}, {}, {})


def compare(
    old: Mapping[str, Record], new: Mapping[str, Record], share: float = SHARE
) -> list[Change]:
    """Return the differences between two reports, claim by claim.

    Parameters
    ----------
    old, new
        Mapping from claim to its record, as in ``report.json``. A claim that could not be run has
        the verdict ``"error"``. Numbers are compared if both records contain tables.
    share
        Relative tolerance of numbers.
    """
    changes: list[Change] = []
    for claim in dict.fromkeys([*old, *new]):
        verdicts = _verdict(old, claim), _verdict(new, claim)
        if None in verdicts:
            changes.append(Change(claim, "claim", *verdicts))
            continue
        if verdicts[0] != verdicts[1]:
            changes.append(Change(claim, "verdict", *verdicts))
        if "tables" in old[claim] and "tables" in new[claim]:
            changes += _changed_numbers(claim, old[claim], new[claim], share)
    return changes


def _verdict(records: Mapping[str, Record], claim: str) -> str | None:
    return records[claim].get("verdict", "error") if claim in records else None


def _changed_numbers(claim: str, old: Record, new: Record, share: float) -> Iterator[Change]:
    before, after = _rows(old), _rows(new)
    tolerances = [record.get("tolerance") or math.inf for record in (old, new)]
    rounding = min((limit for limit in tolerances if limit <= share), default=0.0)
    for table, index in dict.fromkeys([*before, *after]):
        first, second = (report.get((table, index), _ABSENT) for report in (before, after))
        columns = {**second.columns, **first.columns}
        for name, column in columns.items():
            if column["unit"] == "s" or _is_compared_otherwise(name, first, second):
                continue
            relative = max(share, _relative_limit(column))
            absolute = max(rounding, column.get("atol") or 0.0)
            if not _agree(name, first, second, relative, absolute):
                yield Change(
                    claim,
                    "number",
                    first.values.get(name),
                    second.values.get(name),
                    table=table,
                    row=first.position or second.position,
                    column=name,
                    label=column["label"],
                    unit=column["unit"],
                )


def _rows(record: Record) -> dict[tuple[str, str], _Row]:
    """Return a mapping from table and index to row."""
    rows = {}
    for table in record["tables"]:
        columns = {column["name"]: column for column in table["columns"]}
        for row in table["rows"]:
            index = json.dumps(row["at"], sort_keys=True)
            values = dict(zip(columns, row["values"]))
            rows[table["name"], index] = _Row(row["at"], columns, values)
    return rows


def _relative_limit(column: Mapping[str, Any]) -> float:
    """Return the relative tolerance of a column; JSON has null for an infinite one."""
    limit = column.get("rtol", 0.0)
    return math.inf if limit is None else limit


def _is_compared_otherwise(name: str, *rows: _Row) -> bool:
    """Return whether an end of an interval is compared with its number or with its lower end."""
    stem = name.removesuffix(_LOW).removesuffix(_HIGH)
    is_end = stem != name and all(_interval(stem, row) is not None for row in rows)
    return is_end and (name.endswith(_HIGH) or stem in rows[0].values)


def _agree(name: str, before: _Row, after: _Row, relative: float, absolute: float) -> bool:
    """Return whether a number is unchanged within a relative and an absolute tolerance."""
    if name not in before.values or name not in after.values:
        return False
    old, new = before.values[name], after.values[name]
    if not (_is_number(old) and _is_number(new)):
        return bool(old == new)
    if math.isclose(old, new, rel_tol=relative, abs_tol=absolute):
        return True
    stem = name.removesuffix(_LOW)
    first, second = _interval(stem, before), _interval(stem, after)
    if first is None or second is None:
        return False
    if stem != name:  # an interval without a number inside
        return max(first[0], second[0]) <= min(first[1], second[1])
    return second[0] <= old <= second[1] and first[0] <= new <= first[1]


def _interval(stem: str, row: _Row) -> tuple[float, float] | None:
    """Return the ends of the confidence interval of a number, ``None`` if one is missing."""
    low, high = row.values.get(stem + _LOW), row.values.get(stem + _HIGH)
    return (low, high) if _is_number(low) and _is_number(high) else None


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
