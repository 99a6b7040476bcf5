"""Claims with hand-written judges: an `Outcome` holds verdict, numbers and sentences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from simulations.reproduction.claim import ClaimText, Context, Figure, Paper
from simulations.reproduction.measured import Measured, Value
from simulations.reproduction.predicates import Verdict

__all__ = ["Claim", "Context", "Figure", "Headline", "Outcome", "Paper", "Verdict"]


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


@dataclass(frozen=True, kw_only=True)
class Claim(ClaimText):
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
    group
        Claims with the same word here look at the same cached runs and are run by one process.
    alone_if_quick
        Whether another process runs the quick version nevertheless: where computing its share of
        the runs again takes less than waiting for the others.
    """

    run: Callable[[Context], Any]
    headline: Headline | None = None
    finding: Callable[[Outcome], str] | None = None
    group: str = ""
    alone_if_quick: bool = False
