"""Where the conclusions of Theorem 4.1 hold: a map, and its boundary against D."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray
from matplotlib.colors import LogNorm

from simulations.figures.regime_map import cell_edges
from simulations.figures.style import PROBLEM_STYLES, REFERENCE, panel_letter, styled

_LEAST = 1e-5  # smallest excess of the test error that is told apart by colour
_MARKERS = ("o", "s", "D", "^")


def gather(
    data: xarray.Dataset, inside: xarray.DataArray, edges: Mapping[tuple[int, float], Any]
) -> xarray.Dataset:
    """Return the map (nu, density) and the boundary (boundary_nu, D)."""
    sizes = sorted({D for D, _ in edges})
    nus = sorted({nu for _, nu in edges})

    def table(name: str) -> tuple[tuple[str, str], np.ndarray]:
        rows = [[getattr(edges[D, nu], name) if (D, nu) in edges else np.nan for D in sizes]
                for nu in nus]  # fmt: skip
        return ("boundary_nu", "D"), np.array(rows)

    excess = data["test_error"] - data["best_test_error"]
    dims = ("nu", "density")
    return xarray.Dataset(
        {
            "excess": (dims, excess.values),
            "association": (dims, data["association"].values),
            "inside": (dims, inside.values.astype(int)),
            "boundary": table("middle"),
            "boundary_inside": table("inside"),
            "boundary_outside": table("outside"),
        },
        coords={"nu": data["nu"].values, "density": data["qD_over_C2"].values,
                "boundary_nu": nus, "D": sizes},
    )  # fmt: skip


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw both panels."""
    left, right = figure.subplots(1, 2, width_ratios=(1.15, 1.0))
    artists: dict[str, Any] = {}
    x, y = data["density"].values, data["nu"].values
    excess = np.maximum(data["excess"].values, _LEAST)
    artists["map"] = left.pcolormesh(
        cell_edges(x, True), cell_edges(y, True), excess, norm=LogNorm(_LEAST, 0.5), cmap="viridis"
    )
    figure.colorbar(artists["map"], ax=left, label="test error above the best")
    for marker, cells in (("o", data["inside"] == 1), ("x", data["association"] == 0.0)):
        i, j = np.nonzero(cells.values)
        left.plot(x[j], y[i], marker, color="white", fillstyle="none", markersize=6)
    left.axvline(1.0, **(REFERENCE | {"color": "white"}))
    left.set(xscale="log", yscale="log", xlabel="$qD/C^2$", ylabel=r"$\nu$")
    left.set_xticks(x, [f"{density:g}" for density in x], fontsize=8)
    left.set_xticks([], minor=True)
    for number, nu in enumerate(data["boundary_nu"].values):
        artists[f"nu {nu:g}"] = _boundary(right, data.isel(boundary_nu=number), number, float(nu))
    right.axhline(1.0, **REFERENCE)
    right.set(xscale="log", yscale="log", xlabel="$D$", ylabel="boundary in $qD/C^2$")
    sizes = data["D"].values
    right.set_xticks(sizes, [str(D) for D in sizes])
    right.set_xticks([], minor=True)
    ticks = [0.5, 1, 2, 4, 8, 16]
    right.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    right.set_yticks([], minor=True)
    right.set_ylim(0.4, 20)
    right.legend(loc="upper left")
    panel_letter(left, "a")
    panel_letter(right, "b")
    return artists


def _boundary(ax: Any, one: xarray.Dataset, number: int, nu: float) -> Any:
    """Draw the boundary at one nu, its last bracket as a bar."""
    known = np.isfinite(one["boundary"].values)
    middle, sizes = one["boundary"].values[known], one["D"].values[known]
    ends = [one[f"boundary_{side}"].values[known] for side in ("inside", "outside")]
    below, above = (np.nan_to_num(np.abs(end - middle)) for end in ends)
    look = PROBLEM_STYLES[number % len(PROBLEM_STYLES)]
    shift = 1.0 + 0.04 * (number - 1)  # so that bars at one D do not hide each other
    return ax.errorbar(sizes * shift, middle, yerr=(below, above), marker=_MARKERS[number % 4],
                       markersize=5, capsize=3, label=rf"$\nu={nu:g}$", **look)  # fmt: skip
