"""Compile the kernels of the theory of Jelassi et al. (2022)."""

from functools import partial

import numpy as np

from dynamics.core.descent import gradient_descent, warm_up
from dynamics.core.tube.clocks import Flow
from dynamics.core.tube.tube import enclose
from dynamics.positional.population.fourier.method import FourierExpectation
from dynamics.positional.population.population import Population
from dynamics.positional.problem import Problem
from dynamics.positional.samples.data import sample
from dynamics.positional.samples.gradient import EmpiricalRisk, FixedScores, FixedValue
from dynamics.positional.samples.training import initial_weights
from dynamics.positional.validated.outcomes import box_around, outcomes
from dynamics.positional.validated.system import ReducedSystem

_PROBLEM = Problem(D=8, C=2, q=0.3)


def compile_fourier() -> None:
    """Compile the Fourier method: evaluate loss, gradient and Jacobian of a small problem."""
    warm_up(Population(_PROBLEM, "fourier", 1e-6))
    compile_signs()


def compile_signs() -> None:
    """Compile both algorithms for the test error of the Fourier method: few and many features."""
    for problem in (_PROBLEM, Problem(D=64, C=8, q=0.5)):
        FourierExpectation(problem, tolerance=1e-6).signs(problem.initial_state)


def compile_enumeration() -> None:
    """Compile the enumeration, for an absolute and for a relative tolerance."""
    warm_up(Population(_PROBLEM, "enumeration", 1e-6))
    relative = Population(_PROBLEM, "enumeration", 1e-6, relative=True)
    gradient_descent(relative, learning_rate=0.01, steps=2)


def compile_tubes() -> None:
    """Compile the tubes: enclose a short flow, and the test error at its start."""
    system = ReducedSystem(Problem(D=6, C=2, q=0.3))
    enclose(system, Flow(), 1e-3, tolerance=0.01, functional=np.array([0.0, 1.0, -1.0]))
    start = box_around(system.start, system.start_radius)
    outcomes(system.field(system.start, 0.01).field, system.tail, start)


def compile_empirical(dtype: str) -> None:
    """Compile the kernels of the empirical risk (E) for one precision."""
    problem, rng = Problem(D=4, C=2, q=0.3), np.random.default_rng(0)
    risk = EmpiricalRisk(problem, *sample(problem, 3, rng, dtype=dtype))
    A, v = initial_weights(problem, rng)
    for evaluator in (risk, FixedScores(risk, A), FixedValue(risk, v)):
        evaluator.gradient(A, v)
    FixedScores(risk, A).descend(v, v, (0.0, 0.1), (np.inf, 0.0), 1)


#: Compilation jobs, the longest first. The first job repeats the second, compiled in parallel.
JOBS = {
    "fourier": compile_fourier,
    "signs": compile_signs,
    "enumeration": compile_enumeration,
    "tubes": compile_tubes,
    **{dtype: partial(compile_empirical, dtype) for dtype in ("float64", "float32")},
}
