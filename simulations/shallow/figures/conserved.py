"""How fast quadratic forms of the weights change along the gradient."""

from typing import Any

import numpy as np
import xarray

from simulations.figures.style import REFERENCE, styled


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw the largest change of each form, and that of its control."""
    ax = figure.subplots()
    at = np.arange(data.sizes["form"])
    smallest = np.finfo(float).eps ** 2
    artists = {
        "difference": ax.plot(at, np.maximum(data["rate"], smallest), "o", label="difference")[0],
        "sum": ax.plot(at, data["control"], "x", label="sum (control)")[0],
    }
    ax.axhline(np.finfo(float).eps, **REFERENCE)
    shapes = data["shape"].values
    first = [i for i in at if i == 0 or shapes[i] != shapes[i - 1]]
    ax.set_xticks(first, [str(shapes[i]) for i in first], ha="left")
    ax.set(yscale="log", ylabel="largest relative change")
    figure.legend(handles=list(artists.values()), loc="outside upper center", ncols=2)
    return artists
