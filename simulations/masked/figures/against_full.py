"""The difference between reduced and d x d descent of masked image modelling."""

from typing import Any

import numpy as np
import xarray

from simulations.figures.style import PROBLEM_STYLES, REFERENCE, styled


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw the difference of each problem."""
    ax = figure.subplots()
    artists: dict[str, Any] = {}
    for number, name in enumerate(data["problem"].values):
        curve = data["difference"].isel(problem=number)
        look = PROBLEM_STYLES[number] | {"linewidth": 1.1, "label": str(name)}
        artists[str(name)] = ax.plot(curve.where(curve > 0.0), **look)[0]
    rounding = np.finfo(float).eps
    ax.axhline(data.attrs["tolerance"], **REFERENCE)
    ax.axhline(rounding, **(REFERENCE | {"linestyle": (0, (1, 1.5))}))
    for height, text in ((data.attrs["tolerance"], "tolerance"), (rounding, "rounding")):
        ax.annotate(text, (1.0, height), xycoords=("axes fraction", "data"), xytext=(3, 0),
                    textcoords="offset points", va="center", color="#555555")  # fmt: skip
    ax.set(yscale="log", ylim=(1e-18, 1e-11), xlim=(0, data.sizes["step"] - 1))
    ax.set(xlabel="step", ylabel=r"$|$reduced $-$ full$|$")
    figure.legend(handles=list(artists.values()), loc="outside upper center", ncols=1)
    return artists
