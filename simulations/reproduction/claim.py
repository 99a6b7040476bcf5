"""A claim of a paper: its statement, its measurement, and its result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from simulations.reproduction.predicates import CheckedTable, Table, Tables, Verdict
from simulations.reproduction.sentences import sentence

if TYPE_CHECKING:
    import matplotlib.figure
    import pandas as pd
    import xarray

T = TypeVar("T")
#: Largest number of characters of a finding.
FINDING = 120
#: Names of the texts of a claim, in the order of a record.
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
    """Raised by ``measure`` if an optional extra is not installed; the message names it."""


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
    """Result of the experiment of a claim.

    Parameters
    ----------
    tables
        Mapping from name to table; each table is stored as CSV.
    settings
        Problems and numerical settings of the measurement.
    figures
        Figures of the tables, the most important one first.
    equations
        Derived equations as formulas in LaTeX.
    """

    tables: Mapping[str, pd.DataFrame]
    settings: Mapping[str, Any] = field(default_factory=dict)
    figures: tuple[Figure, ...] = ()
    equations: Sequence[str] = ()


def _no_progress(fraction: float) -> None:
    """Do nothing."""


@dataclass
class Context:
    """Settings of a run.

    Attributes
    ----------
    quick
        Use smaller problems and shorter horizons.
    seed
        Root seed.
    progress
        Called with the fraction that is done.
    scratch
        Folder for checkpoints of long runs; ``None``: store none. It survives an interruption, so
        that the next run of the claim resumes, and is removed at the end.
    thorough
        Add experiments that are too expensive for the full run; not together with ``quick``.
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
        Section of the paper, and its statement in one or two sentences.
    method
        Description of the measurement, in one sentence.
    tables
        Layout and predicates of each table that ``measure`` returns.
    measure
        Runs the experiment; raises only if it cannot be run.
    headline
        Returns the numbers of the finding from the checked tables.
    finding
        Result in one sentence of at most `FINDING` characters: a format string over the numbers of
        ``headline``. It must be true for any numbers: counts and numbers, no conclusions. Bounds
        have the conversion ``!u`` or ``!d`` of `simulations.reproduction.sentences`.
    tolerance
        Threshold of the verdict; ``None`` if there is not exactly one.
    criterion
        Condition of each verdict and origin of its thresholds, written from the statement before
        the run.
    quick_note, thorough_note
        Differences of ``--quick`` and of ``--thorough`` from the full run; empty if none.
    assumptions
        Assumptions of the measurement.
    amended
        Changes of criterion, horizon or rates after a run, with the reason; empty if none.
    group
        Claims of one group share cached runs and are run by one process.
    alone_if_quick
        Run the quick version in a process of its own: repeating its part of the shared runs takes
        less time than waiting for them.
    command
        Shell command that runs the claim again; empty for claims of the registry.
    paper, module
        Paper of the statement, and module that defines the claim as ``CLAIM``; set by the registry.
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
    command: str = ""
    paper: Paper | None = None
    module: str = ""

    def texts(self) -> dict[str, str]:
        """Return a mapping from name, such as ``"statement"``, to text, with id and paper.

        A ``command`` is included where there is one.
        """
        paper = self.paper.name if self.paper else ""
        texts = {"claim": self.id, "paper": paper} | {name: getattr(self, name) for name in TEXTS}
        return texts | ({"command": self.command} if self.command else {})

    def __reduce__(self) -> Any:
        """Pickle a claim of the registry as its module, because predicates are often lambdas."""
        if not self.module:
            return super().__reduce__()
        return _constant, (self.module, self.paper)

    def run(self, context: Context) -> Result:
        """Measure, and evaluate the predicates."""
        return self.evaluate(self.measure(context))

    def evaluate(self, measurement: Measurement) -> Result:
        """Evaluate the predicates.

        Raises
        ------
        ValueError
            If the tables are not the declared ones.
        """
        tables = measurement.tables
        if tables.keys() != self.tables.keys():
            raise ValueError(f"{self.id}: expected tables {list(self.tables)}, not {list(tables)}")
        checked = {name: table.check(tables[name]) for name, table in self.tables.items()}
        return Result(self, measurement, checked)


def _constant(module: str, paper: Paper | None) -> Claim:
    claim: Claim = import_module(module).CLAIM
    return replace(claim, paper=paper, module=module)


@dataclass(frozen=True)
class Result:
    """Result of a claim."""

    claim: Claim
    measurement: Measurement
    tables: Tables

    @property
    def verdict(self) -> Verdict:
        """Worst verdict of the tables."""
        order = list(Verdict)
        return max((table.verdict for table in self.tables.values()), key=order.index)

    @property
    def headline(self) -> dict[str, Any]:
        """Numbers of the finding."""
        return dict(self.claim.headline(self.tables))

    @property
    def finding(self) -> str:
        """Result in one sentence."""
        return sentence(self.claim.finding, **self.headline)

    def predicates(self) -> list[dict[str, Any]]:
        """Return each predicate: its table, whether it is strict, and its counts.

        ``passed`` of ``judged`` rows satisfy it; ``failing`` contains the index of each other row.
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
                    "failing": [index_of(table, label) for label in passed.index[~passed]],
                })  # fmt: skip
        return rows

    def numbers(self) -> list[dict[str, Any]]:
        """Return each measured number: name, label, index, value and unit."""
        return [
            {
                "name": name,
                "label": column.label,
                "at": index_of(table, label),
                "value": value,
                "unit": column.unit,
                "rtol": column.rtol,
                "atol": column.atol,
            }
            for table in self.tables.values()
            for name, column in table.layout.columns.items()
            for label, value in table.data[name].items()
        ]

    def records(self) -> list[dict[str, Any]]:
        """Return each table: its columns, and its rows with their failing predicates."""
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
                        "at": index_of(table, label),
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


def index_of(table: CheckedTable, label: Any) -> dict[str, Any]:
    """Return an index label as a mapping from level to value."""
    values = label if isinstance(label, tuple) else (label,)
    return dict(zip(table.layout.index, values))
