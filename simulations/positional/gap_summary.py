"""Summaries of gamma - rho along flows of reference and random problems.

Each summary contains the violations of gamma >= rho and the condition at the start that predicts
them: the largest alpha of Event I is at most the critical alpha.
"""

import math

import numpy as np

from dynamics import Population, Problem, SlowManifold, Trajectory
from dynamics.core.crossing import every_step, excursions
from simulations.positional import reference_runs as runs
from simulations.positional.symmetric_line import critical_alpha

#: Horizon of random problems; population tolerance of small ones and of those with q << 1.
SEARCH_HORIZON, SEARCH_TOLERANCE, SPARSE_TOLERANCE = 1e5, 1e-9, 1e-8
#: Relative tolerance of their flows.
SEARCH_RTOL = 1e-7
#: (D, C) of random problems: small ones, and those with C <= D/10 for C/D <= q <= 0.1.
_CROWDED = ((8, 2), (10, 2), (12, 2), (12, 3), (12, 4), (14, 2), (15, 3), (16, 4))
_SPARSE = ((40, 2), (60, 2), (60, 3), (80, 2), (60, 4), (80, 4))


def summarize_random(problem: Problem, sparse: bool) -> dict[str, float]:
    """Return the summary of the flow of a random problem; its losses are not computed."""
    tolerance = SPARSE_TOLERANCE if sparse else SEARCH_TOLERANCE
    path = runs.flow(problem, tolerance, SEARCH_HORIZON, records=2, rtol=SEARCH_RTOL)
    return summarize(every_step(path), runs.population(problem, tolerance))


def summarize(path: Trajectory, population: Population) -> dict[str, float]:
    """Return gamma - rho along a run, and the condition at its start.

    Violations are located on the dense output; ``violation`` is the largest one, 0 below the
    ``resolution``. ``ratio`` is the largest alpha during Event I, ``start_alpha`` or ``alpha_star``
    at gamma = rho = 0, divided by ``critical_alpha``, above which the flow leaves gamma = rho = 0
    downwards (NaN if there is none).
    """
    problem = path.problem
    start, critical = problem.initial_state.alpha, critical_alpha(problem)
    settled = SlowManifold(population).alpha(0.0, 0.0)
    violations = excursions(path, lambda state: state.rho - state.gamma, path.resolution)
    return {
        "start_alpha": start,
        "alpha_star": settled,
        "critical_alpha": critical if math.isfinite(critical) else math.nan,
        "ratio": max(start, settled) / critical,
        "violation": max((violation.largest for violation in violations), default=0.0),
        "resolution": path.resolution,
        "first_violation": violations[0].start if violations else math.nan,
        "last_violation": violations[-1].end if violations else math.nan,
        "final_gap": float(path.gamma[-1] - path.rho[-1]),
    }


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
