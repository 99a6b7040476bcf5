"""Report of a search for counterexamples."""

from collections.abc import Mapping
from dataclasses import dataclass

from simulations.falsify.trial import Result, Trial
from simulations.system import System
from simulations.theories import command


@dataclass(frozen=True)
class Report:
    """Result of a search.

    Attributes
    ----------
    conjecture, where, system
        The conjecture, the filter and the theory.
    counterexample
        The simplest confirmed violation, or ``None``.
    largest
        The largest confirmed violation among the problems tried, or ``None``. After the simplest is
        known, the search goes on for some problems to increase it.
    results
        Number of distinct problems by the result of their run.
    ranges
        Smallest and largest value of each constant among these problems.
    unconfirmed
        Number of violations that were not confirmed by a more precise run within the budget.
    shrinks
        Number of runs spent on shrinking.
    seconds, seed
        Duration and seed of the search.
    interrupted
        Whether the search was interrupted by Ctrl-C.
    """

    conjecture: str
    where: str | None
    system: System
    counterexample: Trial | None
    largest: Trial | None
    results: Mapping[str, int]
    ranges: Mapping[str, tuple[float, float]]
    unconfirmed: int
    shrinks: int
    seconds: float
    seed: int
    interrupted: bool = False

    @property
    def falsified(self) -> bool:
        """Whether there is a counterexample."""
        return self.counterexample is not None

    @property
    def tried(self) -> int:
        """Number of distinct problems that were run."""
        return sum(self.results.values())

    @property
    def undecided(self) -> int:
        """Number of problems whose run did not complete or has undefined numbers."""
        undecided = (Result.INCOMPLETE, Result.UNDEFINED)
        return sum(self.results.get(result, 0) for result in undecided)

    @property
    def searched(self) -> bool:
        """Whether there is a counterexample, or at least two problems were decided."""
        return self.falsified or self.tried - self.undecided > 1

    @property
    def outcome(self) -> str:
        """``"falsified"``, ``"not falsified"`` or ``"not searched"``."""
        if self.falsified:
            return "falsified"
        return "not falsified" if self.searched else "not searched"

    @property
    def command(self) -> str | None:
        """Shell command that reruns the counterexample, or ``None``."""
        return self.rerun(self.counterexample) if self.counterexample else None

    def rerun(self, trial: Trial) -> str:
        """Return the shell command that reruns a trial."""
        return command(trial.case, self.system)
