"""The difference between SGD on counts and on tokens, and the drift of what the flow conserves."""

from typing import Any

import numpy as np
import xarray

from simulations.figures.style import PROBLEM_STYLES, REFERENCE, panel_letters, styled

_MARKERS = "osD^"
_PRETTY = (
    r"$\mathrm{tr}\,S_K-\mathrm{tr}\,S_Q$",
    r"$|S_K|^2+|S_Q|^2-2|A|^2$",
    r"$\mathrm{tr}\,S_O-\mathrm{tr}\,S_V$",
    r"$|S_O|^2+|S_V|^2-2|H|^2$",
)


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw the difference of each draw by step, and the drift by learning rate."""
    left, right = figure.subplots(1, 2)
    artists: dict[str, Any] = {}
    for number, name in enumerate(data["draw"].values):
        curve = data["difference"].isel(draw=number)
        look = PROBLEM_STYLES[number] | {"linewidth": 1.2, "label": str(name)}
        artists[str(name)] = left.plot(data["step"], curve.where(curve > 0.0), **look)[0]
    left.axhline(data.attrs["tolerance"], **REFERENCE)
    left.axhline(np.finfo(float).eps, **(REFERENCE | {"linestyle": (0, (1, 1.5))}))
    left.set(yscale="log", ylim=(1e-17, 1e-10), xlabel="step", ylabel=r"$|$counts $-$ tokens$|$")
    left.set_xlim(0, float(data["step"][-1]))
    left.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), fontsize=8)
    eta = data["eta"].values
    for number, (marker, pretty) in enumerate(zip(_MARKERS, _PRETTY)):
        drift = data["drift"].isel(quantity=number)
        colour = PROBLEM_STYLES[number]["color"]
        artists[pretty] = right.plot(eta, drift, marker, color=colour, label=pretty)[0]
        right.plot(eta, float(drift[-1]) * eta / eta[-1], **(REFERENCE | {"color": colour}))
    right.set(
        xscale="log",
        yscale="log",
        xlabel=r"learning rate $\eta$",
        ylabel="drift of conserved quantity",
    )
    right.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), fontsize=8, ncols=2)
    panel_letters((left, right))
    return artists
