"""Figure 3: one data point on the grid of patches, its sets and its signal set."""

from typing import Any

import numpy as np
import xarray

from simulations.figures.style import styled


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw the grid: colours for the sets, the coefficient in each patch, a frame at the signal."""
    ax = figure.subplots()
    owner = data["set"].values
    width = round(len(owner) ** 0.5)
    grid = owner.reshape(width, width)
    across = round(len(owner) / data.attrs["C"]) ** 0.5
    tint = (grid % across + grid // across) % 3 + 3 * ((grid // across) % 2)
    artists: dict[str, Any] = {
        "sets": ax.imshow(tint, cmap="Pastel2", vmin=0, vmax=7, interpolation="nearest")
    }
    for patch, s in enumerate(data["coefficient"].values):
        row, column = divmod(patch, width)
        text = {1: "1", -1: "−1", 0: "0"}[int(s)]
        ax.text(
            column,
            row,
            text,
            ha="center",
            va="center",
            fontsize=11,
            color="#999999" if s == 0 else "black",
            fontweight="normal" if s == 0 else "bold",
        )
    rows, columns = np.nonzero(grid == data.attrs["signal_set"])
    side = data.attrs["C"] ** 0.5
    artists["signal"] = ax.plot(
        columns.min() - 0.5 + side * np.array([0, 1, 1, 0, 0]),
        rows.min() - 0.5 + side * np.array([0, 0, 1, 1, 0]),
        color="#CC3311",
        linewidth=3.5,
        clip_on=False,
    )
    ax.set_xticks(np.arange(width + 1) - 0.5, [""] * (width + 1))
    ax.set_yticks(np.arange(width + 1) - 0.5, [""] * (width + 1))
    ax.grid(color="white", linewidth=1.0)
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)
    s = data["coefficient"].values
    ax.set_xlabel(f'$y=+1$: {int(np.sum(s == 1))} patches "1", {int(np.sum(s == -1))} patches "−1"')
    return artists
