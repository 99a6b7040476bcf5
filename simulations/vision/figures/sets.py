"""P^T P and attention after training on data with sets, patches sorted by set."""

from typing import Any

import numpy as np
import xarray

from simulations.figures.style import panel_letters, styled


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw a column a model: P^T P above, attention below."""
    panels = figure.subplots(2, data.sizes["model"], squeeze=False)
    artists: dict[str, Any] = {}
    for number, column in enumerate(panels.T):
        name = str(data["model"].values[number])
        share = float(data["rows"].values[number].mean())
        column[0].set_title(f"{name}\n{share:.2f} of the rows", fontsize=10)
        for ax, what in zip(column, ("scores", "attention")):
            shown = data[f"{what}_{number}"].values.copy()
            np.fill_diagonal(shown, np.nan)
            artists[f"{what} {name}"] = ax.imshow(shown, cmap="cividis", interpolation="nearest")
            ax.set_facecolor("#BBBBBB")
            edges = np.arange(4, len(shown), 4) - 0.5
            ax.set_xticks(edges, [""] * len(edges))
            ax.set_yticks(edges, [""] * len(edges))
    for ax, label in zip(panels[:, 0], (r"$P^\top P$", "attention")):
        ax.set_ylabel(f"{label}, patches by set")
    panel_letters(panels.flat)
    return artists
