"""When patch association is lost against N, and the samples that it needs against D."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray
from matplotlib.ticker import NullFormatter, ScalarFormatter

from simulations.figures.style import COLOURS, REFERENCE, panel_letters, styled


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw both against their size, every run a mark."""
    left, right = figure.subplots(1, 2)
    artists: dict[str, Any] = {}
    size = data["N"].values
    for name, label, colour in (
        ("lost", "lost", COLOURS["test_error"]),
        ("first", "all rows associate", COLOURS["gamma"]),
    ):
        values = data[name].values
        artists[name] = left.plot(size, data[name].mean("run"), color=colour, label=label)[0]
        kept = data["censored"].values > 0 if name == "lost" else np.zeros(values.shape, bool)
        for marks, chosen in (("o", ~kept), ("^", kept)):
            shown = np.where(chosen, values, np.nan)
            left.plot(size, shown, marks, color=colour, alpha=0.6, ms=4.5)
    _fit(left, size, data["lost"].mean("run").values, data["growth"].values, "N")
    left.set(xlabel="samples $N$", ylabel="step", xscale="log", yscale="log")
    sizes, needed = data["D"].values, data["needed"].values
    artists["needed"] = right.plot(
        sizes, needed.mean(1), color=COLOURS["gamma - rho"], label="samples needed, mean"
    )[0]
    right.plot(sizes, needed, "o", color=COLOURS["gamma - rho"], alpha=0.4, ms=4.5)
    _fit(right, sizes, needed.mean(1), data["growth_of_need"].values, "D")
    right.set(xlabel="patches $D$", ylabel="samples $N$", xscale="log", yscale="log")
    for ax, ticks in ((left, size), (right, sizes)):
        ax.set_xticks(ticks)
        ax.xaxis.set_major_formatter(ScalarFormatter())
        ax.xaxis.set_minor_formatter(NullFormatter())
        low, high = ax.get_ylim()
        ax.set_ylim(low, high * (high / low) ** 0.3)
        ax.legend(loc="upper left")
    panel_letters((left, right))
    return artists


def _fit(ax: Any, x: np.ndarray, mean: np.ndarray, power: np.ndarray, symbol: str) -> None:
    """Draw the power law through the middle of the means, if there is one."""
    if not np.isfinite(power).all():
        return
    known = np.isfinite(mean)
    centre = np.exp(np.log(x[known]).mean()), np.exp(np.log(mean[known]).mean())
    fitted, low, high = power
    label = rf"${symbol}^{{{fitted:.2f}}}$ ({low:.2f} to {high:.2f})"
    ax.plot(x, centre[1] * (x / centre[0]) ** fitted, label=label, **REFERENCE)
