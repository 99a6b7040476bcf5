"""What is drawn in ``figures/lemma_4_3_factor.py``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray

_TIMES = np.concatenate([[0.0], np.geomspace(1e-2, 1e8, 301)])


def gather(series: Sequence[xarray.Dataset]) -> xarray.Dataset:
    """Return the increments of all problems on common times, (problem, time)."""
    shared = [one.interp(time=_TIMES, kwargs={"fill_value": "extrapolate"}) for one in series]
    names = [one.attrs["problem"] for one in series]
    return xarray.concat(shared, dim="problem", combine_attrs="drop").assign_coords(problem=names)
