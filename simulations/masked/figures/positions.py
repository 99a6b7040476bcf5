"""Position-position correlations against the number of patches."""

from typing import Any

import numpy as np
import xarray

from simulations.figures.style import PROBLEM_STYLES, panel_letter, styled
from simulations.masked.figures.speeds import pretty_regime


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw Upsilon and Phi_n, and their ratio with the predicted exponent."""
    left, right = figure.subplots(1, 2)
    artists: dict[str, Any] = {}
    P = data["P"].values
    for number, (regime, marker) in enumerate(zip(data["regime"].values, "osD")):
        part = data.isel(regime=number)
        colour = PROBLEM_STYLES[number]["color"]
        look: dict[str, Any] = {"color": colour, "markersize": 4.5, "linewidth": 0.8}
        artists[str(regime)] = left.plot(
            P, part["positions"], f"-{marker}", label=pretty_regime(str(regime)), **look
        )[0]
        left.plot(P, part["features"], f":{marker}", markerfacecolor="white", **look)
        ratio = (part["positions"] / part["features"]).values
        right.plot(P, ratio, marker, **look)
        law = ratio[-1] * np.exp(-float(part["kappa_s"]) * np.log(P / P[-1]))
        right.plot(P, law, color=colour, linewidth=0.9, zorder=-1)
    for letter, ax in zip("ab", (left, right)):
        ax.set(xscale="log", yscale="log", xlabel="$P$")
        panel_letter(ax, letter)
    left.set_ylabel(r"$\max|\Upsilon|$ (filled), $\Phi_n$ (open)")
    right.set_ylabel(r"$\max|\Upsilon|\,/\,\Phi_n$")
    figure.legend(handles=list(artists.values()), loc="outside lower center", ncols=2)
    return artists
