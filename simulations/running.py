"""Reading the settings of a solver, alike in every theory, and the numerical error of a run."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from dynamics import ParameterError
from dynamics.core.checks import require
from dynamics.core.trajectory import Trajectory
from simulations.system import Case, Parameter, decades
from simulations.values import one_of

#: Tolerances of the flow as in `gradient_flow`; the absolute one follows the relative one.
_ATOL = 1e-11
_RTOL, _LEARNING_RATE, _STEPS = 1e-8, 0.01, 1000


def solver_parameters(horizon: str, usual: float | None = None) -> tuple[Parameter, ...]:
    """Return the parameters that choose a solver; ``horizon`` says what its default is.

    ``usual`` is that default where it is one number.
    """
    stops = () if usual is None else decades(math.log10(usual) - 4, math.log10(usual) + 2, each=4)
    return (
        Parameter("solver", "gradient flow or descent (default flow)", str, "flow or gd",
                  usual="flow", choices=("flow", "gd")),
        Parameter("horizon", f"final time (default {horizon} for flow; for gd instead of steps)",
                  usual=usual, stops=stops),
        Parameter("learning_rate", f"of gd (default {_LEARNING_RATE})", float, "greater than 0"),
        Parameter("steps", f"of gd (default {_STEPS})", int, "an integer, at least 1"),
        Parameter("rtol", f"relative tolerance of the flow (default {_RTOL:g})", float,
                  "in [1e-13, 1)"),
    )  # fmt: skip


def solver_settings(values: Mapping[str, Any], horizon: float) -> tuple[str, dict[str, Any]]:
    """Return ``flow`` or ``gd`` and its settings, all filled in.

    Raises
    ------
    ParameterError
        For a value that is not allowed, or one of the other solver.
    """
    solver = values.get("solver", "flow")
    require(solver in ("flow", "gd"), "solver", repr(solver), "flow or gd")
    if solver == "flow":
        return solver, _flow_settings(values, horizon)
    return solver, _descent_settings(values)


def _flow_settings(values: Mapping[str, Any], horizon: float) -> dict[str, Any]:
    for name in ("learning_rate", "steps"):
        if name in values:
            raise ParameterError(f"{name} is not allowed with solver = flow: set horizon")
    settings = {
        "horizon": float(values.get("horizon", horizon)),
        "rtol": float(values.get("rtol", _RTOL)),
    }
    require(settings["horizon"] > 0.0, "horizon", settings["horizon"], "greater than 0")
    require(1e-13 <= settings["rtol"] < 1.0, "rtol", settings["rtol"], "in [1e-13, 1)")
    return settings | {"atol": _ATOL * (settings["rtol"] / _RTOL)}


def _descent_settings(values: Mapping[str, Any]) -> dict[str, Any]:
    if "rtol" in values:
        raise ParameterError("rtol is not allowed with solver = gd: it is of the flow")
    one_of(values, ("steps", "horizon"), "steps")
    rate = float(values.get("learning_rate", _LEARNING_RATE))
    require(rate > 0.0, "learning_rate", rate, "greater than 0")
    steps = int(values.get("steps", _STEPS))
    require(steps >= 1, "steps", steps, "an integer, at least 1")
    if "horizon" in values:
        horizon = float(values["horizon"])
        require(horizon >= rate, "horizon", horizon, f"at least one step of {rate:g}")
        steps = round(horizon / rate)
    return {"learning_rate": rate, "steps": steps}


def tolerance_of(values: Mapping[str, Any]) -> float | None:
    """Return the tolerance that is asked of the expectation, ``None`` if it is not given."""
    tolerance = values.get("tolerance")
    if tolerance is not None:
        require(tolerance > 0.0, "tolerance", tolerance, "greater than 0")
    return tolerance


def horizon_of(case: Case) -> float:
    """Return the final time that a case asks for."""
    settings = case.settings
    if case.solver == "gd":
        return float(settings["learning_rate"] * settings["steps"])
    return float(settings["horizon"])


def error_of_states(trajectory: Trajectory, values: np.ndarray) -> np.ndarray:
    """Return the numerical error of numbers like the order parameters, to first order.

    The resolution of the run and ten times its relative tolerance.
    """
    return np.asarray(trajectory.resolution + relative_error(trajectory) * np.abs(values))


def relative_error(trajectory: Trajectory) -> float:
    """Return ten times the relative tolerance of a run."""
    return 10.0 * float(trajectory.settings.get("rtol", ROUNDING))


#: Relative error of numbers that descent computes from its own states.
ROUNDING = 1e-13
