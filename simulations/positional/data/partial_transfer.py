"""What is drawn in ``figures/partial_transfer.py``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray

from simulations.positional.partial_transfer import hard_attention, least
from simulations.positional.transfer_statistics import Sweep

if TYPE_CHECKING:
    from simulations.positional.partial_transfer import Shared

_LINE = 41


def gather(found: Mapping[float, Sweep], points: Sequence[Shared]) -> xarray.Dataset:
    """Return errors (share, size, run), floors and samples with their ends, and exact lines."""
    sweeps = list(found.values())
    problem = sweeps[0].problem
    known = np.arange(problem.L + 1) / problem.L
    data: dict[str, Any] = {"error": (("share", "size", "run"), [one.errors for one in sweeps])}
    for name in ("floor", "needed", "settled"):
        data[name] = (("share", "end"), [list(getattr(point, name)) for point in points])
    line = np.linspace(0.0, 1.0, _LINE)
    data["hard"] = ("place", hard_attention(problem, line))
    data["least"] = ("known", least(problem, known))
    return xarray.Dataset(
        data,
        coords={"share": list(found), "size": list(sweeps[0].sizes), "place": line,
                "known": known, "end": ["value", "low", "high"]},
        attrs={"D": problem.D},
    )  # fmt: skip
