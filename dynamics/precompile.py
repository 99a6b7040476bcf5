"""Compile every kernel once (`python -m dynamics.precompile`), so that no result waits for it.

With names, such as ``fourier enumeration``, only what these need. Numba keeps the compiled code on
disk. The gradient of the Fourier method, which takes longest, compiles beside the others.
"""

import argparse
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np

from dynamics import Population, Problem, gradient_descent
from dynamics.core.risk import Risk
from dynamics.core.tube.clocks import Flow
from dynamics.core.tube.tube import enclose
from dynamics.masked import MaskedPopulation, MaskedProblem
from dynamics.positional.population.fourier.method import FourierExpectation
from dynamics.positional.samples.precompile import compile_empirical
from dynamics.positional.validated.outcomes import box_around, outcomes
from dynamics.positional.validated.system import ReducedSystem
from dynamics.shallow import ShallowPopulation, ShallowProblem, train_on_counts


def compile_method(method: str) -> str:
    """Evaluate one small problem in every way by one method; return its name."""
    population: Risk
    if method == "masked":
        population = MaskedPopulation(MaskedProblem.rows_and_columns(2))
    elif method == "shallow":
        population = ShallowPopulation(ShallowProblem())
        W, V, K, Q = population.problem.matrices(population.problem.initial_state)
        train_on_counts([[2, 1, 0, 0, 1]], [1], W_O=W, V=V, K=K, Q=Q, a=W[:, 0], steps=1)
    else:
        population = Population(Problem(D=8, C=2, q=0.3), method=method, tolerance=1e-6)
    start = population.problem.initial_state
    population.gradient(start)
    population.jacobian(start)
    population.evaluate(start)
    gradient_descent(population, learning_rate=0.01, steps=2)
    if method == "enumeration":
        relative = Population(Problem(D=8, C=2, q=0.3), method, 1e-6, relative=True)
        gradient_descent(relative, learning_rate=0.01, steps=2)
    if method == "fourier":
        compile_signs()
    return method


def compile_signs() -> str:
    """Compute the test error of the Fourier method along both roads: few features, and many."""
    for problem in (Problem(D=8, C=2, q=0.3), Problem(D=64, C=8, q=0.5)):
        FourierExpectation(problem, tolerance=1e-6).signs(problem.initial_state)
    return "signs"


def compile_tubes() -> str:
    """Enclose one short flow, and the outcomes at its start."""
    system = ReducedSystem(Problem(D=6, C=2, q=0.3))
    enclose(system, Flow(), 1e-3, tolerance=0.01, functional=np.array([0.0, 1.0, -1.0]))
    start = box_around(system.start, system.start_radius)
    outcomes(system.field(system.start, 0.01).field, system.tail, start)
    return "tubes"


#: What is compiled, the longest first. The first ends with the second, compiled beside it.
JOBS: dict[str, Callable[[], str]] = {
    "fourier": partial(compile_method, "fourier"),
    "signs": compile_signs,
    **{name: partial(compile_method, name) for name in ("enumeration", "masked", "shallow")},
    **{name: partial(compile_empirical, name) for name in ("float64", "float32")},
    "tubes": compile_tubes,
}  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    """Compile what is named, or all, each in a process of its own."""
    parser = argparse.ArgumentParser(prog="python -m dynamics.precompile", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(JOBS)}")
    names = parser.parse_args(arguments).names
    if unknown := [name for name in names if name not in JOBS]:
        parser.error(f"{unknown[0]} is not allowed: it must be one of {', '.join(JOBS)}")
    with ProcessPoolExecutor(max_workers=2) as pool:
        jobs = [pool.submit(JOBS[name]) for name in names or JOBS]
        for job in jobs:
            print(f"compiled: {job.result()}")


if __name__ == "__main__":
    main()
