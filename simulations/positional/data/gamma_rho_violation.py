"""What is drawn in ``figures/gamma_rho_violation.py``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray

from dynamics import Trajectory
from simulations.positional import runs

_TIMES = np.geomspace(1e-3, runs.HORIZON, 401)


def gather(paths: Sequence[Trajectory]) -> xarray.Dataset:
    """Return gamma - rho (problem, time)."""
    differences = [[state[1] - state[2] for state in map(path.at, _TIMES)] for path in paths]
    return xarray.Dataset(
        {"difference": (("problem", "time"), np.array(differences))},
        coords={"problem": [runs.describe(path.problem) for path in paths], "time": _TIMES},
    )
