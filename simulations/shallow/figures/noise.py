"""Samples that suffice along errors of the start and noise of the tokens, and test errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray
from matplotlib.ticker import NullFormatter, ScalarFormatter

from simulations.figures.style import PROBLEM_STYLES, REFERENCE, panel_letter, styled
from simulations.shallow.figures.iterations import pretty

_LABELS = {
    "sigma": r"error of $W_V\mu_j$, $\sigma$",
    "delta": r"error of $W_K\mu_j$ and $W_Q\mu_j$, $\delta$",
    "tau": r"noise of the tokens, $\tau$",
}


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw a panel for each of the three, and the test errors along tau."""
    panels = figure.subplots(2, 2).ravel()
    runs = [str(name).removeprefix("errors ").removesuffix(" error") for name in data.data_vars
            if str(name).endswith(" error")]  # fmt: skip
    artists: dict[str, Any] = {}
    for ax, (knob, label) in zip(panels, _LABELS.items()):
        for number, name in enumerate(runs):
            if f"{knob} {name} N" not in data:
                continue
            artists[name] = _bars(ax, data, knob, f"{knob} {name}", "N", number, pretty(name))
            beyond = data[f"{knob} {name} N"].where(data[f"{knob} {name} cap"] > 0)
            ax.plot(data[knob], beyond, "^", markersize=11, markerfacecolor="none",
                    markeredgecolor=PROBLEM_STYLES[number]["color"])  # fmt: skip
        ax.set_yscale("log", base=2)
        ax.yaxis.set_major_formatter(ScalarFormatter())
        ax.yaxis.set_minor_formatter(NullFormatter())
        ax.axvline(1.0, **REFERENCE)
        ax.set(xlabel=label, ylabel="samples $N$ that suffice")
    for number, name in enumerate(runs):
        _bars(panels[3], data, "tau", f"errors {name}", "error", number, None)
    panels[3].set(xlabel=_LABELS["tau"], ylabel="test error")
    panels[3].set_ylim(bottom=0.0)
    for letter, ax in zip("abcd", panels):
        panel_letter(ax, letter)
    figure.legend(handles=list(artists.values()), loc="outside lower center", ncols=2)
    return artists


def _bars(
    ax: Any, data: xarray.Dataset, knob: str, name: str, part: str, number: int, label: str | None
) -> Any:
    """Draw values with their intervals."""
    value, low, high = (data[f"{name} {one}"].values for one in (part, "low", "high"))
    error = np.maximum(np.stack([value - low, high - value]), 0.0)
    looks = {"color": PROBLEM_STYLES[number]["color"], "marker": "os"[number], "linewidth": 1.2}
    return ax.errorbar(data[knob], value, error, capsize=3, label=label, **looks)
