"""Soft committee machine: the plateau of the loss, its escape time, and both formulas."""

from typing import Any

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
        axes[1].plot(data["difference"], rows["line"], **REFERENCE)
        axes[1].plot(data["difference"], rows["half"], "o", ms=5, color=style["color"])
    axes[0].set(
        xlabel=r"flow time $\times$ escape rate / $\log 10^6$", ylabel="loss", yscale="log",
        xlim=(0.0, 2.0), ylim=(1e-6, None),
    )  # fmt: skip
    axes[1].set(
        xscale="log", xlabel="initial difference $R - S$",
        ylabel=r"half-loss time $\times$ escape rate",
    )  # fmt: skip
    for name, colour, marker, label in (
        ("plateau", "#009E73", "o", "loss of the plateau"),
        ("rate", "#882255", "s", "escape rate"),
    ):
        axes[2].plot(data["units"], data[f"{name}_formula"], color=colour, lw=1.0)
        (artists[name],) = axes[2].plot(
            data["units"], data[name], marker, ms=5, color=colour, label=label
        )
    axes[2].set(xlabel="hidden units $K$", yscale="log")
    size_ticks(axes[2], data["units"].values)
    axes[2].legend(loc="center right")
    figure.legend(
        handles=[artists[f"K={K}"] for K in data["K"].values],
        loc="outside lower center", ncols=data.sizes["K"],
    )  # fmt: skip
    panel_letters(axes)
    return artists
