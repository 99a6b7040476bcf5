"""Learning dynamics of a shallow vision transformer (Li, Wang, Liu, Chen 2023), in numbers.

`problem`, `population` (28 or 40 numbers), `trajectory`, `gram` (the closed Gram form); finite
samples: `data` (drawn, enumerated), `training` on counts, `tokens` with noise; `concentration` is
the theory in two equations; `oracle` holds the full matrices on tokens.
"""

from dynamics.shallow.data import cells, sample
from dynamics.shallow.population import ShallowPopulation
from dynamics.shallow.problem import ShallowProblem
from dynamics.shallow.tokens import draw_tokens, sparsified, train_on_tokens
from dynamics.shallow.training import CountTraining, train_on_counts
from dynamics.shallow.trajectory import ShallowTrajectory
from dynamics.shallow.value import ShallowValue

__all__ = [
    "CountTraining",
    "ShallowPopulation",
    "ShallowProblem",
    "ShallowTrajectory",
    "ShallowValue",
    "cells",
    "draw_tokens",
    "sample",
    "sparsified",
    "train_on_counts",
    "train_on_tokens",
]
