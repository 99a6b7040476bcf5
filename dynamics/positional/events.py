"""Events I, II and III of Section 4.1, located on a trajectory.

The paper describes the events informally. Each :class:`~dynamics.core.crossing.Event` contains a
computable definition together with the paper's wording.
"""

import math
from dataclasses import dataclass

import numpy as np

from dynamics.core.crossing import Event, first_passage, root, with_extrema
from dynamics.core.risk import Risk
from dynamics.core.trajectory import Trajectory
from dynamics.positional.problem import State
from dynamics.positional.slow_manifold import SlowManifold

__all__ = ["ARRIVAL", "LEAST_RISE", "Event", "Events", "arrival", "attention_leads", "find_events"]

#: Event I ends once alpha is within this fraction of its quasi-steady value.
ARRIVAL = 0.01
#: Smaller relative rises of alpha are ignored.
LEAST_RISE = 1e-4
_RELAXED = 12.0  # relaxation times after which a deviation of ARRIVAL has decayed
_EARLY_RECORDS = 12  # records before that time at which the drift is evaluated
_AROUND = (-4, -2, -1, 0, 1, 2, 4)  # offsets of the records evaluated at a turning point


@dataclass(frozen=True)
class Events:
    """Events of one trajectory (Section 4.1).

    Attributes
    ----------
    T0, T1
        Ends of Event I and of Event II.
    onset, end_of_rise
        Beginning and end of the second rise of alpha (Event III).
    alpha_star
        Quasi-steady value of alpha at the initial gamma and rho; nan if there is none.
    rise
        Factor by which alpha grows from ``onset`` to ``end_of_rise``; 1 without a second rise.
    rises_at_once
        Whether d alpha* / dt > 0 at ``T0``.
    """

    T0: Event
    T1: Event
    onset: Event
    end_of_rise: Event
    alpha_star: float
    rise: float
    rises_at_once: bool

    @property
    def alpha_after_event_I(self) -> str:
        """Behaviour of alpha after T0, as a phrase such as "falls, then rises"."""
        if not self.T0.happens:
            return "does not settle"
        if not self.onset.happens:
            return "falls"
        start = "rises" if self.rises_at_once else "falls, then rises"
        return start + (", then falls" if self.end_of_rise.happens else "")


def find_events(trajectory: Trajectory, population: Risk) -> Events:
    """Return the events of a trajectory.

    Parameters
    ----------
    trajectory
        Gradient flow or gradient descent; its dense output is used if it has one.
    population
        Population risk of the trajectory, for the quasi-steady value of alpha.

    Returns
    -------
    Events
        Each event with its time, or with time nan if it does not happen.
    """
    manifold = SlowManifold(population)
    T0, alpha_star = arrival(trajectory, manifold)
    times, drift = _drift_after(trajectory, manifold, T0.time)
    onset, end, rise = _second_rise(trajectory, manifold, times, drift)
    at_once = drift.size > 0 and bool(drift[0] > 0.0)
    return Events(T0, attention_leads(trajectory), onset, end, alpha_star, rise, at_once)


def arrival(trajectory: Trajectory, manifold: SlowManifold) -> tuple[Event, float]:
    """Return the event T0 and the quasi-steady alpha at the start; nan if there is none.

    At T0, alpha / (1 - ARRIVAL) crosses alpha* from below, or alpha / (1 + ARRIVAL) from above.
    The sign of d ell / d alpha shows the crossing with one gradient per record.
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
        time = first_passage(trajectory, lambda state: sign * slope(state, share))
        return event.at(trajectory, time), alpha_star
    except ArithmeticError:
        return event, math.nan


def attention_leads(trajectory: Trajectory, horizon: float = math.inf) -> Event:
    """Return the event T1: gamma exceeds the largest |rho| up to a horizon.

    |rho| may keep growing, so that T1 can increase with the horizon. The paper takes the maximum
    over all T iterations, eta T >= poly(d).

    Parameters
    ----------
    trajectory
        Trajectory with the order parameters gamma and rho.
    horizon
        Last time that is considered; the default is the end of the trajectory.

    Returns
    -------
    Event
        T1, with time nan if gamma does not exceed the level within the horizon.
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
    """Return times from T0 on and the drift of alpha* there, dense where its sign may change.

    The solver's own d alpha / dt is not accurate enough: on the slow manifold it is a difference of
    large terms and lies below the solver's tolerance. The drift of alpha* does not. After alpha has
    relaxed it follows alpha*, so that the drift is evaluated around the turning points of alpha.
    """
    if not math.isfinite(start):
        return np.zeros(0), np.zeros(0)
    first = manifold.drift(trajectory.at(start))
    relaxed = start + _RELAXED / first.curvature if first.curvature > 0.0 else math.inf
    early = np.flatnonzero((trajectory.time > start) & (trajectory.time <= relaxed))
    later = np.flatnonzero(trajectory.time > max(start, relaxed))
    chosen = [early[:: max(1, early.size // _EARLY_RECORDS)], early[-1:]]
    if later.size:
        turns = later[0] + _turning_points(trajectory.alpha[later], 0.25 * LEAST_RISE)
        around = np.add.outer(turns, _AROUND).ravel()
        chosen += [later[[0, -1]], around[(around > later[0]) & (around < later[-1])]]
    records = np.unique(np.concatenate(chosen).astype(int))
    times = np.concatenate([[start], trajectory.time[records]])
    drift = [manifold.drift(trajectory.at(float(time))).alpha for time in times[1:]]
    return times, np.array([first.alpha, *drift])


def _turning_points(values: np.ndarray, least: float) -> np.ndarray:
    """Return the indices of extrema with relative changes of at least ``least`` on both sides.

    The values are positive. Smaller changes are attributed to the solver's error.
    """
    turns: list[int] = []
    low = high = 0  # indices of the smallest and the largest value since the last turn
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
    """Return onset, end and factor of the first rise of alpha by more than LEAST_RISE."""
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
    ends = np.flatnonzero(rising[:-1] & ~rising[1:])  # first record after the interval
    for start, end_index in zip(starts.tolist(), ends.tolist()):
        first = float(times[start])
        if start > 0:
            first = _drift_root(trajectory, manifold, float(times[start - 1]), first)
        last = float(times[-1])
        if end_index < times.size:
            last = _drift_root(
                trajectory, manifold, float(times[end_index - 1]), float(times[end_index])
            )
        rise = trajectory.at(last).alpha / trajectory.at(first).alpha
        if rise > 1.0 + LEAST_RISE:
            ended = end.at(trajectory, last) if end_index < times.size else end
            return onset.at(trajectory, first), ended, float(rise)
    return onset, end, 1.0


def _drift_root(trajectory: Trajectory, manifold: SlowManifold, low: float, high: float) -> float:
    """Return the time in [low, high] at which the drift of alpha* is 0."""
    return root(lambda t: manifold.drift(trajectory.at(t)).alpha, low, high)
