"""What a claim of the paper is to this package: a statement, a measurement, a verdict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import matplotlib.figure
    import xarray


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
    """How a claim is run: small and fast or in full, with which seed, reporting to whom."""

    quick: bool
    seed: int = 0
    progress: Callable[[float], None] = field(default=_no_progress)


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
    run
        Measures; raises only if it cannot.
    quick_note
        How ``--quick`` differs.
    depends
        What the measurement trusts.
    """

    id: str
    place: str
    statement: str
    measures: str
    run: Callable[[Context], Outcome]
    quick_note: str = ""
    depends: str = ""
