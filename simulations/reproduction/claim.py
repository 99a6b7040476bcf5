"""What a claim of the paper is to this package: a statement, a measurement, a verdict."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simulations.reproduction.measured import Measured, Value

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
    """What a measurement says about a claim.

    ``HOLDS``: everything that the criterion requires was measured. ``FAILS``: a statement without
    exceptions (an identity, a lemma, "for all t >= 0") has a confirmed counterexample inside its
    hypotheses, which the summary shows, or a measured number contradicts the statement beyond its
    error. ``FINDING``: an asymptotic or qualitative statement does not show, or not fully, at the
    finite sizes that were tried. ``SKIPPED``: an optional extra is not installed.
    """

    HOLDS = "holds"
    FAILS = "fails"
    FINDING = "finding"
    SKIPPED = "skipped"


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


#: A finding has at most so many characters.
FINDING = 120


@dataclass(frozen=True)
class Outcome:
    """What running a claim found.

    Attributes
    ----------
    verdict
        By the rule of `Verdict` and the criterion of the claim.
    measured
        The numbers; none has name and place in common with another, and a name means one thing.
    tolerance
        Threshold behind the verdict, ``None`` where the verdict is qualitative.
    parameters
        What the numbers were measured at: fields of the problem and numerical choices.
    summary
        One sentence with the number that decides.
    figures
        Figures that show it, the one that shows most first.

    Raises
    ------
    ValueError
        If a number was measured twice, or a name has two labels or units.
    """

    verdict: Verdict
    measured: Sequence[Measured]
    tolerance: float | None
    parameters: dict[str, Any]
    summary: str
    figures: tuple[Figure, ...] = ()

    def __post_init__(self) -> None:
        meanings: dict[str, tuple[str, str]] = {}
        for number, one in enumerate(self.measured):
            if meanings.setdefault(one.name, (one.label, one.unit)) != (one.label, one.unit):
                raise ValueError(f"{one.name} has two meanings: {meanings[one.name]} and another")
            if any(other.name == one.name and other.at == one.at
                   for other in self.measured[:number]):  # fmt: skip
                raise ValueError(f"{one.name} was measured twice at {dict(one.at)}")

    def number(self, name: str, /, **at: Value) -> Any:
        """Return the one number of this name at a place, told by as much of it as is needed.

        Raises
        ------
        KeyError
            If there is none, or more than one and none is at exactly this place.
        """
        found = self.numbers(name, **at)
        exact = [one for one in found if one.at == at]
        if len(exact or found) != 1:
            raise KeyError(f"{name} at {at}: {len(found)} numbers")
        return (exact or found)[0].value

    def numbers(self, name: str, /, **at: Value) -> list[Measured]:
        """Return all numbers of this name whose place includes ``at``."""
        return [one for one in self.measured if one.name == name and at.items() <= one.at.items()]

    def values(self, name: str, /, **at: Value) -> list[Any]:
        """Return the values of these numbers, words among them left out.

        Raises
        ------
        KeyError
            If there is none.
        """
        found = [one.value for one in self.numbers(name, **at) if not isinstance(one.value, str)]
        if not found:
            raise KeyError(f"{name} at {at}: no number")
        return found


@dataclass(frozen=True)
class Headline:
    """Which of a claim's numbers is told first.

    Attributes
    ----------
    name
        Of the measured number.
    at
        As much of its place as is needed; empty where there is one, or one of the claim as a whole.
    pick
        ``max`` or ``min``: the greatest or least number of the name at these places.
    """

    name: str
    at: Mapping[str, Value] = field(default_factory=dict)
    pick: Callable[..., Any] | None = None

    def of(self, outcome: Outcome) -> Measured:
        """Return the number.

        Raises
        ------
        KeyError
            If there is none, or more than one to choose from.
        """
        found = outcome.numbers(self.name, **self.at)
        numbers = [one for one in found if isinstance(one.value, int | float)]
        if self.pick is None:
            exact = [one for one in numbers if one.at == self.at]
            numbers = exact or numbers
        if not numbers or (self.pick is None and len(numbers) > 1):
            raise KeyError(f"{self.name} at {dict(self.at)}: {len(numbers)} numbers")
        return self.pick(numbers, key=lambda one: one.value) if self.pick else numbers[0]


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


@dataclass(frozen=True, kw_only=True)
class Words:
    """What a claim says of itself: in its module all of it stands as literals.

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
    quick_note
        How ``--quick`` differs.
    thorough_note
        What ``--thorough`` adds; empty where it changes nothing.
    depends
        What the measurement trusts.
    amended
        What was changed in criterion, horizon or rates after a run had been seen, and why; empty
        where nothing was.
    paper
        Where the statement comes from; the registry fills it in.
    """

    id: str
    place: str
    statement: str
    measures: str
    criterion: str = ""
    quick_note: str = ""
    thorough_note: str = ""
    depends: str = ""
    amended: str = ""
    paper: Paper | None = None


@dataclass(frozen=True, kw_only=True)
class Claim(Words):
    """A statement of the paper that this package can check.

    Attributes
    ----------
    run
        Measures; raises only if it cannot.
    headline
        The number that is told first.
    finding
        What was found, in one sentence of at most `FINDING` characters: written from the measured
        numbers, so that it cannot disagree with them.
    shares
        Claims with the same word here look at the same cached runs and are run by one process.
    alone_if_quick
        Whether another process runs the quick version nevertheless: where computing its share of
        the runs again takes less than waiting for the others.
    """

    run: Callable[[Context], Outcome]
    headline: Headline | None = None
    finding: Callable[[Outcome], str] | None = None
    shares: str = ""
    alone_if_quick: bool = False
