"""What is drawn in ``figures/symmetry_breaking.py``."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray

from dynamics import Trajectory


def gather(flows: Mapping[float, Trajectory], rate: float) -> xarray.Dataset:
    """Return gamma - rho (beta, time) and the growth rate at the saddle."""
    horizon = min(float(path.time[-1]) for path in flows.values())
    times = np.geomspace(1e0, horizon, 301)
    rows = [[state[1] - state[2] for state in map(path.at, times)] for path in flows.values()]
    return xarray.Dataset(
        {"difference": (("beta", "time"), np.array(rows))},
        coords={"beta": list(flows), "time": times},
        attrs={"rate": rate},
    )
