"""Invariants of the learning dynamics as named objects that a trajectory can be asked about."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Invariant:
    """A statement that should hold along a run.

    ``violation`` maps a trajectory to one number per record, at most 0 where the statement holds;
    ``noise`` maps it to the size below which a positive number is numerical noise.
    """

    name: str
    statement: str
    place: str
    violation: Callable[[Any], np.ndarray]
    noise: Callable[[Any], float] = lambda trajectory: 0.0

    def worst(self, trajectory: Any) -> float:
        """Return the largest violation along the run, 0.0 where the statement holds throughout."""
        worst = float(np.max(self.violation(trajectory), initial=0.0))
        return 0.0 if worst <= self.noise(trajectory) else worst


def _loss_rise(run: Any) -> np.ndarray:
    return np.diff(run.loss) - run.bound[1:] - run.bound[:-1]


loss_non_increasing = Invariant(
    "loss non-increasing",
    "the population risk never rises along the flow",
    "Section 3, (P)",
    _loss_rise,
)
