"""The kernels of the shallow transformer, compiled once (`dynamics.precompile`)."""

from dynamics.core.exercise import exercise
from dynamics.shallow import ShallowPopulation, ShallowProblem, train_on_counts


def compile_shallow() -> None:
    """Use the population of one small problem, and train on one sample."""
    population = ShallowPopulation(ShallowProblem())
    W, V, K, Q = population.problem.matrices(population.problem.initial_state)
    train_on_counts([[2, 1, 0, 0, 1]], [1], W_O=W, V=V, K=K, Q=Q, a=W[:, 0], steps=1)
    exercise(population)


#: What is compiled, by name.
JOBS = {"shallow": compile_shallow}
