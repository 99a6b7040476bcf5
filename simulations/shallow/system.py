"""The shallow vision transformer (Li, Wang, Liu, Chen 2023) as a system: population descent.

Observables of a symmetric state are the attention on label-relevant tokens, margins yF, and the
two numbers of the theory of concentration, the logit of an irrelevant query and the gap.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, ClassVar

import numpy as np

from dynamics.core.annotations import (
    Choices,
    Doc,
    Ticks,
    Unreported,
    above,
    at_least,
    below,
    decades,
)
from dynamics.core.parameters import Parameters
from dynamics.core.risk import Risk
from dynamics.core.trajectory import Trajectory
from dynamics.shallow import ShallowPopulation, ShallowProblem, ShallowTrajectory
from simulations.case import COST, Attention, Case, Quantity
from simulations.solver_options import ROUNDING, Solver, error_of_states, relative_error
from simulations.system import System

#: The setting of the figure of attention against iterations in the authors' slides, with the
#: symmetric initial state.
SLIDES: Mapping[str, Any] = MappingProxyType(
    {
        "M": 5,
        "L": 60,
        "alpha_relevant": 0.5,
        "alpha_confusion": 0.05,
        "neurons": 100,
        "overlap": 0.5,
        "attention_rate": 30.0,
        "xi": 0.1,
    }
)
_RATE, _STEPS = 0.12, 100


@dataclass(frozen=True, slots=True)
class Goal(Parameters):
    """Criterion of learning."""

    margin: Annotated[
        float, above(0), below(1), Unreported(), Doc("mean of yF at which learning is complete")
    ] = 0.5


@dataclass(frozen=True, slots=True)
class Descent(Solver):
    """Solver options; the default is descent."""

    solver: Annotated[
        str,
        Choices("gd", "flow"),
        Doc(
            "gradient descent or flow; the flow stalls where a run slides along a kink of the "
            "hinge or a ReLU",
            allowed="flow or gd",
        ),
    ] = "gd"
    horizon: Annotated[
        float | None, above(0), Doc("final time; with gd, in place of steps", f"{_RATE * _STEPS:g}")
    ] = None
    learning_rate: Annotated[
        float | None, above(0), Doc("learning rate eta of gd", f"{_RATE}"), Ticks(*decades(-2, 0))
    ] = None
    steps: Annotated[
        int | None,
        at_least(1),
        Doc("number of steps of gd", f"{_STEPS}"),
        Ticks(20, 50, 100, 200, 500, 1000, 2000),
    ] = None

    descent: ClassVar[tuple[float, int]] = (_RATE, _STEPS)


OUTCOMES = (
    Quantity("time_to_margin", "the mean of yF exceeds the requested margin", "time"),
    Quantity("time", "time reached", "time"),
    Quantity("attention", "final attention on relevant tokens"),
    Quantity("attention_share", "final attention over the plateau alpha_*/(alpha_* + alpha_#)"),
    Quantity(
        "wrong_attractor",
        "1 if no sample is wrong at the end but attention is nearer to its initial value than to "
        "the plateau, else 0",
    ),
    Quantity("loss", "final hinge loss"),
    Quantity("test_error", "final P[yF <= 0]"),
    Quantity("margin_reached", "final mean of yF"),
    Quantity("least_margin", "final minimum of yF over samples"),
    Quantity("logit", "final logit of relevant over irrelevant keys of an irrelevant query"),
    Quantity("gap", "final output on the relevant pattern minus that on an irrelevant one"),
    Quantity("bound", "rounding of the final loss"),
    Quantity("worst loss non-increasing", "largest violation of 'loss non-increasing'"),
    *COST,
)
OBSERVABLES = (
    Quantity("time", "learning rate x steps", "time"),
    Quantity("attention", "attention on relevant tokens, mean over queries"),
    Quantity("loss", "hinge loss"),
    Quantity("test_error", "P[yF <= 0]"),
    Quantity("margin", "mean of yF"),
    Quantity("least_margin", "minimum of yF over samples that occur"),
    Quantity("logit", "A_1k minus the mean of A_ik over irrelevant keys i, k irrelevant"),
    Quantity("gap", "sum of a_r [H_r1]_+ minus sum of a_r [H_rk]_+, k irrelevant"),
    Quantity("bound", "rounding of the loss"),
)


class Shallow(System):
    """System of the shallow transformer: population descent from the symmetric initial state."""

    name = "shallow"
    title = "shallow ViT (Li, Wang, Liu, Chen 2023)"
    tolerance = ShallowPopulation.tolerance
    estimates = MappingProxyType({"enumeration": "rounding, estimated"})
    precompile = (*System.precompile, "shallow")
    problem, options, solver, defaults = ShallowProblem, Goal, Descent, SLIDES
    outcomes, observables = OUTCOMES, OBSERVABLES
    derivations = ("shallow-reduction",)
    examples = (
        ("patchdyn run --system shallow --attention none", "without attention"),
        ("patchdyn run --system shallow --attention-rate 1", "a joint rate: the rise stays short"),
    )

    def default_horizon(self, problem: ShallowProblem, options: Goal) -> float:
        """Return the default final time of descent."""
        return _RATE * _STEPS

    def joint(self, draw: Any, fixed: Mapping[str, Any]) -> dict[str, Any]:
        """Draw compatible numbers of patterns, tokens and neurons."""
        from simulations.shallow.strategies import sizes

        return sizes(draw, fixed)

    def population(self, case: Case) -> ShallowPopulation:
        """Return the population risk by enumeration of counts."""
        return ShallowPopulation(case.problem)

    def summary(self, case: Case, trajectory: Trajectory, population: Risk) -> dict[str, Any]:
        """Return the available outcomes: the time to the margin, and the final state."""
        if trajectory.time.size == 0:
            return {}
        columns = self.observe(case, trajectory)
        last = {name: float(column[-1]) for name, column in columns.items()}
        names = {quantity.name for quantity in OUTCOMES}
        outcomes = {name: value for name, value in last.items() if name in names}
        outcomes["margin_reached"] = last["margin"]
        start, plateau = float(columns["attention"][0]), case.problem.plateau
        outcomes["attention_share"] = last["attention"] / plateau
        wrong = last["test_error"] == 0.0 and last["attention"] < (start + plateau) / 2.0
        outcomes["wrong_attractor"] = float(wrong)
        outcomes["time_to_margin"] = passage(
            columns["time"], columns["margin"], case.settings["margin"]
        )
        if trajectory.time.size > 1:
            worst = trajectory.violations()["loss non-increasing"]
            outcomes["worst loss non-increasing"] = worst
        return outcomes

    def observe(self, case: Case, trajectory: Trajectory) -> dict[str, np.ndarray]:
        """Return the observables at the records of a run."""
        assert isinstance(trajectory, ShallowTrajectory)
        pairs = [logit_and_gap(case.problem, state) for state in trajectory.states]
        logit, gap = np.array(pairs).reshape(-1, 2).T
        return {
            "time": trajectory.time,
            "attention": trajectory.attention,
            "loss": trajectory.loss,
            "test_error": trajectory.test_error,
            "margin": trajectory.margin,
            "least_margin": trajectory.least_margin,
            "logit": logit,
            "gap": gap,
            "bound": trajectory.bound,
        }

    def attention(self, case: Case, trajectory: Trajectory, record: int) -> Attention:
        """Return the attention of a token of each pattern to all tokens of each, for label +1.

        The irrelevant tokens of the sample are distributed evenly over the irrelevant patterns.
        """
        problem = trajectory.problem
        M, irrelevant = problem.M, problem.irrelevant / (problem.M - 2)
        counts = np.array([problem.relevant, problem.confusion, *[irrelevant] * (M - 2)], float)
        _, _, K, Q = problem.matrices(trajectory.states[record])
        logits = (K.T @ Q).T * (problem.attention != "none")
        weights = counts * np.exp(logits - logits.max(axis=1, keepdims=True))
        names = ("relevant", "confusion", *(f"irrelevant {k + 1}" for k in range(M - 2)))
        caption = "Attention of a token of each pattern (row) to all tokens of each, label +1"
        weights /= weights.sum(axis=1, keepdims=True)
        return Attention(weights, names, names, caption)

    def errors(self, case: Case, trajectory: Trajectory) -> dict[str, np.ndarray | float]:
        """Return the numerical error of each observable, to first order.

        A test error is a sum of probabilities, exact unless the margin of a sample is rounding.
        """
        columns = self.observe(case, trajectory)
        errors: dict[str, np.ndarray | float] = {"time": 0.0, "bound": 0.0, "test_error": ROUNDING}
        for name in ("logit", "gap", "margin", "least_margin"):
            errors[name] = error_of_states(trajectory, columns[name]) + trajectory.bound
        logits = error_of_states(trajectory, np.abs(trajectory.states).max(axis=1) ** 2)
        errors["attention"] = logits * columns["attention"] + ROUNDING
        errors["loss"] = trajectory.bound + relative_error(trajectory) * trajectory.loss
        return errors


def passage(time: np.ndarray, values: np.ndarray, level: float) -> float:
    """Return the time at which a recorded quantity first exceeds a level; NaN if never.

    The time is interpolated linearly between two records.

    Parameters
    ----------
    time, values
        Records, (n,).
    level
        Threshold.
    """
    above = np.flatnonzero(values > level)
    if not above.size:
        return math.nan
    end = int(above[0])
    if end == 0:
        return float(time[0])
    share = (level - values[end - 1]) / (values[end] - values[end - 1])
    return float(time[end - 1] + share * (time[end] - time[end - 1]))


def logit_and_gap(problem: ShallowProblem, state: np.ndarray) -> tuple[float, float]:
    """Return the logit of an irrelevant query and the gap of the output at a state.

    With an irrelevant k, the logit is A_1k minus the mean of A_ik over irrelevant i, and the gap
    is sum_r a_r [H_r1]_+ - sum_r a_r [H_rk]_+.
    """
    _, V, K, Q = problem.matrices(state)
    W, a = problem.all_neurons(state)
    A, H = K.T @ Q, W @ V
    alone = a @ np.maximum(H, 0.0)
    return float(A[0, 2] - A[2:, 2].mean()), float(alone[0] - alone[2])


SYSTEM = Shallow()
