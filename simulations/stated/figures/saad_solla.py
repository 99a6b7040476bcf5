"""Soft committee machine: the plateau of the loss, its escape time, and both formulas."""

from typing import Any

import numpy as np
import xarray

from simulations.figures.style import REFERENCE, panel_letters, problem_style, size_ticks, styled


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw losses of flows, escape times against the start, and plateaus against K."""
    axes = figure.subplots(1, 3)
    artists: dict[str, Any] = {}
    for number, K in enumerate(data["K"].values):
        rows, style = data.sel(K=K), problem_style(number, f"K={K}")
        (artists[f"K={K}"],) = axes[0].plot(data["scaled"], rows["loss"], **style)
        axes[0].axhline(float(rows["rests"]), color=style["color"], lw=0.9, ls=":")
        half, smallest = rows["half"], data["difference"][-1]
        line = half[1, -1] + (smallest / data["difference"]).pipe(np.log)
        axes[1].plot(data["difference"], line, **REFERENCE)
        for start, fill in zip(half, (style["color"], "white")):
            axes[1].plot(data["difference"], start, "o", ms=5, color=style["color"], mfc=fill)
    axes[0].set(
        xlabel=r"flow time $\times$ escape rate / $\log 10^6$", ylabel="loss", yscale="log",
        xlim=(0.0, 2.0), ylim=(1e-6, None),
    )  # fmt: skip
    axes[1].set(
        xscale="log", xlabel="initial difference $R - S$",
        ylabel=r"half-loss time $\times$ escape rate",
    )  # fmt: skip
    for start, fill in zip(data["start"].values, ("#555555", "white")):
        axes[1].plot([], [], "o", ms=5, color="#555555", mfc=fill, label=f"start {start}")
    axes[1].legend(loc="upper right")
    for name, colour, marker, label in (
        ("plateau", "#009E73", "o", "loss of the plateau"),
        ("rate", "#882255", "s", "escape rate"),
    ):
        axes[2].plot(data["units"], data[f"{name}_formula"], color=colour, lw=1.0)
        (artists[name],) = axes[2].plot(
            data["units"], data[name], marker, ms=5, color=colour, label=label
        )
    axes[2].set(xlabel="hidden units $K$", ylabel="loss, escape rate")
    size_ticks(axes[2], data["units"].values)
    axes[2].set_ylim(0.0, None)
    axes[2].legend(loc="lower center")
    figure.legend(
        handles=[artists[f"K={K}"] for K in data["K"].values],
        loc="outside lower center", ncols=data.sizes["K"],
    )  # fmt: skip
    panel_letters(axes)
    return artists
