"""What is drawn in ``figures/gamma_rho_condition.py``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import xarray

from dynamics import Problem
from simulations.positional import runs
from simulations.positional.figures.gamma_rho_condition import ALPHA
from simulations.positional.symmetric_line import line_drift


def gather(problems: Sequence[Problem], courses: Sequence[Any]) -> xarray.Dataset:
    """Return the balance of the drift (problem, alpha) and violation against ratio (case)."""
    names = [runs.describe(problem) for problem in problems]
    return xarray.Dataset(
        {
            "balance": (
                ("problem", "alpha"),
                [[_balance(problem, alpha) for alpha in ALPHA] for problem in problems],
            ),
            "start": ("problem", [problem.initial_state.alpha for problem in problems]),
            "settled": ("problem", [runs.quasi_steady_alpha(p, 1e-5) for p in problems]),
            "ratio": ("case", [one.ratio for one in courses]),
            "worst": ("case", [one.worst for one in courses]),
        },
        coords={"problem": names, "alpha": ALPHA},
    )


def _balance(problem: Problem, alpha: float) -> float:
    drift = line_drift(problem, alpha)
    return drift.total / (drift.signal_wins - drift.outvoted)
