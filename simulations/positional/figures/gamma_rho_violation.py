"""gamma - rho along flows, on a scale that shows both signs."""

from typing import Any

import xarray

from simulations.figures.style import REFERENCE, log_time, problem_style, styled

_LINEAR = 1e-6


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw all problems in one panel."""
    ax = figure.subplots()
    artists: dict[str, Any] = {}
    for number, name in enumerate(data["problem"].values):
        difference = data["difference"].isel(problem=number)
        style = problem_style(number, str(name))
        artists[str(name)] = ax.plot(data["time"], difference, **style)[0]
    ax.set_yscale("symlog", linthresh=_LINEAR, linscale=0.6)
    ax.set_yticks([-10, -1e-2, -1e-5, 0, 1e-5, 1e-2, 10])
    ax.set_ylim(-50, 50)
    ax.axhline(0.0, **REFERENCE)
    ax.axhspan(-50, 0, color="#000000", alpha=0.07, linewidth=0)
    ax.set_ylabel(r"$\gamma-\rho$")
    log_time(ax, data["time"], first=1e-3)
    figure.legend(handles=list(artists.values()), loc="outside upper center", ncols=2)
    return artists
