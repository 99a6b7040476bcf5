"""Figure of partial transfer: test error against samples and share of unchanged sets."""

from typing import Any

import numpy as np
import xarray

from simulations.figures.style import PROBLEM_STYLES, REFERENCE, panel_letters, styled

_MARKERS = "os^vD"


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw errors against samples, and final errors and samples needed against the share."""
    left, middle, right = figure.subplots(1, 3)
    artists: dict[str, Any] = {}
    shares = data["share"].values
    for number, value in enumerate(shares):
        mean = data["error"].sel(share=value).mean("run").values
        style = PROBLEM_STYLES[number] | {"marker": _MARKERS[number], "markersize": 4}
        artists[f"share {value:g}"] = left.plot(data["size"], mean, label=f"{value:g}", **style)[0]
    left.axhline(0.025, **REFERENCE)
    left.set(
        xscale="log",
        yscale="log",
        xlabel=r"samples $\tilde N$ of the new feature",
        ylabel=r"mean test error $P[yF\leq 0]$",
    )
    figure.legend(
        *left.get_legend_handles_labels(),
        loc="outside upper left",
        ncols=5,
        title="share of unchanged sets",
        alignment="left",
    )
    _floors(middle, data, artists)
    _samples(right, data, artists)
    panel_letters((left, middle, right))
    return artists


def _floors(ax: Any, data: xarray.Dataset, artists: dict[str, Any]) -> None:
    """Draw the error with the most samples against the share, with exact lines."""
    floor, share = data["floor"], data["share"].values
    value, low, high = (floor.sel(end=end).values for end in ("value", "low", "high"))
    artists["floor"] = ax.errorbar(
        share,
        value,
        np.maximum([value - low, high - value], 0.0),
        fmt="o",
        ms=5,
        color="#4477AA",
        capsize=3,
        label="measured",
    )
    ends = [float(floor.sel(share=end, end="value")) for end in (0.0, 1.0)]
    ax.plot([0.0, 1.0], ends, color="#4477AA", lw=1.2, label="mixture of the ends")
    artists["hard"] = ax.plot(
        data["exact_share"], data["hard"], color="#EE6677", ls="--", label="uniform on old sets"
    )[0]
    unchanged_share = data["unchanged_share"].values
    artists["least"] = ax.plot(
        unchanged_share, data["least"], color="black", ls=":", label="bound, unchanged sets known"
    )[0]
    top = max(float(data["hard"].max()), float(np.nanmax(high)))
    ax.set(
        xlabel="share of unchanged sets",
        ylabel="error with the most samples",
        ylim=(0.0, 1.7 * top),
    )
    ax.legend(loc="upper left", handlelength=1.8)


def _samples(ax: Any, data: xarray.Dataset, artists: dict[str, Any]) -> None:
    """Draw the samples needed against the share, with an arrow where they were not reached."""
    share, most = data["share"].values, float(data["size"].max())
    for name, colour, marker, label, shift in (
        ("settled", "#4477AA", "o", "settled", -0.012),
        ("needed", "#228833", "^", "mean error 0.025", 0.012),
    ):
        value, low, high = (data[name].sel(end=end).values for end in ("value", "low", "high"))
        reached = np.isfinite(value)
        ax.vlines(
            (share + shift)[reached],
            low[reached],
            np.fmin(high[reached], most),
            color=colour,
            lw=1.2,
        )
        artists[name] = ax.plot(
            (share + shift)[reached], value[reached], marker, color=colour, ms=5, label=label
        )[0]
        for position in (share + shift)[~reached]:
            ax.annotate(
                "",
                (position, 2.2 * most),
                (position, most),
                arrowprops={"arrowstyle": "->", "color": colour},
            )
            ax.plot(position, most, marker, color=colour, mfc="white", ms=5)
    ax.set(yscale="log", ylim=(0.7, 12.0 * most), xlabel="share of unchanged sets")
    ax.set_ylabel(r"samples $\tilde N$ needed")
    ax.legend(loc="upper right")
