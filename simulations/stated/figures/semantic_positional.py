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
        data["omega"], data["samples"], data["semantic"], cmap="RdBu", vmin=0.0, vmax=1.0,
        shading="nearest", rasterized=True,
    )  # fmt: skip
    axes[1].set(yscale="log", xlabel=r"mixture $\omega$", ylabel="samples per step")
    samples = data["samples"].values
    ends = np.array([samples[0] / 2.0, *samples[1:-1], samples[-1] * 2.0])
    noise = data["noise"].values[0] * np.sqrt(samples[0] / ends)
    axes[1].axvline(data.attrs["boundary"], color="black", lw=1.0, ls=(0, (4, 2)))
    for sign in (-1.0, 0.0, 1.0):
        axes[1].plot(data.attrs["shifted"] + sign * noise, ends, color="black", lw=1.0)
    (artists["centre"],) = axes[1].plot(data["centre"], samples, "o", ms=5, color="black")
    axes[1].set(ylim=(ends[0], ends[-1]), xlim=(data["omega"][0], data["omega"][-1]))
    axes[1].set_yticks(samples, [str(number) for number in samples])
    axes[1].minorticks_off()
    figure.colorbar(artists["map"], ax=axes[1], label="runs that learn the meaning first")
    panel_letters(axes)
    return artists
