"""What is drawn in ``figures/labelling_function.py``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray


def gather(found: Mapping[tuple[str, int], Any]) -> xarray.Dataset:
    """Return errors, sizes and exponents (law, k, place); nan where there is no such D."""
    laws = list(dict.fromkeys(law for law, _ in found))
    ks = sorted({k for _, k in found})
    places = max(len(one.D) for one in found.values())

    def table(values: Any) -> tuple[tuple[str, ...], np.ndarray]:
        filled = np.full((len(laws), len(ks), places), np.nan)
        for (law, k), one in found.items():
            column = values(one)
            filled[laws.index(law), ks.index(k), places - len(column) :] = column
        return ("law", "k", "place"), filled

    return xarray.Dataset(
        {
            "D": table(lambda one: one.D),
            "C": table(lambda one: one.C),
            "error": table(lambda one: one.errors),
            "exponent": table(lambda one: one.exponents),
        },
        coords={"law": laws, "k": ks},
    )
