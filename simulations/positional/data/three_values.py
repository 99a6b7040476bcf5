"""What is drawn in ``figures/three_values.py``."""

from __future__ import annotations

import numpy as np
import xarray

from dynamics.positional.oracle import descent as full
from dynamics.positional.samples.partitions import same_set, set_of


def gather(path: full.FullTrajectory) -> xarray.Dataset:
    """Return entries of A (step, entry) with their kind, and their distance from three values."""
    kind = np.where(same_set(set_of(path.problem, path.partition)), "gamma", "rho")
    np.fill_diagonal(kind, "beta")
    entries = path.A.reshape(len(path.step), -1)
    spread = {}
    for name in ("gamma", "rho", "beta"):
        chosen = entries[:, kind.ravel() == name]
        centre = chosen.mean(axis=1, keepdims=True) if name != "beta" else path.problem.beta
        spread[f"spread_{name}"] = ("step", np.abs(chosen - centre).max(axis=1))
    return xarray.Dataset(
        {"A": (("step", "entry"), entries), "kind": ("entry", kind.ravel()), **spread},
        coords={"step": path.step},
    )
