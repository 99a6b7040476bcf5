"""Factual recall: the two parts of the loss and the order in which they decrease."""

from typing import Any

import numpy as np
import xarray

from simulations.figures.style import PROBLEM_STYLES, REFERENCE, panel_letters, styled

_BLUE, _RED, _GREEN = (style["color"] for style in PROBLEM_STYLES[:3])
_GREY = "#999999"


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw one flow with its parts and random starts, and times against rates."""
    left, right = figure.subplots(1, 2)
    artists = {"random": left.plot([], [], color=_GREY, lw=0.9, label="loss, random starts")[0]}
    for loss in data["random"].values:
        left.plot(data["time"], loss, color=_GREY, lw=0.9)
    for name, style in {
        "relation": {"color": _BLUE, "linewidth": 3.5, "label": "part of the relation"},
        "subject": {"color": _RED, "linewidth": 3.5, "label": "part of the subject"},
        "loss": {"color": "#222222", "linestyle": "--", "linewidth": 1.3, "label": "loss"},
    }.items():
        (artists[name],) = left.plot(data["time"], data[name], **style)
    first, last = 0.02 * float(data["time"][-1]), float(data["time"][-1])
    left.annotate(
        r"$\log D$", (first, float(data["level"])), xytext=(3, 5), textcoords="offset points"
    )
    left.set(xscale="log", xlabel="flow time", ylabel="cross-entropy (nats)")
    left.set(xlim=(first, last), ylim=(0.0, None))
    ends = np.array([data["rates"].min(), data["rates"].max()]) * [0.8, 1.25]
    right.plot(ends, ends, **REFERENCE)
    for number, alpha in enumerate(data["start"].values):
        rows = data.isel(start=number)
        artists[f"start {alpha:g}"] = right.plot(
            rows["rates"], rows["times"], "o", mfc="none", mew=1.3, ms=10 - 3 * number,
            color=(_BLUE, _RED, _GREEN)[number % 3], label=rf"start $\alpha$ = {alpha:g}",
        )[0]  # fmt: skip
    right.axhline(1.0, color="#BBBBBB", lw=0.8, zorder=-1)
    right.axvline(1.0, color="#BBBBBB", lw=0.8, zorder=-1)
    right.set(
        xscale="log", yscale="log", xlabel="growth rate, relation / subject",
        ylabel="half-loss time, subject / relation",
    )  # fmt: skip
    right.legend(loc="lower right")
    figure.legend(
        handles=[artists[name] for name in ("loss", "relation", "subject", "random")],
        loc="outside lower center", ncols=4,
    )  # fmt: skip
    panel_letters((left, right))
    return artists
