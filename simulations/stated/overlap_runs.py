"""Runs of one-pass SGD on vectors in a finite dimension, for theories in overlaps."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple

import numpy as np

from dynamics.core.annotations import Choices, Doc, at_least, at_most
from dynamics.core.checks import finite, integer, require
from dynamics.core.errors import ParameterError
from dynamics.overlaps.sampling import sampled_descent
from simulations.solver_options import OPTIMIZER, Solver
from simulations.stated.overlap_check import dense_model, orbits, vectors_of
from symbolic.overlaps import OverlapTheory
from symbolic.overlaps.noise import require_gradient
from symbolic.theory import TheoryError

#: Largest number of runs and of data of a step.
MOST_RUNS, MOST_BATCH = 10_000, 10**6


#: Default relative tolerance of the flow, far below the spread of runs; the absolute one relative
#: to it.
_RTOL, _ATOL = 1e-6, 1e-3
#: Default values of the parameters of SGD.
_DEFAULTS = {"batch": 1, "runs": 6, "seed": 0}


@dataclass(frozen=True, slots=True)
class OverlapSolver(Solver):
    """Parameters of the solver, with one-pass SGD (``"sgd"``).

    Attributes
    ----------
    batch
        Number of data of each step of SGD.
    runs, seed
        Number of runs on vectors and their root seed.
    """

    solver: Annotated[
        str,
        Choices("flow", "gd", "sgd"),
        Doc("gradient flow, gradient descent, or SGD with one pass over the data"),
    ] = "flow"
    batch: Annotated[
        int | None, at_least(1), at_most(MOST_BATCH), Doc("number of data of a step of sgd", "1")
    ] = None
    runs: Annotated[
        int | None, at_least(2), at_most(MOST_RUNS), Doc("runs of sgd on vectors", "6")
    ] = None
    seed: Annotated[int | None, at_least(0), Doc("root seed of the runs of sgd", "0")] = None

    def settings(self, given: Collection[str], horizon: float | None) -> dict[str, Any]:
        """Return the keyword arguments of the solver; see `Solver.settings`."""
        forbidden = OPTIMIZER if self.solver == "sgd" else tuple(_DEFAULTS)
        for name in forbidden:
            if name in given:
                instead = "gd" if self.solver == "sgd" else "sgd"
                raise ParameterError(
                    f"{name} is not allowed with solver = {self.solver}: set solver = {instead}"
                )
        if self.solver != "sgd":
            return super(OverlapSolver, self).settings(given, horizon)
        steps = Solver.settings(replace(self, solver="gd"), set(given) - {"rtol"}, horizon)
        own = {name: getattr(self, name) for name in _DEFAULTS}
        chosen = {name: value for name, value in own.items() if value is not None}
        rtol = _RTOL if self.rtol is None else self.rtol
        return {**steps, **_DEFAULTS, **chosen, "rtol": rtol, "atol": rtol * _ATOL}


class StochasticRuns(NamedTuple):
    """Overlaps along runs of one-pass SGD.

    Attributes
    ----------
    time
        Learning rate x step at each record, (records,).
    order_parameters
        Names of the n overlaps.
    states
        Overlaps, means over the pairs of an orbit, (runs, records, n).
    """

    time: np.ndarray
    order_parameters: tuple[str, ...]
    states: np.ndarray

    @property
    def mean(self) -> np.ndarray:
        """Mean over the runs, (records, n)."""
        return np.asarray(self.states.mean(axis=0))

    @property
    def deviation(self) -> np.ndarray:
        """Standard deviation over the runs, (records, n)."""
        return np.asarray(self.states.std(axis=0, ddof=1))

    def distance(self, states: np.ndarray) -> np.ndarray:
        """Return the distance of states (records, n) from the mean, in standard deviations.

        It is 0 at the start, where all runs agree up to rounding.
        """
        difference = np.abs(states - self.mean)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = difference / self.deviation
        return np.where(difference <= 1e-12 * (1.0 + np.abs(states)), 0.0, ratio)

    def variables(self, identifiers: Mapping[str, str]) -> dict[str, Any]:
        """Return mean and standard deviation of each overlap as variables of a dataset."""
        result: dict[str, Any] = {"sgd_time": ("sgd_record", self.time)}
        for k, name in enumerate(self.order_parameters):
            for values, suffix, text in (
                (self.mean, "mean", "mean over the runs of sgd"),
                (self.deviation, "deviation", "standard deviation over the runs of sgd"),
            ):
                column = ("sgd_record", values[:, k], {"long_name": f"{name}, {text}"})
                result[f"{identifiers[name]}_{suffix}"] = column
        return result


def stochastic_runs(
    theory: OverlapTheory,
    values: Mapping[str, float],
    start: Mapping[str, float],
    *,
    learning_rate: float,
    schedule: np.ndarray,
    batch: int = 1,
    runs: int = 6,
    seed: int = 0,
    progress: Callable[[float], None] | None = None,
) -> StochasticRuns:
    """Train vectors by SGD with new data at each step.

    Parameters
    ----------
    theory, values, start
        Theory, checked sizes and constants, and initial overlaps.
    learning_rate, batch
        Step size of the vectors, and number of data of each step.
    schedule
        Recorded steps, increasing from 0.
    runs, seed
        Number of runs (at least 2) and root seed.
    progress
        Called with the fraction done after each run.

    Raises
    ------
    ParameterError
        If an argument is outside its domain, or if a run diverges.
    TheoryError
        If there are several spaces, or vectors on a sphere, or if the loss of a datum jumps.
    """
    rate = finite("learning_rate", learning_rate)
    require(rate > 0.0, "learning_rate", rate, "greater than 0")
    runs, batch = integer("runs", runs, 2, MOST_RUNS), integer("batch", batch, 1, MOST_BATCH)
    spaces = {x.space for x in (*theory.vectors, *theory.data)}
    if len(spaces) > 1 or any(x.sphere for x in theory.parameters):
        raise TheoryError(
            "runs of one-pass SGD are not allowed: they need vectors in one space, none of them on "
            "a sphere",
            theory.location,
        )
    require_gradient(theory.loss, theory.parameters)
    numbers = dict(values)
    pairs = orbits(theory, numbers)
    overlaps = {pair: start[theory.names[pair]] for pair in pairs}
    states = sampled_descent(
        dense_model(theory, numbers),
        vectors_of(theory, numbers, overlaps),
        list(pairs.values()),
        learning_rate=rate,
        batch=batch,
        schedule=schedule,
        runs=runs,
        seed=integer("seed", seed, 0),
        progress=progress,
    )
    return StochasticRuns(rate * schedule, tuple(theory.names[pair] for pair in pairs), states)
