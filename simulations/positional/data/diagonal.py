"""What is drawn in ``figures/diagonal.py``."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray

from dynamics import Trajectory
from simulations.positional.figures.diagonal import FIRST, KINDS, NAMES, POINTS


def gather(paths: Mapping[str, tuple[Trajectory, Trajectory]]) -> xarray.Dataset:
    """Return the order parameters (problem, kind, point) at times (problem, point)."""
    times = np.array([np.geomspace(FIRST, pair[0].time[-1], POINTS) for pair in paths.values()])
    states = np.array([
        [[(*path.at(float(time)), path.problem.beta)[:4] for time in row] for path in pair]
        for row, pair in zip(times, paths.values())
    ])  # fmt: skip
    columns = {
        name: (("problem", "kind", "point"), states[..., index]) for index, name in enumerate(NAMES)
    }
    return xarray.Dataset(
        columns | {"time": (("problem", "point"), times)},
        coords={"problem": list(paths), "kind": list(KINDS)},
    )
