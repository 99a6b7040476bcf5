"""Runs of one-pass SGD on vectors in a finite dimension, for theories in overlaps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from dynamics.core.checks import finite, integer, require
from dynamics.overlaps.sampling import sampled_descent
from simulations.stated.overlap_check import dense_model, orbits, vectors_of
from symbolic.overlaps import OverlapTheory
from symbolic.theory import TheoryError

#: Largest number of runs and of data of a step.
MOST_RUNS, MOST_BATCH = 10_000, 10**6


class StochasticRuns(NamedTuple):
    """Overlaps along runs of one-pass SGD.

    Attributes
    ----------
    time
        Learning rate x step at each record, (records,).
    order_parameters
        Names of the n overlaps.
    states
        Overlaps, means over the pairs of an orbit, (runs, records, n).
    """

    time: np.ndarray
    order_parameters: tuple[str, ...]
    states: np.ndarray

    @property
    def mean(self) -> np.ndarray:
        """Mean over the runs, (records, n)."""
        return np.asarray(self.states.mean(axis=0))

    @property
    def deviation(self) -> np.ndarray:
        """Standard deviation over the runs, (records, n)."""
        return np.asarray(self.states.std(axis=0, ddof=1))

    def distance(self, states: np.ndarray) -> np.ndarray:
        """Return the distance of states (records, n) from the mean, in standard deviations.

        It is 0 at the start, where all runs agree up to rounding.
        """
        difference = np.abs(states - self.mean)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = difference / self.deviation
        return np.where(difference <= 1e-12 * (1.0 + np.abs(states)), 0.0, ratio)


def stochastic_runs(
    theory: OverlapTheory,
    values: Mapping[str, float],
    start: Mapping[str, float],
    *,
    learning_rate: float,
    schedule: np.ndarray,
    batch: int = 1,
    runs: int = 6,
    seed: int = 0,
    progress: Callable[[float], None] | None = None,
) -> StochasticRuns:
    """Train vectors by SGD with new data at each step.

    Parameters
    ----------
    theory, values, start
        Theory, checked sizes and constants, and initial overlaps.
    learning_rate, batch
        Step size of the vectors, and number of data of each step.
    schedule
        Recorded steps, increasing from 0.
    runs, seed
        Number of runs (at least 2) and root seed.
    progress
        Called with the fraction done after each run.

    Raises
    ------
    ParameterError
        If an argument is outside its domain, or if a run diverges.
    TheoryError
        If there are several spaces, or vectors on a sphere.
    """
    rate = finite("learning_rate", learning_rate)
    require(rate > 0.0, "learning_rate", rate, "greater than 0")
    runs, batch = integer("runs", runs, 2, MOST_RUNS), integer("batch", batch, 1, MOST_BATCH)
    spaces = {x.space for x in (*theory.vectors, *theory.data)}
    if len(spaces) > 1 or any(x.sphere for x in theory.parameters):
        raise TheoryError(
            "runs of one-pass SGD are not allowed: they need vectors in one space, none of them on "
            "a sphere",
            theory.location,
        )
    numbers = dict(values)
    pairs = orbits(theory, numbers)
    overlaps = {pair: start[theory.names[pair]] for pair in pairs}
    states = sampled_descent(
        dense_model(theory, numbers),
        vectors_of(theory, numbers, overlaps),
        list(pairs.values()),
        learning_rate=rate,
        batch=batch,
        schedule=schedule,
        runs=runs,
        seed=integer("seed", seed, 0),
        progress=progress,
    )
    return StochasticRuns(rate * schedule, tuple(theory.names[pair] for pair in pairs), states)
