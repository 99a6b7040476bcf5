"""What a claim of the paper is to this package: a statement, a measurement, a verdict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import matplotlib.figure
    import xarray


@dataclass(frozen=True)
class Paper:
    """A paper whose claims are checked."""

    authors: str
    title: str
    venue: str

    @property
    def name(self) -> str:
        """Authors and where it appeared, such as ``"Jelassi, Sander, Li (NeurIPS 2022)"``."""
        return f"{self.authors} ({self.venue})"


class Verdict(StrEnum):
    """What a measurement says about a claim."""

    HOLDS = "holds"
    FAILS = "fails"
    FINDING = "finding"


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
    draw: Callable[[matplotlib.figure.Figure], None]
    data: xarray.Dataset
    size: tuple[float, float] = (7.0, 4.2)


@dataclass(frozen=True)
class Outcome:
    """What running a claim found.

    Attributes
    ----------
    verdict
        Whether the measured numbers support the statement; ``FINDING`` where they say something
        that the paper does not.
    measured
        The numbers, by name.
    tolerance
        Threshold behind the verdict, ``None`` where the verdict is qualitative.
    parameters
        What the numbers were measured at: fields of the problem and numerical choices.
    summary
        One sentence with the number that decides.
    figures
        Figures that show it.
    """

    verdict: Verdict
    measured: dict[str, float | int | str | bool]
    tolerance: float | None
    parameters: dict[str, Any]
    summary: str
    figures: tuple[Figure, ...] = ()


def _no_progress(fraction: float) -> None:
    """Report to nobody."""


@dataclass
class Context:
    """How a claim is run: small and fast or in full, with which seed, reporting to whom.

    ``thorough`` adds what is too heavy for the full run (never together with ``quick``).
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


@dataclass(frozen=True)
class Claim:
    """A statement of the paper that this package can check.

    Attributes
    ----------
    id
        Name on the command line, such as ``"lemma-4.1"``.
    place
        Where the paper says it.
    statement
        What it says, in one or two sentences.
    measures
        What is measured here, in one sentence.
    criterion
        What decides the verdict and where it comes from: written from the statement, before the
        run.
    run
        Measures; raises only if it cannot.
    quick_note
        How ``--quick`` differs.
    thorough_note
        What ``--thorough`` adds; empty where it changes nothing.
    depends
        What the measurement trusts.
    paper
        Where the statement comes from; the registry fills it in.
    shares
        Claims with the same word here look at the same cached runs and are run by one process.
    """

    id: str
    place: str
    statement: str
    measures: str
    run: Callable[[Context], Outcome]
    quick_note: str = ""
    depends: str = ""
    paper: Paper | None = None
    shares: str = ""
    thorough_note: str = ""
    criterion: str = ""
