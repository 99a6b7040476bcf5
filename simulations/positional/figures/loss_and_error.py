"""Population risk and test error along the flow, with the floors of the test error."""

from typing import Any

import numpy as np
import xarray
from matplotlib.ticker import NullFormatter

from simulations.figures.style import COLOURS, REFERENCE, line, log_time, pretty, styled


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw one panel per problem."""
    panels = np.atleast_1d(figure.subplots(1, data.sizes["problem"]))
    artists: dict[str, Any] = {}
    for number, ax in enumerate(panels):
        one = data.isel(problem=number)
        artists[f"loss {number}"] = line(ax, "loss", data["time"], one["loss"])
        artists[f"error {number}"] = line(ax, "test_error", data["time"], one["test_error"])
        floors = {
            "labelling_error": (r"$f^*$: $P[yf^*\leq 0]$", (0, (4, 2))),
            "best_error": ("best possible", (0, (1, 1.5))),
        }
        for key, (label, dashes) in floors.items():
            style = REFERENCE | {"linestyle": dashes, "color": COLOURS["test_error"]}
            ax.axhline(float(one[key]), label=label, **style)
        _decades(ax)
        log_time(ax, data["time"])
        ax.set_title(pretty(str(one["problem"].values)))
    panels[0].set_ylabel("population risk, test error")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=4)
    return artists


def _decades(ax: Any) -> None:
    """Logarithmic scale; over less than two decades with ticks at 1, 2 and 5, as plain numbers."""
    ax.set_yscale("log")
    low, high = ax.get_ylim()
    if high < 100.0 * low:
        ticks = [m * 10.0**k for k in range(-12, 3) for m in (1, 2, 5)]
        ticks = [tick for tick in ticks if low / 1.5 <= tick <= 1.5 * high]
        ax.set_ylim(min(low, ticks[0]), max(high, ticks[-1]))
        ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.yaxis.set_minor_formatter(NullFormatter())
