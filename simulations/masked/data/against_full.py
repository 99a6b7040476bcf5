"""What is drawn in ``figures/against_full.py``."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray


def gather(curves: Mapping[str, np.ndarray], tolerance: float) -> xarray.Dataset:
    """Return |reduced - full| (problem, step)."""
    return xarray.Dataset(
        {"difference": (("problem", "step"), np.stack(list(curves.values())))},
        coords={"problem": list(curves)},
        attrs={"tolerance": tolerance},
    )
