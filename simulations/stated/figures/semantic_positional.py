"""Attention by meaning or position: overlaps of flows, and a map of what runs learn first."""

from typing import Any

import numpy as np
import xarray

from simulations.figures.style import panel_letters, problem_style, styled


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw overlaps against time, and the fraction of runs that learn the meaning first."""
    axes = figure.subplots(1, 2, width_ratios=(1.0, 1.25))
    artists: dict[str, Any] = {}
    for number, omega in enumerate(data["shown"].values):
        colour = problem_style(number, f"{omega:g}")["color"]
        for mechanism, dashes in (("semantic", "-"), ("positional", "--")):
            values = data["overlap"].sel(shown=omega, mechanism=mechanism)
            (line,) = axes[0].plot(data["time"], values, dashes, color=colour, lw=1.6)
            artists[f"{mechanism} {omega:g}"] = line
        line.axes.plot([], [], color=colour, label=rf"$\omega = {omega:.3g}$")
    axes[0].set(xlabel="flow time $t$", ylabel="overlaps $m$ (solid), $n$ (dashed)", ylim=(0, None))
    axes[0].legend(loc="upper left")
    artists["map"] = axes[1].pcolormesh(
        data["omega"], np.log(data["samples"]), data["semantic"], cmap="RdBu", vmin=0.0, vmax=1.0,
        shading="nearest", rasterized=True,
    )  # fmt: skip
    rows = np.log(data["samples"].values)
    half = 0.5 * (rows[1] - rows[0])
    line = np.linspace(rows[0] - half, rows[-1] + half, 50)
    noise = data["noise"].values[0] * np.exp(0.5 * (rows[0] - line))
    axes[1].axvline(data.attrs["boundary"], color="black", lw=1.0, ls=(0, (4, 2)))
    for sign in (-1.0, 0.0, 1.0):
        axes[1].plot(data.attrs["shifted"] + sign * noise, line, color="black", lw=1.0)
    (artists["centre"],) = axes[1].plot(data["centre"], rows, "o", ms=5, color="black")
    axes[1].set(xlabel=r"mixture $\omega$", ylabel="samples per step", ylim=(line[0], line[-1]))
    axes[1].set_yticks(rows, [str(number) for number in data["samples"].values])
    figure.colorbar(artists["map"], ax=axes[1], label="runs that learn the meaning first")
    panel_letters(axes)
    return artists
