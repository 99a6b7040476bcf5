"""Training positions alone against training features: what is left of the loss."""

from typing import Any

import xarray

from simulations.figures.style import COLOURS, REFERENCE, TIME, panel_letters, styled

_LOOK = {
    "positions": ("Upsilon_n", "-", r"positions alone ($\Upsilon$)"),
    "features": ("Phi_n", "--", r"features alone ($\Phi$)"),
    "all": ("a_n", ":", "both"),
}


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw the runs and the optimum against the number of clusters."""
    left, right = figure.subplots(1, 2, width_ratios=(1.7, 1))
    artists: dict[str, Any] = {}
    for number, run in enumerate(data["run"].values):
        colour, dashes, label = _LOOK[str(run)]
        part = data.isel(run=number)
        shown = (part["time"] > 0.0) & (part["left"] > 0.0)
        artists[str(run)] = left.plot(
            part["time"].where(shown),
            part["left"].where(shown),
            dashes,
            color=COLOURS[colour],
            label=label,
        )[0]
    left.axhline(data.attrs["best"], **REFERENCE)
    left.annotate(
        "best positional attention",
        (0.98, data.attrs["best"]),
        xycoords=("axes fraction", "data"),
        xytext=(0, -12),
        ha="right",
        textcoords="offset points",
        color="#555555",
    )
    left.set(
        xscale="log",
        yscale="log",
        xlabel=TIME,
        ylabel="loss above its floor, over its start",
        xlim=(0.1, float(data["time"].max())),
        ylim=(1e-5, 1.5),
    )
    left.legend(loc="lower left")
    colour = COLOURS["Upsilon_n"]
    right.plot(data["K"], data["by_K"], ".", color=colour, markersize=4, alpha=0.6)
    artists["by K"] = right.plot(data["K"], data["by_K"].mean("seed"), "-", color=colour)[0]
    right.set(
        xlabel="clusters $K$",
        ylabel="left by the best positional attention",
        ylim=(0.0, 1.0),
        xticks=data["K"].values,
    )
    panel_letters((left, right))
    return artists
