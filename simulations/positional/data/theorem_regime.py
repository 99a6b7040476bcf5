"""What is drawn in ``figures/theorem_regime.py``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray


def gather(
    reached: Mapping[tuple[float, float], Any], edges: Sequence[tuple[str, int, Any]]
) -> xarray.Dataset:
    """Return the map (nu, density) and the boundary (scaling, D); nan where there is none."""
    nus, densities = (sorted({key[axis] for key in reached}) for axis in (0, 1))
    scalings = list(dict.fromkeys(name for name, _, _ in edges))
    sizes = sorted({D for _, D, _ in edges})
    known = {(name, D): edge for name, D, edge in edges}

    def cells(value: Any) -> tuple[tuple[str, str], list[list[float]]]:
        return ("nu", "density"), [[value(reached[nu, x]) for x in densities] for nu in nus]

    def boundary(name: str) -> tuple[tuple[str, str], list[list[float]]]:
        return ("scaling", "D"), [
            [getattr(known[key], name) if (key := (scaling, D)) in known else np.nan
             for D in sizes] for scaling in scalings
        ]  # fmt: skip

    def limit(name: str) -> tuple[str, list[float]]:
        return "D", [next(getattr(e, name) for _, size, e in edges if size == D) for D in sizes]

    return xarray.Dataset(
        {
            "excess": cells(lambda one: one.disagreement / one.small),
            "association": cells(lambda one: float(one.associates)),
            "inside": cells(lambda one: float(not one.failing)),
            "boundary": boundary("middle"),
            "boundary_inside": boundary("inside"),
            "boundary_outside": boundary("outside"),
            "label_limit": limit("label"),
            "hypotheses_limit": limit("met"),
        },
        coords={"nu": nus, "density": densities, "scaling": scalings, "D": sizes},
    )
