"""The attention diversity metric of several kinds of attention maps, and their locality."""

from typing import Any

import numpy as np
import xarray

from simulations.figures.style import COLOURS, panel_letter, styled

_LABELS = {
    "trained": "trained",
    "trained, half of the patches masked": "trained, half masked",
    "own area, uniform": "own area, uniform",
    "global area, uniform": "global area, uniform",
    "best positional": "best positional",
    "untrained (Q = 0)": "untrained, random ties",
}


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw the metric and the attention to the own area of each kind of maps."""
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=(1.4, 1))
    kinds = [str(kind) for kind in data["kind"].values]
    place = np.arange(len(kinds))[::-1]
    artists: dict[str, Any] = {}
    for y, kind in zip(place, kinds):
        values = data["diversity"].sel(kind=kind).values.ravel()
        artists[kind] = left.plot(
            values, np.full(values.size, y), ".", color=COLOURS["Phi_n"], markersize=4, alpha=0.4
        )[0]
        left.plot([values.mean()] * 2, [y - 0.3, y + 0.3], "-", color="#222222")
        shares = data["share"].sel(kind=kind).values
        right.plot(
            shares, np.full(shares.size, y), ".", color=COLOURS["a_n"], markersize=5, alpha=0.6
        )
    left.set(
        yticks=place,
        yticklabels=[_LABELS.get(kind, kind) for kind in kinds],
        xlabel="attention diversity (patches)",
        xlim=(0.0, 30.0),
    )
    right.set(xlabel="attention to unmasked own area", xlim=(-0.03, 1.03))
    for letter, ax in zip("ab", (left, right)):
        panel_letter(ax, letter)
        ax.grid(axis="x", color="#DDDDDD", linewidth=0.6)
        ax.set_axisbelow(True)
    return artists
