"""Equation (T) as printed, temperature sqrt(d): the conclusions of Theorem 4.1, and their times."""

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd

from dynamics import Problem, Trajectory
from dynamics.core.flow import gradient_flow
from simulations.positional import runs
from simulations.positional import theorem_4_1 as theorem

#: Flow times d^k at which conclusions are evaluated; they decide from `SUFFICIENT` on. The logits
#: A / tau follow d(A/tau)/dt = -(1/tau^2) dL/d(A/tau), so time is d times longer than at tau = 1.
HORIZONS, SUFFICIENT = (3, 4, 5), 4


def problems(quick: bool) -> list[Problem]:
    """Return the problems of `theorem.paper_problems` with temperature sqrt(d)."""
    return [
        problem.replace(temperature=math.sqrt(problem.dimension))
        for problem in theorem.paper_problems(quick)
    ]


def flow(problem: Problem) -> Trajectory:
    """Return the gradient flow from Parametrization 3.1 to the last of `HORIZONS`."""
    horizon = theorem.horizon(problem, HORIZONS[-1])
    population = runs.population(problem, theorem.TOLERANCE)
    return gradient_flow(population, horizon=horizon, rtol=1e-8, records=300)


def time_of_risk(path: Trajectory, risk: float) -> float:
    """Return the time at which the risk falls below a level; nan if it does not."""
    below = np.flatnonzero(path.loss <= risk)
    if not below.size or below[0] == 0:
        return math.nan
    pair = slice(below[0] - 1, below[0] + 1)
    log_time, log_loss = np.log(path.time[pair]), np.log(path.loss[pair])
    return float(np.exp(np.interp(math.log(risk), log_loss[::-1], log_time[::-1])))


def rows(problem: Problem) -> Iterator[dict[str, object]]:
    """Yield the conclusions at each of `HORIZONS` on the flow of one problem."""
    path, population = flow(problem), runs.population(problem, theorem.TOLERANCE)
    broken = theorem.hypotheses(problem).broken
    slower = time_of_risk(path, theorem.small(problem)) / time_of_risk(
        theorem.flow(problem.replace(temperature=1.0), theorem.TOLERANCE), theorem.small(problem)
    )
    for power in HORIZONS:
        end = theorem.horizon(problem, power)
        reached = bool(path.time[-1] >= end * (1.0 - 1e-9))
        values = theorem.conclusions(path, population, end)
        yield {
            "D": problem.D,
            "qD": problem.q * problem.D,
            "power": power,
            "within": not broken,
            "associates": values.associates if reached else math.nan,
            "disagreement": values.disagreement if reached else math.nan,
            "risk": values.risk if reached else math.nan,
            "small": values.small,
            "slower": slower / problem.dimension,
        }
