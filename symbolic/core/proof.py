"""Records of proofs by exact evaluation: which identities were compared and which failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from symbolic.core.identity import Identity


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
        Mapping from descriptions to the identities that were found to hold identically.
    """

    claim: str
    parameters: dict[str, int]
    points: int
    identities: dict[str, int]
    failures: tuple[str, ...] = ()
    failed: int = 0
    facts: dict[str, Any] = field(default_factory=dict)
    decided: dict[str, Identity] = field(default_factory=dict)

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
        Number of random points; set by the caller or by `decide`.
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
        self._decided: dict[str, Identity] = {}

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

    def decide(self, name: str, identity: Identity, **options: Any) -> None:
        """Decide whether an identity holds identically, and record the outcome.

        Parameters
        ----------
        name
            Description of the identity.
        identity
            The identity.
        **options
            Passed to `symbolic.core.zero.decide`.
        """
        from symbolic.core.zero import decide

        decision = decide(identity, **options)
        self.points = max(self.points, decision.points)
        self.equal(name, Ellipsis if decision.zero else decision.value, Ellipsis, "at a point")
        if decision.zero:
            self._decided[name] = identity

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
            dict(self._decided),
        )


def decide_all(claim: str, identities: Mapping[str, Identity], **options: Any) -> Proof:
    """Decide whether all identities of a table hold.

    Parameters
    ----------
    claim
        What is proved.
    identities
        Mapping from descriptions to identities.
    **options
        Passed to `symbolic.core.zero.decide`.
    """
    builder = ProofBuilder(claim)
    for name, identity in identities.items():
        builder.decide(name, identity, **options)
    return builder.build()
