"""Iterations and final attention against the fraction of relevant tokens."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray

from simulations.figures.style import PROBLEM_STYLES, REFERENCE, panel_letter, styled

_MARKERS = "osD^"


def pretty(name: str) -> str:
    """Return the name of a run in mathematical type."""
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
        left.plot(alpha, part["model_time"], color=colour, linewidth=1.0)
        right.plot(alpha, part["model_attention"], color=colour, linewidth=1.0)
    middle = np.array([alpha.min(), alpha.max()])
    for slope, anchor in ((-1.0, -1), (-2.0, 0)):
        height = float(data["time"].isel(run=anchor)[-1]) * (0.6 if slope == -1.0 else 1.7)
        left.plot(middle, height * (middle / alpha.min()) ** slope, **REFERENCE)
        left.annotate(f"slope {slope:g}", (middle[1], height * (middle[1] / alpha.min()) ** slope),
                      xytext=(3, 0), textcoords="offset points", color="#555555", va="center",
                      annotation_clip=False)  # fmt: skip
    left.set(xscale="log", yscale="log", ylabel="flow time until the hinge loss is small")
    right.set(xscale="log", ylim=(0, 1.02), ylabel="attention on relevant tokens at the end")
    for letter, ax in zip("ab", (left, right)):
        ax.set_xlabel(r"fraction of relevant tokens $\alpha_*$")
        panel_letter(ax, letter)
    figure.legend(handles=list(artists.values()), loc="outside lower center", ncols=4)
    return artists
