"""Moments on a trajectory: where a quantity of the state passes a level, by its dense output."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from scipy import optimize

from dynamics.trajectory import Trajectory


@dataclass(frozen=True)
class Event:
    """A moment on a trajectory; ``time`` is nan if it does not happen within the run."""

    name: str
    definition: str
    paper: str
    time: float = math.nan
    state: Any = None

    @property
    def happens(self) -> bool:
        """Whether the event was found."""
        return math.isfinite(self.time)

    def at(self, trajectory: Trajectory, time: float) -> Event:
        """Return this event placed on a trajectory; unchanged if ``time`` is nan."""
        if math.isnan(time):
            return self
        return replace(self, time=float(time), state=trajectory.at(time))


def first_passage(
    trajectory: Trajectory, quantity: Callable[[Any], float], level: float = 0.0
) -> float:
    """Return the first time at which ``quantity(state)`` exceeds ``level``, nan if it never does.

    Records are looked at in turn, so a passage and return between two of them is missed; the time
    is then found on the dense output to a relative accuracy of 1e-6.
    """

    def excess(state: Any) -> float:
        return quantity(state) - level

    before = 0.0
    for time, row in zip(trajectory.time.tolist(), trajectory.states):
        if excess(trajectory.population.state(row)) > 0.0:
            if time == trajectory.time[0]:
                return time
            return root(lambda t: excess(trajectory.at(t)), before, time)
        before = time
    return math.nan


def root(function: Callable[[float], float], low: float, high: float) -> float:
    """Root between two times, relative accuracy 1e-6; ``high`` if rounding hides the change."""
    known = cache(function)  # an expectation that is made more accurate may change at a place
    if known(low) * known(high) > 0.0:
        return high
    return float(optimize.brentq(known, low, high, rtol=1e-6, xtol=1e-12))
