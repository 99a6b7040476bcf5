"""The kernels of masked image modelling, compiled once (`dynamics.precompile`)."""

from dynamics.core.exercise import exercise
from dynamics.masked import MaskedPopulation, MaskedProblem


def compile_masked() -> None:
    """Use the population of one small problem."""
    exercise(MaskedPopulation(MaskedProblem.rows_and_columns(2)))


#: What is compiled, by name.
JOBS = {"masked": compile_masked}
