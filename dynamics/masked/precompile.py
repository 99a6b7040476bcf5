"""Compile the kernels of the theory of Huang et al. (2024)."""

from dynamics.core.descent import warm_up
from dynamics.masked.population import MaskedPopulation
from dynamics.masked.problem import MaskedProblem


def compile_masked() -> None:
    """Evaluate one small problem in every way."""
    warm_up(MaskedPopulation(MaskedProblem.rows_and_columns(2)))


JOBS = {"masked": compile_masked}
