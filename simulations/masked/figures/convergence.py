"""Loss above its floor and missing attention along runs, on logarithmic axes."""

from typing import Any

import xarray

from simulations.figures.style import PROBLEM_STYLES, REFERENCE, panel_letter, styled
from simulations.masked.figures.speeds import pretty_regime

_LEAST = 1e-12


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw both against time."""
    panels = figure.subplots(1, 2, sharex=True, sharey=True)
    artists: dict[str, Any] = {}
    labels = ("loss above its floor", r"mean of $(1-a_n)^2$")
    for letter, ax, name, label in zip("ab", panels, ("excess", "shortfall"), labels):
        for number, run in enumerate(data["run"].values):
            part = data.isel(run=number)
            look = dict(PROBLEM_STYLES[number % len(PROBLEM_STYLES)])
            if number >= len(PROBLEM_STYLES):
                look["linewidth"] = 0.9
            later = (part["time"] > 0.0) & (part[name] > _LEAST)
            artists[str(run)] = ax.plot(
                part["time"].where(later),
                part[name].where(later),
                label=pretty_regime(str(run)),
                **look,
            )[0]
        ax.axhline(data.attrs["eps"], **REFERENCE)
        ax.set(xscale="log", yscale="log", xlim=(1e-1, None), ylim=(1e-6, 2.0))
        ax.set(xlabel=r"flow time (learning rate $\times$ steps)", ylabel=label)
        panel_letter(ax, letter)
    figure.legend(handles=list(artists.values()), loc="outside lower center", ncols=2, fontsize=8)
    return artists
