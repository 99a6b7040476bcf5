"""Numbers of masked image modelling against the number of patches, with predicted exponents."""

from typing import Any

import numpy as np
import xarray

from simulations.figures.style import PROBLEM_STYLES, panel_letter, styled
from simulations.masked.figures.speeds import pretty_regime

_MARKERS = "osD^v<"


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw the initial ratio, Phi_1 at the switch and the time to attention 1/2."""
    panels = figure.subplots(1, 3)
    labels = (
        r"initial $|d\Phi_1/dt|\,/\,(d\Phi_n/dt)$",
        r"$\Phi_1$ at the switch",
        r"time to $a_n=1/2$",
    )
    artists: dict[str, Any] = {}
    P = data["P"].values
    for letter, ax, name, label in zip("abc", panels, ("ratio", "switch", "found"), labels):
        for number, regime in enumerate(data["regime"].values):
            part = data.isel(regime=number)
            if name != "found" and str(regime).startswith("global"):
                continue
            colour = PROBLEM_STYLES[number]["color"]
            points = ax.plot(
                P,
                part[name],
                _MARKERS[number],
                color=colour,
                markersize=4.5,
                label=pretty_regime(str(regime)),
            )[0]
            artists[str(regime)] = points
            ax.plot(P, _law(name, part, P), color=colour, linewidth=0.9, zorder=-1)
        ax.set(xscale="log", xlabel="$P$", ylabel=label, xticks=[1e12, 1e36, 1e60])
        if name != "switch":
            ax.set_yscale("log")
        panel_letter(ax, letter)
    figure.legend(handles=list(artists.values()), loc="outside lower center", ncols=2)
    return artists


def _law(name: str, part: xarray.Dataset, P: np.ndarray) -> np.ndarray:
    """Return the predicted dependence on P through the last point."""
    last, distance = float(part[name][-1]), np.log(P / P[-1])
    if name == "switch":
        return last - 0.5 * float(part["gap"]) * distance
    return last * np.exp(float(part["gap" if name == "ratio" else "exponent"]) * distance)
