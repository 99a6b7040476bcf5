"""What is drawn in ``figures/scaling.py``."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray

from dynamics.positional.large_D import (
    Limit,
    attended_slope,
    branch,
    first_fold,
    linear_constant,
    power_constant,
)

_GRID = 160


def gather_branches(limits: Sequence[Limit], runs: Mapping[Any, Any]) -> xarray.Dataset:
    """Return the curves a(nu_hat) of several limits, dims (limit, point), and measured alpha*."""
    logs = np.linspace(-45.0, 45.0, 181)
    curves = [branch(limit, logs) for limit in limits]
    places = [(limit.p, round(limit.features)) for limit in limits]
    points = []
    for case, one in runs.items():
        size = case.D ** (1.0 / case.p)
        number = places.index((case.p, case.features))
        points.append((number, case.problem.nu * case.D / size, one.events.alpha_star * size))
    which, x, y = np.array(points).reshape(-1, 3).T
    return xarray.Dataset(
        {
            "nu_hat": (("limit", "point"), [curve.nu_hat for curve in curves]),
            "a": (("limit", "point"), [curve.a for curve in curves]),
            "power": ("limit", [power_constant(limit) for limit in limits]),
            "linear": ("limit", [linear_constant(limit) for limit in limits]),
            "measured_limit": ("measured", which.astype(int)),
            "measured_nu_hat": ("measured", x),
            "measured_a": ("measured", y),
        },
        coords={"p": ("limit", [p for p, _ in places]), "qD": ("limit", [f for _, f in places])},
    )


def gather_jumps(runs: Sequence[Any]) -> xarray.Dataset:
    """Return the sign of d alpha/dt over (G, alpha), the fold and the path of several runs."""
    panels = []
    for run in runs:
        problem, limit = run.path.problem, Limit.of(run.path.problem)
        G = np.geomspace(5.0, 0.5 * problem.D, _GRID)
        settled = run.path.time > run.events.T0.time
        reach = run.path.alpha[settled]
        alpha = np.geomspace(0.3 * reach.min(), 8.0 * reach.max(), _GRID)
        fold = first_fold(limit, problem.D, problem.nu)
        path = np.stack([run.path.attention[settled, 3], reach], axis=1)
        path = path[np.linspace(0, len(path) - 1, 200).round().astype(int)]
        curve = fold.curve[np.linspace(0, len(fold.curve) - 1, 200).round().astype(int)]
        slope = np.array([attended_slope(limit, problem.D, problem.nu, one, G) for one in alpha])
        panels.append(
            xarray.Dataset(
                {
                    "slope": (("level", "mass"), slope),
                    "G": ("mass", G),
                    "alpha": ("level", alpha),
                    "path": (("record", "coordinate"), path),
                    "branch": (("record", "coordinate"), curve),
                    "fold": ("coordinate", [fold.G, fold.alpha]),
                    "scaling": run.case.scaling,
                    "D": run.case.D,
                    "qD": run.case.features,
                }
            )
        )
    return xarray.concat(panels, "panel")


def gather_differences(apart: Mapping[Any, Any]) -> xarray.Dataset:
    """Return |T1 / theory - 1| and |alpha* / theory - 1| of each flow, dims (run,)."""
    return xarray.Dataset(
        {
            "D": ("run", [case.D for case in apart]),
            "p": ("run", [case.p for case in apart]),
            "scaling": ("run", [case.scaling for case in apart]),
            "T1": ("run", [abs(one.T1) for one in apart.values()]),
            "alpha_star": ("run", [abs(one.alpha_star) for one in apart.values()]),
        }
    )
