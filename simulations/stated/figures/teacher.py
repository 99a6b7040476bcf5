"""Loss and attention of a student along the flow."""

from typing import Any

import numpy as np
import xarray

from simulations.figures.style import REFERENCE, panel_letter, problem_style, styled


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw loss times time over its limit, and the attention outside the group."""
    left, right = figure.subplots(1, 2)
    artists: dict[str, Any] = {}
    for number, name in enumerate(data["problem"].values):
        rows = data.isel(problem=number)
        style = problem_style(number, str(name))
        time, settled = rows["time"].values, rows["settled"].values
        artists[str(name)] = left.plot(time, settled, **style)[0]
        right.plot(time, rows["missed"].values, **style)
    left.axhline(1.0, **REFERENCE)
    first = data.isel(problem=0)
    span = first["time"].values[[-80, -1]]
    reference = 0.4 * first["missed"].values[-1] * np.sqrt(span[-1] / span)
    right.plot(span, reference, **REFERENCE)
    right.annotate(
        "slope -1/2",
        (span[0], reference[0]),
        color="#555555",
        ha="right",
        va="center",
        xytext=(-6, 0),
        textcoords="offset points",
    )
    left.set(yscale="log", ylabel=r"loss $\times$ time / $\frac{1}{4}DK(D-K)$")
    right.set(yscale="log", ylabel="attention outside the group")
    for letter, ax in zip("ab", (left, right)):
        ax.set(xscale="log", xlabel="flow time")
        panel_letter(ax, letter)
    figure.legend(handles=list(artists.values()), loc="outside lower center", ncols=4)
    return artists
