"""Observables and events of a theory file along a run."""

import ast
import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dynamics import Trajectory, gradient_descent
from dynamics.core.crossing import root
from dynamics.core.integrate import Path
from dynamics.theory.risk import TheoryRisk
from simulations.falsify.bounded import Bounded
from simulations.falsify.language import number, violation
from symbolic.theory import Theory

#: Margin of a statement that holds with equality, margin of an undefined one, and largest margin.
_AT_BOUNDARY, _UNDEFINED, _LARGEST = 1e-300, -1.0, 1e300
#: Times around an extremum, and rounds of refinement.
_POINTS, _ROUNDS = 17, 6
#: Largest number of records between two records of gradient descent.
_STEPS = 100


def observables(
    theory: Theory, constants: Mapping[str, float], columns: Mapping[str, Bounded]
) -> dict[str, Bounded]:
    """Return the observables that a file defines.

    Parameters
    ----------
    theory
        The theory.
    constants
        Sizes, constants and initial values.
    columns
        Mapping from name to values along a run, each of shape (n,).

    Returns
    -------
    dict of str to Bounded
        Values of shape (n,).
    """
    known = {name: Bounded.exact(x) for name, x in constants.items()} | dict(columns)
    shape = columns["time"].value.shape
    own: dict[str, Bounded] = {}
    with np.errstate(all="ignore"):
        for name, tree in theory.formulas.observables.items():
            result = number(tree, known | own)
            parts = (result.value, result.low, result.high)
            own[name] = Bounded(*(np.broadcast_to(part, shape) for part in parts))
    return own


def first_times(
    theory: Theory, constants: Mapping[str, float], trajectory: Trajectory, population: TheoryRisk
) -> dict[str, float]:
    """Return the first time of each event of a file; nan if it does not occur within the run.

    A flow is searched at all steps of the integrator and near the extrema between them, and the
    time is located on the dense output to a relative accuracy of 1e-6. An event of gradient
    descent or sign descent is the first step after the last record before it; with momentum,
    states between two records are interpolated.

    Parameters
    ----------
    theory, constants
        The theory; sizes, constants and initial values.
    trajectory, population
        Run with at least one record, and its risk.
    """
    times = trajectory.time
    if isinstance(trajectory.interpolant, Path):
        steps = np.array(trajectory.interpolant.times)
        times = np.append(steps[steps < times[-1]], times[-1])
    return {
        name: _first_time(_Margins(theory, tree, constants, trajectory, population), times)
        for name, tree in theory.formulas.events.items()
    }


@dataclass(frozen=True)
class _Margins:
    """Margins of a statement at times of a run: positive where it holds."""

    theory: Theory
    tree: ast.expr
    constants: Mapping[str, float]
    run: Trajectory
    population: TheoryRisk

    def __call__(self, times: np.ndarray) -> np.ndarray:
        return self.of(times, np.array([self.run.at(time) for time in times.tolist()]))

    def of(self, times: np.ndarray, states: np.ndarray) -> np.ndarray:
        """Return the margins at times (n,) and their states."""
        times = np.append(self.run.time[0], times)  # for `at_start`
        states = np.vstack([self.run.states[:1], states])
        columns = {order.identifier: x for order, x in zip(self.theory.orders, states.T)}
        loss = [self.population.loss(state) for state in states]
        columns |= {"time": times, "loss": np.array(loss)}
        exact = {name: Bounded.exact(values) for name, values in columns.items()}
        own = observables(self.theory, self.constants, exact)
        known = {name: Bounded.exact(x) for name, x in self.constants.items()} | exact | own
        with np.errstate(all="ignore"):
            worst = np.broadcast_to(violation(self.tree, known).value, times.shape)[1:]
        margins = np.clip(np.where(np.isnan(worst), _UNDEFINED, -worst), -_LARGEST, _LARGEST)
        return np.where(worst <= 0.0, np.maximum(margins, _AT_BOUNDARY), margins)

    def at(self, time: float) -> float:
        """Return the margin at one time."""
        return float(self(np.array([time]))[0])


def _first_time(margins: _Margins, times: np.ndarray) -> float:
    """Return the first time with a positive margin, nan if there is none."""
    values, before = margins(times), float(times[0])
    settings = margins.run.settings
    has_steps = "learning_rate" in settings and "momentum" not in settings
    for index, (time, value) in enumerate(zip(times.tolist(), values.tolist())):
        around = slice(max(index - 1, 0), index + 2)
        if not has_steps and value <= 0.0 and value == values[around].max():
            time = _peak(margins, times[around])
            value = margins.at(time)
        if value > 0.0:
            if time == times[0]:
                return time
            return (_first_step if has_steps else _crossing)(margins, before, time)
        before = float(times[index])
    return math.nan


def _crossing(margins: _Margins, low: float, high: float) -> float:
    """Return the time of a change of sign on the dense output."""
    return root(margins.at, low, high)


def _first_step(margins: _Margins, low: float, high: float) -> float:
    """Return the time of the first step with a positive margin between two records."""
    settings, state = margins.run.settings, margins.run.at(low)
    rate = settings["learning_rate"]
    rule = {name: settings[name] for name in ("optimizer", "weight_decay") if name in settings}
    while (steps := round((high - low) / rate)) > 1:
        part = gradient_descent(
            margins.population, learning_rate=rate, steps=steps, initial=state,
            record="linear", records=_STEPS, **rule,
        )  # fmt: skip
        times = low + part.time
        positive = np.flatnonzero(margins.of(times, part.states) > 0.0)
        if not positive.size or positive[0] == 0:  # rounding, or a run that ended early
            break
        first = int(positive[0])
        low, high, state = float(times[first - 1]), float(times[first]), part.states[first - 1]
    return high


def _peak(margins: _Margins, times: np.ndarray) -> float:
    """Return the time of the largest margin in an interval of times."""
    for _ in range(_ROUNDS):
        times = np.linspace(times[0], times[-1], _POINTS)
        best = int(np.argmax(margins(times)))
        times = times[max(best - 1, 0) : best + 2]
    return float(times[min(best, 1)])
