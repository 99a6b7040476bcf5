"""Event location on trajectories: level crossings, excursions and extrema by dense output."""

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
    """An event on a trajectory.

    Attributes
    ----------
    name, definition
        Short name, and the definition in a sentence.
    paper
        Where the paper defines it.
    time, state
        Time and state of the event; nan and None if it does not occur within the run.
    """

    name: str
    definition: str
    paper: str
    time: float = math.nan
    state: Any = None

    @property
    def happens(self) -> bool:
        """Whether the event occurs within the run."""
        return math.isfinite(self.time)

    def at(self, trajectory: Trajectory, time: float) -> Event:
        """Return the event at a time of a trajectory, with its state; unchanged if nan."""
        if math.isnan(time):
            return self
        return replace(self, time=float(time), state=trajectory.at(time))


def every_step(trajectory: Trajectory) -> Trajectory:
    """Return a gradient flow with all steps of the integrator as records, and losses of nan.

    Use it for quantities of the state alone: evaluating the loss at every step would cost more than
    the integration. A trajectory without an integrator's path is returned unchanged.
    """
    path = trajectory.interpolant
    if not isinstance(path, Path):
        return trajectory
    time = np.array(path.times)
    within = time <= trajectory.time[-1]
    nans = np.full(int(within.sum()), math.nan)
    return replace(
        trajectory,
        time=time[within],
        states=np.array(path.points)[within],
        loss=nans,
        bound=nans,
        observed={},
    )


def first_passage(
    trajectory: Trajectory, quantity: Callable[[Any], float], level: float = 0.0
) -> float:
    """Return the first time at which ``quantity(state)`` exceeds ``level``, nan if it never does.

    The records are searched in order, so that an excursion between two records is missed. The time
    is computed on the dense output to a relative accuracy of 1e-6.
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
    """Return a root between two times; ``high`` if rounding hides the change of sign.

    The maximal number of iterations exceeds SciPy's 100, because a root near 0 between 0 and 1e17
    needs more bisections.
    """
    cached = cache(function)
    if cached(low) * cached(high) > 0.0:
        return high
    return float(optimize.brentq(cached, low, high, rtol=rtol, xtol=1e-12, maxiter=1000))


class Excursion(NamedTuple):
    """Time interval on which a quantity exceeds a level, and its largest value there.

    ``start`` is the first time of the run, and ``end`` the last, if the excursion extends to it.
    """

    start: float
    end: float
    largest: float


def excursions(
    trajectory: Trajectory, quantity: Callable[[Any], float], level: float = 0.0
) -> list[Excursion]:
    """Return the excursions of ``quantity(state)`` above ``level``, in order of time.

    The quantity is evaluated at the records and at the extrema next to them on the dense output. A
    short excursion is therefore detected if the records show a local extremum. Its ends are roots
    on the dense output, with a relative accuracy of 1e-6.
    """
    times, values = with_extrema(trajectory, quantity)
    excess = values - level

    def crossing(low: float, high: float) -> float:
        return root(lambda t: quantity(trajectory.at(t)) - level, low, high)

    results = []
    above = np.concatenate([[False], excess > 0.0, [False]])
    for first, after in zip(
        np.flatnonzero(~above[:-1] & above[1:]).tolist(),
        np.flatnonzero(above[:-1] & ~above[1:]).tolist(),
    ):
        start = times[0] if first == 0 else crossing(times[first - 1], times[first])
        end = times[-1] if after == times.size else crossing(times[after - 1], times[after])
        results.append(Excursion(float(start), float(end), float(values[first:after].max())))
    return results


def with_extrema(
    trajectory: Trajectory, quantity: Callable[[Any], float]
) -> tuple[np.ndarray, np.ndarray]:
    """Return times and values of a quantity at the records and at its extrema between them.

    An extremum is located on the dense output, to a relative accuracy of 1e-6 in time, next to each
    record with a locally extremal value, the first and the last record included.
    """
    times = trajectory.time
    values = np.array([quantity(trajectory.state(row)) for row in trajectory.states])
    extra = []
    for index in range(times.size):
        low, high = max(index - 1, 0), min(index + 1, times.size - 1)
        for sign in (1.0, -1.0):
            here = sign * values[index]
            is_extremal = (index == 0 or sign * values[low] < here) and (
                index == high or sign * values[high] <= here
            )
            if not is_extremal:
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
