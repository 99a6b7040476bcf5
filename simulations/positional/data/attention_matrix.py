"""What is drawn in ``figures/attention_matrix.py``."""

from __future__ import annotations

import numpy as np
import xarray

from dynamics import Problem, State, Trajectory, attention
from dynamics.positional.samples.partitions import set_of, three_valued


def gather(run: Trajectory) -> xarray.Dataset:
    """Return S (moment, row, column) with contiguous sets, at the first and the last record."""
    problem = run.problem
    moments = [run.states[0], run.states[-1]]
    return xarray.Dataset(
        {
            "S": (
                ("moment", "row", "column"),
                np.stack([softmax_matrix(problem, State(*row.tolist())) for row in moments]),
            ),
            "G": ("moment", [attention(problem, State(*row.tolist())).G for row in moments]),
        },
        coords={"moment": ["before", "after"], "time": ("moment", run.time[[0, -1]])},
        attrs={"C": problem.C},
    )


def softmax_matrix(problem: Problem, state: State) -> np.ndarray:
    """Return S (D, D) on the invariant manifold, sets being contiguous blocks."""
    Lambda, Gamma, Xi, _ = attention(problem, state)
    return three_valued(set_of(problem), Gamma, Xi, Lambda)
