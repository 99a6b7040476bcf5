"""A claim of a paper: what is stated, how it is measured, and what the measurement shows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from simulations.reproduction.predicates import CheckedTable, Table, Tables, Verdict

if TYPE_CHECKING:
    import matplotlib.figure
    import pandas as pd
    import xarray

T = TypeVar("T")
#: Largest number of characters of a finding.
FINDING = 120
#: Texts of a claim, in the order of a record.
TEXTS = (
    "place",
    "statement",
    "method",
    "criterion",
    "quick_note",
    "thorough_note",
    "assumptions",
    "amended",
)


@dataclass(frozen=True)
class Paper:
    """A paper whose claims are checked."""

    authors: str
    title: str
    venue: str

    @property
    def name(self) -> str:
        """Authors and venue, such as ``"Jelassi, Sander, Li (NeurIPS 2022)"``."""
        return f"{self.authors} ({self.venue})" if self.venue else self.authors


class SkipClaim(Exception):
    """Raised by ``measure`` if an optional extra is not installed; the message says which."""


@dataclass(frozen=True)
class Figure:
    """A figure of the report, drawn on demand, with the data it shows.

    Attributes
    ----------
    name
        File stem, such as ``"order-parameters"``; unique among all claims.
    title, caption
        Heading and explanation, complete without the running text.
    draw
        Draws on an empty Matplotlib figure.
    data
        Everything that is drawn, NetCDF-safe (no None, bool or dict attributes).
    size
        Width and height in inches.
    """

    name: str
    title: str
    caption: str
    draw: Callable[[matplotlib.figure.Figure], Any]
    data: xarray.Dataset
    size: tuple[float, float] = (7.0, 4.2)


@dataclass(frozen=True)
class Measurement:
    """What a claim measured.

    Parameters
    ----------
    tables
        Measured numbers by name of the table; stored as CSV.
    settings
        Problems and numerical choices that the numbers were measured with.
    figures
        Figures that show them, the most important one first.
    equations
        Derived equations as formulas in LaTeX.
    """

    tables: Mapping[str, pd.DataFrame]
    settings: Mapping[str, Any] = field(default_factory=dict)
    figures: tuple[Figure, ...] = ()
    equations: Sequence[str] = ()


def _no_progress(fraction: float) -> None:
    """Ignore the progress."""


@dataclass
class Context:
    """Settings of a run: size, root seed, progress callback, folder for checkpoints.

    ``thorough`` adds what is too expensive for the full run (never together with ``quick``).
    ``scratch`` is a folder for checkpoints of long runs (``None``: keep none). It survives an
    interruption, so that the next run of the claim goes on from there, and is removed at the end.
    """

    quick: bool
    seed: int = 0
    progress: Callable[[float], None] = field(default=_no_progress)
    scratch: Path | None = None
    thorough: bool = False

    @property
    def mode(self) -> str:
        """``"quick"``, ``"full"`` or ``"thorough"``."""
        return "quick" if self.quick else "thorough" if self.thorough else "full"

    def choose(self, *, quick: T, full: T, thorough: T | None = None) -> T:
        """Return the value for the current mode; ``thorough`` is ``full`` unless given."""
        if self.quick:
            return quick
        return thorough if self.thorough and thorough is not None else full

    def track(self, items: Iterable[T], start: float = 0.0, stop: float = 1.0) -> Iterator[T]:
        """Iterate, and report progress from ``start`` to ``stop`` after each item."""
        items = list(items)
        for done, item in enumerate(items, start=1):
            yield item
            self.progress(start + (stop - start) * done / len(items))


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A statement of a paper and its test.

    Attributes
    ----------
    id
        Name on the command line, such as ``"lemma-4.1"``.
    place, statement
        Where the paper states it, and what it states, in one or two sentences.
    method
        What is measured, in one sentence.
    tables
        Layout and predicates of each table that ``measure`` returns.
    measure
        Runs the experiment; raises only if it cannot.
    headline
        Returns the numbers of the sentence from the checked tables.
    finding
        Result in one sentence of at most `FINDING` characters: a format string over the numbers of
        ``headline``. It must be true whatever they are: counts and numbers, no conclusions.
    tolerance
        Threshold behind the verdict; ``None`` where there is more than one, or none.
    criterion
        What decides the verdict and where its thresholds come from: written from the statement,
        before the run.
    quick_note, thorough_note
        How ``--quick`` differs from the full run, and what ``--thorough`` adds; empty where it
        changes nothing.
    assumptions
        What the measurement relies on.
    amended
        What was changed in criterion, horizon or rates after a run had been seen, and why; empty
        where nothing was.
    group
        Claims of one group share cached runs and are run by one process.
    alone_if_quick
        Whether another process runs the quick version nevertheless: where repeating its share of
        the runs takes less than waiting for the others.
    paper, module
        Where the statement comes from, and the module whose constant ``CLAIM`` it is; the registry
        fills them in.
    """

    id: str
    place: str
    statement: str
    method: str
    tables: Mapping[str, Table]
    measure: Callable[[Context], Measurement]
    headline: Callable[[Tables], Mapping[str, Any]]
    finding: str
    tolerance: float | None = None
    criterion: str = ""
    quick_note: str = ""
    thorough_note: str = ""
    assumptions: str = ""
    amended: str = ""
    group: str = ""
    alone_if_quick: bool = False
    paper: Paper | None = None
    module: str = ""

    def texts(self) -> dict[str, str]:
        """Return the texts by name, such as ``"statement"``; the paper by its name."""
        paper = self.paper.name if self.paper else ""
        return {"claim": self.id, "paper": paper} | {name: getattr(self, name) for name in TEXTS}

    def __reduce__(self) -> Any:
        """Pickle a claim of the registry by its module: its predicates are often lambdas."""
        if not self.module:
            return super().__reduce__()
        return _constant, (self.module, self.paper)

    def run(self, context: Context) -> Result:
        """Measure, and evaluate the predicates."""
        return self.evaluate(self.measure(context))

    def evaluate(self, measured: Measurement) -> Result:
        """Evaluate the predicates.

        Raises
        ------
        ValueError
            If the tables are not the declared ones.
        """
        if measured.tables.keys() != self.tables.keys():
            raise ValueError(
                f"{self.id}: expected tables {list(self.tables)}, not {list(measured.tables)}"
            )
        checked = {name: table.check(measured.tables[name]) for name, table in self.tables.items()}
        return Result(self, measured, checked)


def _constant(module: str, paper: Paper | None) -> Claim:
    claim: Claim = import_module(module).CLAIM
    return replace(claim, paper=paper, module=module)


@dataclass(frozen=True)
class Result:
    """A claim that was run."""

    claim: Claim
    measured: Measurement
    tables: Tables

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of the tables."""
        order = list(Verdict)
        return max((table.verdict for table in self.tables.values()), key=order.index)

    @property
    def headline(self) -> dict[str, Any]:
        """The numbers of the sentence."""
        return dict(self.claim.headline(self.tables))

    @property
    def finding(self) -> str:
        """The result in one sentence."""
        return self.claim.finding.format(**self.headline)

    def predicates(self) -> list[dict[str, Any]]:
        """Return each predicate: its table, whether it is strict, and its counts.

        ``passed`` of ``judged`` rows satisfy it; ``failing`` is the index of those that do not.
        """
        rows = []
        for name, table in self.tables.items():
            for predicate in table.passed:
                passed = table.passed.loc[table.judged, predicate]
                rows.append({
                    "table": name,
                    "predicate": predicate,
                    "strict": predicate in table.layout.strict,
                    "passed": int(passed.sum()),
                    "judged": len(passed),
                    "failing": [place(table, label) for label in passed.index[~passed]],
                })  # fmt: skip
        return rows

    def numbers(self) -> list[dict[str, Any]]:
        """Return each measured number: name, label, index, value and unit."""
        return [
            {
                "name": name,
                "label": column.label,
                "at": place(table, label),
                "value": value,
                "unit": column.unit,
                "rtol": column.rtol,
                "atol": column.atol,
            }
            for table in self.tables.values()
            for name, column in table.layout.columns.items()
            for label, value in table.data[name].items()
        ]

    def layouts(self) -> list[dict[str, Any]]:
        """Return each table: columns, and rows with their failing predicates."""
        return [
            {
                "name": name,
                "index": list(table.layout.index),
                "columns": [
                    {"name": key, **asdict(column)}
                    for key, column in table.layout.columns.items()
                ],
                "rows": [
                    {
                        "at": place(table, label),
                        "values": list(values),
                        "judged": bool(judged),
                        "failing": [test for test, ok in zip(table.passed, passed) if not ok],
                    }
                    for label, values, judged, passed in zip(
                        table.data.index,
                        table.data.astype(object).to_numpy(),
                        table.judged,
                        table.passed.to_numpy(),
                    )
                ],
            }
            for name, table in self.tables.items()
        ]  # fmt: skip


def place(table: CheckedTable, label: Any) -> dict[str, Any]:
    """Return an index label as a mapping from level to value."""
    values = label if isinstance(label, tuple) else (label,)
    return dict(zip(table.layout.index, values))
