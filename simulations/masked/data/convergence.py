"""What is drawn in ``figures/convergence.py``."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray

from dynamics.core.schedule import thinned

_RECORDS = 250


def gather(curves: Mapping[str, tuple[np.ndarray, ...]], eps: float) -> xarray.Dataset:
    """Return (time, excess, shortfall) of each run, dims (run, record)."""
    data = np.full((3, len(curves), _RECORDS), np.nan)
    for number, columns in enumerate(curves.values()):
        index = thinned(columns[0].size, _RECORDS)
        for row, values in enumerate(columns):
            data[row, number, : index.size] = values[index]
    return xarray.Dataset(
        {name: (("run", "record"), data[row])
         for row, name in enumerate(("time", "excess", "shortfall"))},
        coords={"run": list(curves)},
        attrs={"eps": eps},
    )  # fmt: skip
