"""What is drawn in ``figures/loss_and_error.py``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray

from dynamics import Trajectory
from dynamics.positional.labelling import label_error
from simulations.positional import runs

_TIMES = np.geomspace(1e-2, runs.HORIZON, 301)


def gather(paths: Sequence[Trajectory]) -> xarray.Dataset:
    """Return risk and test error (problem, time), and both floors (problem)."""
    floors = [label_error(path.problem) for path in paths]

    def along(column: str) -> list[np.ndarray]:
        logs = [np.log(np.maximum(getattr(path, column), 1e-300)) for path in paths]
        return [np.exp(np.interp(_TIMES, path.time, log)) for path, log in zip(paths, logs)]

    return xarray.Dataset(
        {
            "loss": (("problem", "time"), along("loss")),
            "test_error": (("problem", "time"), along("test_error")),
            "labelling_error": ("problem", [floor.error for floor in floors]),
            "best_error": ("problem", [floor.error - floor.ties / 2 for floor in floors]),
        },
        coords={"problem": [runs.describe(path.problem) for path in paths], "time": _TIMES},
    )
