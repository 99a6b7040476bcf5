"""Learning dynamics of masked image modelling (Huang, Wen, Chi, Liang 2024), in numbers."""

from dynamics.masked.population import MaskedPopulation
from dynamics.masked.problem import MaskedProblem
from dynamics.masked.trajectory import MaskedTrajectory
from dynamics.masked.value import MaskedValue

__all__ = ["MaskedPopulation", "MaskedProblem", "MaskedTrajectory", "MaskedValue"]
