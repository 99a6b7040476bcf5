"""Basins of attention on a Markov chain, over starts and over step probabilities."""

import math
from typing import Any

import xarray
from matplotlib.patches import Patch

from simulations.figures.style import REFERENCE, panel_letters, styled

_LINE = {"color": "#C8102E", "linewidth": 2.0}


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw final losses over starts for two chains, and over chains for one start."""
    axes = figure.subplots(1, 3)
    artists: dict[str, Any] = {}
    options = {"vmin": 0.0, "vmax": 1.0, "cmap": "cividis", "shading": "nearest"}
    for ax, chain in zip(axes, data["chain"].values):
        ax.pcolormesh(data["w"], data["e"], data["starts"].sel(chain=chain), **options)
        (artists[f"p = q = {chain:g}"],) = ax.plot(data["along"], data["boundary"], **_LINE)
        ax.axvline(-1.0 / math.sqrt(2.0), **REFERENCE | {"color": "white"})
        ax.set(xlabel="start $w$", title=rf"$p = q = {chain:g}$")
        ax.set(ylim=(0.0, float(data["e"][-1])), xlim=(float(data["w"][0]), float(data["w"][-1])))
    axes[0].set_ylabel("start $e$")
    mesh = axes[2].pcolormesh(data["p"], data["q"], data["chains"], **options)
    (artists["p + q = 1"],) = axes[2].plot([0.0, 1.0], [1.0, 0.0], **_LINE)
    axes[2].set(xlabel="$p$", ylabel="$q$", title=r"$e = 0.02,\; w = -0.02$", aspect="equal")
    axes[2].set(xlim=(0.0, 1.0), ylim=(0.0, 1.0))
    losses = ((0.0, "loss of the bigram (0)"), (1.0, "loss of the unigram (1)"))
    patches = [Patch(color=mesh.cmap(value), label=label) for value, label in losses]
    figure.legend(handles=patches, loc="outside upper left", ncols=len(patches))
    panel_letters(axes)
    artists["mesh"] = mesh
    return artists
