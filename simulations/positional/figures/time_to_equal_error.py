"""Wall time of one gradient against its error: enumeration, Fourier, sampling."""

from typing import Any

import numpy as np
import xarray
from matplotlib.lines import Line2D

from simulations.figures.style import panel_letter, styled

#: Colour and marker of each method.
METHODS: dict[str, dict[str, Any]] = {
    "fourier": {"color": "#4477AA", "marker": "o", "label": "Fourier"},
    "enumeration": {"color": "#228833", "marker": "s", "label": "enumeration"},
    "sampling": {"color": "#EE6677", "marker": "^", "label": "sampling"},
}
_LEAST = 1e-14
_DURATIONS = {"1 s": 1.0, "1 hour": 3600.0, "1 month": 30 * 86400.0}


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw wall time against error, one panel per problem."""
    axes = figure.subplots(1, data.sizes["panel"], sharey=True, sharex=True, squeeze=False)[0]
    artists: dict[str, Any] = {}
    for i, ax in enumerate(axes):
        runs = data.isel(run=(data["panel_of"] == i).values)
        ax.set(xscale="log", yscale="log", xlim=(1.0, _LEAST), ylim=(3e-6, 3e7))
        for name, style in METHODS.items():
            chosen = runs.isel(run=(runs["method"] == name).values)
            artists[name] = _method(ax, chosen, style) or artists.get(name)
        _extrapolation(ax, runs.isel(run=(runs["method"] == "sampling").values))
        floor = float(data["reference_bound"][i])
        ax.axvspan(floor, _LEAST, color="#EEEEEE", zorder=-3, linewidth=0)
        for text, seconds in _DURATIONS.items():
            ax.axhline(seconds, color="#BBBBBB", linewidth=0.8, zorder=-2)
            if i == len(axes) - 1:
                ax.annotate(
                    text,
                    (1.0, seconds),
                    xycoords=("axes fraction", "data"),
                    va="center",
                    xytext=(4, 0),
                    textcoords="offset points",
                    color="#555555",
                )
        ax.set_title(f"$qD={float(data['qD'][i]):g}$")
        ax.set_xlabel("relative error (smaller to the right)")
        panel_letter(ax, "ab"[i] if i < 2 else str(i))
    axes[0].set_ylabel("wall time of one gradient (s)")
    handles = [handle for handle in artists.values() if handle is not None]
    handles += _legend_of_marks()
    figure.legend(handles=handles, loc="outside upper center", ncols=3)
    return artists


def _legend_of_marks() -> list[Line2D]:
    """Return legend entries for filled marks, open marks and crosses."""
    grey: dict[str, Any] = {"color": "#555555", "linestyle": "none", "markersize": 5}
    return [
        Line2D([], [], marker="o", label="true error", **grey),
        Line2D([], [], marker="o", markerfacecolor="white", label="error bound reported", **grey),
        Line2D([], [], marker="x", label="predicted: exceeds 512 MiB", **grey),
        Line2D(
            [],
            [],
            color=METHODS["sampling"]["color"],
            linestyle=(0, (5, 3)),
            linewidth=1.2,
            label=r"extrapolated: time $\propto$ error$^{-2}$",
        ),
    ]


def _method(ax: Any, runs: xarray.Dataset, style: dict[str, Any]) -> Any:
    """Draw true errors (filled), bounds (open) and lines between them; return the filled marks."""
    measured = runs.isel(run=runs["measured"].values)
    predicted = runs.isel(run=~runs["measured"].values)
    ax.plot(
        predicted["error"],
        predicted["seconds"],
        linestyle=":",
        marker="x",
        markersize=5,
        linewidth=1.0,
        color=style["color"],
    )
    if not measured.sizes["run"]:
        return None
    errors = np.maximum(measured["error"], 1.5 * _LEAST)
    ax.hlines(measured["seconds"], errors, measured["bound"], color=style["color"], linewidth=0.7)
    ax.plot(
        measured["bound"],
        measured["seconds"],
        linestyle="-",
        markersize=5,
        markerfacecolor="white",
        linewidth=1.2,
        color=style["color"],
        marker=style["marker"],
    )
    return ax.plot(errors, measured["seconds"], linestyle="none", markersize=4.5, **style)[0]


def _extrapolation(ax: Any, sampling: xarray.Dataset) -> None:
    """Extrapolate sampling with time proportional to error^-2."""
    last = sampling.isel(run=-1)
    error = np.array([float(last["error"]), _LEAST])
    ax.plot(
        error,
        float(last["seconds"]) * (error[0] / error) ** 2,
        color=METHODS["sampling"]["color"],
        linestyle=(0, (5, 3)),
        linewidth=1.2,
    )
