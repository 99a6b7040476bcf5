"""Compilation of the kernels of the shallow transformer."""

from dynamics.core.descent import warm_up
from dynamics.shallow.population import ShallowPopulation
from dynamics.shallow.problem import ShallowProblem
from dynamics.shallow.training import train_on_counts


def compile_shallow() -> None:
    """Compile the kernels by evaluating a small problem and training on one sample."""
    population = ShallowPopulation(ShallowProblem())
    warm_up(population)
    W, V, K, Q = population.problem.matrices(population.problem.initial_state)
    train_on_counts([[2, 1, 0, 0, 1]], [1], W_O=W, V=V, K=K, Q=Q, a=W[:, 0], steps=1)


JOBS = {"shallow": compile_shallow}
