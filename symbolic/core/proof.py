"""The record of a proof by exact evaluation: what was compared, how often, and what failed."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Proof:
    """Outcome of running a proof.

    ``identities`` counts the exact comparisons by what they say, ``points`` the random rational
    points at which they were made (0: none was needed, as symbols stand for all values), ``facts``
    holds what else was measured, ``failures`` one
    sentence per failed comparison (the first few of each kind) and ``failed`` their number.
    """

    claim: str
    parameters: dict[str, int]
    points: int
    identities: dict[str, int]
    failures: tuple[str, ...] = ()
    failed: int = 0
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """Number of identities checked."""
        return sum(self.identities.values())

    @property
    def all_sizes(self) -> bool:
        """Whether symbols stand for every size and value: no random point was needed."""
        return self.points == 0 and not self.parameters

    @property
    def all_zero(self) -> bool:
        """Whether every difference was exactly zero (and there was at least one)."""
        return self.count > 0 and self.failed == 0

    def summary(self) -> str:
        """Return one sentence."""
        where = ", ".join(f"{name} = {value}" for name, value in self.parameters.items())
        where += ": " if where else ""
        points = f" at {self.points} random rational point{'s' if self.points != 1 else ''}"
        points = points if self.points else " without random points"
        if self.all_zero:
            return f"{where}{self.count} exact identities{points}, all zero"
        return f"{where}{self.failed} of {self.count} identities{points} FAIL"


def _short(value: Any) -> str:
    """Print a value, long fractions by their ends."""
    text = str(value)
    return text if len(text) <= 60 else f"{text[:25]}...{text[-25:]}"


class Ledger:
    """Collects exact comparisons; `close` turns them into a `Proof`."""

    KEPT = 3

    def __init__(self, claim: str, **parameters: int) -> None:
        self.claim, self.parameters = claim, parameters
        self.points = 0
        self.facts: dict[str, Any] = {}
        self._identities: Counter[str] = Counter()
        self._failed: Counter[str] = Counter()
        self._failures: list[str] = []

    def equal(self, what: str, left: Any, right: Any, where: object = "") -> None:
        """Record whether two exact values agree."""
        self._identities[what] += 1
        if left != right:
            self._failed[what] += 1
            if self._failed[what] <= self.KEPT:
                self._failures.append(f"{what} {where}: {_short(left)} is not {_short(right)}")

    def zero(self, what: str, decision: Any) -> None:
        """Record the outcome of `symbolic.core.zero.decide`."""
        self.points = max(self.points, decision.points)
        self.equal(what, Ellipsis if decision.zero else decision.value, Ellipsis, "at a point")

    def close(self) -> Proof:
        """Return the finished record."""
        return Proof(
            self.claim,
            self.parameters,
            self.points,
            dict(self._identities),
            tuple(self._failures),
            self._failed.total(),
            self.facts,
        )


def decide_all(claim: str, identities: dict[str, Any], **options: Any) -> Proof:
    """Decide a table of expressions that must vanish and return the record."""
    from symbolic.core.zero import decide

    ledger = Ledger(claim)
    for what, expression in identities.items():
        ledger.zero(what, decide(expression, **options))
    return ledger.close()
