"""Emergence of an induction head: its three order parameters alone, and among all 19."""

from typing import Any

import numpy as np
import xarray

from simulations.figures.style import PROBLEM_STYLES, REFERENCE, panel_letters, styled

#: Colours of the three order parameters, and their names among all 19.
COLOURS = {
    "g": PROBLEM_STYLES[2]["color"],
    "b": PROBLEM_STYLES[0]["color"],
    "a": PROBLEM_STYLES[1]["color"],
}
FULL_NAMES = {"g": "g3", "b": "b2", "a": "a3"}
_GREY = "#999999"
#: Number of other order parameters with labels, and smallest distance of labels in the figure.
_LABELLED, _DISTANCE = 3, 0.3


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw three order parameters against scaled time, and all 19 until the task is solved."""
    axes = figure.subplots(1, 3)
    artists: dict[str, Any] = {}
    dashes = [(0, (2, 2)), "-"]
    left = axes[0]
    for name, colour in COLOURS.items():
        for style, N in zip(dashes, data["N"].values):
            rows = data["three"].sel(N=N, number=name)
            solid = style == "-"
            label = rf"${FULL_NAMES[name][0]}_{FULL_NAMES[name][1]}$" if solid else None
            look = {"linewidth": 3.5, "alpha": 0.45} if solid else {"linestyle": style, "zorder": 3}
            (artists[f"{name}, N={N}"],) = left.plot(
                data["scaled"], rows, color=colour, label=label, **look
            )
        if name != "g":
            left.plot(
                data["scaled"],
                data["limit"].sel(number=name),
                **REFERENCE | {"linestyle": "-", "linewidth": 0.7, "zorder": 4},
            )
    left.set(
        xlabel=r"flow time / $N^2$",
        ylabel="three order parameters alone",
        ylim=(0.0, 4.0),
        xlim=(0.0, float(data["scaled"][-1])),
    )
    left.legend(loc="upper left")
    for ax, N in zip(axes[1:], data["flow"].values):
        _free(ax, data.sel(flow=N), artists)
        ax.set_title(f"$N={N}$")
    axes[1].set_ylabel("order parameters among all 19")
    panel_letters(axes)
    return artists


def _free(ax: Any, data: xarray.Dataset, artists: dict[str, Any]) -> None:
    """Draw one flow of all 19: the three in colour, the largest others with labels."""
    time = data["part"].values * float(data["end"])
    colours = {FULL_NAMES[name]: colour for name, colour in COLOURS.items()}
    ends = {str(name): float(data["all"].sel(name=name)[-1]) for name in data["name"].values}
    others = sorted(set(ends) - set(colours), key=lambda name: -abs(ends[name]))
    for name in others + list(colours):
        style: dict[str, Any] = {"color": _GREY, "linewidth": 1.0}
        if name in colours:
            style = {"color": colours[name]}
        (artists[f"{name}, N={int(data['flow'])}"],) = ax.plot(
            time, data["all"].sel(name=name), **style
        )
    ax.axhline(0.5, **REFERENCE)
    labelled = sorted([*colours, *others[:_LABELLED]], key=ends.__getitem__)
    low, high = ax.get_ylim()
    heights = np.array([ends[name] for name in labelled])
    for i in range(1, len(heights)):
        heights[i] = max(heights[i], heights[i - 1] + _DISTANCE * (high - low) / 5.0)
    for name, height in zip(labelled, heights):
        ax.annotate(
            rf"${name[0]}_{{{name[1:]}}}$",
            (time[-1], height),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            annotation_clip=False,
            color=colours.get(name, "#555555"),
            fontsize=9,
        )
    ax.set(xlabel="flow time", xlim=(0.0, time[-1]))
