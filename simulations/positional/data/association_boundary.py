"""What is drawn in ``figures/association_boundary.py``."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray


def gather(panels: list[Any]) -> xarray.Dataset:
    """Return the curves (padded with nan) and the measured cells of each panel."""
    curves = max(len(panel.curves) for panel in panels)
    points = max([len(curve) for panel in panels for curve in panel.curves.values()] + [1])
    cells = max(len(panel.cells) for panel in panels)
    lines = np.full((len(panels), curves, points, 2), np.nan)
    sizes = np.zeros((len(panels), curves))
    dots = np.full((len(panels), cells, 4), np.nan)
    for k, panel in enumerate(panels):
        for m, (D, curve) in enumerate(panel.curves.items()):
            lines[k, m, : len(curve)] = curve[:, -2:]
            sizes[k, m] = D
        rows = [(c.density, c.beta, c.holds, c.near) for c in panel.cells]
        dots[k, : len(rows)] = np.array(rows, float).reshape(-1, 4)
    return xarray.Dataset(
        {
            "curve": (("panel", "size", "point", "coordinate"), lines),
            "D": (("panel", "size"), sizes),
            "cell": (("panel", "dot", "field"), dots),
        },
        coords={
            "p": ("panel", [panel.family.p for panel in panels]),
            "C": ("panel", [panel.family.C for panel in panels]),
            "measured_D": ("panel", [panel.family.D for panel in panels]),
            "scaling": ("panel", [panel.scaling for panel in panels]),
        },
    )
