"""Figure of Theorem 3.1: errors of generalized linear models against qD/C^2, k, and weights."""

from typing import Any

import numpy as np
import xarray
from matplotlib.ticker import NullFormatter

from simulations.figures.style import PROBLEM_STYLES, REFERENCE, panel_letters, styled


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw error against qD/C^2, error against k, and best weights against uniform weights."""
    ratio, power, weights = figure.subplots(1, 3)
    artists: dict[str, Any] = {}
    for number, size in enumerate(data["size"].values):
        curve, style = data.sel(size=size), PROBLEM_STYLES[number]
        artists[f"curve {size}"] = ratio.plot(data["ratio"], curve["coin"], label=size, **style)
        errors = 3.0 * np.sqrt(curve["sampled"] * (1.0 - curve["sampled"]) / data.attrs["images"])
        ratio.errorbar(
            data["ratio_sampled"],
            curve["sampled"],
            errors,
            fmt="x",
            markersize=5,
            color=style["color"],
        )
    ratio.plot(
        data["ratio"], data["normal"], color="black", linewidth=0.8, label="normal, $D\\gg C$"
    )
    ratio.set(xscale="log", xlabel="$qD/C^2$", ylabel="error of the linear model", ylim=(0.0, 0.4))
    ratio.set_xticks([0.1, 0.3, 1, 3, 8], ["0.1", "0.3", "1", "3", "8"])
    ratio.xaxis.set_minor_formatter(NullFormatter())
    ratio.legend(loc="upper left", fontsize=9, handlelength=1.8)
    for number, C in enumerate(data["set_size"].values):
        curve = data.sel(set_size=C)
        artists[f"power {C}"] = power.plot(
            data["k"], curve["error"], label=f"$C={C}$", **PROBLEM_STYLES[number]
        )
    power.set(xlabel=r"$k$ in $q=C^k/D$, $D=16C^2$", ylim=(0.0, 0.4))
    power.legend(loc="upper left", handlelength=1.8)
    for ax in (ratio, power):
        ax.axhline(data.attrs["level"], **REFERENCE)
    _draw_weights(weights, data, artists)
    panel_letters((ratio, power, weights))
    return artists


def _draw_weights(ax: Any, data: xarray.Dataset, artists: dict[str, Any]) -> None:
    """Draw the best weights and the decoder against uniform weights, on logarithmic axes."""
    proved = data["proved"].values.astype(bool)
    for name, chosen, face in (("proved", proved, "#4477AA"), ("by search", ~proved, "none")):
        artists[name] = ax.scatter(
            data["weights_uniform"].values[chosen],
            data["best"].values[chosen],
            facecolor=face,
            edgecolor="#4477AA",
            label=f"best weights, {name}",
            zorder=3,
        )
    artists["decoded"] = ax.scatter(
        data["decoded_uniform"], data["decoded"], marker="s", color="#EE6677", label="base 3"
    )
    lowest = 6e-4
    ax.plot([lowest, 0.5], [lowest, 0.5], color="#999999", linewidth=0.8, label="equal")
    ax.axhline(data.attrs["level"], **REFERENCE)
    ax.set(
        xscale="log",
        yscale="log",
        xlim=(0.004, 0.5),
        ylim=(lowest, 0.5),
        xlabel="error of uniform weights",
        ylabel="error",
    )
    ax.set_xticks([0.01, 0.1], ["0.01", "0.1"])
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.legend(loc="lower right", fontsize=9, handlelength=1.2)
