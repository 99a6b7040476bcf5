"""Invariants of the learning dynamics as named objects that a trajectory can be asked about."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Violation:
    """When a statement is violated along a run, as its records tell: between them nothing is known.

    Attributes
    ----------
    worst, at
        The largest violation, and the time of its record.
    first, last
        Times of the first and of the last record at which the statement is violated.
    begins
        Time of the first record at which it holds; ``None`` if there is none.
    for_good
        Time of the record from which on it holds to the end; ``None`` if it is violated there.
    """

    worst: float
    at: float
    first: float
    last: float
    begins: float | None
    for_good: float | None


@dataclass(frozen=True)
class Invariant:
    """A statement that should hold along a run.

    ``violation`` maps a trajectory to one number per record, at most 0 where the statement holds;
    a statement about t > 0, or about two records, may leave out the first. ``noise`` maps it to the
    size below which a positive number is numerical noise. ``graded`` is false where the number only
    tells that the statement fails, not by how much.
    """

    name: str
    statement: str
    place: str
    violation: Callable[[Any], np.ndarray]
    noise: Callable[[Any], float] = lambda trajectory: 0.0
    graded: bool = True

    def worst(self, trajectory: Any) -> float:
        """Return the largest violation along the run, 0.0 where the statement holds throughout."""
        worst = float(np.max(self.violation(trajectory), initial=0.0))
        return 0.0 if worst <= self.noise(trajectory) else worst

    def violated(self, trajectory: Any) -> Violation | None:
        """Return when the statement is violated along the run, ``None`` if it holds throughout."""
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
    return np.diff(run.loss) - run.bound[1:] - run.bound[:-1]


loss_non_increasing = Invariant(
    "loss non-increasing",
    "the population risk never rises along the flow",
    "Section 3, (P)",
    _loss_rise,
)
