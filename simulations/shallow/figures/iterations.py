"""Iterations and final attention against the fraction of relevant tokens."""

import re
from typing import Any

import numpy as np
import xarray

from simulations.figures.style import PROBLEM_STYLES, REFERENCE, panel_letter, styled

_MARKERS = "osD^"


def pretty(name: str) -> str:
    """Return the name of a run in mathematical type."""
    name = re.sub(r"eta_KQ = (\S+) eta", r"eta_KQ/eta=\1", name)
    return name.replace("eta_KQ/eta=", r"$\eta_{KQ}/\eta$ = ")


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw times with slopes -1 and -2, and the attention at the end."""
    left, right = figure.subplots(1, 2)
    artists: dict[str, Any] = {}
    alpha = data["alpha"].values
    for number, name in enumerate(data["run"].values):
        part = data.isel(run=number)
        colour = PROBLEM_STYLES[number]["color"]
        artists[str(name)] = left.plot(
            alpha, part["time"], _MARKERS[number], color=colour, label=pretty(str(name))
        )[0]
        right.plot(alpha, part["attention"], _MARKERS[number], color=colour)
        known = np.isfinite(part["time"].values)
        for ax, name_of in ((left, "model_time"), (right, "model_attention")):
            ax.plot(alpha[known], part[name_of][known], color=colour, linewidth=1.0)
    ends = np.array([alpha.min(), alpha.max()])
    for slope, number, factor in ((-1.0, -1, 0.6), (-2.0, 0, 1.7)):
        times = data["time"].isel(run=number).values
        last = int(np.flatnonzero(np.isfinite(times))[-1])
        span = np.array([max(alpha[last], ends[0]), ends[1]])
        heights = factor * times[last] * (span / span[0]) ** slope
        left.plot(span, heights, **REFERENCE)
        place = 0.03 if slope == -1.0 else 0.02  # where the line has no points beside it
        height = float(np.interp(np.log(place), np.log(span), np.log(heights)))
        left.annotate(
            f"slope {slope:g}",
            (place, np.exp(height)),
            xytext=(5, 6) if slope < -1.0 else (-6, -8),
            textcoords="offset points",
            color="#555555",
            ha="left" if slope < -1.0 else "right",
            va="center",
        )
    left.set(xscale="log", yscale="log", ylabel="flow time until the hinge loss is small")
    right.set(xscale="log", ylim=(0, 1.02), ylabel="attention on relevant tokens at the end")
    for letter, ax in zip("ab", (left, right)):
        ax.set_xlabel(r"fraction of relevant tokens $\alpha_*$")
        panel_letter(ax, letter)
    figure.legend(handles=list(artists.values()), loc="outside lower center", ncols=4)
    return artists
