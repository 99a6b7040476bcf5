"""Difference between reduced gradient descent and gradient descent on full matrices."""

from typing import Any

import numpy as np
import xarray

from simulations.figures.style import REFERENCE, problem_style, styled

#: Longer names of problems are listed in one column of the legend.
_LONG = 40


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Plot the largest difference of each problem against the step, with tolerance and rounding."""
    ax = figure.subplots()
    artists: dict[str, Any] = {}
    names = [str(name) for name in data["problem"].values]
    for number, name in enumerate(names):
        curve = data["difference"].isel(problem=number)
        worst = curve.max([dim for dim in curve.dims if dim != "step"])
        look = problem_style(number, name) | {"linewidth": 1.1}
        artists[name] = ax.plot(worst.where(worst > 0.0), **look)[0]
    tolerance, rounding = data.attrs["tolerance"], np.finfo(float).eps
    ax.axhline(tolerance, **REFERENCE)
    ax.axhline(rounding, **(REFERENCE | {"linestyle": (0, (1, 1.5))}))
    for height, text in ((tolerance, "tolerance"), (rounding, "rounding")):
        ax.annotate(
            text,
            (1.0, height),
            xycoords=("axes fraction", "data"),
            xytext=(3, 0),
            textcoords="offset points",
            va="center",
            color="#555555",
        )
    ax.set(yscale="log", ylim=(1e-6 * tolerance, 10.0 * tolerance))
    ax.set(xlim=(0, data.sizes["step"] - 1), xlabel="step", ylabel=r"$|$reduced $-$ full$|$")
    columns = 1 if max(map(len, names)) > _LONG else 2
    figure.legend(handles=list(artists.values()), loc="outside upper center", ncols=columns)
    return artists
