"""Single-location regression: runs on the invariant manifold, and from the spheres."""

from typing import Any

import numpy as np
import xarray

from simulations.figures.style import panel_letters, styled

_COLOURS = {"kappa": "#0072B2", "nu": "#D55E00"}
_LABELS = {"kappa": r"$|\kappa| = |k \cdot k^*|$", "nu": r"$|\nu| = |v \cdot v^*|$"}


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw paths on the manifold, alignments against time, and paths from the spheres."""
    axes = figure.subplots(1, 3)
    artists: dict[str, Any] = {}
    paths = {name: data["manifold"].sel(overlap=name) for name in _COLOURS}
    axes[0].plot(paths["kappa"], paths["nu"], color="#777777", lw=0.8)
    axes[0].plot(paths["kappa"][0], paths["nu"][0], "o", ms=3, color="#222222")
    axes[0].plot([1, -1], [1, -1], "*", ms=12, color="#009E73")
    axes[0].set(xlabel=r"$\kappa = k \cdot k^*$", ylabel=r"$\nu = v \cdot v^*$")
    for name, colour in _COLOURS.items():
        axes[1].plot(data["time"], abs(paths[name]), color=colour, lw=0.5, alpha=0.4)
        (artists[name],) = axes[1].plot(
            data["time"], abs(paths[name]).mean("run"), color=colour, lw=2.2, label=_LABELS[name]
        )
    axes[1].set(xlabel="steps × learning rate", ylabel="alignment on the manifold")
    axes[1].set(xscale="log", xlim=(1.0, float(data["time"][-1])))
    axes[1].legend(loc="center right")
    k, v = (np.abs(data["spheres"].sel(overlap=name)) for name in ("kappa", "eta"))
    for solved, colour, label in (
        (1, "#009E73", "ends at the solution"),
        (0, "#222222", "does not"),
    ):
        runs = data["solved"].values == solved
        if runs.any():
            lines = axes[2].plot(k[:, runs], v[:, runs], color=colour, lw=0.9)
            axes[2].plot(k[-1, runs], v[-1, runs], "*", ms=12, color=colour)
            artists[label] = lines[0]
            lines[0].set_label(label)
    axes[2].set(xlabel=r"$|k \cdot k^*|$", ylabel=r"$|k \cdot v^*|$ from the spheres")
    axes[2].legend(loc="center right")
    panel_letters(axes)
    return artists
