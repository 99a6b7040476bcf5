"""Noise of stochastic gradient descent with one pass over the data, on order parameters."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from dynamics.core.checks import finite, integer, require
from dynamics.core.errors import ParameterError
from dynamics.core.risk import Risk
from dynamics.core.schedule import recorded_steps

#: Shares of the runs below the two ends of the band.
BAND = (0.1, 0.9)
_MOST_STEPS, _MOST_RUNS, _MOST_SAMPLES, _LARGEST_RATE = 10**9, 10**5, 10**9, 1e100


class Band(NamedTuple):
    """Order parameters over runs of stochastic gradient descent, an estimate.

    Attributes
    ----------
    time
        Learning rate x steps at each record, (records,).
    mean
        Mean over the runs, (records, n).
    low, high
        Shares of 10 % and 90 % of the runs lie below, (records, n).
    """

    time: np.ndarray
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray


def stochastic_descent(
    population: Risk,
    *,
    learning_rate: float,
    steps: int,
    runs: int = 100,
    batch: int = 1,
    seed: int = 0,
    initial: Any = None,
    record: str = "log",
    records: int = 50,
    progress: Callable[[float], None] | None = None,
) -> Band:
    """Return mean and band of the order parameters over runs of one-pass SGD.

    Each step uses the mean gradient of ``batch`` new samples, averaged over the entries of each
    order parameter: an entry of the full model also moves within its orbit, which is omitted.

    Parameters
    ----------
    population
        A risk with enumerated samples (`Risk.sample_weights`).
    learning_rate, steps
        Step size (> 0) and number of steps.
    runs
        Number of independent runs, at least 2.
    batch
        Number of samples of each step.
    seed
        Root seed.
    initial
        Initial state; ``None`` means ``population.problem.initial_state``.
    record, records
        Schedule of the recorded steps, as in `gradient_descent`.
    progress
        Called with the fraction done after each run.

    Raises
    ------
    ParameterError
        If an argument is outside its domain, if the samples are not enumerated, or if a run
        diverges.
    """
    learning_rate = finite("learning_rate", learning_rate)
    require(learning_rate > 0.0, "learning_rate", learning_rate, "greater than 0")
    steps = integer("steps", steps, 1, _MOST_STEPS)
    require(learning_rate <= _LARGEST_RATE, "learning_rate", learning_rate, "at most 1e100")
    runs = integer("runs", runs, 2, _MOST_RUNS)
    batch = integer("batch", batch, 1, _MOST_SAMPLES)
    require(record in ("log", "linear"), "record", record, "'log' or 'linear'")
    schedule = recorded_steps(steps, record, integer("records", records, 2, _MOST_STEPS))
    start = population.checked(population.problem.initial_state if initial is None else initial)
    states = np.empty((runs, schedule.size, len(start)))
    for run, own in enumerate(np.random.SeedSequence(seed).spawn(runs)):
        rows = _one_run(population, learning_rate, batch, start, schedule, own)
        for index, row in enumerate(rows):
            states[run, index] = row
        if progress is not None:
            progress((run + 1) / runs)
    low, high = np.quantile(states, BAND, axis=0)
    return Band(learning_rate * schedule, states.mean(axis=0), low, high)


def _one_run(
    population: Risk,
    learning_rate: float,
    batch: int,
    start: Any,
    schedule: np.ndarray,
    seed: np.random.SeedSequence,
) -> Iterator[np.ndarray]:
    """Yield the order parameters (n,) of one run at each scheduled step."""
    weights, rng = population.sample_weights, np.random.default_rng(seed)
    theta, done = np.array(start, float), 0
    for step in schedule.tolist():
        for _ in range(done, step):
            share = rng.multinomial(batch, weights) / batch
            with np.errstate(over="ignore", invalid="ignore"):  # tested below
                theta = theta - learning_rate * population.weighted_gradient(theta, share)
        if not np.isfinite(theta).all():
            raise ParameterError(
                f"learning_rate = {learning_rate:g} is not allowed: a run diverges before step "
                f"{step}; lower the learning rate or enlarge batch"
            )
        yield theta
        done = step
