"""Measured numbers as tables: a row for each problem, a column for each quantity."""

import csv
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Column:
    """A quantity: what people read, and its unit."""

    label: str
    unit: str


@dataclass(frozen=True)
class Table:
    """Numbers of the same quantities at several problems.

    ``rows`` are pairs of a problem and its values, one for each of ``columns``; a problem is empty
    where the numbers are those of the claim as a whole.
    """

    columns: tuple[Column, ...]
    rows: tuple[tuple[Mapping[str, Any], tuple[Any, ...]], ...]

    @property
    def single(self) -> bool:
        """Whether there is one row, which is read more easily as a column."""
        return len(self.rows) == 1

    @property
    def height(self) -> int:
        """Number of lines that it takes."""
        return len(self.columns) if self.single else len(self.rows)


def tables(measured: Sequence[Mapping[str, Any]]) -> list[Table]:
    """Return the numbers of a record as tables, in the order in which they were measured.

    Problems at which the same quantities were measured share a table; no number is left out.
    """
    places: dict[str, tuple[Mapping[str, Any], dict[str, Mapping[str, Any]]]] = {}
    for one in measured:
        key = json.dumps(one["at"], sort_keys=True)
        places.setdefault(key, (one["at"], {}))[1][one["name"]] = one
    groups: dict[tuple[str, ...], list[tuple[Mapping[str, Any], dict[str, Any]]]] = {}
    for place in places.values():
        groups.setdefault(tuple(place[1]), []).append(place)
    found = []
    for names, members in groups.items():
        columns = tuple(Column(members[0][1][n]["label"], members[0][1][n]["unit"]) for n in names)
        rows = tuple((at, tuple(of[n].get("value") for n in names)) for at, of in members)
        found.append(Table(columns, rows))
    return found


def csv_name(claim: str, table: str) -> str:
    """Return the file name of a claim's table."""
    return f"{claim}-{re.sub('[^A-Za-z0-9]+', '-', table)}.csv"


def as_csv(table: Mapping[str, Any]) -> str:
    """Return a table of a record as CSV; a missing number is empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*table["index"], *(column["name"] for column in table["columns"])])
    writer.writerows([*row["at"].values(), *row["values"]] for row in table["rows"])
    return text.getvalue()
