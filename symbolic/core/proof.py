"""Records of proofs by exact evaluation: which identities were compared and which failed."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Proof:
    """Outcome of a proof.

    Attributes
    ----------
    claim
        What is proved.
    parameters
        Sizes at which it was proved; empty if symbols stand for all sizes.
    points
        Number of random rational points; 0 if symbols stand for all values.
    identities
        Mapping from descriptions of identities to the number of exact comparisons.
    failures
        One sentence per failed comparison, at most three per identity.
    failed
        Number of failed comparisons.
    facts
        Other results, by description.
    decided
        The expressions that were found to vanish identically, with their descriptions.
    """

    claim: str
    parameters: dict[str, int]
    points: int
    identities: dict[str, int]
    failures: tuple[str, ...] = ()
    failed: int = 0
    facts: dict[str, Any] = field(default_factory=dict)
    decided: tuple[tuple[str, Any], ...] = ()

    @property
    def count(self) -> int:
        """Number of identities checked."""
        return sum(self.identities.values())

    @property
    def all_sizes(self) -> bool:
        """Whether symbols stand for all sizes and values, without random points."""
        return self.points == 0 and not self.parameters

    @property
    def all_zero(self) -> bool:
        """Whether there was at least one comparison, and all were equal."""
        return self.count > 0 and self.failed == 0

    def summary(self) -> str:
        """Return the outcome in one sentence."""
        sizes = ", ".join(f"{name} = {value}" for name, value in self.parameters.items())
        sizes += ": " if sizes else ""
        points = f" at {self.points} random rational point{'s' if self.points != 1 else ''}"
        points = points if self.points else " without random points"
        if self.all_zero:
            return f"{sizes}{self.count} exact identities{points}, all zero"
        return f"{sizes}{self.failed} of {self.count} identities{points} FAIL"


def _abbreviated(value: Any) -> str:
    """Return a value as text, with the middle of long fractions omitted."""
    text = str(value)
    return text if len(text) <= 60 else f"{text[:25]}...{text[-25:]}"


class ProofBuilder:
    """Collect exact comparisons and build a `Proof` from them.

    Parameters
    ----------
    claim
        What is proved.
    **parameters
        Sizes at which it is proved.

    Attributes
    ----------
    points
        Number of random points; set by the caller or by `zero`.
    facts
        Other results, by description; filled by the caller.
    """

    #: Failures per identity that are described.
    MOST_FAILURES = 3

    def __init__(self, claim: str, **parameters: int) -> None:
        self.claim, self.parameters = claim, parameters
        self.points = 0
        self.facts: dict[str, Any] = {}
        self._identities: Counter[str] = Counter()
        self._failed: Counter[str] = Counter()
        self._failures: list[str] = []
        self._decided: list[tuple[str, Any]] = []

    def equal(self, identity: str, left: Any, right: Any, where: object = "") -> None:
        """Record whether two exact values agree.

        Parameters
        ----------
        identity
            Description of the identity.
        left, right
            The two values.
        where
            Description of the point, for the failure message.
        """
        self._identities[identity] += 1
        if left != right:
            self._failed[identity] += 1
            if self._failed[identity] <= self.MOST_FAILURES:
                difference = f"{_abbreviated(left)} is not {_abbreviated(right)}"
                self._failures.append(f"{identity} {where}: {difference}")

    def zero(self, identity: str, decision: Any) -> None:
        """Record the outcome of `symbolic.core.zero.decide`."""
        self.points = max(self.points, decision.points)
        self.equal(identity, Ellipsis if decision.zero else decision.value, Ellipsis, "at a point")
        if decision.zero:
            self._decided.append((identity, decision.expression))

    def build(self) -> Proof:
        """Return the proof."""
        return Proof(
            self.claim,
            self.parameters,
            self.points,
            dict(self._identities),
            tuple(self._failures),
            self._failed.total(),
            self.facts,
            tuple(self._decided),
        )


def decide_all(claim: str, identities: dict[str, Any], **options: Any) -> Proof:
    """Decide whether all expressions of a table vanish.

    Parameters
    ----------
    claim
        What is proved.
    identities
        Mapping from descriptions to expressions that must vanish.
    **options
        Passed to `symbolic.core.zero.decide`.
    """
    from symbolic.core.zero import decide

    builder = ProofBuilder(claim)
    for identity, expression in identities.items():
        builder.zero(identity, decide(expression, **options))
    return builder.build()
