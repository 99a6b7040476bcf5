"""Moments on a trajectory: where a quantity of the state passes a level, by its dense output."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize

from dynamics.core.integrate import Path
from dynamics.core.trajectory import Trajectory


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


def every_step(trajectory: Trajectory) -> Trajectory:
    """Return a flow with each step of its integrator as a record, without losses (nan).

    For quantities of the state alone, where a loss at every step would cost more than the flow.
    A run without steps of an integrator between its records is returned as it is.
    """
    path = trajectory.interpolant
    if not isinstance(path, Path):
        return trajectory
    time = np.array(path.times)
    kept = time <= trajectory.time[-1]
    unknown = np.full(int(kept.sum()), math.nan)
    return replace(
        trajectory,
        time=time[kept],
        states=np.array(path.points)[kept],
        loss=unknown,
        bound=unknown,
        observed={},
    )


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
        if excess(trajectory.state(row)) > 0.0:
            if time == trajectory.time[0]:
                return time
            return root(lambda t: excess(trajectory.at(t)), before, time)
        before = time
    return math.nan


def root(function: Callable[[float], float], low: float, high: float, rtol: float = 1e-6) -> float:
    """Root between two times to a relative accuracy; ``high`` if rounding hides the change.

    From 0 to 1e17 a jump near 0 takes more halvings than SciPy's 100.
    """
    known = cache(function)  # at both ends already
    if known(low) * known(high) > 0.0:
        return high
    return float(optimize.brentq(known, low, high, rtol=rtol, xtol=1e-12, maxiter=1000))


class Stretch(NamedTuple):
    """Times between which a quantity exceeds a level, and its largest value there.

    ``start`` is the first time of the run, or ``end`` its last, where the stretch is cut off there.
    """

    start: float
    end: float
    largest: float


def stretches(
    trajectory: Trajectory, quantity: Callable[[Any], float], level: float = 0.0
) -> list[Stretch]:
    """Return every stretch of time along which ``quantity(state)`` exceeds ``level``, in order.

    Looked at are the records and, on the dense output, the extremum beside each record that is
    above or below both of its neighbours, so that a short passage is seen if the records show its
    turn. The ends are roots on the dense output, relative accuracy 1e-6.
    """
    times, values = turning_values(trajectory, quantity)
    excess = values - level

    def crossing(low: float, high: float) -> float:
        return root(lambda t: quantity(trajectory.at(t)) - level, low, high)

    found = []
    above = np.concatenate([[False], excess > 0.0, [False]])
    for first, after in zip(
        np.flatnonzero(~above[:-1] & above[1:]).tolist(),
        np.flatnonzero(above[:-1] & ~above[1:]).tolist(),
    ):
        start = times[0] if first == 0 else crossing(times[first - 1], times[first])
        end = times[-1] if after == times.size else crossing(times[after - 1], times[after])
        found.append(Stretch(float(start), float(end), float(values[first:after].max())))
    return found


def turning_values(
    trajectory: Trajectory, quantity: Callable[[Any], float]
) -> tuple[np.ndarray, np.ndarray]:
    """Return times and values of a quantity at the records and at its extrema between them.

    An extremum is sought, to a relative accuracy of 1e-6 in time, around every record at which the
    recorded values turn, the first and the last included.
    """
    times = trajectory.time
    values = np.array([quantity(trajectory.state(row)) for row in trajectory.states])
    extra = []
    for index in range(times.size):
        low, high = max(index - 1, 0), min(index + 1, times.size - 1)
        for sign in (1.0, -1.0):
            here = sign * values[index]
            turns = (index == 0 or sign * values[low] < here) and (
                index == high or sign * values[high] <= here
            )
            if not turns:
                continue
            peak = optimize.minimize_scalar(
                lambda t, sign=sign: -sign * quantity(trajectory.at(t)),
                bounds=(times[low], times[high]),
                method="bounded",
                options={"xatol": 1e-6 * float(times[high] - times[low])},
            )
            if -peak.fun > here:
                extra.append((float(peak.x), float(-sign * peak.fun)))
    if extra:
        times = np.concatenate([times, [time for time, _ in extra]])
        values = np.concatenate([values, [value for _, value in extra]])
        order = np.argsort(times, kind="stable")
        times, values = times[order], values[order]
    return times, values
