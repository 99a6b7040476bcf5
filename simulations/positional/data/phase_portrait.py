"""What is drawn in ``figures/phase_portrait.py``."""

from collections.abc import Sequence

import numpy as np
import xarray

from dynamics import Population, Problem, SlowManifold, State, gradient_flow
from dynamics.core.crossing import every_step
from simulations.positional import runs
from simulations.positional.figures.phase_portrait import COARSE

_TOLERANCE = 1e-5  # of the population expectation on the grid
_HORIZON = 1e6
_SKETCH_TOLERANCE, _SKETCH_ACCURACY = 1e-4, 1e-3
_POINTS = 300  # along a trajectory, at equal distances
#: Window (gamma low, high, rho low, high) of each problem.
BOXES = {
    runs.BASE: (-1.5, 2.5, -1.5, 1.0),
    runs.CROWDED: (-3.0, 1.5, -2.5, 1.0),
}


def gather(problem: Problem, box: tuple[float, float, float, float], points: int) -> xarray.Dataset:
    """Return the velocity on a grid (rho, gamma) and trajectories (start, point) in the window."""
    manifold = SlowManifold(runs.population(problem, _TOLERANCE))
    starts = [(0.0, 0.0), *_corners(box)]
    return _portrait(manifold, box, points, [_path(problem, manifold, *start) for start in starts])


def sketch(problem: Problem, box: tuple[float, float, float, float]) -> xarray.Dataset:
    """Return the same, coarser and with the paper's start alone: drawn while a slider moves."""
    population = Population(problem, tolerance=_SKETCH_TOLERANCE)
    run = gradient_flow(population, horizon=_HORIZON, rtol=1e-4, atol=1e-6, records=100)
    path = _evenly(run.states[:, 1:])
    return _portrait(SlowManifold(population), box, COARSE, [path], _SKETCH_ACCURACY)


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
        # Back and forth, so that the quasi-steady alpha of a neighbour is always at hand.
        for j in range(points) if i % 2 == 0 else reversed(range(points)):
            place = float(gamma[j]), rho_i
            guess = _fill(manifold, *place, guess, accuracy, into=velocity[i, j])
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
    """Return several portraits in one dataset, names suffixed by their number."""
    whole = xarray.Dataset()
    for number, one in enumerate(portraits):
        names = {name: f"{name}_{number}" for name in ("gamma", "rho", *map(str, one.data_vars))}
        whole = whole.merge(one.rename(names))
        whole.attrs[f"problem_{number}"] = one.attrs["problem"]
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
    """Return starts spread over the window, some on each side of gamma = rho."""
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
