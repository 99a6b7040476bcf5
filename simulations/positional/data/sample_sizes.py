"""What is drawn in ``figures/sample_sizes.py``."""

from __future__ import annotations

import numpy as np
import xarray

from simulations.positional.sample_sizes import Scan


def gather(scan: Scan) -> xarray.Dataset:
    """Return steps (N, run) and samples (D, other_run) with the exponents and their intervals."""
    return xarray.Dataset(
        {
            "first": (("N", "run"), scan.first),
            "lost": (("N", "run"), scan.timed),
            "censored": (("N", "run"), np.isinf(scan.lost).astype(np.int8)),
            "needed": (("D", "other_run"), np.minimum(scan.needed, scan.most)),
            "growth": ("bound", list(scan.growth)),
            "growth_of_need": ("bound", list(scan.growth_of_need)),
        },
        coords={
            "N": list(scan.loss.sizes),
            "D": list(scan.need.sizes),
            "bound": ["fit", "low", "high"],
        },
    )
