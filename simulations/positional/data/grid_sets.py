"""What is drawn in ``figures/grid_sets.py``."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray

from simulations.positional.training_runs import Training


def gather(runs: Mapping[str, Training]) -> xarray.Dataset:
    """Return owner (layout, patch) and A (layout, patch, other_patch)."""
    owners = []
    for run in runs.values():
        owner = np.empty(run.A.shape[0], dtype=int)
        for index, patches in enumerate(run.partition):
            owner[patches] = index
        owners.append(owner)
    return xarray.Dataset(
        {
            "owner": (("layout", "patch"), np.stack(owners)),
            "A": (("layout", "patch", "other_patch"), np.stack([run.A for run in runs.values()])),
        },
        coords={"layout": list(runs)},
    )
