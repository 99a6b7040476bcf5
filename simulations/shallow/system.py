"""The shallow vision transformer (Li, Wang, Liu, Chen 2023) as a system: its population descent.

Observables are those of one symmetric state: attention on label-relevant tokens, margins yF, and
the two numbers of the theory of concentration, the logit of an irrelevant query and the gap.
"""

import dataclasses
import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from dynamics.core.checks import finite, require
from dynamics.core.risk import Risk
from dynamics.core.trajectory import Trajectory
from dynamics.shallow import ShallowPopulation, ShallowProblem, ShallowTrajectory
from dynamics.shallow.problem import ATTENTIONS
from simulations.running import (
    ROUNDING,
    error_of_states,
    horizon_of,
    relative_error,
    solver_settings,
)
from simulations.system import (
    COST,
    Attention,
    Case,
    Parameter,
    Quantity,
    System,
    decades,
    evenly,
)
from simulations.values import check_names

#: The setting of the slides' figure of attention against iterations, in the symmetric start.
SLIDES: Mapping[str, Any] = MappingProxyType({
    "M": 5, "L": 60, "alpha_relevant": 0.5, "alpha_confusion": 0.05, "neurons": 100,
    "overlap": 0.5, "attention_rate": 30.0, "xi": 0.1,
})  # fmt: skip
_RATE, _STEPS, _MARGIN = 0.12, 100, 0.5
_SHARES = evenly(0.05, 0.95, 0.05)
_TRAIN = {"yes": True, "no": False}
_FIELDS = tuple(one.name for one in dataclasses.fields(ShallowProblem) if one.name != "train_value")

PARAMETERS = (
    Parameter("M", "number of patterns (default 5)", int, "an integer from 3 to 100",
              usual=5, stops=(3, 4, 5, 6, 8, 10, 15, 20)),
    Parameter("L", "tokens of a sample (default 60)", int, "an integer from 2 to 10^4",
              usual=60, stops=(20, 40, 60, 80, 100)),
    Parameter("alpha_relevant", "fraction of tokens with the pattern of the label (default 0.5)",
              float, "a multiple of 1/L, greater than alpha_confusion", usual=0.5, stops=_SHARES),
    Parameter("alpha_confusion", "fraction with the other discriminative pattern (default 0.05)",
              float, "a multiple of 1/L",
              usual=0.05, stops=_SHARES),
    Parameter("background", "irrelevant tokens: each of a pattern of its own, or all of a sample "
              "of one (default tokens)", str, "tokens or single",
              usual="tokens", choices=("tokens", "single")),
    Parameter("queried", "number of sampled tokens |S| (default: all L)", int, "from 1 to L"),
    Parameter("neurons", "m (default 100)", int, "a multiple of 2 M"),
    Parameter("output_scale", "a: output weights are +-a/sqrt m (default 1)", float,
              "greater than 0", usual=1.0, stops=decades(-1, 1)),
    Parameter("value_scale", "v: V(0) = v 1 (default 1)", float, "greater than 0",
              usual=1.0, stops=decades(-1, 1)),
    Parameter("key_query", "kappa^2: K^T K = Q^T Q = kappa^2 1 at the start (default 1)", float,
              "greater than 0", usual=1.0, stops=decades(-1, 1)),
    Parameter("overlap", "rho_0: K^T Q = rho_0 kappa^2 1 at the start (default 0.5)", float,
              "from -1 to 1", usual=0.5, stops=evenly(-0.9, 1.0, 0.1)),
    Parameter("xi", "entry of a row of W_O(0) along its pattern (default 0.1)", float,
              "greater than 0", usual=0.1, stops=decades(-3, 0)),
    Parameter("spread", "other entries relative to it (default 0.1)", float, "from -1 to 1, not 0",
              usual=0.1),
    Parameter("attention_rate", "eta_KQ / eta (default 30)", float, "0 or more",
              usual=30.0, stops=(0.0, *decades(-1, 3))),
    Parameter("attention", "K and Q trained or frozen, or no attention (default trained)", str,
              "trained, frozen or none", usual="trained", choices=ATTENTIONS),
    Parameter("train_value", "whether V is trained (default yes)", str, "yes or no",
              usual="yes", choices=("yes", "no")),
    Parameter("margin", f"mean of yF that counts as learned (default {_MARGIN:g})", float,
              "in (0, 1)"),
    Parameter("solver", "gradient descent or flow; the flow stalls where a run slides along a kink "
              "of the hinge or a ReLU (default gd)", str, "flow or gd", usual="gd",
              choices=("gd", "flow")),
    Parameter("horizon", f"final time (default {_RATE * _STEPS:g} for flow; for gd instead of "
              "steps)"),
    Parameter("learning_rate", f"eta of gd (default {_RATE})", float, "greater than 0",
              stops=decades(-2, 0)),
    Parameter("steps", f"of gd (default {_STEPS})", int, "an integer, at least 1",
              stops=(20, 50, 100, 200, 500, 1000, 2000)),
    Parameter("rtol", "relative tolerance of the flow (default 1e-8)", float, "in [1e-13, 1)"),
)  # fmt: skip

OUTCOMES = (
    Quantity("time_to_margin", "the mean of yF exceeds the margin asked for", "time"),
    Quantity("time", "time reached", "time"),
    Quantity("attention", "final attention on relevant tokens"),
    Quantity("attention_share", "final attention over the plateau alpha_*/(alpha_* + alpha_#)"),
    Quantity("wrong_attractor", "1 if no sample is wrong at the end but attention is nearer to its "
             "start than to the plateau, else 0"),
    Quantity("loss", "final hinge loss"),
    Quantity("test_error", "final P[yF <= 0]"),
    Quantity("margin_reached", "final mean of yF"),
    Quantity("least_margin", "final minimum of yF over samples"),
    Quantity("logit", "final logit of relevant over irrelevant keys of an irrelevant query"),
    Quantity("gap", "final output on the relevant pattern less that on an irrelevant one"),
    Quantity("bound", "rounding of the final loss"),
    Quantity("worst loss non-increasing", "largest violation of 'loss non-increasing'"),
    *COST,
)  # fmt: skip
OBSERVABLES = (
    Quantity("time", "learning rate x steps", "time"),
    Quantity("attention", "attention on relevant tokens, mean over queries"),
    Quantity("loss", "hinge loss"),
    Quantity("test_error", "P[yF <= 0]"),
    Quantity("margin", "mean of yF"),
    Quantity("least_margin", "minimum of yF over samples that occur"),
    Quantity("logit", "A_1k less the mean of A_ik over irrelevant keys i, k irrelevant"),
    Quantity("gap", "sum of a_r [H_r1]_+ less that of a_r [H_rk]_+, k irrelevant"),
    Quantity("bound", "rounding of the loss"),
)
CONSTANTS = (
    Quantity("M", "number of patterns"),
    Quantity("L", "tokens of a sample"),
    Quantity("alpha_relevant", "fraction of relevant tokens"),
    Quantity("alpha_confusion", "fraction of confusion tokens"),
    Quantity("plateau", "alpha_* / (alpha_* + alpha_#)"),
    Quantity("rho", "kappa^2 eta_KQ / (a^2 v^2 eta)"),
    Quantity("neurons", "m"),
    Quantity("xi", "entry of a row of W_O(0) along its pattern"),
    Quantity("spread", "other entries relative to it"),
    Quantity("overlap", "rho_0 of A(0) = rho_0 kappa^2 1"),
    Quantity("horizon", "final time asked for", "time"),
)


class Shallow(System):
    """Population descent of the symmetric start; see the module."""

    name = "shallow"
    title = "shallow ViT (Li, Wang, Liu, Chen 2023)"
    tolerance = ShallowPopulation.tolerance
    estimates = MappingProxyType({"enumeration": "rounding, estimated"})
    precompile = (*System.precompile, "shallow")
    parameters, outcomes, observables, constants = PARAMETERS, OUTCOMES, OBSERVABLES, CONSTANTS
    examples = (
        ("patchdyn run --system shallow --attention none", "without attention"),
        ("patchdyn run --system shallow --attention-rate 1", "a joint rate: the rise stays short"),
    )

    def build(self, values: Mapping[str, Any]) -> Case:
        """Return the case that these values describe."""
        check_names(values, PARAMETERS)
        given = dict(SLIDES) | {name: values[name] for name in _FIELDS if name in values}
        train = values.get("train_value", "yes")
        require(train in _TRAIN, "train_value", repr(train), "yes or no")
        problem = ShallowProblem(**given, train_value=_TRAIN[train])
        margin = finite("margin", values.get("margin", _MARGIN))
        require(0.0 < margin < 1.0, "margin", margin, "in (0, 1)")
        asked = {"solver": "gd"} | dict(values)
        if asked["solver"] == "gd":
            asked = {"learning_rate": _RATE} | asked
            if "horizon" not in asked:
                asked = {"steps": _STEPS} | asked
        solver, settings = solver_settings(asked, _RATE * _STEPS)
        return Case(self.name, dict(values), problem, solver, {**settings, "margin": margin})

    def population(self, case: Case) -> ShallowPopulation:
        """Return the population risk by enumeration of counts."""
        return ShallowPopulation(case.problem)

    def summary(self, case: Case, trajectory: Trajectory, population: Risk) -> dict[str, Any]:
        """Return the outcomes that exist: the time to the margin, and what the end is like."""
        if trajectory.time.size == 0:
            return {}
        columns = self.observe(case, trajectory)
        last = {name: float(column[-1]) for name, column in columns.items()}
        known = {one.name for one in OUTCOMES}
        found = {name: value for name, value in last.items() if name in known}
        found["margin_reached"] = last["margin"]
        start, plateau = float(columns["attention"][0]), case.problem.plateau
        found["attention_share"] = last["attention"] / plateau
        lost = last["test_error"] == 0.0 and last["attention"] < (start + plateau) / 2.0
        found["wrong_attractor"] = float(lost)
        found["time_to_margin"] = passage(
            columns["time"], columns["margin"], case.settings["margin"]
        )
        if trajectory.time.size > 1:
            worst = trajectory.violations()["loss non-increasing"]
            found["worst loss non-increasing"] = worst
        return found

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
        """Return what a token of each pattern gives to all keys of each, label +1.

        In a sample whose irrelevant tokens are spread evenly over the irrelevant patterns.
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

        A test error is a sum of chances, exact but for samples whose margin is rounding.
        """
        columns = self.observe(case, trajectory)
        found: dict[str, np.ndarray | float] = {"time": 0.0, "bound": 0.0, "test_error": ROUNDING}
        for name in ("logit", "gap", "margin", "least_margin"):
            found[name] = error_of_states(trajectory, columns[name]) + trajectory.bound
        logits = error_of_states(trajectory, np.abs(trajectory.states).max(axis=1) ** 2)
        found["attention"] = logits * columns["attention"] + ROUNDING
        found["loss"] = trajectory.bound + relative_error(trajectory) * trajectory.loss
        return found

    def describe(self, case: Case) -> dict[str, float]:
        """Return the constants of a case."""
        problem, named = case.problem, [one.name for one in CONSTANTS if one.name != "horizon"]
        numbers = {name: float(getattr(problem, name)) for name in named}
        return numbers | {"horizon": horizon_of(case)}

    def flags(self, case: Case) -> dict[str, Any]:
        """Return the fields of the problem, and the margin if it is not the default."""
        found = {name: getattr(case.problem, name) for name in _FIELDS}
        if not case.problem.train_value:
            found["train_value"] = "no"
        if case.settings["margin"] != _MARGIN:
            found["margin"] = case.settings["margin"]
        return found


def passage(time: np.ndarray, values: np.ndarray, level: float) -> float:
    """Return when a recorded quantity first exceeds a level, nan if never.

    Linear between two records.
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

    The logit is A_1k less the mean of A_ik over irrelevant i; the gap sum_r a_r [H_r1]_+ less
    sum_r a_r [H_rk]_+, k irrelevant.
    """
    _, V, K, Q = problem.matrices(state)
    W, a = problem.all_neurons(state)
    A, H = K.T @ Q, W @ V
    alone = a @ np.maximum(H, 0.0)
    return float(A[0, 2] - A[2:, 2].mean()), float(alone[0] - alone[2])


SYSTEM = Shallow()
