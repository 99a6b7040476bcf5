"""Numerics of a shallow vision transformer with one attention layer (Li, Wang, Liu, Chen 2023).

Population: `problem` and `population`, in 28 or 40 order parameters, with trajectories and the Gram
form in `trajectory`. Finite samples: `data` samples or enumerates token counts, `training` runs SGD
on them, `tokens` runs SGD on noisy tokens. `concentration` solves the two-equation model, and
`oracle` is the reference implementation with full matrices.
"""

from dynamics.shallow.data import cells, sample
from dynamics.shallow.population import ShallowPopulation, ShallowValue
from dynamics.shallow.problem import ShallowProblem
from dynamics.shallow.tokens import draw_tokens, sparsified, train_on_tokens
from dynamics.shallow.training import CountTraining, train_on_counts
from dynamics.shallow.trajectory import ShallowTrajectory

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
