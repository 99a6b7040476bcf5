"""What is drawn in ``figures/lemma_4_3_scaling.py``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import xarray

_COLUMNS = ("least", "greatest", "rho_constant")


def gather(factors: Sequence[Any], degree: int) -> xarray.Dataset:
    """Return the factors (case) with d and qD, and the degree k of (log d)^k."""
    return xarray.Dataset(
        {name: ("case", [getattr(one, name) for one in factors]) for name in _COLUMNS}
        | {
            "d": ("case", [one.d for one in factors]),
            "qD": ("case", [one.features for one in factors]),
        },
        attrs={"degree": degree},
    )
