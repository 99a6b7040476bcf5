"""gamma - rho along flows of named problems and of drawn ones, and the condition at their start."""

import math
from typing import NamedTuple

import numpy as np

from dynamics import Population, Problem, SlowManifold, Trajectory
from dynamics.core.crossing import every_step, stretches
from simulations.positional import reference_runs as runs
from simulations.positional.symmetric_line import critical_alpha

#: Horizon and population tolerance (small problems; those with q << 1) of the drawn problems.
SEARCH_HORIZON, SEARCH_TOLERANCE, SPARSE_TOLERANCE = 1e5, 1e-9, 1e-8
#: (D, C) of the problems drawn: small, and large enough for C/D <= q <= 0.1 with C <= D/10.
_CROWDED = ((8, 2), (10, 2), (12, 2), (12, 3), (12, 4), (14, 2), (15, 3), (16, 4))
_SPARSE = ((40, 2), (60, 2), (60, 3), (80, 2), (60, 4), (80, 4))


class GapSummary(NamedTuple):
    """gamma - rho along one flow, and the condition at its start."""

    start: float  # alpha(0)
    settled: float  # quasi-steady alpha at gamma = rho = 0
    critical: float  # alpha above which the flow leaves gamma = rho = 0 downwards
    worst: float  # largest rho - gamma, 0 if below the resolution
    first: float  # first and last time of a violation, nan if none
    last: float
    resolution: float
    final: float  # gamma - rho at the end

    @property
    def ratio(self) -> float:
        """Largest alpha that Event I passes over the critical one."""
        return max(self.start, self.settled) / self.critical

    @property
    def predicted(self) -> bool:
        """Whether the condition says that gamma >= rho holds."""
        return self.ratio <= 1.0

    @property
    def observed(self) -> bool:
        """Whether it does."""
        return self.worst == 0.0


def summarize_reference(problem: Problem, tolerance: float) -> GapSummary:
    """Return what gamma - rho does along the flow of a named problem, and the condition."""
    return summarize(runs.flow(problem, tolerance), runs.population(problem, tolerance))


def summarize_random(problem: Problem, sparse: bool) -> GapSummary:
    """Return the same for a drawn problem, whose losses nobody asks for."""
    tolerance = SPARSE_TOLERANCE if sparse else SEARCH_TOLERANCE
    path = runs.flow(problem, tolerance, SEARCH_HORIZON, records=2)
    return summarize(every_step(path), runs.population(problem, tolerance))


def summarize(path: Trajectory, population: Population) -> GapSummary:
    """Return what gamma - rho does along a run, its violations located on the dense output."""
    problem = path.problem
    below = stretches(path, lambda state: state.rho - state.gamma, path.resolution)
    return GapSummary(
        start=problem.initial_state.alpha,
        settled=SlowManifold(population).alpha(0.0, 0.0),
        critical=critical_alpha(problem),
        worst=max((one.largest for one in below), default=0.0),
        first=below[0].start if below else math.nan,
        last=below[-1].end if below else math.nan,
        resolution=path.resolution,
        final=float(path.gamma[-1] - path.rho[-1]),
    )


def random_problem(rng: np.random.Generator, sparse: bool) -> Problem:
    """Return a random problem with q << 1 (``sparse``) or beyond."""
    sizes = _SPARSE if sparse else _CROWDED
    D, C = sizes[rng.integers(len(sizes))]
    low, high = (C / D, 0.1) if sparse else (0.2, 0.95)
    return Problem(
        D=D,
        C=C,
        q=float(rng.uniform(low, high)),
        nu=float(10 ** rng.uniform(-4, -1)),
        beta=float(rng.uniform(0.2, 2.0)),
        p=int(rng.choice((3, 5))),
    )
