"""Learning dynamics of a shallow vision transformer (Li, Wang, Liu, Chen 2023), in numbers."""

from dynamics.shallow.data import cells, sample
from dynamics.shallow.problem import ShallowProblem
from dynamics.shallow.training import CountTraining, train_on_counts

__all__ = ["CountTraining", "ShallowProblem", "cells", "sample", "train_on_counts"]
