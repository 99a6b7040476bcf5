"""Order parameters and risk of one run of any theory, against log time."""

from typing import Any

import numpy as np
import xarray

from simulations.figures.style import (
    COLOURS,
    LABELS,
    PROBLEM_STYLES,
    REFERENCE,
    log_time,
    panel_letter,
    styled,
)

#: Order parameters below this fraction of the largest one are drawn in a second panel.
_SMALL = 0.05


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Plot the order parameters, small ones in a panel of their own, and the population risk."""
    later = data.isel(time=slice(1, None))  # a logarithmic axis cannot show time 0
    time = later["time"].values
    reach = np.nan_to_num(np.abs(later["state"].values)).max(axis=1)
    large = reach >= _SMALL * reach.max()
    groups = [group for group in (large, ~large) if group.any()]
    panels = figure.subplots(len(groups) + 1, 1, sharex=True)
    artists: dict[str, Any] = {}
    for ax, group in zip(panels, groups):
        for number in np.flatnonzero(group).tolist():
            name = str(data["parameter"].values[number])
            style = dict(PROBLEM_STYLES[number % len(PROBLEM_STYLES)])
            if name in COLOURS:
                style |= {"color": COLOURS[name], "linestyle": "-"}
            style["label"] = LABELS.get(name, name)
            artists[name] = ax.plot(time, later["state"].values[number], **style)[0]
        ax.axhline(0.0, **REFERENCE)
        ax.set_ylabel("order parameters")
        ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    artists["loss"] = panels[-1].plot(time, later["loss"], color=COLOURS["loss"])[0]
    panels[-1].set_ylabel(LABELS["loss"])
    if later["loss"].min() > 0.0 and later["loss"].max() > 10.0 * later["loss"].min():
        panels[-1].set_yscale("log")
    for letter, ax in zip("abc", panels):
        log_time(ax, time, first=float(time[min(1, time.size - 1)]), label=ax is panels[-1])
        panel_letter(ax, letter)
    return artists
