"""Radius of a tube and bounds of gamma - rho, against time."""

from typing import Any

import numpy as np
import xarray

from simulations.figures.style import (
    COLOURS,
    LABELS,
    REFERENCE,
    log_time,
    panel_letter,
    signed_log,
    styled,
)


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Plot the radius of the tube, and below it the bounds (low, high) of gamma - rho."""
    later = data.isel(time=slice(1, None))  # a logarithmic axis cannot show time 0
    time = later["time"].values
    above, below = figure.subplots(2, 1, sharex=True)
    artists: dict[str, Any] = {}
    for name in data["parameter"].values.tolist():
        radius = later["radius"].sel(parameter=name).values
        label, colour = LABELS.get(name, name), COLOURS.get(name)
        artists[name] = above.plot(time, radius, label=label, color=colour)[0]
    above.set(yscale="log", ylabel="radius of the tube")
    above.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    low, high = (later["gap"].sel(end=end).values for end in ("low", "high"))
    artists["gap"] = below.fill_between(time, low, high, color=COLOURS["gamma - rho"])
    below.axhline(0.0, **REFERENCE)
    threshold = max(1e-9, 1e-6 * float(np.max(np.abs(high))))
    signed_log(below, "y", threshold, np.concatenate([low, high]))
    below.set_ylabel(LABELS["gamma - rho"])
    for letter, ax in zip("ab", (above, below)):
        log_time(ax, time, first=float(time[0]), label=ax is below)
        panel_letter(ax, letter)
    return artists
