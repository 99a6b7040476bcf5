"""The kernels of positional attention, compiled once (`dynamics.precompile`)."""

from functools import partial

import numpy as np

from dynamics.core.descent import gradient_descent
from dynamics.core.exercise import exercise
from dynamics.core.tube.clocks import Flow
from dynamics.core.tube.tube import enclose
from dynamics.positional.population.fourier.method import FourierExpectation
from dynamics.positional.population.population import Population
from dynamics.positional.problem import Problem
from dynamics.positional.samples.precompile import compile_empirical
from dynamics.positional.validated.outcomes import box_around, outcomes
from dynamics.positional.validated.system import ReducedSystem

_SMALL = Problem(D=8, C=2, q=0.3)


def compile_method(method: str) -> None:
    """Evaluate one small problem in every way by one method of the expectation."""
    exercise(Population(_SMALL, method=method, tolerance=1e-6))
    if method == "enumeration":
        relative = Population(_SMALL, method, 1e-6, relative=True)
        gradient_descent(relative, learning_rate=0.01, steps=2)
    if method == "fourier":
        compile_signs()


def compile_signs() -> None:
    """Compute the test error of the Fourier method along both roads: few features, and many."""
    for problem in (_SMALL, Problem(D=64, C=8, q=0.5)):
        FourierExpectation(problem, tolerance=1e-6).signs(problem.initial_state)


def compile_tubes() -> None:
    """Enclose one short flow, and the outcomes at its start."""
    system = ReducedSystem(Problem(D=6, C=2, q=0.3))
    enclose(system, Flow(), 1e-3, tolerance=0.01, functional=np.array([0.0, 1.0, -1.0]))
    start = box_around(system.start, system.start_radius)
    outcomes(system.field(system.start, 0.01).field, system.tail, start)


#: What is compiled, by name, the longest first. The first ends with the second, compiled beside it.
JOBS = {
    "fourier": partial(compile_method, "fourier"),
    "signs": compile_signs,
    "enumeration": partial(compile_method, "enumeration"),
    **{name: partial(compile_empirical, name) for name in ("float64", "float32")},
    "tubes": compile_tubes,
}
