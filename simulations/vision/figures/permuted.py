"""Figure 5: errors on permuted images, the images, and encodings that follow the permutation."""

import math
from typing import Any

import numpy as np
import xarray

from simulations.figures.style import PROBLEM_STYLES, REFERENCE, panel_letters, styled
from simulations.vision.figures.similarity import grid

#: Places, in rows and columns of the grid, of the patches whose similarities are shown.
_CHOSEN = ((1, 1), (3, 5), (6, 3))


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw (a) errors, (b) pictures, (c) similarities in both orders, (d) the grid."""
    left, middle, right = figure.subfigures(1, 3, width_ratios=[1.1, 1.0, 0.95])
    first, panels = left.subplots(), middle.subplots(3, 3)
    artists = _errors(first, data)
    for ax, picture, name in zip(panels[0], data["picture"].values, ("crop", "2 px", "4 px")):
        ax.imshow(picture, cmap="gray")
        ax.set_axis_off()
        ax.set_title(name, fontsize=9)
    artists |= _similarities(panels[1:], data)
    last = right.subplots()
    artists["grid"] = grid(last, data["component"].sel(model="image").values, _side(data))
    last.set(xlabel="first component of P", ylabel="second")
    panel_letters((first, panels[0, 0], panels[1, 0], last))
    return artists


def _side(data: xarray.Dataset) -> int:
    return math.isqrt(data.sizes["patch"])


def _errors(ax: Any, data: xarray.Dataset) -> dict[str, Any]:
    artists = {}
    for name, label, style, marker in (
        ("cnn", "CNN", PROBLEM_STYLES[1], "o"),
        ("vit", "positional ViT", PROBLEM_STYLES[0], "s"),
    ):
        cells, errors = data[f"{name}_cell"].values, data[name].values
        moved = cells > 0
        mean, colour = errors.mean(axis=1), style["color"]
        spread = np.abs(np.stack([errors.min(axis=1), errors.max(axis=1)]) - mean)
        artists[name] = ax.errorbar(
            cells[moved],
            mean[moved],
            spread[:, moved],
            color=colour,
            marker=marker,
            capsize=3,
            label=f"{label}, permuted",
        )
        artists[f"{name} plain"] = ax.axhline(
            mean[~moved][0],
            color=colour,
            linestyle="--",
            linewidth=1.2,
            label=f"{label}, not permuted",
        )
    blind = REFERENCE | {"linestyle": ":"}
    artists["blind"] = ax.axhline(data.attrs["blind"], label="mean of visible", **blind)
    ax.set_xscale("log", base=2)
    sides = [int(cell) for cell in np.unique(data["cnn_cell"].values) if cell > 0]
    ax.set_xticks(sides, [str(side) for side in sides])
    ax.minorticks_off()
    ax.set(xlim=(1.7, 1.18 * sides[-1]), ylim=(0.0, 2.0 * float(data.attrs["blind"])))
    ax.set(xlabel="side of the permuted cells (pixels)", ylabel="squared error on masked pixels")
    ax.legend(loc="upper left", ncols=1, fontsize=8)
    return artists


def _similarities(axes: Any, data: xarray.Dataset) -> dict[str, Any]:
    side, artists = _side(data), {}
    for column, (row, place) in enumerate(_CHOSEN):
        patch = row * side + place
        own = {"shown": int(data["place"].values[patch]), "image": patch}
        for ax, model in zip(axes[:, column], own):
            cosine = data["cosine"].sel(model=model).values[own[model]].copy()
            cosine[own[model]] = np.nan
            artists[f"{model} {column}"] = ax.imshow(
                cosine.reshape(side, side), cmap="RdBu_r", vmin=-1.0, vmax=1.0
            )
            ax.set_xticks([])
            ax.set_yticks([])
    axes[0, 0].set_ylabel("order shown")
    axes[1, 0].set_ylabel("undone")
    return artists
