"""Summaries of gamma - rho along flows of reference and random problems.

Each summary contains the violations of gamma >= rho and the condition at the start that predicts
them: the largest alpha of Event I is at most the critical alpha.
"""

import math
from typing import NamedTuple

import numpy as np

from dynamics import Population, Problem, SlowManifold, Trajectory
from dynamics.core.crossing import every_step, excursions
from simulations.positional import reference_runs as runs
from simulations.positional.symmetric_line import critical_alpha

#: Horizon of random problems; population tolerance of small ones and of those with q << 1.
SEARCH_HORIZON, SEARCH_TOLERANCE, SPARSE_TOLERANCE = 1e5, 1e-9, 1e-8
#: (D, C) of random problems: small ones, and those with C <= D/10 for C/D <= q <= 0.1.
_CROWDED = ((8, 2), (10, 2), (12, 2), (12, 3), (12, 4), (14, 2), (15, 3), (16, 4))
_SPARSE = ((40, 2), (60, 2), (60, 3), (80, 2), (60, 4), (80, 4))


class GapSummary(NamedTuple):
    """gamma - rho along one flow, and the condition at its start.

    Attributes
    ----------
    start
        alpha(0).
    settled
        Quasi-steady alpha at gamma = rho = 0.
    critical
        alpha above which the flow leaves gamma = rho = 0 downwards.
    worst
        Largest rho - gamma; 0 if below the resolution.
    first, last
        Start of the first and end of the last violation; NaN if there is none.
    resolution
        Accuracy of the states of the run.
    final
        gamma - rho at the end.
    """

    start: float
    settled: float
    critical: float
    worst: float
    first: float
    last: float
    resolution: float
    final: float

    @property
    def ratio(self) -> float:
        """Largest alpha during Event I divided by the critical alpha."""
        return max(self.start, self.settled) / self.critical

    @property
    def predicted(self) -> bool:
        """Whether the condition predicts that gamma >= rho holds."""
        return self.ratio <= 1.0

    @property
    def observed(self) -> bool:
        """Whether gamma >= rho holds along the flow."""
        return self.worst == 0.0


def summarize_reference(problem: Problem, tolerance: float) -> GapSummary:
    """Return the summary of the flow of a reference problem."""
    return summarize(runs.flow(problem, tolerance), runs.population(problem, tolerance))


def summarize_random(problem: Problem, sparse: bool) -> GapSummary:
    """Return the summary of the flow of a random problem; its losses are not computed."""
    tolerance = SPARSE_TOLERANCE if sparse else SEARCH_TOLERANCE
    path = runs.flow(problem, tolerance, SEARCH_HORIZON, records=2)
    return summarize(every_step(path), runs.population(problem, tolerance))


def summarize(path: Trajectory, population: Population) -> GapSummary:
    """Return the summary of a run, with violations located on the dense output."""
    problem = path.problem
    violations = excursions(path, lambda state: state.rho - state.gamma, path.resolution)
    return GapSummary(
        start=problem.initial_state.alpha,
        settled=SlowManifold(population).alpha(0.0, 0.0),
        critical=critical_alpha(problem),
        worst=max((violation.largest for violation in violations), default=0.0),
        first=violations[0].start if violations else math.nan,
        last=violations[-1].end if violations else math.nan,
        resolution=path.resolution,
        final=float(path.gamma[-1] - path.rho[-1]),
    )


def random_problem(rng: np.random.Generator, sparse: bool) -> Problem:
    """Return a random problem, with q << 1 if ``sparse``."""
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
