"""Lemma 4.1 watched: all entries of A along full-matrix descent, and their spread."""

from typing import Any

import numpy as np
import xarray

from simulations.figures.style import COLOURS, REFERENCE, panel_letters, styled


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw the entries and the spread of each kind."""
    left, right = figure.subplots(1, 2)
    artists: dict[str, Any] = {}
    names = {"beta": r"$A_{ii}$", "gamma": r"$A_{ij}$, same set", "rho": r"$A_{ij}$, other sets"}
    colours = {"beta": "#444444"} | {name: COLOURS[name] for name in ("gamma", "rho")}
    for name, text in names.items():
        entries = data["A"].values[:, data["kind"].values == name]
        artists[name] = left.plot(data["step"], entries, color=colours[name], linewidth=1.0)
        last = float(entries[-1].mean())
        place = {"xytext": (0, -6), "va": "top"} if name == "rho" else {"xytext": (0, 5)}
        left.annotate(
            text,
            (float(data["step"][-1]), last),
            ha="right",
            textcoords="offset points",
            color=colours[name],
            **place,
        )
        spread = data[f"spread_{name}"].values
        label = text + (": 0" if spread.max() == 0.0 else "")
        right.plot(
            data["step"], np.maximum(spread, 1e-20), color=colours[name], linewidth=1.0, label=label
        )
    left.set(xlabel="step of full-matrix descent", ylabel=r"entries of $A$")
    left.margins(y=0.2)
    right.axhline(np.finfo(float).eps, **REFERENCE)
    right.set(
        xlabel="step of full-matrix descent",
        ylabel="distance from the three values",
        yscale="log",
        ylim=(1e-20, 1e-12),
    )
    right.legend(loc="upper left")
    panel_letters((left, right))
    return artists
