"""Figure of the regime of Theorem 4.1: a map of its conclusions, and the boundary against D."""

from typing import Any

import numpy as np
import xarray
from matplotlib.colors import LogNorm

from simulations.figures.regime_map import cell_edges
from simulations.figures.style import PROBLEM_STYLES, REFERENCE, panel_letters, size_ticks, styled

_MARKERS = ("o", "s", "D", "^")


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw the map of the conclusions, and the boundary against D."""
    left, right = figure.subplots(1, 2, width_ratios=(1.1, 1.0))
    artists: dict[str, Any] = {}
    x, y = data["density"].values, data["nu"].values
    artists["map"] = left.pcolormesh(
        cell_edges(x, True),
        cell_edges(y, True),
        data["excess"].values,
        norm=LogNorm(),
        cmap="viridis",
    )
    figure.colorbar(artists["map"], ax=left, label=r"bound on $P[f^*F\leq 0]$ times $d$")
    for marker, cells in (("o", data["inside"] == 1.0), ("x", data["association"] == 0.0)):
        i, j = np.nonzero(cells.values)
        left.plot(x[j], y[i], marker, color="white", fillstyle="none", markersize=6)
    left.axvline(1.0, **(REFERENCE | {"color": "white"}))
    left.set(xscale="log", yscale="log", xlabel="$qD/C^2$", ylabel=r"$\nu$")
    left.set_xticks(x, [f"{density:g}" for density in x], fontsize=9)
    left.set_xticks([], minor=True)
    sizes = data["D"].values
    for number, name in enumerate(data["scaling"].values):
        artists[str(name)] = _boundary(right, data.isel(scaling=number), number, str(name))
    artists["label"] = right.plot(
        sizes, data["label_limit"], color="#999999", linewidth=1.0, label=r"$P[yf^*\leq 0]=1/d$"
    )[0]
    bottom = 0.1
    right.fill_between(
        sizes, bottom, data["hypotheses_limit"], color="#009E73", alpha=0.12, linewidth=0
    )
    right.axhline(1.0, **REFERENCE)
    right.set(xscale="log", yscale="log", xlabel="$D$", ylabel="boundary in $qD/C^2$")
    size_ticks(right, sizes)
    ticks = [0.1, 0.2, 0.5, 1, 2, 5, 10]
    right.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    right.set_yticks([], minor=True)
    right.set(ylim=(bottom, 15), xlim=(sizes[0] / 1.3, sizes[-1] * 1.3))
    handles = [artist for name, artist in artists.items() if name != "map"]
    figure.legend(handles=handles, loc="outside upper center", ncols=3)
    panel_letters((left, right))
    return artists


def _boundary(ax: Any, boundary: xarray.Dataset, number: int, name: str) -> Any:
    """Draw the boundary of a scaling with its brackets as bars, and a triangle if it lies below."""
    finite = np.isfinite(boundary["boundary"].values)
    middle, sizes = boundary["boundary"].values[finite], boundary["D"].values[finite]
    inside, outside = (
        boundary[f"boundary_{side}"].values[finite] for side in ("inside", "outside")
    )
    below = np.isnan(inside)
    style = PROBLEM_STYLES[number % len(PROBLEM_STYLES)]
    shift = 1.0 + 0.05 * (number - 1)  # so that bars at one D do not hide each other
    ax.plot(sizes[below] * shift, middle[below], "v", color=style["color"], markersize=7)
    errors = (np.nan_to_num(middle - inside), outside - middle)
    return ax.errorbar(
        sizes * shift,
        middle,
        yerr=errors,
        marker=_MARKERS[number % 4],
        markersize=4,
        capsize=3,
        label=name.replace("nu", r"$\nu$"),
        **style,
    )
