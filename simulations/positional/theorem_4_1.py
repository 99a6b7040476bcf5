"""Hypotheses and conclusions of Theorem 4.1 at finite size, and the flows that test them.

The theorem is about the limit d -> infinity. Each of its asymptotic terms is replaced here by one
inequality that a finite problem satisfies or violates; d = D by Simplification 3.1.
"""

from functools import cache
from typing import NamedTuple

import numpy as np

from dynamics import Population, Problem, State, Trajectory, gradient_flow
from dynamics.core.crossing import Excursion, excursions
from dynamics.positional.labelling import label_error
from dynamics.positional.trajectory import patch_association_fails
from simulations.positional import reference_runs as runs

#: Definition 2.1: d^(-omega(1)) is below every power of d; this power is required here.
LABEL_POWER = 2
#: Assumption 2: q << 1 and C << D, read as one order of magnitude.
MUCH_LESS = 0.1
#: Parametrization 3.1: nu = 1/poly(d); the smallest power that is accepted.
NU_POWER = 0.5
#: o(1) is read as 1/d: in the paper "with high probability" is 1 - 1/poly(d).
SMALL_POWER = 1
#: Powers k of the flow times eta T = d^k at which the conclusions are tested; the theorem requires
#: T >= poly(d)/eta.
HORIZONS = (2, 3, 4)
#: Smallest power at which they must hold.
SUFFICIENT = 3

#: Sizes and densities qD of the problems in the parametrization of the paper, C = 4. (At D = 4096,
#: qD = C the risk falls before d^4 below 1e-10, the resolution of the expectation.)
C, SIZES, QUICK_SIZES, THOROUGH_SIZES = 4, (256, 1024, 2048), (256, 1024), (256, 512, 1024, 2048)
FEATURES, QUICK_FEATURES = (C, 2 * C, C**2), (C, C**2)
TOLERANCE = 1e-8


class Hypotheses(NamedTuple):
    """Constants of one problem that the hypotheses restrict; ``label_error`` is P[y f* <= 0]."""

    d: int
    C: int
    D: int
    q: float
    nu: float
    beta: float
    label_error: float

    @property
    def broken(self) -> tuple[str, ...]:
        """Hypotheses that the problem violates, as text, in the order of the paper."""
        features = self.q * self.D
        tests = (
            (
                self.label_error <= self.d**-LABEL_POWER,
                f"P[y f* <= 0] = {self.label_error:.2g} > 1/d^{LABEL_POWER}",
            ),
            (self.C <= MUCH_LESS * self.D, f"C = {self.C} > D/{1 / MUCH_LESS:g}"),
            (self.q <= MUCH_LESS, f"q = {self.q:.2g} > {MUCH_LESS:g}"),
            (features >= self.C * (1 - 1e-12), f"qD = {features:g} < C"),
            (self.nu <= self.d**-NU_POWER, f"nu = {self.nu:g} > 1/sqrt(d)"),
            (self.beta > 0.0, f"sigma_A = {self.beta:g} <= 0"),
        )
        return tuple(text for satisfied, text in tests if not satisfied)


def hypotheses(problem: Problem) -> Hypotheses:
    """Return the constants that the hypotheses of Theorem 4.1 restrict.

    The hypotheses are Definition 2.1, Assumption 2, Parametrization 3.1 and qD >= C ("more spurious
    features than informative ones", after Assumption 2).
    """
    return Hypotheses(
        problem.dimension,
        problem.C,
        problem.D,
        problem.q,
        problem.nu,
        problem.beta,
        label_error(problem).error,
    )


def paper_problems(quick: bool = False, thorough: bool = False) -> tuple[Problem, ...]:
    """Return problems with nu = 1/d, sigma_A = log log d and q = C/D, 2C/D or C^2/D."""
    sizes = QUICK_SIZES if quick else THOROUGH_SIZES if thorough else SIZES
    return tuple(
        Problem.parametrization_3_1(D, C, q=features / D)
        for features in (QUICK_FEATURES if quick else FEATURES)
        for D in sizes
    )


class Conclusions(NamedTuple):
    """Conclusions of the theorem at one time.

    Attributes
    ----------
    associates
        Item 1: whether Top_C of every row is its set, by exact comparison.
    disagreement
        Item 2: bound of P[f* F <= 0], test error plus P[y f* <= 0].
    test_error, risk
        Test error and population risk.
    small
        Threshold for o(1).
    """

    associates: bool
    disagreement: float
    test_error: float
    risk: float
    small: float

    @property
    def failing(self) -> str:
        """The first conclusion that fails; empty if all hold."""
        if not self.associates:
            return "patch association"
        if not self.disagreement <= self.small:
            return "P[f* F <= 0]"
        return "" if self.risk <= self.small else "risk"


def small(problem: Problem) -> float:
    """Return the threshold for o(1) at the size of a problem."""
    return float(problem.dimension) ** -SMALL_POWER


def conclusions(path: Trajectory, population: Population, time: float) -> Conclusions:
    """Return the conclusions at a time of a run, or at its end if that is earlier."""
    problem: Problem = path.problem
    state: State = path.at(min(time, float(path.time[-1])))
    value, label = population.evaluate(state), label_error(problem)
    return Conclusions(
        associates=not patch_association_fails(problem.beta, *np.array(state[1:])).any(),
        disagreement=value.test_error + value.test_error_bound + label.error + label.bound,
        test_error=value.test_error,
        risk=value.loss,
        small=small(problem),
    )


def horizon(problem: Problem, power: int = HORIZONS[-1]) -> float:
    """Return the flow time d^power."""
    return float(problem.dimension) ** power


@cache
def flow(problem: Problem, tolerance: float, rtol: float = 1e-7, records: int = 300) -> Trajectory:
    """Return the flow from Parametrization 3.1 to the last of `HORIZONS`; it may stop early."""
    population = runs.population(problem, tolerance)
    return gradient_flow(population, horizon=horizon(problem), rtol=rtol, records=records)


def conclusions_at_horizons(path: Trajectory, population: Population) -> dict[int, Conclusions]:
    """Return the conclusions at each of `HORIZONS`."""
    times = {power: horizon(path.problem, power) for power in HORIZONS}
    return {power: conclusions(path, population, time) for power, time in times.items()}


def without_association(path: Trajectory) -> list[Excursion]:
    """Return the intervals t > 0 on which patch association fails by more than the resolution."""
    beta = path.problem.beta
    return excursions(path, lambda state: state.rho - min(beta, state.gamma), path.resolution)
