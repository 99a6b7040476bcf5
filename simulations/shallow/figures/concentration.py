"""Concentration of attention: the curve of the slides, plateaus, rate, and the final deficit."""

from typing import Any

import numpy as np
import xarray
from matplotlib.ticker import NullFormatter

from simulations.figures.style import PROBLEM_STYLES, REFERENCE, panel_letter, styled

_BLUE, _RED, _GREEN = (style["color"] for style in PROBLEM_STYLES[:3])


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw the five panels; the last two share their ordinate."""
    panels = figure.subplot_mosaic("aaabbb;ccddee")
    curve, plateau, rate, by_eta, by_ratio = panels.values()
    by_ratio.sharey(by_eta)
    artists = {
        **_draw_curve(curve, data),
        "end": _draw_plateaus(plateau, data),
        "left": _draw_rate(rate, data),
        **_draw_limits(by_eta, by_ratio, data),
    }
    for letter, ax in panels.items():
        panel_letter(ax, letter)
    return artists


def _draw_curve(ax: Any, data: xarray.Dataset) -> dict[str, Any]:
    """Draw the mean attention by iteration and the values read off the slides."""
    step = data["iteration"].values
    error = np.abs(np.stack([data["low"], data["high"]]) - data["attention"].values)
    artists = {
        "attention": ax.errorbar(
            step, data["attention"], error, color=_BLUE, capsize=3, label="mean over seeds, 95 %"
        ),
        "read": ax.plot(step, data["read"], "s", color=_RED, label="read off the slides")[0],
    }
    ax.set(xlabel="iteration", ylabel="attention on relevant tokens", ylim=(0.5, 0.95))
    ax.legend(loc="lower right")
    return artists


def _draw_plateaus(ax: Any, data: xarray.Dataset) -> Any:
    """Draw the final attention of irrelevant queries against the plateau."""
    points = ax.plot(data["plateau"], data["end"], "o", color=_BLUE)[0]
    ax.axline((0.75, 0.75), slope=1.0, **REFERENCE)
    for name, x, y in zip(data["place"].values, data["plateau"].values, data["end"].values):
        right = x < 0.85
        ax.annotate(
            str(name),
            (x, y),
            xytext=(7 if right else -7, -3),
            fontsize=8,
            textcoords="offset points",
            ha="left" if right else "right",
        )
    ax.set(xlabel=r"$\alpha_*/(\alpha_*+\alpha_\#)$", ylabel="attention of irrelevant queries")
    return points


def _draw_rate(ax: Any, data: xarray.Dataset) -> Any:
    """Draw 1 - attention against time, with a line of slope -1."""
    since = data["since"].values
    points = ax.plot(since, data["left"], "o-", color=_GREEN, markersize=3)[0]
    first = float(data["left"][0])
    ax.plot(since, first * since[0] / since, **REFERENCE)
    middle = np.sqrt(since[0] * since[-1])
    ax.annotate(
        "$1/t$",
        (middle, first * since[0] / middle),
        xytext=(-6, -10),
        textcoords="offset points",
        color="#555555",
        ha="right",
    )
    ax.set(xscale="log", yscale="log", ylabel="1 - attention")
    ticks = [tick for tick in (0.1, 0.3, 1.0, 3.0, 10.0) if since[0] <= tick <= since[-1]]
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set_xlabel(r"flow time since attention was $\frac{1}{2}$")
    return points


def _draw_limits(by_eta: Any, by_ratio: Any, data: xarray.Dataset) -> dict[str, Any]:
    """Draw the final 1 - attention against eta and against eta_KQ/eta."""
    artists = {}
    for name, axis, ax, style in (
        ("by_eta", "eta", by_eta, {"color": _BLUE, "marker": "o"}),
        ("by_ratio", "ratio", by_ratio, {"color": _RED, "marker": "s"}),
    ):
        artists[name] = ax.plot(data[axis], data[name], **style)[0]
        ax.set(xscale="log", yscale="log")
    ratio = data["ratio"].values
    by_ratio.plot(ratio, float(data["by_ratio"][-1]) * ratio[-1] / ratio, **REFERENCE)
    by_eta.set(xlabel=r"$\eta$, at $\eta_{KQ}/\eta=30$", ylabel="1 - attention at the end")
    by_ratio.set(xlabel=r"$\eta_{KQ}/\eta$, at $\eta=0.01$")
    by_ratio.tick_params(labelleft=False)
    return artists
