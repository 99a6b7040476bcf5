"""Learning dynamics of masked image modelling (Huang, Wen, Chi, Liang 2024)."""

from dynamics.masked.population import MaskedPopulation, MaskedValue
from dynamics.masked.problem import MaskedProblem
from dynamics.masked.trajectory import MaskedTrajectory

__all__ = ["MaskedPopulation", "MaskedProblem", "MaskedTrajectory", "MaskedValue"]
