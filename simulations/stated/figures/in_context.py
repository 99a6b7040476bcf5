"""Losses of in-context regression: one drop or a staircase."""

from typing import Any

import xarray

from simulations.figures.style import PROBLEM_STYLES, REFERENCE, panel_letters, styled


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw losses of the merged model from several starts, and of separate heads with levels."""
    left, right = figure.subplots(1, 2)
    artists: dict[str, Any] = {}
    for number, start in enumerate(data["start"].values):
        style = PROBLEM_STYLES[number] | {"label": f"u(0) = {start:g}"}
        (artists[f"start {start:g}"],) = left.plot(data["time"], data["merged"][number], **style)
    for number in range(data.sizes["seed"]):
        (artists[f"seed {number}"],) = right.plot(
            data["long"],
            data["heads"][number],
            label=f"start {number + 1}",
            **PROBLEM_STYLES[number],
        )
    for number, level in enumerate(data["level"].values):
        label = None if number else "levels of the paper"
        right.axhline(level, **REFERENCE | {"linewidth": 0.8, "zorder": 0}, label=label)
    left.set(xlabel="flow time", ylabel="loss")
    left.legend()
    right.set(xscale="log", xlabel="flow time", ylabel="loss", xlim=(50.0, None))
    between = 0.5 * float(data["level"][0] + data["level"][1])  # no line crosses the legend
    right.legend(
        loc="center right",
        bbox_to_anchor=(1.0, between),
        bbox_transform=right.get_yaxis_transform(),
    )
    panel_letters((left, right))
    return artists
