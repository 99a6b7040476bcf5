"""Phases of masked pretraining (Huang et al. 2024, Section 5), located on a trajectory.

Let p be a query in a local area n of cluster k. If the information gap is positive, the correlation
with the global feature falls first (phase I), and the correlation with p's own feature grows later
(phase II). Otherwise the latter grows from the start. The *rival* of the own correlation is the
correlation with the global area. For p in the global area it is the fastest other correlation.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynamics.core.checks import finite, require
from dynamics.core.crossing import Event, first_passage
from dynamics.core.errors import ParameterError
from dynamics.masked.population import MaskedPopulation
from dynamics.masked.problem import MaskedProblem
from dynamics.masked.trajectory import MaskedTrajectory

HALF = 0.5  # attention to p's own area at the event "attended"


SWITCH = Event(
    "switch",
    "first time at which dPhi_own/dt > |dPhi_rival/dt|; the rival is the global area (the fastest "
    "other area if p is in the global one)",
    "Lemma 5.3, switching of dominant effects",
)
ATTENDED = Event(
    "attended",
    f"first time at which the attention to p's own area exceeds {HALF}",
    "Section 5.3, rapid growth stage",
)


@dataclass(frozen=True)
class MaskedEvents:
    """Phases of a run in one cluster.

    Attributes
    ----------
    switch
        End of phase I: p's own correlation grows faster than its rival moves. With a single phase
        the time is 0.
    attended
        First time at which the attention to p's own area is 1/2.
    learned
        First time at which the shortfall is at most ``eps``. The shortfall is the mean of
        (1 - attention)^2 without masks that hide the whole area.
    initial_ratio
        ``|dPhi_rival/dt| / (dPhi_own/dt)`` at the start.
    rival_at_switch, own_at_switch
        Phi of the rival and of p's own area at the switch; nan if there is no switch.
    others_at_switch
        Largest modulus of the other correlations of the cluster at the switch, including position
        correlations projected on areas; nan if there is no switch.
    final_stage
        ``(2 mask_ratio z^4 / K) S^2 / |dS/dt|`` at ``learned`` for the shortfall S. It is 1 if S
        decays to eps in a time K / (2 mask_ratio z^4 eps). It is nan if z is random, if the run is
        too short, or if P is so large (about 10^45) that rounding hides this time.
    """

    switch: Event
    attended: Event
    learned: Event
    initial_ratio: float
    rival_at_switch: float
    own_at_switch: float
    others_at_switch: float
    final_stage: float

    @property
    def phases(self) -> int:
        """Number of phases: 2 if the rival leads and is overtaken, 1 if it never leads, else 0."""
        if self.initial_ratio <= 1.0:
            return 1
        return 2 if self.switch.happens else 0


def find_events(
    trajectory: Any, population: MaskedPopulation, *, cluster: int = 0, eps: float = 1e-2
) -> MaskedEvents:
    """Locate the phases of a run in one cluster, with dense output if the solver provides it.

    Parameters
    ----------
    trajectory
        A `MaskedTrajectory`.
    population
        The risk of the run, or an equal one.
    cluster
        Index of the cluster.
    eps
        Shortfall at which p has learned.

    Raises
    ------
    ParameterError
        If the trajectory is one of another theory, there is no such cluster, or ``eps`` is not in
        (0, 1/2).
    """
    if not isinstance(trajectory, MaskedTrajectory):
        raise ParameterError("trajectory is not allowed: it must be a MaskedTrajectory")
    problem: MaskedProblem = trajectory.problem
    require(cluster in range(problem.K), "cluster", cluster, f"in 0..{problem.K - 1}")
    require(0.0 < finite("eps", eps) < 0.5, "eps", eps, "in (0, 1/2)")
    areas = problem.layout.clusters[cluster]
    rivals = [areas.global_slot]
    if areas.own == areas.first:
        rivals = [int(slot) for slot in np.unique(areas.slot) if slot != areas.own_slot]

    def speeds(state: np.ndarray) -> tuple[float, float]:
        """Return the speeds of p's own correlation and of its rival."""
        velocity = -population.gradient(state)
        return float(velocity[areas.own_slot]), float(np.max(np.abs(velocity[rivals])))

    def lead(state: np.ndarray) -> float:
        return float(np.subtract(*speeds(state)))

    def attention(state: np.ndarray) -> float:
        return float(population.own_attention(state)[0][cluster])

    def shortfall(state: np.ndarray) -> float:
        return float(population.own_attention(state)[1][cluster])

    switch = SWITCH.at(trajectory, first_passage(trajectory, lead))
    attended = ATTENDED.at(trajectory, first_passage(trajectory, attention, HALF))
    learned = Event(
        "learned",
        f"first time at which the mean of (1 - attention)^2 is below {eps:g}, without masks that "
        "hide the whole area",
        "Theorem 4.1; Lemma C.30",
    ).at(trajectory, first_passage(trajectory, lambda state: -shortfall(state), -eps))
    own, rival = speeds(trajectory.states[0])
    return MaskedEvents(
        switch=switch,
        attended=attended,
        learned=learned,
        initial_ratio=rival / own if own > 0.0 else math.inf,
        rival_at_switch=_largest(switch, rivals),
        own_at_switch=_largest(switch, [areas.own_slot]),
        others_at_switch=_others(problem, switch, cluster),
        final_stage=_final_stage(population, learned, shortfall, eps),
    )


def _final_stage(
    population: MaskedPopulation,
    learned: Event,
    shortfall: Callable[[np.ndarray], float],
    eps: float,
) -> float:
    """Return (2 mask_ratio z^4 / K) S^2 / |dS/dt| of the shortfall S at an event, or nan."""
    problem: MaskedProblem = population.problem
    if not learned.happens or not problem.z_is_fixed:
        return math.nan
    state = np.asarray(learned.state)
    if not 0.5 < shortfall(state) / eps < 2.0:
        return math.nan  # learning is faster than the rounding of the time: P above about 10^45
    velocity = -population.gradient(state)
    ahead = 1e-4 / float(np.max(np.abs(velocity)))  # a change of 1e-4 in the fastest correlation
    change = shortfall(state + ahead * velocity) - shortfall(state - ahead * velocity)
    rate = 2.0 * problem.masked / problem.P * problem.z_low**4 / problem.K
    return rate * shortfall(state) ** 2 / abs(0.5 * change / ahead)


def projected_positions(problem: MaskedProblem, state: np.ndarray, cluster: int = 0) -> np.ndarray:
    """Return the mean of Upsilon over the patches of each area of a cluster, equation (5.1).

    Parameters
    ----------
    problem
        Constants.
    state
        Correlations, (slots,).
    cluster
        Index of the cluster.

    Returns
    -------
    numpy.ndarray
        A mean for each feature correlation of the cluster; equal areas share it. p itself is
        excluded, and an area without other patches has nan.
    """
    layout = problem.layout
    total, patches = np.zeros(layout.phi_slots), np.zeros(layout.phi_slots)
    slot = layout.clusters[cluster].slot[layout.area[cluster, :-1]]
    np.add.at(total, slot, layout.size[:-1] * np.asarray(state)[layout.cell_slot[:-1]])
    np.add.at(patches, slot, layout.size[:-1])
    chosen = np.unique(layout.clusters[cluster].slot)
    with np.errstate(invalid="ignore"):
        return np.asarray(total[chosen] / patches[chosen])


def _largest(event: Event, slots: list[int]) -> float:
    """Return the entry of largest modulus among given slots at an event, with its sign."""
    if not event.happens:
        return math.nan
    values = np.asarray(event.state)[slots]
    return float(values[np.argmax(np.abs(values))])


def _others(problem: MaskedProblem, event: Event, cluster: int) -> float:
    """Return the largest modulus of the correlations that stay small until the switch."""
    if not event.happens:
        return math.nan
    state, areas = np.asarray(event.state), problem.layout.clusters[cluster]
    apart = [s for s in np.unique(areas.slot) if s not in (areas.own_slot, areas.global_slot)]
    projected = projected_positions(problem, state, cluster)
    return float(np.nanmax(np.abs(np.concatenate([state[apart], projected]))))
