"""The softmax of the attention matrix at the start and at the end of a run."""

from typing import Any

import numpy as np
import xarray
from matplotlib.colors import LogNorm

from simulations.figures.style import styled


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw both matrices with one colour bar."""
    panels = figure.subplots(1, 2, sharey=True)
    low, high = float(data["S"].min()), float(data["S"].max())
    artists: dict[str, Any] = {}
    for ax, moment in zip(panels, data["moment"].values):
        one = data.sel(moment=moment)
        artists[str(moment)] = ax.imshow(
            one["S"], norm=LogNorm(low, high), cmap="cividis", interpolation="nearest"
        )
        time = float(one["time"])
        when = "0" if time == 0.0 else rf"10^{{{np.log10(time):.3g}}}"
        ax.set(title=rf"$t={when}$:  $G={float(one['G']):.3g}$", xlabel="patch $j$")
        for spine in ax.spines.values():
            spine.set_visible(False)
    panels[0].set_ylabel("patch $i$")
    bar = figure.colorbar(artists["after"], ax=panels, shrink=0.9)
    bar.set_label(r"$S_{ij}$")
    artists["colour bar"] = bar
    return artists
