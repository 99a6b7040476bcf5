"""Figures of Theorem 4.1: its hypotheses, attention, and loss with test error."""

from typing import Any

import numpy as np
import xarray
from matplotlib.colors import LogNorm
from matplotlib.ticker import NullFormatter

from simulations.figures.style import (
    COLOURS,
    PROBLEM_STYLES,
    REFERENCE,
    line,
    log_time,
    panel_letters,
    pretty,
    size_ticks,
    styled,
)

_MARKERS = {2: "^", 3: "s", 4: "o"}


@styled
def draw_hypotheses(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw the bound on P[f* F <= 0] against D, and where the problems lie."""
    left, right = figure.subplots(1, 2)
    artists: dict[str, Any] = {}
    D = np.unique(data["D"].values)
    for number, density in enumerate(np.unique(data["qD"].values)):
        problems = data.isel(problem=(data["qD"] == density).values)
        style = PROBLEM_STYLES[number]
        for power in data["power"].values.tolist():
            label = rf"$qD={density:g}$, $t=D^{power}$"
            artists[label] = left.plot(
                problems["D"],
                problems["disagreement"].sel(power=power),
                marker=_MARKERS.get(power, "o"),
                markersize=4,
                label=label,
                **style | {"linewidth": 1.2},
            )[0]
    artists["small"] = left.plot(D, 1.0 / D, **REFERENCE)[0]
    left.annotate(
        "$1/D$", (D[0], 1.0 / D[0]), xytext=(2, 4), textcoords="offset points", fontsize=9
    )
    left.set(xscale="log", yscale="log", xlabel="$D$", ylabel=r"bound on $P[f^*F\leq 0]$")
    size_ticks(left, D)
    _draw_label_errors(right, data)
    panel_letters((left, right))
    curves = [artist for name, artist in artists.items() if name != "small"]
    figure.legend(handles=curves, loc="outside upper center", ncols=3)
    return artists


def _draw_label_errors(ax: Any, data: xarray.Dataset) -> None:
    """Draw P[y f* <= 0] in units of its threshold against q, with the region of the hypotheses."""
    for number, density in enumerate(np.unique(data["qD"].values)):
        problems = data.isel(problem=(data["qD"] == density).values)
        ax.plot(
            problems["q"],
            problems["label_excess"],
            "o",
            color=PROBLEM_STYLES[number]["color"],
            markersize=5,
            label=f"$qD={density:g}$",
        )
    ax.plot(
        data["q_outside"],
        data["label_excess_outside"],
        "x",
        color="#222222",
        markersize=6,
        label="named",
    )
    ax.set(xscale="log", yscale="log", xlabel="$q$")
    ax.set_ylabel(rf"$d^{data.attrs['label_power']}\,P[y f^*\leq 0]$")
    (low, _), (bottom, _) = ax.get_xlim(), ax.get_ylim()
    ax.fill_between(
        [low, data.attrs["much_less"]], bottom, 1.0, color="#009E73", alpha=0.12, linewidth=0
    )
    ax.set(xlim=(low, 1.0), ylim=(bottom, ax.get_ylim()[1]))
    ax.legend(loc="lower right", handlelength=1.0)


@styled
def draw_attention(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw the softmax of A at the start and at the end, with a common colour bar."""
    panels = figure.subplots(1, 2, sharey=True)
    low, high = float(data["S"].min()), float(data["S"].max())
    artists: dict[str, Any] = {}
    for ax, label in zip(panels, data["time_label"].values):
        matrix = data.sel(time_label=label)
        artists[str(label)] = ax.imshow(
            matrix["S"], norm=LogNorm(low, high), cmap="cividis", interpolation="nearest"
        )
        time = float(matrix["time"])
        when = "0" if time == 0.0 else rf"10^{{{np.log10(time):.3g}}}"
        ax.set(title=rf"$t={when}$:  $G={float(matrix['G']):.3g}$", xlabel="patch $j$")
        for spine in ax.spines.values():
            spine.set_visible(False)
    panels[0].set_ylabel("patch $i$")
    bar = figure.colorbar(artists["after"], ax=panels, shrink=0.9)
    bar.set_label(r"$S_{ij}$")
    artists["colour bar"] = bar
    return artists


@styled
def draw_loss_and_error(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw population risk and test error against time, one panel per problem."""
    panels = np.atleast_1d(figure.subplots(1, data.sizes["problem"]))
    artists: dict[str, Any] = {}
    for number, ax in enumerate(panels):
        problem = data.isel(problem=number)
        artists[f"loss {number}"] = line(ax, "loss", data["time"], problem["loss"])
        artists[f"error {number}"] = line(ax, "test_error", data["time"], problem["test_error"])
        floors = {
            "labelling_error": (r"$f^*$: $P[yf^*\leq 0]$", (0, (4, 2))),
            "best_error": ("best possible", (0, (1, 1.5))),
        }
        for key, (label, dashes) in floors.items():
            style = REFERENCE | {"linestyle": dashes, "color": COLOURS["test_error"]}
            ax.axhline(float(problem[key]), label=label, **style)
        _decades(ax)
        log_time(ax, data["time"])
        ax.set_title(pretty(str(problem["problem"].values)))
    panels[0].set_ylabel("population risk, test error")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=4)
    return artists


def _decades(ax: Any) -> None:
    """Set a logarithmic y axis; label 1, 2 and 5 of each decade if it spans less than two."""
    ax.set_yscale("log")
    low, high = ax.get_ylim()
    if high < 100.0 * low:
        ticks = [m * 10.0**k for k in range(-12, 3) for m in (1, 2, 5)]
        ticks = [tick for tick in ticks if low / 1.5 <= tick <= 1.5 * high]
        ax.set_ylim(min(low, ticks[0]), max(high, ticks[-1]))
        ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.yaxis.set_minor_formatter(NullFormatter())
