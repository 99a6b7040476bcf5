"""Descent on the population risk (problem (P)) with separate learning rates for A and v.

`one_rate_problem` returns the equivalent problem with one rate, `idealized` the trajectory. With
``kappa = D`` of (T) and a single rate, the stability of v limits the rate while A hardly changes:
`steps_with_one_rate` gives 46,000 steps at D = 32 and 321,000 at D = 48, where two rates need 30
and 80.
"""

import math
from collections.abc import Iterator

import numpy as np

from dynamics import Population, Problem, State, Trajectory, gradient_descent, gradient_flow
from dynamics.positional.oracle.descent import FullPopulation
from dynamics.positional.oracle.expectation import FullValue
from dynamics.positional.samples.partitions import set_of, three_valued


def one_rate_problem(problem: Problem, rate_v: float, rate_A: float) -> tuple[Problem, float]:
    r"""Return the problem with one learning rate that is equivalent to this one with two.

    F depends on ``kappa v`` alone. With ``v = c v'`` and ``kappa' = c kappa`` a step ``-eta
    dL/dv'`` is ``-eta c^2 dL/dv`` for v, so that ``c = sqrt(rate_v / rate_A)`` and ``eta =
    rate_A``.

    Returns
    -------
    Problem
        The problem with ``kappa' = c kappa``.
    float
        Its learning rate.
    """
    return problem.replace(output_scale=problem.kappa * math.sqrt(rate_v / rate_A)), rate_A


def idealized(
    problem: Problem,
    rate_v: float,
    rate_A: float,
    steps: int,
    alpha: float | None = None,
    tolerance: float = 1e-9,
) -> Trajectory:
    """Return descent on (P) from ``A = 0``, ``v = alpha w*`` with two rates, at every step.

    The trajectory is the one of `one_rate_problem`: its ``alpha kappa`` equals ``alpha kappa`` of
    ``problem``.

    Parameters
    ----------
    problem
        Constants.
    rate_v, rate_A, steps
        Learning rates and number of steps.
    alpha
        Initial alpha; the default is Parametrization 3.1.
    tolerance
        Error of the population expectation.
    """
    scaled, rate = one_rate_problem(problem, rate_v, rate_A)
    start = problem.initial_state.alpha if alpha is None else alpha
    return gradient_descent(
        Population(scaled, tolerance=tolerance),
        learning_rate=rate,
        steps=steps,
        initial=State(start * problem.kappa / scaled.kappa, 0.0, 0.0),
        record="linear",
        records=steps + 1,
    )


def full_descent(
    problem: Problem, A: np.ndarray, v: np.ndarray, rates: tuple[float, float], steps: int
) -> Iterator[tuple[np.ndarray, np.ndarray, FullValue]]:
    """Yield A, v and their evaluation at each step of descent on (P), without symmetry.

    ``rates`` are the learning rates of v and of A; w* is the first unit vector.
    """
    population = FullPopulation(problem, np.eye(1, problem.dimension)[0])
    for _ in range(steps + 1):
        value = population.evaluate(A, v)
        yield A, v, value
        A, v = A - rates[1] * value.dA, v - rates[0] * value.dv


def steps_with_one_rate(problem: Problem, gap: float = 1.0) -> float:
    """Return the steps until gamma - rho = ``gap`` with ``kappa = D`` of (T) and one rate.

    This is the flow time on (P) divided by the largest stable learning rate after alpha has
    settled; NaN if a flow time of 1e5 does not suffice.
    """
    problem = problem.replace(output_scale=None)
    population = Population(problem, tolerance=1e-5)
    run = gradient_flow(population, horizon=1e5, records=200)
    difference = run.gamma - run.rho
    if difference.max() < gap:
        return math.nan
    end = int(np.argmax(difference >= gap)) + 1
    time = np.interp(gap, difference[:end], run.time[:end])
    settled = State(run.at(1.0).alpha, 0.0, 0.0)
    return float(time / population.largest_stable_learning_rate(settled))


def three_values(problem: Problem, gamma: float, rho: float) -> np.ndarray:
    """Return the three-valued A of Lemma 4.1 with contiguous sets, (D, D)."""
    return three_valued(set_of(problem), gamma, rho, problem.beta)
