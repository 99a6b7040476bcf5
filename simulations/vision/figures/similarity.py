"""Encodings of a grid of patches: cosines tile by tile, and the grid along two components."""

import math
from typing import Any

import numpy as np
import xarray

from simulations.figures.style import panel_letters, styled


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw a column a model: tiles above, components below."""
    models = data.sizes["model"]
    panels = figure.subplots(2, models, squeeze=False)
    side = math.isqrt(data.sizes["patch"])
    artists: dict[str, Any] = {}
    for number, (above, below) in enumerate(panels.T):
        one = data.isel(model=number)
        image = tiles(above, one["cosine"].values, side)
        artists[f"tiles {number}"] = image
        above.set_title(str(one["model"].values).replace(", ", ",\n"), fontsize=10)
        artists[f"grid {number}"] = grid(below, one["component"].values, side)
        first, second = (f"{100 * share:.0f} %" for share in one["share"].values)
        below.set(xlabel=f"first component ({first})", ylabel=f"second ({second})")
    figure.colorbar(image, ax=list(panels[0]), shrink=0.9, pad=0.01, label="cosine")
    panel_letters(panels.flat)
    return artists


def tiles(ax: Any, cosine: np.ndarray, side: int) -> Any:
    """Draw a tile for each patch, white where the patch itself is."""
    shown = np.full((side, side + 1, side, side + 1), np.nan)
    for i, row in enumerate(cosine):
        tile = row.copy()
        tile[i] = np.nan
        shown[i // side, :side, i % side, :side] = tile.reshape(side, side)
    flat = shown.reshape(side * (side + 1), side * (side + 1))[:-1, :-1]
    ax.set_axis_off()
    return ax.imshow(flat, cmap="RdBu_r", vmin=-1.0, vmax=1.0, interpolation="nearest")


def grid(ax: Any, component: np.ndarray, side: int) -> Any:
    """Draw the patches where their encodings are, neighbours in a row or column joined."""
    x, y = component.T.reshape(2, side, side)
    ax.plot(x.T, y.T, color="#BBBBBB", linewidth=0.8, zorder=1)
    ax.plot(x, y, color="#BBBBBB", linewidth=0.8, zorder=1)
    rows = np.repeat(np.arange(side), side)
    artist = ax.scatter(x.ravel(), y.ravel(), c=rows, cmap="viridis", s=14, zorder=2)
    ax.set_aspect("equal", adjustable="datalim")
    ax.set_xticks([])
    ax.set_yticks([])
    return artist
