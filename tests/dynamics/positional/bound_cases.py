"""Random problems and states, including extremes, to test bounds against exact balls.

``python -m tests.dynamics.positional.bound_cases --evaluations 10000 --seed 0 [--method fourier]``
evaluates this number of cases and prints every value outside its bound. There is no slack.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from typing import NamedTuple

from dynamics import Population, Problem, State, ToleranceError
from tests.dynamics.positional.ball_reference import contains, reference


class Case(NamedTuple):
    """A state to be evaluated, with the tolerance."""

    problem: Problem
    state: State
    tolerance: float
    relative: bool


def draw(rng: random.Random) -> Case:
    """Return a random case; about half of the parameters are extremes or special values."""
    D, C = rng.choice([(8, 2), (6, 2), (9, 3), (10, 2), (6, 3), (8, 4), (10, 5), (12, 3)])
    beta = rng.choice([-1e3, 1e3, 0.0, 1.0, rng.gauss(0, 3), rng.gauss(0, 30)])
    problem = Problem(
        D=D,
        C=C,
        q=rng.choice([1e-12, 1 - 1e-14, 1.0, 0.3, rng.random() or 0.5]),
        p=rng.choice([3, 3, 5, 7, 9, 21]),
        nu=10 ** rng.choice([-300, -15, -2, -1, 1, rng.uniform(-6, 1)]),
        beta=beta,
        temperature=rng.choice([1.0, 10 ** rng.uniform(-2, 2)]),
        output_scale=rng.choice([None, 1.0, 71.2]),
    )
    state = State(
        rng.choice([0.0] + [-(10 ** rng.uniform(-14, 1)), 10 ** rng.uniform(-14, 1)] * 20),
        rng.choice([0.0, 0.5, beta, rng.gauss(0, 3), rng.gauss(0, 100)]),
        rng.choice([0.0, 0.5, beta, rng.gauss(0, 3)]),
    )
    return Case(problem, state, 10 ** rng.uniform(-9, -1), rng.random() < 0.5)


def outside(case: Case, method: str) -> Iterator[str]:
    """Yield a message for each value outside its bound; errors of the evaluation are raised."""
    population = Population(case.problem, method, case.tolerance, relative=case.relative)
    value = population.evaluate(case.state)
    exact = reference(case.problem, case.state)
    values = {
        "loss": (exact.loss, value.loss, value.loss_bound),
        "mean sigmoid": (exact.mean_sigmoid, value.mean_sigmoid, value.mean_sigmoid_bound),
        "test error": (exact.test_error, value.test_error, value.test_error_bound),
        "ties": (exact.ties, value.ties, value.ties_bound),
    }
    for name, ball, entry, bound in zip(
        State._fields, exact.gradient, value.gradient, value.gradient_bound
    ):
        values[name] = (ball, entry, bound)
    for name, (ball, number, bound) in values.items():
        if not contains(ball, number, bound):
            yield f"{name}: {ball.str(20)}, not {number!r} within {bound!r}, at {case}"
    largest = max(value.loss_bound, *value.gradient_bound)
    if not value.bound >= largest:
        yield f"bound {value.bound!r} is below that of an entry, {largest!r}, at {case}"


def main() -> None:
    """Evaluate many cases and print a summary."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--evaluations", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--method", default="enumeration")
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    evaluated, rejected, failures = 0, 0, 0
    while evaluated < arguments.evaluations:
        try:
            for failure in outside(draw(rng), arguments.method):
                failures += 1
                print(failure, flush=True)
            evaluated += 1
        except (ToleranceError, OverflowError):
            rejected += 1
            continue
        if evaluated % 500 == 0 or evaluated == arguments.evaluations:
            print(
                f"seed {arguments.seed}, {arguments.method}: {evaluated} evaluated, {rejected} "
                f"out of reach, {failures} values outside their bounds",
                flush=True,
            )


if __name__ == "__main__":
    main()
