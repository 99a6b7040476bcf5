"""Phases of masked pretraining (Section 5), located on a trajectory by definitions one can compute.

For a query p in a local area n of cluster k the paper distinguishes two ways to learn: with a
positive information gap the correlation with the global feature falls first (phase I) and then that
with p's own feature grows (phase II); otherwise the latter grows from the start. A query in the
global area has no rival there, and its own correlation leads if it moves faster than all others.
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

HALF = 0.5  # attention to p's own area at which it is called found


@dataclass(frozen=True)
class MaskedEvents:
    """The phases of one run in one cluster.

    Attributes
    ----------
    switch
        End of phase I: p's own correlation grows faster than its rival moves. Time 0 in one phase.
    found, learned
        First times at which the attention to p's own area reaches 1/2 and at which the mean of
        (1 - attention)^2, masks that hide the whole area aside, is at most ``eps``.
    initial_ratio
        |dPhi_rival/dt| / (dPhi_own/dt) at the start.
    rival_at_switch, own_at_switch, others_at_switch
        Phi of the rival and of p's own area at the switch, and the largest modulus of the other
        correlations of that cluster, position correlations projected on areas included; nan if
        there is no switch.
    final_stage
        ``(2 mask_ratio z^4 / K) S^2 / |dS/dt|`` at ``learned``, S the mean above: 1 if S decays to
        eps in K / (2 mask_ratio z^4 eps); nan if z is random, the run too short, or P so large
        (about 10^45) that times cannot be told apart there.
    """

    switch: Event
    found: Event
    learned: Event
    initial_ratio: float
    rival_at_switch: float
    own_at_switch: float
    others_at_switch: float
    final_stage: float

    @property
    def phases(self) -> int:
        """2 if the rival leads at the start and is overtaken, 1 if it does not lead, else 0."""
        if self.initial_ratio <= 1.0:
            return 1
        return 2 if self.switch.happens else 0


def find_events(
    trajectory: Any, population: MaskedPopulation, *, cluster: int = 0, eps: float = 1e-2
) -> MaskedEvents:
    """Locate the phases of a run in one cluster; dense output where the solver offers it.

    ``population`` is the risk that the run descended, or an equal one.

    Raises
    ------
    ParameterError
        If the trajectory is not one of masked image modelling, there is no such cluster, or ``eps``
        is not in (0, 1/2).
    """
    if not isinstance(trajectory, MaskedTrajectory):
        raise ParameterError("trajectory is not allowed: it must be a MaskedTrajectory")
    problem: MaskedProblem = trajectory.problem
    allowed = range(problem.K)
    require(cluster in allowed, "cluster", cluster, f"in 0..{problem.K - 1}")
    require(0.0 < finite("eps", eps) < 0.5, "eps", eps, "in (0, 1/2)")
    areas = problem.layout.clusters[cluster]

    def speeds(state: np.ndarray) -> tuple[float, float]:
        """Return the speed of p's own correlation and that of its rival."""
        velocity = -population.gradient(state)
        return float(velocity[areas.own_slot]), float(np.max(np.abs(velocity[rivals])))

    rivals = [areas.global_slot]
    if areas.own == areas.first:
        rivals = [int(slot) for slot in np.unique(areas.slot) if slot != areas.own_slot]
    own, rival = speeds(trajectory.states[0])

    def lead(state: np.ndarray) -> float:
        return float(np.subtract(*speeds(state)))

    def attention(state: np.ndarray) -> float:
        return float(population.own_attention(state)[0][cluster])

    def shortfall(state: np.ndarray) -> float:
        return float(population.own_attention(state)[1][cluster])

    switch = Event(
        "switch",
        "first time at which dPhi_own/dt > |dPhi_rival/dt|, the rival being the global area "
        "(the fastest of all other areas where p is in that one)",
        "Lemma 5.3, switching of dominant effects",
    )
    found = Event(
        "found",
        f"first time at which the attention to p's own area exceeds {HALF}",
        "Section 5.3, rapid growth stage",
    )
    learned = Event(
        "learned",
        f"first time at which the mean of (1 - attention)^2 is below {eps:g}, masks that hide the "
        "whole area aside",
        "Theorem 4.1; Lemma C.30",
    )
    switch = switch.at(trajectory, first_passage(trajectory, lead))
    found = found.at(trajectory, first_passage(trajectory, attention, HALF))
    learned = learned.at(trajectory, first_passage(trajectory, lambda x: -shortfall(x), -eps))
    return MaskedEvents(
        switch=switch,
        found=found,
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
    """Compare the decay of the shortfall at an event with dS/dt = -(2 mask_ratio z^4 / K) S^2."""
    problem: MaskedProblem = population.problem
    if not learned.happens or not problem.z_is_fixed:
        return math.nan
    state = np.asarray(learned.state)
    if not 0.5 < shortfall(state) / eps < 2.0:
        return math.nan  # learning takes less than a rounding of the time: P above about 10^45
    velocity = -population.gradient(state)
    ahead = 1e-4 / float(np.max(np.abs(velocity)))  # a change of 1e-4 in the fastest correlation
    change = shortfall(state + ahead * velocity) - shortfall(state - ahead * velocity)
    rate = 2.0 * problem.masked / problem.P * problem.z_low**4 / problem.K
    return rate * shortfall(state) ** 2 / abs(0.5 * change / ahead)


def projected_positions(problem: MaskedProblem, state: np.ndarray, cluster: int = 0) -> np.ndarray:
    """Return Upsilon averaged over the other patches of each area of a cluster, equation (5.1).

    One number per feature correlation of the cluster (equal areas together); nan for an area that
    holds no other patch.
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
    """Return the entry of largest modulus among some slots at an event, with its sign."""
    if not event.happens:
        return math.nan
    values = np.asarray(event.state)[slots]
    return float(values[np.argmax(np.abs(values))])


def _others(problem: MaskedProblem, event: Event, cluster: int) -> float:
    """Return the largest modulus of what should stay small at the switch."""
    if not event.happens:
        return math.nan
    state, areas = np.asarray(event.state), problem.layout.clusters[cluster]
    apart = [s for s in np.unique(areas.slot) if s not in (areas.own_slot, areas.global_slot)]
    projected = projected_positions(problem, state, cluster)
    return float(np.nanmax(np.abs(np.concatenate([state[apart], projected]))))
