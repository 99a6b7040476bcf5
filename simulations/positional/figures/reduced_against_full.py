"""The difference between reduced and full-matrix descent, at machine precision."""

from typing import Any

import numpy as np
import xarray

from simulations.figures.style import REFERENCE, problem_style, styled


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw the largest difference of each problem."""
    ax = figure.subplots()
    artists: dict[str, Any] = {}
    for number, name in enumerate(data["problem"].values):
        worst = data["difference"].isel(problem=number).max("parameter")
        style = problem_style(number, str(name)) | {"linewidth": 1.1}
        artists[str(name)] = ax.plot(worst, **style)[0]
    ax.axhline(data.attrs["tolerance"], **REFERENCE)
    ax.axhline(np.finfo(float).eps, **(REFERENCE | {"linestyle": (0, (1, 1.5))}))
    for height, text in ((data.attrs["tolerance"], "tolerance"), (np.finfo(float).eps, "rounding")):
        ax.annotate(text, (1.0, height), xycoords=("axes fraction", "data"), xytext=(3, 0),
                    textcoords="offset points", va="center", color="#555555")  # fmt: skip
    ax.set(yscale="log", ylim=(1e-17, 1e-10), xlim=(0, data.sizes["step"] - 1))
    ax.set(xlabel="step", ylabel=r"$|$reduced $-$ full$|$")
    figure.legend(handles=list(artists.values()), loc="outside upper center", ncols=2)
    return artists
