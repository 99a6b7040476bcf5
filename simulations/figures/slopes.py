"""Gradient of every entry of a full model, and the derived gradient of its order parameters."""

from typing import Any

import numpy as np
import xarray

from simulations.figures.style import signed_log, styled


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Plot one panel per state and one line per order parameter.

    Dots are the gradients of entries of the full model, bars the derived gradients.
    """
    names = [str(name) for name in data["name"].values]
    panels = np.atleast_1d(figure.subplots(1, data.sizes["problem"], sharey=True))
    artists: dict[str, Any] = {}
    for number, ax in enumerate(panels):
        own = data.isel(entry=np.flatnonzero(data["number"].values == number))
        order = own["order"].values
        rank = np.array([np.sum(order[:i] == own_order) for i, own_order in enumerate(order)])
        count = np.array([np.sum(order == own_order) for own_order in order])
        at = order + 0.6 * ((rank + 0.5) / np.maximum(count, 1) - 0.5)
        bars = data["derived"].isel(problem=number).values
        low, high = np.arange(len(names)) - 0.4, np.arange(len(names)) + 0.4
        artists[f"derived {number}"] = ax.vlines(bars, low, high, color="#E69F00", linewidth=3.0)
        artists[f"entries {number}"] = ax.plot(own["slope"], at, ".", color="#0072B2", ms=2.5)[0]
        ax.set_title(str(data["problem"].values[number]))
        slopes = np.concatenate([bars, own["slope"].values])
        signed_log(ax, "x", 1e-3 * float(np.abs(bars).max()), slopes, most=2)
        ax.set(xlabel="derivative of the risk in one entry")
    panels[0].set_yticks(range(len(names)), names)
    panels[0].invert_yaxis()
    return artists
