"""Sets on the grid of an image, and rows of the learned A drawn on that grid."""

from typing import Any

import numpy as np
import xarray
from matplotlib.colors import ListedColormap
from matplotlib.patches import Rectangle

from simulations.figures.style import panel_letter, styled

_TITLES = {"squares": "(1) squares", "random": "(2) not contiguous"}


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw the sets, one row of A and all rows of A, one line of panels a partition."""
    panels = figure.subplots(
        data.sizes["layout"], 3, gridspec_kw={"width_ratios": [1.0, 1.2, 1.45]}
    )
    width = int(np.sqrt(data.sizes["patch"]))
    chosen = (width // 2 - 1) * width + width // 2 - 1
    artists: dict[str, Any] = {}
    for number, (layout, line) in enumerate(zip(data["layout"].values, panels)):
        one = data.sel(layout=layout)
        owner, A = one["owner"].values, one["A"].values.copy()
        np.fill_diagonal(A, np.nan)
        artists[f"sets {layout}"] = line[0].imshow(
            owner.reshape(width, width), cmap=_colours(owner.max() + 1), interpolation="nearest"
        )
        line[0].set_title(_TITLES[str(layout)])
        image = line[1].imshow(A[chosen].reshape(width, width), cmap="cividis")
        artists[f"row {layout}"] = image
        figure.colorbar(image, ax=line[1], shrink=0.8, pad=0.03).set_label("$A_{ij}$")
        line[1].set_title("row of $A$ of the outlined patch")
        for ax in line[:2]:
            corner = (chosen % width - 0.5, chosen // width - 0.5)
            ax.add_patch(Rectangle(corner, 1, 1, fill=False, edgecolor="#D00000", linewidth=2))
            ax.set_xticks(range(-1 + width // 4, width, width // 4))
            ax.set_yticks(range(-1 + width // 4, width, width // 4))
        artists[f"all {layout}"] = line[2].imshow(
            _mosaic(A, width), cmap="cividis", interpolation="nearest"
        )
        line[2].set_title("rows of $A$ of all patches")
        line[2].set_axis_off()
        for ax in line[1:]:
            ax.set_facecolor("#BBBBBB")
        for ax, letter in zip(line, "abc" if number == 0 else "def"):
            panel_letter(ax, letter)
    return artists


def _colours(sets: int) -> ListedColormap:
    """Return colours of which neighbouring sets differ clearly."""
    wheel = np.array(
        [
            (0.27, 0.47, 0.67), (0.93, 0.40, 0.47), (0.13, 0.53, 0.20), (0.80, 0.73, 0.27),
            (0.40, 0.80, 0.93), (0.67, 0.20, 0.47), (0.73, 0.73, 0.73), (0.95, 0.60, 0.25),
        ]
    )  # fmt: skip
    shade = np.linspace(0.0, 0.55, -(-sets // len(wheel)))
    rows = [colour * (1 - s) + s for s in shade for colour in wheel]
    return ListedColormap(np.array(rows)[:sets])


def _mosaic(A: np.ndarray, width: int) -> np.ndarray:
    """Return the rows of A as small grids at the places of their patches, scaled row by row."""
    cell = width + 1
    canvas = np.full((width * cell - 1, width * cell - 1), np.nan)
    for patch, row in enumerate(A):
        top, left = (patch // width) * cell, (patch % width) * cell
        low, high = np.nanmin(row), np.nanmax(row)
        canvas[top : top + width, left : left + width] = ((row - low) / (high - low)).reshape(
            width, width
        )
    return canvas
