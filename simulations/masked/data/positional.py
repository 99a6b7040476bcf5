"""What is drawn in ``figures/positional.py``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import xarray

if TYPE_CHECKING:
    from dynamics.masked import MaskedTrajectory


def gather(
    flows: Mapping[str, MaskedTrajectory], best: float, by_K: Sequence[Sequence[float]]
) -> xarray.Dataset:
    """Return loss above the floor over its start of each run, and the optimum by K."""
    width = max(run.time.size for run in flows.values())
    data = np.full((2, len(flows), width), np.nan)
    for number, run in enumerate(flows.values()):
        data[0, number, : run.time.size] = run.time
        data[1, number, : run.time.size] = run.excess / run.excess[0]
    run = next(iter(flows.values()))
    return xarray.Dataset(
        {"time": (("run", "record"), data[0]), "left": (("run", "record"), data[1]),
         "by_K": (("K", "seed"), np.array(by_K))},
        coords={"run": list(flows), "K": np.arange(1, len(by_K) + 1)},
        attrs={"best": float((best - run.floor[0]) / run.excess[0])},
    )  # fmt: skip
