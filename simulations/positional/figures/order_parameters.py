"""Order parameters and attention weights against log time, the three events shaded."""

from typing import Any

import numpy as np
import xarray

from simulations.figures.style import (
    COLOURS,
    LABELS,
    REFERENCE,
    line,
    log_time,
    panel_letter,
    shade_events,
    styled,
)


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw alpha; gamma and rho; Lambda, Gamma, Xi; G."""
    panels = figure.subplots(2, 2, sharex=True)
    groups = (("alpha",), ("gamma", "rho"), ("Lambda", "Gamma", "Xi"), ("G",))
    artists: dict[str, Any] = {}
    later = data.isel(time=slice(1, None))  # flow time 0 has no place on a logarithmic axis
    time = later["time"].values
    for letter, ax, names in zip("abcd", panels.flat, groups):
        for name in names:
            artists[name] = line(ax, name, time, later[name])
        ax.set_ylabel(", ".join(LABELS[name] for name in names))
        log_time(ax, time, first=1e-3, label=ax in panels[1])
        shade_events(ax, (data.attrs["T0"], data.attrs["T1"]), names=ax in panels[0])
        panel_letter(ax, letter)
    panels[0, 0].set_ylim(bottom=0.0)
    panels[0, 1].axhline(0.0, **REFERENCE)
    panels[1, 0].set_yscale("log")
    for ax, names in zip(panels.flat, groups):
        if len(names) > 1:
            artists[f"legend {names}"] = ax.legend(loc="best", labelcolor="linecolor")
    _mark_rise(panels[0, 0], data)
    return artists


def _mark_rise(ax: Any, data: xarray.Dataset) -> None:
    """Mark where alpha begins and ceases to rise a second time, if it does."""
    for name in ("onset", "end"):
        time = data.attrs[name]
        if np.isfinite(time):
            alpha = float(np.interp(time, data["time"], data["alpha"]))
            ax.plot(time, alpha, "o", color=COLOURS["alpha"], markersize=4)
