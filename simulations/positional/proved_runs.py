"""Enclosed trajectories of the claims about proofs, and numerical runs compared with their tubes.

Results are cached per process.
"""

import math
from collections.abc import Iterable
from dataclasses import asdict
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy.integrate import solve_ivp

from dynamics import Population, Problem, gradient_flow
from dynamics.positional.oracle import descent as full_model
from simulations.figures import report_figure
from simulations.figures.shared import draw_tube
from simulations.positional import reference_runs as runs
from simulations.reproduction.claim import Figure
from simulations.reproduction.predicates import Column
from simulations.validated import Checked, Proof, certificate, check, prove

#: qD = C^2, as in the scaling of the paper.
SQUARE = Problem(D=16, C=2, q=4 / 16)
SQUARE_OF_FOUR = Problem(D=24, C=4, q=16 / 24)
#: As the problem of most figures, `runs.BASE`, but with fewer patches.
FEW_PATCHES = runs.BASE.replace(D=24, q=2 / 24)
#: The counterexample to gamma >= rho to which the search of ``patchdyn falsify`` shrinks.
SIMPLEST = Problem(D=6, C=2, q=1.0, nu=1.0)
#: Small enough for the full matrices with all patterns of the data.
SMALL = runs.FULL_PROBLEMS[0]


class Enclosure(NamedTuple):
    """Horizons of an enclosure in the full and in the quick report, and its tolerance."""

    horizon: float
    quick: float
    tolerance: float


ENCLOSURES = {
    SQUARE: Enclosure(1e5, 9e3, 1e-3),
    FEW_PATCHES: Enclosure(1e5, 1e3, 1e-2),
    runs.BASE: Enclosure(1e5, 1e3, 1e-2),
    SQUARE_OF_FOUR: Enclosure(1e3, 1e3, 1e-3),
    runs.CROWDED: Enclosure(3.25e4, 2.0, 1e-4),
    SIMPLEST: Enclosure(100.0, 10.0, 1e-3),
    SMALL: Enclosure(10.0, 10.0, 1e-3),
}
#: Steps of descent on the small problem, at the learning rate of the claims on full matrices.
STEPS = 300
#: Tolerance of the solvers compared with a tube, relative to its tolerance; times of comparison
#: in units of its horizon. At earlier times the tube is thinner than the solvers are accurate.
FINER, SHARES = 1e-6, np.geomspace(1e-2, 1.0, 9)

#: Columns of the comparison of a run with a tube, and their predicate.
COMPARED = {
    "radius": Column("largest radius of the tube where a training is compared"),
    "share": Column("its largest distance from the middle, in radii", rtol=math.inf),
}
STAYS = {"the training stays in the tube": lambda t: t.share <= 1.0}


def finite(time: float) -> float:
    """Return a time, or NaN if it is infinite."""
    return time if math.isfinite(time) else math.nan


def settings(problems: Iterable[Problem]) -> dict[str, Any]:
    """Return the settings of the flows of problems of `ENCLOSURES`."""
    return {
        "problems": [asdict(problem) for problem in problems],
        "enclosures": [ENCLOSURES[problem]._asdict() for problem in problems],
    }


@cache
def flow(problem: Problem, quick: bool) -> Proof:
    """Return the proof about the flow of a problem of `ENCLOSURES`."""
    return prove(problem, horizon=horizon(problem, quick), tolerance=ENCLOSURES[problem].tolerance)


def horizon(problem: Problem, quick: bool) -> float:
    """Return the requested horizon of a problem of `ENCLOSURES`."""
    return ENCLOSURES[problem].quick if quick else ENCLOSURES[problem].horizon


def checked(proof: Proof) -> Checked:
    """Return the result of the independent checker for the tube of a proof.

    The horizon is replaced by the end of the tube, so that an incomplete proof can be checked too.
    """
    return check(certificate(proof) | {"horizon": proof.tube.end})


@cache
def checked_flow(problem: Problem, quick: bool) -> Checked:
    """Return the result of the independent checker for the flow of a problem of `ENCLOSURES`."""
    return checked(flow(problem, quick))


@cache
def descent(problem: Problem, rate: float) -> Proof:
    """Return the proof about `STEPS` steps of gradient descent."""
    return prove(problem, learning_rate=rate, steps=STEPS, tolerance=1e-3)


def tube_figure(name: str, title: str, proof: Proof, gap: str) -> Figure:
    """Return the figure of a tube; ``gap`` explains the bounds of gamma - rho in panel (b)."""
    return report_figure(
        name,
        title,
        f"Flow at {runs.describe(proof.problem)}. (a) Proved bounds of the distance of alpha, "
        "gamma and rho from the polynomials in the middle of the tube. (b) Proved bounds of gamma "
        f"- rho{gap}.",
        draw_tube,
        proof.to_dataset(),
        (7.0, 4.6),
    )


class TubeComparison(NamedTuple):
    """Comparison of a numerical run with a tube.

    Attributes
    ----------
    share
        Distances of alpha, gamma, rho from the middle of the tube in units of its radius,
        (times, 3).
    radius
        Largest radius at these times.
    """

    share: np.ndarray
    radius: float

    @property
    def row(self) -> dict[str, float]:
        """Values of the columns `COMPARED`; the share is NaN if no times were compared."""
        share = float(self.share.max()) if self.share.size else math.nan
        return {"radius": self.radius, "share": share}


def compare_with_tube(proof: Proof, times: np.ndarray, states: np.ndarray) -> TubeComparison:
    """Compare states (times, 3) with a tube."""
    ends = np.array([proof.at(time) for time in times.tolist()])
    middle, radius = ends.mean(axis=2), 0.5 * (ends[..., 1] - ends[..., 0])
    return TubeComparison(np.abs(states - middle) / radius, float(radius.max()))


@cache
def reduced_flow(problem: Problem, quick: bool) -> TubeComparison:
    """Integrate the reduced flow and compare it with a tube."""
    proof = flow(problem, quick)
    accuracy = FINER * ENCLOSURES[problem].tolerance
    population = Population(problem, method="enumeration", tolerance=accuracy)
    path = gradient_flow(population, horizon=proof.time, rtol=accuracy, records=2)
    times = SHARES * proof.time
    return compare_with_tube(proof, times, np.array([path.at(time) for time in times.tolist()]))


def reduced_descent(proof: Proof, rate: float) -> TubeComparison:
    """Run reduced gradient descent and compare it with a tube."""
    population = Population(proof.problem, tolerance=1e-12)
    path = runs.reduced_descent(population, rate, STEPS)
    return compare_with_tube(proof, path.time[1:], path.states[1:])


def full_descent(proof: Proof, rate: float, seed: int) -> TubeComparison:
    """Run gradient descent of the full matrices and compare it with a tube."""
    path = runs.full_descent(proof.problem, rate, STEPS, seed)
    return compare_with_tube(proof, path.time[1:], path.states()[1:])


def full_flow(proof: Proof, seed: int) -> TubeComparison:
    """Integrate the flow of the full matrices and compare it with a tube.

    Every entry of A is integrated separately, except the diagonal (Simplification 3.1).
    """
    problem = proof.problem
    A, v, w_star, partition = runs.full_start(problem, seed, problem.D, problem.C)
    population = full_model.FullPopulation(problem, w_star, partition)

    def velocity(_: float, flat: np.ndarray) -> np.ndarray:
        value = population.evaluate(flat[: A.size].reshape(A.shape), flat[A.size :])
        return -np.concatenate([value.dA.ravel(), value.dv])

    times = SHARES * proof.time
    solution = solve_ivp(
        velocity,
        (0.0, proof.time),
        np.concatenate([A.ravel(), v]),
        method="DOP853",
        t_eval=times,
        rtol=1e-9,
        atol=1e-11,
    )
    states = [
        full_model.project(problem, y[: A.size].reshape(A.shape), y[A.size :], w_star, partition)
        for y in solution.y.T
    ]
    return compare_with_tube(proof, times, np.array(states))
