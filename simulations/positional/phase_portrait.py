"""The plane (gamma, rho) on the slow manifold: velocities, trajectories, and their figure."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray
from matplotlib.patches import Polygon

from dynamics import Population, Problem, SlowManifold, State, gradient_flow
from dynamics.core.crossing import every_step
from simulations.figures.style import COLOURS, LABELS, pretty, styled
from simulations.positional import reference_runs as runs

_TOLERANCE = 1e-5  # of the population expectation on the grid
_HORIZON = 1e6
_PREVIEW_TOLERANCE, _PREVIEW_ACCURACY = 1e-4, 1e-3  # accurate to the width of a line
_POINTS = 300  # along a trajectory, at equal distances
#: Window (gamma low, high, rho low, high) of each problem.
BOXES = {
    runs.BASE: (-1.5, 2.5, -1.5, 1.0),
    runs.CROWDED: (-3.0, 1.5, -2.5, 1.0),
}
#: Points a side of the grid of a preview; up to this the streamlines are drawn sparser.
COARSE = 11


def portrait(
    problem: Problem, box: tuple[float, float, float, float], points: int
) -> xarray.Dataset:
    """Return the velocity on a grid (rho, gamma) and trajectories (start, point) in the window."""
    manifold = SlowManifold(runs.population(problem, _TOLERANCE))
    starts = [(0.0, 0.0), *_corners(box)]
    return _portrait(manifold, box, points, [_path(problem, manifold, *start) for start in starts])


def preview(problem: Problem, box: tuple[float, float, float, float]) -> xarray.Dataset:
    """Return a coarse `portrait` with the trajectory from the paper's start alone.

    It is fast enough to follow a slider.
    """
    population = Population(problem, tolerance=_PREVIEW_TOLERANCE)
    run = gradient_flow(population, horizon=_HORIZON, rtol=1e-4, atol=1e-6, records=100)
    path = _evenly(run.states[:, 1:])
    return _portrait(SlowManifold(population), box, COARSE, [path], _PREVIEW_ACCURACY)


def _portrait(
    manifold: SlowManifold,
    box: tuple[float, float, float, float],
    points: int,
    paths: list[np.ndarray],
    accuracy: float = 1e-13,
) -> xarray.Dataset:
    gamma, rho = np.linspace(*box[:2], points), np.linspace(*box[2:], points)
    velocity = np.full((points, points, 2), np.nan)
    guess: float | None = None
    for i, rho_i in enumerate(rho.tolist()):
        # Traverse back and forth: the quasi-steady alpha of a neighbour is the first guess.
        for j in range(points) if i % 2 == 0 else reversed(range(points)):
            point = float(gamma[j]), rho_i
            guess = _fill(manifold, *point, guess, accuracy, into=velocity[i, j])
    return xarray.Dataset(
        {
            "gamma_velocity": (("rho", "gamma"), velocity[..., 0]),
            "rho_velocity": (("rho", "gamma"), velocity[..., 1]),
            "path": (("start", "point", "parameter"), np.stack(paths)),
        },
        coords={"gamma": gamma, "rho": rho, "parameter": ["gamma", "rho"]},
        attrs={"problem": runs.describe(manifold.population.problem)},
    )


def combine(portraits: Sequence[xarray.Dataset]) -> xarray.Dataset:
    """Return several portraits in one dataset, with their index appended to each name."""
    whole = xarray.Dataset()
    for number, portrait in enumerate(portraits):
        names = {
            name: f"{name}_{number}" for name in ("gamma", "rho", *map(str, portrait.data_vars))
        }
        whole = whole.merge(portrait.rename(names))
        whole.attrs[f"problem_{number}"] = portrait.attrs["problem"]
    return whole


def _fill(
    manifold: SlowManifold,
    gamma: float,
    rho: float,
    guess: float | None,
    accuracy: float,
    into: np.ndarray,
) -> float | None:
    try:
        alpha = manifold.alpha(gamma, rho, guess, accuracy)
    except ArithmeticError:
        return guess
    gradient = manifold.population.gradient(State(alpha, gamma, rho))
    into[:] = -gradient.gamma, -gradient.rho
    return alpha


def _corners(box: tuple[float, float, float, float]) -> list[tuple[float, float]]:
    """Return initial points over the whole window, on both sides of gamma = rho."""
    fractions = ((0.12, 0.85), (0.12, 0.15), (0.45, 0.9), (0.9, 0.85))
    return [(box[0] + x * (box[1] - box[0]), box[2] + y * (box[3] - box[2])) for x, y in fractions]


def _path(problem: Problem, manifold: SlowManifold, gamma: float, rho: float) -> np.ndarray:
    start = problem.initial_state
    if (gamma, rho) != (0.0, 0.0):
        start = State(manifold.alpha(gamma, rho), gamma, rho)
    run = runs.flow(problem, _TOLERANCE, _HORIZON, start, records=2)
    return _evenly(every_step(run).states[:, 1:])


def _evenly(points: np.ndarray) -> np.ndarray:
    """Return a curve (n, 2) at `_POINTS` equal distances."""
    lengths = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(points, axis=0).T))])
    even = np.linspace(0.0, lengths[-1], _POINTS)
    return np.stack([np.interp(even, lengths, column) for column in points.T], axis=-1)


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw streamlines, nullclines and trajectories of `combine`, one panel per problem."""
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
