"""Use of a risk once in every way, so that its kernels are compiled."""

from dynamics.core.descent import gradient_descent
from dynamics.core.risk import Risk


def exercise(population: Risk) -> None:
    """Evaluate a risk and its derivatives at the start, and descend two steps."""
    start = population.problem.initial_state
    population.gradient(start)
    population.jacobian(start)
    population.evaluate(start)
    gradient_descent(population, learning_rate=0.01, steps=2)
