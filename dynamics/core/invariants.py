"""Invariants of the learning dynamics, and their violations along a trajectory."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Violation:
    """Size and times of the violation of a statement, evaluated at the records of a trajectory.

    Attributes
    ----------
    worst, at
        Largest violation, and its time.
    first, last
        Times of the first and of the last record at which the statement is violated.
    begins
        Time of the first record at which it holds; ``None`` if there is none.
    for_good
        Earliest record time from which it holds until the end; ``None`` if it is violated at the
        end.
    """

    worst: float
    at: float
    first: float
    last: float
    begins: float | None
    for_good: float | None


@dataclass(frozen=True)
class Invariant:
    """A statement that should hold along a trajectory.

    Attributes
    ----------
    name, statement
        Short name, and the statement in a sentence.
    source
        Where the paper states it, or why it holds.
    violation
        Function of a trajectory that returns one number per record, at most 0 where the statement
        holds. Statements about t > 0 or about pairs of records may omit the first record.
    noise
        Function of a trajectory that returns the size of numerical noise in ``violation``.
    graded
        Whether the violation measures by how much the statement fails, not only whether.
    """

    name: str
    statement: str
    source: str
    violation: Callable[[Any], np.ndarray]
    noise: Callable[[Any], float] = lambda trajectory: 0.0
    graded: bool = True

    def worst(self, trajectory: Any) -> float:
        """Return the largest violation along a trajectory, 0.0 if the statement holds."""
        worst = float(np.max(self.violation(trajectory), initial=0.0))
        return 0.0 if worst <= self.noise(trajectory) else worst

    def violated(self, trajectory: Any) -> Violation | None:
        """Return size and times of the violation, ``None`` if the statement holds throughout."""
        violation = np.asarray(self.violation(trajectory))
        broken = violation > self.noise(trajectory)
        if not broken.any():
            return None
        time = trajectory.time[trajectory.time.size - broken.size :]
        holds, bad = np.flatnonzero(~broken), np.flatnonzero(broken)
        worst = int(np.argmax(np.where(broken, violation, -np.inf)))
        return Violation(
            worst=float(violation[worst]),
            at=float(time[worst]),
            first=float(time[bad[0]]),
            last=float(time[bad[-1]]),
            begins=float(time[holds[0]]) if holds.size else None,
            for_good=float(time[bad[-1] + 1]) if bad[-1] + 1 < time.size else None,
        )


def _loss_rise(run: Any) -> np.ndarray:
    """Return how far the loss rises between records, beyond its certified error."""
    return np.diff(run.loss) - run.bound[1:] - run.bound[:-1]


loss_non_increasing = Invariant(
    "loss non-increasing",
    "the population risk never rises along the flow",
    "a property of every gradient flow",
    _loss_rise,
)
