"""Locality of encodings by augmentation, and similarities with shifts and without."""

import math
from typing import Any

import numpy as np
import xarray

from simulations.figures.style import PROBLEM_STYLES, panel_letters, styled
from simulations.vision.figures.similarity import tiles


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw z by case on the left, tiles of vanilla attention with and without shifts."""
    panels = figure.subplots(1, 3, width_ratios=[1.25, 1.0, 1.0])
    artists = _dots(panels[0], data)
    side = math.isqrt(data.sizes["patch"])
    for ax, augmentation in zip(panels[1:], ("shifts", "none")):
        chosen = (data["kind"] == "vanilla") & (data["augmentation"] == augmentation)
        one = data.isel(case=int(np.flatnonzero(chosen.values)[0]))
        artists[augmentation] = image = tiles(ax, one["cosine"].values, side)
        name = "with shifts" if augmentation == "shifts" else "without augmentation"
        ax.set_title(f"vanilla, {name}", fontsize=10)
    figure.colorbar(image, ax=list(panels[1:]), shrink=0.75, pad=0.02, label="cosine, mean of runs")
    panel_letters(panels)
    return artists


def _dots(ax: Any, data: xarray.Dataset) -> dict[str, Any]:
    artists: dict[str, Any] = {}
    kinds = list(dict.fromkeys(data["kind"].values.tolist()))
    names = list(dict.fromkeys(data["augmentation"].values.tolist()))
    ax.axhspan(-2.0, 2.0, color="#EEEEEE", zorder=0)
    ax.axhline(0.0, color="#999999", linewidth=0.8, zorder=1)
    for case in range(data.sizes["case"]):
        one = data.isel(case=case)
        kind = str(one["kind"].values)
        place = names.index(str(one["augmentation"].values)) + 0.3 * kinds.index(kind) - 0.15
        colour = PROBLEM_STYLES[kinds.index(kind)]["color"]
        z, (low, high) = one["z"].values, one["interval"].values
        ax.scatter(np.full(z.size, place - 0.05), z, s=14, color=colour, alpha=0.7, zorder=3)
        label = None if kind in artists else kind
        artists[kind] = ax.errorbar(
            [place + 0.05],
            [z.mean()],
            [[z.mean() - low], [high - z.mean()]],
            color=colour,
            marker="_",
            markersize=10,
            capsize=3,
            label=label,
            zorder=4,
        )
    titles = {"shifts": "shifts of\none pixel", "none": "none", "noise": "noise"}
    ax.set_xticks(range(len(names)), [titles[name] for name in names])
    ax.set_xlim(-0.5, len(names) - 0.5)
    ax.set_ylabel("z of the rank correlation\nsimilar encodings, close patches")
    ax.set_xlabel("augmentation")
    ax.legend(loc="upper right")
    return artists
