"""Causal structure: losses, attention to the parents, and the first attention at the end."""

from typing import Any

import xarray
from matplotlib.patches import Rectangle

from simulations.figures.style import PROBLEM_STYLES, panel_letters, styled

_LABELS = {"first": "first layer", "second": "then second", "joint": "both"}


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw losses and attention against time, and two attention matrices."""
    axes = figure.subplots(1, 4, width_ratios=(1.3, 1.3, 1.0, 1.0))
    artists: dict[str, Any] = {}
    for number, (flow, label) in enumerate(_LABELS.items()):
        (artists[flow],) = axes[0].plot(
            data["time"], data["loss"].sel(flow=flow), label=label, **PROBLEM_STYLES[number]
        )
    low, high = axes[0].get_ylim()
    axes[0].set(ylabel="loss", ylim=(low, high + 0.45 * (high - low)))
    axes[0].legend(loc="upper right")
    for number, child in enumerate(data["child"].values):
        for way, dashes in zip(data["way"].values, ("-", "--")):
            rows = data["attention"].sel(child=child, way=way)
            entry = f"position {child}" if dashes == "-" else None
            (artists[f"{way}, {child}"],) = axes[1].plot(
                data["time"], rows, linestyle=dashes, label=entry,
                color=PROBLEM_STYLES[number]["color"],
            )  # fmt: skip
    axes[1].set(ylabel="attention to the parent", ylim=(0.0, 1.0))
    axes[1].legend(loc="upper left", handlelength=1.2, borderaxespad=0.2)
    for ax in axes[:2]:
        ax.set(xscale="symlog", xlabel="flow time", xlim=(0.0, float(data["time"][-1])))
        ax.set_xticks([0, 1e2, 1e4, 1e6])
    for ax, way in zip(axes[2:], data["way"].values):
        mesh = ax.imshow(data["matrix"].sel(way=way), vmin=0.0, vmax=1.0, cmap="cividis")
        for child, parent in zip(data["child"].values, data["parent"].values):
            ax.add_patch(Rectangle((parent - 0.5, child - 0.5), 1, 1, fill=False, ec="#EE6677",
                                   lw=2.0))  # fmt: skip
        ax.set(title=str(way), xlabel="attended position")
    axes[2].set(ylabel="position")
    figure.colorbar(mesh, ax=axes[3], shrink=0.7, label="attention")
    artists["mesh"] = mesh
    panel_letters(axes)
    return artists
