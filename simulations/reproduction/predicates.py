"""Tables of measurements, and the predicates that their rows must satisfy."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


class Verdict(StrEnum):
    """Result of a claim.

    ``HOLDS``: there are judged rows, and all of them satisfy every predicate. ``FAILS``: a
    statement without exceptions (an identity, a lemma, "for all t >= 0") has a counterexample
    inside its hypotheses. ``FINDING``: an asymptotic or qualitative statement does not appear, or
    not fully, at the finite sizes of the run. ``SKIPPED``: an optional extra is not installed.
    """

    HOLDS = "holds"
    FINDING = "finding"
    FAILS = "fails"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Column:
    """A measured quantity.

    Parameters
    ----------
    label
        Heading in the report.
    unit
        Unit such as ``"flow time"``; empty for a pure number. Wall times have the unit ``"s"``.
    missing
        Text in place of NaN, such as ``"never"``.
    rtol, atol
        Relative and absolute change that ``patchdyn report compare`` accepts. Columns ``NAME_low``
        and ``NAME_high`` are a confidence interval of ``NAME`` and replace them.
    """

    label: str
    unit: str = ""
    missing: str = "–"
    rtol: float = 1e-6
    atol: float = 0.0


#: Function of a table that returns one boolean per row.
Predicate = Callable[["pd.DataFrame"], "pd.Series[bool]"]


@dataclass(frozen=True)
class Table:
    """Layout of a table of measurements, and the predicates that its rows must satisfy.

    Parameters
    ----------
    index
        Names of the index levels, such as ``("problem", "seed")``; empty for a table of one row.
    columns
        Mapping from column name to measured quantity.
    predicates
        Tests of a DataFrame, one boolean per row, with names in the terms of the claim. A judged
        row that does not pass is a finding. Comparisons with NaN are false, so that a missing
        number never passes.
    strict
        Predicates without an asymptotic qualifier, such as an exact identity or "for all t >= 0". A
        judged row that does not pass refutes the claim.
    judged
        Selects the rows that satisfy the hypotheses; by default all. Others are only reported.
    """

    index: tuple[str, ...]
    columns: Mapping[str, Column]
    predicates: Mapping[str, Predicate] = field(default_factory=dict)
    strict: Mapping[str, Predicate] = field(default_factory=dict)
    judged: Predicate | None = None

    def __post_init__(self) -> None:
        unfit = [name for name in self.columns if not _IDENTIFIER.fullmatch(name)]
        if unfit or self.predicates.keys() & self.strict.keys():
            raise ValueError(f"columns need identifiers and predicates one name each: {unfit}")

    def frame(self, rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
        """Return rows, each a mapping from index levels and columns to values, as a DataFrame."""
        import pandas as pd

        data = pd.DataFrame(list(rows), columns=[*self.index, *self.columns])
        return data.set_index(list(self.index)) if self.index else data

    def check(self, data: pd.DataFrame) -> CheckedTable:
        """Evaluate the predicates.

        Raises
        ------
        ValueError
            If index or columns are not the declared ones, or a row occurs twice.
        """
        import pandas as pd

        levels = tuple(data.index.names) if self.index else ()
        if levels != self.index or list(data.columns) != list(self.columns):
            raise ValueError(
                f"expected index {self.index} and columns {list(self.columns)}, "
                f"not {levels} and {list(data.columns)}"
            )
        if data.index.has_duplicates or (not self.index and len(data) > 1):
            raise ValueError(f"measured twice: {data.index[data.index.duplicated()].tolist()}")
        tests = {**self.strict, **self.predicates}
        passed = {name: _as_bool(test(data), data) for name, test in tests.items()}
        judged = True if self.judged is None else self.judged(data)
        return CheckedTable(
            self, data, pd.DataFrame(passed, data.index, dtype=bool), _as_bool(judged, data)
        )


def _as_bool(test: Any, data: pd.DataFrame) -> pd.Series[bool]:
    import pandas as pd

    return pd.Series(test, data.index).eq(True)


@dataclass(frozen=True)
class CheckedTable:
    """A measured table with the result of each predicate in each row."""

    layout: Table
    data: pd.DataFrame
    passed: pd.DataFrame
    judged: pd.Series[bool]

    @property
    def rows(self) -> pd.DataFrame:
        """Judged rows."""
        return self.data[self.judged]

    @property
    def verdict(self) -> Verdict:
        """Verdict of the judged rows."""
        passed = self.passed[self.judged]
        if not bool(passed[[*self.layout.strict]].to_numpy(bool).all()):
            return Verdict.FAILS
        decides = len(passed.columns) > 0
        holds = bool(passed.to_numpy(bool).all()) and (len(passed) > 0 or not decides)
        return Verdict.HOLDS if holds else Verdict.FINDING

    def count(self, predicate: str, /, **where: Any) -> str:
        """Return the number of judged rows that satisfy a predicate, such as ``"7 of 9"``.

        Parameters
        ----------
        predicate
            Name of the predicate.
        where
            Values of index levels that select rows.
        """
        passed = self.passed.loc[self.judged, predicate]
        for level, value in where.items():
            passed = passed[passed.index.get_level_values(level) == value]
        return f"{passed.sum()} of {len(passed)}"


#: Mapping from name to checked table of a claim.
Tables = Mapping[str, CheckedTable]


#: Counts of the parts of a statement; the statement fails if every part is absent.
PARTS = Table(
    index=(),
    columns={
        "shown": Column("parts shown"),
        "absent": Column("parts absent"),
        "parts": Column("parts"),
    },
    strict={"not every part is absent": lambda t: t.absent < t.parts},
)


def parts(shown: pd.Series[bool], absent: pd.Series[bool]) -> pd.DataFrame:
    """Return the table `PARTS`, given whether each part is shown, and whether it is absent."""
    return PARTS.frame([{"shown": shown.sum(), "absent": absent.sum(), "parts": len(shown)}])
