"""Positional against vanilla attention: training losses and test errors by data set."""

from typing import Any

import numpy as np
import xarray

from simulations.figures.style import PROBLEM_STYLES, panel_letters, styled


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw a column a data set: training loss above, test error below."""
    panels = figure.subplots(2, data.sizes["data"], height_ratios=[1.25, 1.0], squeeze=False)
    artists: dict[str, Any] = {}
    for number, (above, below) in enumerate(panels.T):
        one = data.isel(data=number)
        name = str(one["data"].values)
        for place, kind in enumerate(data["kind"].values.tolist()):
            style = PROBLEM_STYLES[place]
            loss = one["loss"].sel(kind=kind).values
            known = np.isfinite(loss).all(axis=0)
            step, loss = data["step"].values[known], loss[:, known]
            artists[f"loss {name} {kind}"] = above.plot(
                step, loss.mean(axis=0), label=kind, **style
            )
            above.fill_between(
                step,
                loss.min(axis=0),
                loss.max(axis=0),
                color=style["color"],
                alpha=0.2,
                linewidth=0,
            )
            error = one["error"].sel(kind=kind).values
            low, high = one["interval"].sel(kind=kind).values
            mean = error.mean()
            below.scatter(error, np.full(error.size, place + 0.14), s=14, color=style["color"])
            artists[f"error {name} {kind}"] = below.errorbar(
                [mean],
                [place - 0.1],
                None,
                [[mean - low], [high - mean]],
                color=style["color"],
                marker="|",
                markersize=10,
                capsize=3,
            )
        above.set_title(name, fontsize=10)
        above.set(yscale="log", xlabel="step")
        below.set_yticks([0, 1], data["kind"].values.tolist() if not number else ["", ""])
        below.set_ylim(1.5, -0.5)
        below.set_xlim(0.0, 1.08 * float(max(one["error"].max(), one["interval"].max())))
        what = "squared error" if "photographs" in name else "test error"
        below.set_xlabel(f"{what}; cost ratio {float(one['cost']):.1f}")
    panels[0, 0].set_ylabel("training loss")
    panels[0, 0].legend(loc="upper right")
    panel_letters(panels.flat)
    return artists
