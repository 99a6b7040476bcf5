"""Sufficient numbers of samples along errors of the initial model and noise, and test errors."""

from typing import Any

import numpy as np
import xarray
from matplotlib.ticker import NullFormatter, ScalarFormatter

from simulations.figures.style import PROBLEM_STYLES, REFERENCE, panel_letters, styled
from simulations.shallow.figures import run_label

_LABELS = {
    "sigma": r"error of $W_V\mu_j$, $\sigma$",
    "delta": r"error of $W_K\mu_j$ and $W_Q\mu_j$, $\delta$",
    "tau": r"noise of the tokens, $\tau$",
}


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw the sufficient number of samples along each of three norms, and the test errors."""
    panels = figure.subplots(2, 2).ravel()
    runs = [
        str(name).removeprefix("sigma ").removesuffix(" N")
        for name in data.data_vars
        if str(name).startswith("sigma ") and str(name).endswith(" N")
    ]
    artists: dict[str, Any] = {}
    for ax, (knob, label) in zip(panels, _LABELS.items()):
        for number, name in enumerate(runs):
            if f"{knob} {name} N" in data:
                artists[name] = _bars(ax, data, knob, f"{knob} {name}", "N", number)
        ax.set_yscale("log", base=2)
        ax.margins(y=0.09)
        ax.yaxis.set_major_formatter(ScalarFormatter())
        ax.yaxis.set_minor_formatter(NullFormatter())
        ax.axvline(1.0, **REFERENCE)
        ax.set(xlabel=label, ylabel="samples $N$ that suffice")
    for number, name in enumerate(runs):
        if f"errors {name} error" in data:
            _bars(panels[3], data, "tau", f"errors {name}", "error", number)
    panels[3].set(xlabel=_LABELS["tau"], ylabel="test error")
    panels[3].set_ylim(bottom=0.0)
    panel_letters(panels)
    figure.legend(handles=list(artists.values()), loc="outside lower center", ncols=3)
    return artists


def _bars(ax: Any, data: xarray.Dataset, knob: str, name: str, part: str, number: int) -> Any:
    """Draw values with intervals, shifted for each run; open triangles denote lower bounds."""
    value, low, high = (data[f"{name} {column}"].values for column in (part, "low", "high"))
    x = data[knob].values
    x = x + 0.008 * (number - 1) * (x[-1] - x[0])
    known = np.ones(x.size, bool)
    colour = PROBLEM_STYLES[number]["color"]
    if f"{name} beyond" in data:
        known = data[f"{name} beyond"].values == 0
        ax.plot(
            x[~known],
            value[~known],
            "^",
            markersize=8,
            markerfacecolor="none",
            markeredgecolor=colour,
        )
    error = np.maximum(np.stack([value - low, high - value]), 0.0)
    ax.errorbar(x[~known], value[~known], error[:, ~known], fmt="none", ecolor=colour, capsize=3)
    label = run_label(name.split(" ", 1)[1])
    return ax.errorbar(
        x[known],
        value[known],
        error[:, known],
        capsize=3,
        label=label,
        color=colour,
        marker="osD"[number],
        linewidth=1.2,
    )
