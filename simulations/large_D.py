"""Flows in the paper's own regime, q = poly(C)/D, for D up to a million: shared by two claims."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from dynamics import Population, Problem, State, ToleranceError, Trajectory, gradient_flow
from dynamics.events import Events, find_events
from dynamics.labelling import LabelError, label_error
from dynamics.population import largest_stable_learning_rate
from dynamics.trajectory import Status

C = 4
SIZES = (100, 1_000, 10_000, 100_000, 1_000_000)
QUICK_SIZES = (100, 1_000)
#: Expected number of features outside the signal set: q = C/D and q = C^2/D.
FEATURES, QUICK_FEATURES = (C, C**2), (C,)
TOLERANCE = 1e-8
#: A run ends once the population risk is below this (the theorem's o(1)), or at the horizon.
LOSS_GOAL = 1e-3


class Run(NamedTuple):
    """A flow, its events and what surrounds them."""

    path: Trajectory
    events: Events
    label: LabelError
    stable_rate: float  # largest stable learning rate where alpha settles

    @property
    def G(self) -> float:
        """Attention mass D (Lambda + (C-1) Gamma) at the end."""
        return float(self.path.attention[-1, 3])


def problem(D: int, features: int) -> Problem:
    """Return D patches with C = 4 and qD expected features, nu = 0.01, beta = 1, tau = 1."""
    return Problem(D=D, C=C, q=features / D)


def horizon(D: int) -> float:
    """Return a time that is long enough: the attention gradients fall with D^2 and more."""
    return 3e5 * (D / 100) ** 3


@cache
def follow(D: int, features: int) -> Run:
    """Return the flow of one problem under the Fourier expectation, with its events.

    Raises
    ------
    RuntimeError
        If the flow stops for another reason than its goal, its horizon or lost accuracy.
    """
    population = Population(problem(D, features), method="fourier", tolerance=TOLERANCE)

    seen = State(1.0, 1.0, 0.0)  # the last state at which the risk was looked at

    def learned(state: State) -> bool:
        nonlocal seen
        moved = abs(state.alpha - seen.alpha) > 0.01 * seen.alpha
        if state.gamma < 1.0 or not (moved or state.gamma > seen.gamma + 0.01):
            return False
        seen = state
        try:
            return population.evaluate(state).loss < LOSS_GOAL
        except ToleranceError:
            return True  # the last record will say that accuracy was lost

    path = gradient_flow(population, horizon=horizon(D), until=learned)
    if path.status not in (Status.COMPLETED, Status.INACCURATE, Status.STALLED):
        raise RuntimeError(f"the flow at D = {D}, qD = {features} stopped early: {path.message}")
    return Run(
        path,
        find_events(path, population),
        label_error(population.problem),
        largest_stable_learning_rate(population, population.problem.initial_state),
    )


def follow_all(
    expected: Sequence[int], sizes: Sequence[int], progress: Callable[[float], None]
) -> dict[tuple[int, int], Run]:
    """Return the flows for every qD and D, keyed by (qD, D)."""
    found = {}
    for features in expected:
        for D in sizes:
            found[features, D] = follow(D, features)
            progress(len(found) / (len(sizes) * len(expected)))
    return found


def sizes(quick: bool) -> tuple[int, ...]:
    """Return the values of D that are run."""
    return QUICK_SIZES if quick else SIZES


def features(quick: bool) -> tuple[int, ...]:
    """Return the values of qD that are run."""
    return QUICK_FEATURES if quick else FEATURES


def exponent(D: np.ndarray, values: np.ndarray) -> float:
    """Return the least-squares slope of log values against log D; nan with fewer than two."""
    usable = np.isfinite(values) & (values > 0.0)
    if usable.sum() < 2:
        return float("nan")
    return float(np.polyfit(np.log(D[usable]), np.log(values[usable]), 1)[0])
