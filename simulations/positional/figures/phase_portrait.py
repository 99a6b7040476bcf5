"""The plane (gamma, rho) on the slow manifold: streamlines, nullclines, the line gamma = rho."""

from typing import Any

import numpy as np
import xarray
from matplotlib.patches import Polygon

from simulations.figures.style import COLOURS, LABELS, pretty, styled

#: Tolerances and number of points of a sketch, good to the width of a line.
#: Points a side up to which arrows are drawn sparser.
COARSE = 11


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw one panel per problem."""
    numbers = [name.removeprefix("problem_") for name in data.attrs if name.startswith("problem_")]
    panels = np.atleast_1d(figure.subplots(1, len(numbers)))
    artists: dict[str, Any] = {}
    for ax, number in zip(panels, numbers):
        artists[f"streamlines {number}"] = _draw_flow(ax, data, number)
        artists[f"paths {number}"] = _draw_paths(ax, data[f"path_{number}"].values)
        ax.set(xlabel=LABELS["gamma"], ylabel=LABELS["rho"])
        ax.set_title(_two_lines(data.attrs[f"problem_{number}"]))
    return artists


def _draw_flow(ax: Any, data: xarray.Dataset, number: str) -> Any:
    x, y = data[f"gamma_{number}"].values, data[f"rho_{number}"].values
    u = data[f"gamma_velocity_{number}"].values
    v = data[f"rho_velocity_{number}"].values
    speed = np.maximum(np.hypot(u, v), 1e-300)  # zero at the symmetric point beta = gamma = rho
    density = 0.9 if x.size > COARSE else 0.5
    streams = ax.streamplot(
        x, y, u / speed, v / speed, color="#9AA5B1", density=density, linewidth=0.6, arrowsize=0.7
    )
    ax.contour(x, y, u, [0.0], colors=COLOURS["gamma"], linewidths=1.2)
    ax.contour(x, y, v, [0.0], colors=COLOURS["rho"], linewidths=1.2, linestyles="dashed")
    low, high = max(x[0], y[0]), min(x[-1], y[-1])
    corners = [(x[0], y[0]), (low, low), (high, high), (high, y[-1]), (x[0], y[-1])]
    ax.add_patch(Polygon(corners, facecolor="#000000", alpha=0.07, linewidth=0, zorder=0))
    ax.plot([low, high], [low, high], color="#222222", linewidth=1.0)
    box = {"fc": "white", "ec": "none", "pad": 1.0}
    ax.annotate(
        r"$\gamma=\rho$",
        (low, low),
        xytext=(16, 5),
        fontsize=9,
        textcoords="offset points",
        bbox=box,
    )
    ax.set(xlim=(x[0], x[-1]), ylim=(y[0], y[-1]))
    return streams


def _draw_paths(ax: Any, paths: np.ndarray) -> list[Any]:
    lines = []
    for index, path in enumerate(paths):
        colour, order = ("#D55E00", 4) if index == 0 else ("#332288", 3)
        lines += ax.plot(*path.T, color=colour, linewidth=1.8, zorder=order)
        ax.plot(*path[0], "o", mfc="white", mec=colour, markersize=4, zorder=order + 1)
        ax.plot(*path[-1], "o", color=colour, markersize=4, zorder=order + 1)
    return lines


def _two_lines(name: str) -> str:
    parts = pretty(name).split(", ")
    return ", ".join(parts[:3]) + "\n" + ", ".join(parts[3:])
