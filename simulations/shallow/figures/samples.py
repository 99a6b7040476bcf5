"""Samples that suffice against the fraction of relevant tokens, in three settings."""

from typing import Any

import numpy as np
import xarray

from simulations.figures.style import PROBLEM_STYLES, REFERENCE, panel_letter, styled
from simulations.shallow.figures.iterations import pretty

_PANELS = (
    ("first order", "stopped before the hinge acts", r"$\alpha_*$"),
    ("hinge", "trained to a small hinge loss", r"$\alpha_*$"),
    ("slides", r"$\alpha_\#=1/2-\alpha_*$", r"$\alpha_*-\alpha_\#$"),
)


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw the sizes of the three settings, with slopes -4 and -2."""
    panels = figure.subplots(1, 3, sharey=True)
    artists: dict[str, Any] = {}
    for letter, ax, (regime, title, label) in zip("abc", panels, _PANELS):
        x = data[f"{regime} alpha"].values
        x = 2.0 * x - 0.5 if regime == "slides" else x
        for number, name in enumerate(data["run"].values):
            N, low, high = (
                data[f"{regime} {part}"].values[number] for part in ("N", "low", "high")
            )
            error = np.maximum(np.stack([N - low, high - N]), 0.0)
            colour = PROBLEM_STYLES[number]["color"]
            artists[str(name)] = ax.errorbar(
                x, N, error, fmt="osD"[number], color=colour, capsize=3, label=pretty(str(name))
            )
            if regime != "hinge":
                middle = np.exp(np.mean(np.log(x)))
                height = np.exp(np.mean(np.log(N)))
                ax.plot(x, height * (x / middle) ** float(data["predicted"][number]), **REFERENCE)
        if regime == "hinge":
            ax.axhline(float(data["seen"]), **(REFERENCE | {"linestyle": (0, (1, 1.5))}))
        ax.set(xscale="log", yscale="log", xlabel=label, title=title)
        ticks = [tick for tick in (0.05, 0.1, 0.2, 0.4) if x.min() * 0.95 <= tick <= x.max() * 1.05]
        ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        ax.set_xticks([], minor=True)
        panel_letter(ax, letter)
    panels[0].set_ylabel("samples $N$ that suffice")
    figure.legend(handles=list(artists.values()), loc="outside lower center", ncols=3)
    return artists
