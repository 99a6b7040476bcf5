"""Reference problems of the claims, with their populations and trajectories, cached per process."""

from functools import cache
from typing import NamedTuple

import numpy as np

from dynamics import (
    Population,
    Problem,
    Risk,
    SlowManifold,
    State,
    Trajectory,
    gradient_descent,
    gradient_flow,
)
from dynamics.core.trajectory import Status
from dynamics.positional.events import Events, find_events
from dynamics.positional.oracle import descent as full_model
from dynamics.positional.samples import random_feature, random_partition
from simulations.seeds import rng_at, seeds_of

#: Flow time (learning rate x steps) at which the flows end.
HORIZON = 1e8
#: Certified error of the loss and of each gradient entry along the flows: in the full run, in its
#: dense regimes, and with ``--quick``.
TOLERANCE, DENSE_TOLERANCE, QUICK_TOLERANCE = 1e-8, 1e-6, 1e-5

#: Learning rate of full-matrix descent, relative to the largest stable one of the early steps.
STABLE_FRACTION = 0.2

#: Random choices of feature and sets in full-matrix descent.
SEEDS = 5

#: Patch association is learned, and early: the problem of most figures.
BASE = Problem(D=64, C=4, q=2 / 64)
FEW_FEATURES = Problem(D=64, C=4, q=0.5 / 64)
WIDE = Problem(D=1024, C=4, q=2 / 1024)
QUINTIC = BASE.replace(p=5)
#: T1 is never reached; alpha rises a second time.
MANY_FEATURES = Problem(D=64, C=2, q=8 / 64, nu=1e-3, beta=0.5)
#: gamma < rho for a long time, then patch association.
CROWDED = Problem(D=16, C=2, q=8 / 16, nu=1e-3, beta=0.5)
#: gamma < rho at all late times.
TINY = Problem(D=8, C=2, q=4 / 8, nu=1e-3, beta=0.5)

REGIMES = (FEW_FEATURES, BASE, QUINTIC, WIDE, MANY_FEATURES, CROWDED)
#: qD of the order of C^2, as in the paper; only in full runs, as they take a minute on one core.
DENSE_REGIMES = (
    Problem(D=64, C=4, q=16 / 64),
    Problem(D=1024, C=4, q=16 / 1024),
    Problem(D=64, C=4, q=8 / 64, p=5),
)


def describe(problem: Problem) -> str:
    """Return a problem as text: D, C, qD, and the constants that differ from their defaults."""
    defaults = {"p": 3, "nu": 0.01, "beta": 1.0, "temperature": 1.0, "output_scale": None}
    names = {"temperature": "tau", "output_scale": "kappa"}
    constants = {"D": problem.D, "C": problem.C, "qD": problem.q * problem.D}
    for field, default in defaults.items():
        value = getattr(problem, field)
        if value != default:
            constants[names.get(field, field)] = value
    return ", ".join(f"{name}={value:g}" for name, value in constants.items())


def tolerance(quick: bool, problem: Problem | None = None) -> float:
    """Return the tolerance of the population expectation along the flow of a problem."""
    if quick:
        return QUICK_TOLERANCE
    return DENSE_TOLERANCE if problem in DENSE_REGIMES else TOLERANCE


@cache
def population(problem: Problem, tolerance: float) -> Population:
    """Return the population expectation of a problem."""
    return Population(problem, tolerance=tolerance)


@cache
def flow(
    problem: Problem,
    tolerance: float,
    horizon: float = HORIZON,
    initial: State | None = None,
    records: int | None = None,
    rtol: float | None = None,
) -> Trajectory:
    """Return the gradient flow of a problem.

    Parameters
    ----------
    problem
        Constants.
    tolerance
        Certified error of the population expectation.
    horizon
        Final flow time.
    initial
        Initial state; the default is Parametrization 3.1.
    records
        Number of records; the default resolves the extrema of the trajectory.
    rtol
        Relative tolerance of the integrator. The default is a tenth of ``tolerance``, at least
        1e-8: below that the integrator resolves the errors of the expectation, in ten times as
        many steps.

    Raises
    ------
    RuntimeError
        If the flow does not reach the horizon.
    """
    expectation = population(problem, tolerance)
    # violations are located between records; a full evaluation is cheap only by enumeration
    if records is None:
        records = 2000 if expectation.method == "enumeration" else 300
    rtol = max(1e-8, 0.1 * tolerance) if rtol is None else rtol
    run = gradient_flow(expectation, horizon=horizon, initial=initial, rtol=rtol, records=records)
    if run.status is not Status.COMPLETED:
        raise RuntimeError(f"the flow of {describe(problem)} stopped early: {run.message}")
    return run


@cache
def observed_flow(problem: Problem, tolerance: float) -> Trajectory:
    """Return the flow of a problem with test errors and mean weights."""
    return population(problem, tolerance).observe(flow(problem, tolerance))


@cache
def events(problem: Problem, tolerance: float, horizon: float = HORIZON) -> Events:
    """Return the events of Section 4.1 along the flow of a problem."""
    return find_events(flow(problem, tolerance, horizon), population(problem, tolerance))


@cache
def quasi_steady_alpha(problem: Problem, tolerance: float) -> float:
    """Return alpha* at gamma = rho = 0, the limit of alpha during Event I."""
    return SlowManifold(population(problem, tolerance)).alpha(0.0, 0.0)


def safe_learning_rate(problem: Problem) -> float:
    """Return `STABLE_FRACTION` of the largest stable learning rate at the start and after Event I.

    With a learning rate that becomes unstable later, descent jumps across the valley and amplifies
    rounding errors in every implementation.
    """
    expectation = population(problem, 1e-12)
    start = problem.initial_state
    settled = State(SlowManifold(expectation).alpha(0.0, 0.0), 0.0, 0.0)
    return STABLE_FRACTION * min(map(expectation.largest_stable_learning_rate, (start, settled)))


class FullStart(NamedTuple):
    """Parametrization 3.1 as full matrices: A, v, the feature w*, and the sets."""

    A: np.ndarray
    v: np.ndarray
    w_star: np.ndarray
    partition: np.ndarray


def full_start(problem: Problem, seed: int, *key: int) -> FullStart:
    """Return a start with random feature and sets; ``key`` selects the random stream."""
    rng = rng_at(seed, *key)
    w_star, partition = random_feature(problem, rng), random_partition(problem, rng)
    A, v = full_model.embed(problem, problem.initial_state, w_star, partition)
    return FullStart(A, v, w_star, partition)


@cache
def full_descent(
    problem: Problem, learning_rate: float, steps: int, seed: int
) -> full_model.FullTrajectory:
    """Return full-matrix descent from Parametrization 3.1 with random feature and sets."""
    start = full_start(problem, seed, problem.D, problem.C)
    return full_model.gradient_descent(
        problem, *start[:3], learning_rate=learning_rate, steps=steps, partition=start.partition
    )


def full_descents(problem: Problem, quick: bool, seed: int) -> list[full_model.FullTrajectory]:
    """Return full-matrix descents for `SEEDS` random features and sets; the first is longest."""
    rate, steps = safe_learning_rate(problem), 300 if quick else 1000
    first, *others = seeds_of(seed, SEEDS)
    return [
        full_descent(problem, rate, steps, first),
        *(full_descent(problem, rate, steps // 5, other) for other in others),
    ]


def reduced_descent(population: Risk, learning_rate: float, steps: int) -> Trajectory:
    """Return reduced gradient descent with every step as a record.

    Raises
    ------
    RuntimeError
        If it stops early.
    """
    run = gradient_descent(
        population, learning_rate=learning_rate, steps=steps, record="linear", records=steps + 1
    )
    if run.time.size != steps + 1:
        raise RuntimeError(f"reduced descent stopped early: {run.message}")
    return run


#: Problems small enough for the full model with all patterns of the data.
FULL_PROBLEMS = (
    Problem(D=8, C=2, q=0.3, temperature=1.3, output_scale=5.0),
    Problem(D=9, C=3, q=0.3),
)
