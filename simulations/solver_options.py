"""Parameters of the solver, the same for all theories, and the numerical error of a run."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np

from dynamics import ParameterError
from dynamics.core.annotations import Choices, Doc, Text, above, as_text, at_least, below
from dynamics.core.checks import require
from dynamics.core.optimizers import NAMES as OPTIMIZERS
from dynamics.core.optimizers import optimizer_of
from dynamics.core.parameters import Parameters, single_name
from dynamics.core.trajectory import Trajectory

if TYPE_CHECKING:
    from simulations.case import Case

#: Default tolerances of `gradient_flow`; the absolute one is proportional to the relative one.
_ATOL, _RTOL = 1e-11, 1e-8
#: Parameters of the update rule of gradient descent.
OPTIMIZER = ("optimizer", "momentum", "weight_decay")
#: Default learning rate and number of steps of gradient descent.
_RATE, _STEPS = 0.01, 1000


@dataclass(frozen=True, slots=True)
class Solver(Parameters):
    """Parameters of the solver; a theory with other defaults declares these fields again.

    Attributes
    ----------
    solver
        Gradient flow (``"flow"``) or gradient descent (``"gd"``).
    horizon
        Final time.
    learning_rate, steps
        Settings of gradient descent; the final time is their product.
    rtol
        Relative tolerance of gradient flow.
    optimizer, momentum, weight_decay
        Update rule of gradient descent (`dynamics.core.optimizers.Optimizer`).
    """

    solver: Annotated[str, Choices("flow", "gd"), Doc("gradient flow or gradient descent")] = "flow"
    horizon: Annotated[
        float | None,
        above(0),
        Doc("final time; with gd, in place of steps", "long enough to learn"),
    ] = None
    learning_rate: Annotated[float | None, above(0), Doc("learning rate of gd", f"{_RATE}")] = None
    steps: Annotated[int | None, at_least(1), Doc("number of steps of gd", f"{_STEPS}")] = None
    rtol: Annotated[
        float | None,
        at_least(1e-13),
        below(1),
        Doc("relative tolerance of flow", as_text(_RTOL)),
    ] = None

    optimizer: Annotated[
        str | None, Text(str, str), Doc(f"optimizer of gd: {', '.join(OPTIMIZERS)}", "gd")
    ] = None
    momentum: Annotated[
        float | None,
        at_least(0),
        below(1),
        Doc("coefficient of the optimizers momentum and adam", "0.9"),
    ] = None
    weight_decay: Annotated[float | None, at_least(0), Doc("decoupled weight decay of gd", "0")] = (
        None
    )

    #: Default learning rate and number of steps of gradient descent.
    descent: ClassVar[tuple[float, int]] = (_RATE, _STEPS)

    def settings(self, given: Collection[str], horizon: float | None) -> dict[str, Any]:
        """Return the keyword arguments of the solver.

        Parameters
        ----------
        given
            Names of the parameters that the user sets.
        horizon
            Final time of gradient flow if the user sets none.

        Raises
        ------
        ParameterError
            If the user sets a parameter of the other solver.
        """
        if self.solver == "flow":
            for name in ("learning_rate", "steps", *OPTIMIZER):
                if name in given:
                    instead = "solver = gd" if name in OPTIMIZER else "horizon"
                    raise ParameterError(f"{name} is not allowed with solver = flow: set {instead}")
            rtol = _RTOL if self.rtol is None else self.rtol
            end = horizon if self.horizon is None else self.horizon
            return {"horizon": end, "rtol": rtol, "atol": _ATOL * (rtol / _RTOL)}
        if "rtol" in given:
            raise ParameterError("rtol is not allowed with solver = gd: it applies to flow")
        single_name(("steps", "horizon"), given)
        rate, steps = self.learning_rate or self.descent[0], self.steps or self.descent[1]
        if self.horizon is not None and "horizon" in given:
            least = f"at least one step of {rate:g}"
            require(self.horizon >= rate, "horizon", self.horizon, least)
            steps = round(self.horizon / rate)
        constants = {"momentum": self.momentum, "weight_decay": self.weight_decay}
        chosen = {name: value for name, value in constants.items() if value is not None}
        optimizer = optimizer_of(self.optimizer or "gd", chosen)
        return {"learning_rate": rate, "steps": steps, **optimizer.settings()}


def horizon_of(case: Case) -> float:
    """Return the final time of a case."""
    settings = case.settings
    if "steps" in settings:
        return float(settings["learning_rate"] * settings["steps"])
    return float(settings["horizon"])


def error_of_states(trajectory: Trajectory, values: np.ndarray) -> np.ndarray:
    """Return the first-order numerical error of quantities that are computed as order parameters.

    Parameters
    ----------
    trajectory
        Run with n records.
    values
        Values at the records, shape (n,).

    Returns
    -------
    ndarray
        Resolution of the run plus ten times its relative tolerance times ``values``, shape (n,).
    """
    return np.asarray(trajectory.resolution + relative_error(trajectory) * np.abs(values))


#: Relative rounding error of a step of gradient descent.
ROUNDING = 1e-13


def relative_error(trajectory: Trajectory) -> float:
    """Return ten times the relative tolerance of a run."""
    return 10.0 * float(trajectory.settings.get("rtol", ROUNDING))
