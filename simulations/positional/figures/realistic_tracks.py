"""Distance of training on N samples from training on the population, against N."""

from typing import Any

import xarray
from matplotlib.ticker import NullFormatter

from simulations.figures.style import (
    COLOURS,
    LABELS,
    PROBLEM_STYLES,
    REFERENCE,
    panel_letters,
    styled,
)

_MARKERS = "os^D"


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw max |A_hat - A| at both moments against N, and alpha of the processes."""
    panels = figure.subplots(1, 3)
    artists: dict[str, Any] = {}
    size = data["N"].values
    for ax, moment in zip(panels, data["moment"].values):
        for number, other in enumerate(data["other"].values):
            one = data["A"].sel(moment=moment, other=other)
            style = PROBLEM_STYLES[number] | {"marker": _MARKERS[number], "markersize": 4.5}
            mean = one.mean("run").values
            below, above = mean - one.min("run").values, one.max("run").values - mean
            artists[f"{other} {moment}"] = ax.errorbar(
                size, mean, (below, above), label=str(other), capsize=2, elinewidth=0.8, **style
            )
        first = float(data["A"].sel(moment=moment).isel(other=0, N=0).mean()) * 0.6
        ax.plot(size, first * (size / size[0]) ** -0.5, **REFERENCE | {"linestyle": ":"})
        ax.set(xscale="log", yscale="log")
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.set(xlabel="samples $N$", title=f"step {int(moment)}")
    low = min(ax.get_ylim()[0] for ax in panels[:2])
    high = max(ax.get_ylim()[1] for ax in panels[:2])
    for ax in panels[:2]:
        ax.set_ylim(low, high)
    panels[0].set_ylabel(r"$\max_{ij}|\hat A_{ij}-A_{ij}|$")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper left", ncols=4)
    last = panels[2]
    names = ("alpha_ideal", "alpha_semi", "alpha_realistic")
    words = ("idealized", "semi-realistic", rf"realistic, $N={int(size[-1])}$")
    dashes = ("-", "-", (0, (3, 3)))
    colours = ("#BBBBBB", COLOURS["alpha"], "#222222")
    for name, word, dash, colour in zip(names, words, dashes, colours):
        early = data.isel(step=slice(0, 61))
        artists[name] = last.plot(
            early["step"], early[name], color=colour, linestyle=dash, label=word
        )[0]
    last.set(xlabel="step", ylabel=LABELS["alpha"])
    last.legend(loc="lower right")
    panel_letters(panels)
    return artists
