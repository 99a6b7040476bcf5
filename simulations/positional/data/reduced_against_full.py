"""What is drawn in ``figures/reduced_against_full.py``."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray


def gather(differences: Mapping[str, np.ndarray], tolerance: float) -> xarray.Dataset:
    """Return |reduced - full| (problem, step, parameter)."""
    return xarray.Dataset(
        {"difference": (("problem", "step", "parameter"), np.stack(list(differences.values())))},
        coords={"problem": list(differences), "parameter": ["alpha", "gamma", "rho"]},
        attrs={"tolerance": tolerance},
    )
