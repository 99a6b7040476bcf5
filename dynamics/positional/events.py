"""Events I, II and III of Section 4.1, located on a trajectory.

The paper describes them in words; each is given here one definition that can be computed, with the
paper's wording beside it.
"""

import math
from dataclasses import dataclass

import numpy as np

from dynamics.core.crossing import Event, first_passage, root, with_extrema
from dynamics.core.risk import Risk
from dynamics.core.trajectory import Trajectory
from dynamics.positional.problem import State
from dynamics.positional.slow_manifold import SlowManifold

__all__ = ["ARRIVAL", "LEAST_RISE", "Event", "Events", "attention_leads", "find_events"]

ARRIVAL = 0.01  # alpha has arrived once it is within this fraction of the quasi-steady value
LEAST_RISE = 1e-4  # a second rise of alpha by a smaller fraction counts as none
_FORGOTTEN = 12.0  # relaxation times after which alpha has forgotten that it was off by ARRIVAL
_LOOKS = 12  # at so many records before that the drift is looked at
_AROUND = (-4, -2, -1, 0, 1, 2, 4)  # records around a turning point at which it is looked at


@dataclass(frozen=True)
class Events:
    """The events of one trajectory.

    ``T0``, ``T1``, ``onset`` are the ends of Events I and II and the beginning of the second rise
    (Event III); ``end_of_rise`` is where that rise stops again. ``rise`` is the factor by which
    alpha grows between the two (1 if it never does), ``alpha_star`` the quasi-steady value at the
    start.
    """

    T0: Event
    T1: Event
    onset: Event
    end_of_rise: Event
    alpha_star: float
    rise: float
    rises_at_once: bool  # d alpha* / dt > 0 at T0

    @property
    def alpha_after_event_I(self) -> str:
        """What alpha does after T0, in words."""
        if not self.T0.happens:
            return "does not settle"
        if not self.onset.happens:
            return "falls"
        start = "rises" if self.rises_at_once else "falls, then rises"
        return start + (", then falls" if self.end_of_rise.happens else "")


def find_events(trajectory: Trajectory, population: Risk) -> Events:
    """Locate the events on a trajectory (dense output where the solver offers it)."""
    manifold = SlowManifold(population)
    T0, alpha_star = _arrival(trajectory, manifold)
    times, drift = _drift_after(trajectory, manifold, T0.time)
    onset, end, rise = _second_rise(trajectory, manifold, times, drift)
    at_once = drift.size > 0 and bool(drift[0] > 0.0)
    return Events(T0, attention_leads(trajectory), onset, end, alpha_star, rise, at_once)


def _arrival(trajectory: Trajectory, manifold: SlowManifold) -> tuple[Event, float]:
    """Find when alpha reaches the quasi-steady value, from the side on which it starts.

    There alpha / (1 - ARRIVAL), or alpha / (1 + ARRIVAL) from above, passes alpha*, which the sign
    of the slope tells at the cost of one gradient a record.
    """
    event = Event(
        "T0",
        f"first time at which |alpha - alpha*(gamma, rho)| <= {ARRIVAL:g} alpha*(gamma, rho)",
        "Event I: alpha increases until a time T0 > 0 where it reaches some threshold",
    )

    def slope(state: State, share: float) -> float:
        """Return d ell / d alpha with alpha divided by ``share``: positive above alpha*."""
        return float(manifold.population.gradient(state._replace(alpha=state.alpha / share)).alpha)

    try:
        start = trajectory.at(float(trajectory.time[0]))
        alpha_star = manifold.alpha(start.gamma, start.rho)
        share, sign = (1.0 - ARRIVAL, 1.0) if slope(start, 1.0) < 0.0 else (1.0 + ARRIVAL, -1.0)
        arrival = first_passage(trajectory, lambda state: sign * slope(state, share))
        return event.at(trajectory, arrival), alpha_star
    except ArithmeticError:
        return event, math.nan


def attention_leads(trajectory: Trajectory, horizon: float = math.inf) -> Event:
    """Find T1, when gamma exceeds the largest |rho| of the run up to a horizon.

    |rho| may go on growing, so T1 depends on the horizon: the longer the run, the later. The
    paper takes the maximum over all T iterations, eta T >= poly(d). nan where gamma does not get
    there within the horizon.
    """
    event = Event(
        "T1",
        "first time at which gamma(t) > max over the whole run of |rho|",
        "Event II: gamma increases until a time T1 such that gamma(T1) > max_t |rho(t)|",
    )
    times, sizes = with_extrema(trajectory, lambda state: abs(state.rho))
    level = float(sizes[times <= horizon].max())
    if horizon < times[-1]:
        level = max(level, abs(trajectory.at(horizon).rho))
    passage = first_passage(trajectory, lambda state: state.gamma, level)
    return event.at(trajectory, passage) if passage <= horizon else event


def _drift_after(
    trajectory: Trajectory, manifold: SlowManifold, start: float
) -> tuple[np.ndarray, np.ndarray]:
    """Drift of alpha* at T0 and at those records after it between which its sign may change.

    The solver's own d alpha / dt is useless here: on the slow manifold it is a difference of large
    terms below the solver's tolerance, while the drift of alpha* is not. Once alpha has forgotten
    its start it follows alpha*, so the records at which it turns tell where to look.
    """
    if not math.isfinite(start):
        return np.zeros(0), np.zeros(0)
    first = manifold.drift(trajectory.at(start))
    forgotten = start + _FORGOTTEN / first.curvature if first.curvature > 0.0 else math.inf
    early = np.flatnonzero((trajectory.time > start) & (trajectory.time <= forgotten))
    later = np.flatnonzero(trajectory.time > max(start, forgotten))
    chosen = [early[:: max(1, early.size // _LOOKS)], early[-1:]]
    if later.size:
        turns = later[0] + _turning_points(trajectory.alpha[later], 0.25 * LEAST_RISE)
        around = np.add.outer(turns, _AROUND).ravel()
        chosen += [later[[0, -1]], around[(around > later[0]) & (around < later[-1])]]
    records = np.unique(np.concatenate(chosen).astype(int))
    times = np.concatenate([[start], trajectory.time[records]])
    drift = [manifold.drift(trajectory.at(float(time))).alpha for time in times[1:]]
    return times, np.array([first.alpha, *drift])


def _turning_points(values: np.ndarray, least: float) -> np.ndarray:
    """Return where positive values turn after and before a relative change of at least ``least``.

    The last extremum stands until the values have moved away from it by so much: smaller wiggles
    are the noise of the solver.
    """
    turns: list[int] = []
    low = high = 0  # where the values were lowest and highest since the last turn
    direction = 0
    for index, value in enumerate(values):
        low = index if value < values[low] else low
        high = index if value > values[high] else high
        if direction >= 0 and value < (1.0 - least) * values[high]:
            turns += [high] * (direction > 0)
            direction, low = -1, index
        elif direction <= 0 and value > (1.0 + least) * values[low]:
            turns += [low] * (direction < 0)
            direction, high = 1, index
    return np.array(turns, int)


def _second_rise(
    trajectory: Trajectory, manifold: SlowManifold, times: np.ndarray, drift: np.ndarray
) -> tuple[Event, Event, float]:
    """Find the first stretch of positive drift along which alpha grows perceptibly."""
    onset = Event(
        "onset of Event III",
        "first time after T0 at which d alpha*/dt along the run is positive, alpha* the "
        f"quasi-steady value that alpha follows (a rise by less than {LEAST_RISE:g} is ignored)",
        "Event III: we again have alpha(t+1) > alpha(t) as in Phase I",
    )
    end = Event(
        "end of the rise",
        "first time after the onset at which d alpha*/dt is negative again",
        "Event III: alpha increases again until the population risk becomes o(1)",
    )
    rising = np.concatenate([[False], drift > 0.0, [False]])
    starts = np.flatnonzero(~rising[:-1] & rising[1:])
    stops = np.flatnonzero(rising[:-1] & ~rising[1:])  # first record after the stretch
    for start, stop in zip(starts.tolist(), stops.tolist()):
        first = float(times[start])
        if start > 0:
            first = _drift_root(trajectory, manifold, float(times[start - 1]), first)
        last = float(times[-1])
        if stop < times.size:
            last = _drift_root(trajectory, manifold, float(times[stop - 1]), float(times[stop]))
        rise = trajectory.at(last).alpha / trajectory.at(first).alpha
        if rise > 1.0 + LEAST_RISE:
            ended = end.at(trajectory, last) if stop < times.size else end
            return onset.at(trajectory, first), ended, float(rise)
    return onset, end, 1.0


def _drift_root(trajectory: Trajectory, manifold: SlowManifold, low: float, high: float) -> float:
    return root(lambda t: manifold.drift(trajectory.at(t)).alpha, low, high)
