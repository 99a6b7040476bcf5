"""Masked image modelling (Huang, Wen, Chi, Liang 2024) as a system: one query patch p.

Phi_1, Phi_n are its correlations with the features of the global area and of its own area n,
Upsilon_n that with the positions of its own area (averaged, equation (5.1)), a_n its attention to
the unmasked patches there. With several clusters these are of the first one, and the attention and
what is missing of it are those of the worst.
"""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from dynamics.core.checks import finite, require
from dynamics.core.errors import ParameterError
from dynamics.core.risk import Risk
from dynamics.core.trajectory import Status, Trajectory
from dynamics.masked import MaskedPopulation, MaskedProblem, MaskedTrajectory
from dynamics.masked.events import find_events, projected_positions
from dynamics.masked.population import DEFAULT_TOLERANCE, METHODS, MOVING
from simulations.masked.partitions import partitions_as_text, partitions_from
from simulations.running import (
    ROUNDING,
    error_of_states,
    horizon_of,
    relative_error,
    solver_parameters,
    solver_settings,
    tolerance_of,
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
from simulations.values import check_names, one_of

_INVARIANTS = {
    "worst own correlation grows": "own correlation grows",
    "worst positions sum to zero": "positions sum to zero",
    "worst loss non-increasing": "loss non-increasing",
}
_FIELDS = ("P", "kappa_c", "kappa_s", "K", "mask_ratio", "z_low", "z_high")
_EXPECTATION = ("quadrature", "moving", "nodes", "samples", "seed")
_EPS = 1e-2
_SHARES = evenly(0.05, 0.95, 0.05)

PARAMETERS = (
    Parameter("P", "number of patches (default 1e6)", int, "an integer, at least 2",
              usual=10**6, stops=tuple(10**k for k in range(2, 19))),
    Parameter("kappa_c", "exponent of the size of the global area (default 0.95)", float,
              "in (0, 1)", usual=0.95, stops=_SHARES),
    Parameter("kappa_s", "exponent of a local area (default 0.3)", float, "in (0, 1)",
              usual=0.3, stops=_SHARES),
    Parameter("K", "number of clusters, their partitions independent (default 1)", int,
              "an integer, at least 1", usual=1, stops=(1, 2, 3)),
    Parameter("mask_ratio", "fraction of masked patches (default 0.5)", float, "in (0, 1)",
              usual=0.5, stops=_SHARES),
    Parameter("z", "scale of the features, the same in all areas (default 1)", float,
              "greater than 0", usual=1.0, stops=decades(-0.5, 0.5, each=20)),
    Parameter("z_low", "least scale: each area draws its own", float, "greater than 0"),
    Parameter("z_high", "greatest scale (default: z_low)", float, "at least z_low"),
    Parameter("query", "the kind of area that p is in (default local); with K > 1 also one per "
              "cluster, as in local,global; with partitions the index of p (default 0)", str,
              "local or global, or an index", usual="local"),
    Parameter("partitions", "areas written out instead of P, kappa_c, kappa_s and K: patches as in "
              "0-3/4,5/6-7, the global area first, clusters separated by a colon", str,
              "every patch once in each cluster"),
    *solver_parameters("long enough to learn"),
    Parameter("method", "of the expectation (default auto)", str, f"one of {', '.join(METHODS)}",
              usual="auto", choices=METHODS),
    Parameter("tolerance", "of loss and gradient (default: none asked, the bound says it)", float,
              "greater than 0"),
    Parameter("quadrature", "accuracy of the mean over random scales (default: the tolerance, "
              f"or {DEFAULT_TOLERANCE:g})", float, "greater than 0"),
    Parameter("moving", "what is trained (default all)", str, f"one of {', '.join(MOVING)}",
              usual="all", choices=MOVING),
    Parameter("eps", "(1 - a_n)^2 at which p has learned (default 1e-2)", float, "in (0, 1/2)",
              usual=_EPS, stops=decades(-4, -1)),
)  # fmt: skip

OUTCOMES = (
    Quantity("phases", "2: Phi_1 moves first and is overtaken; 1: Phi_n leads; 0: not overtaken"),
    Quantity("initial_ratio", "|dPhi_1/dt| / (dPhi_n/dt) at the start"),
    Quantity("switch", "Phi_n begins to move faster than Phi_1", "time"),
    Quantity("found", "a_n exceeds 1/2", "time"),
    Quantity("learned", "the mean of (1 - a_n)^2 falls below eps", "time"),
    Quantity("rival_at_switch", "Phi_1 at the switch (p global: the fastest other Phi)"),
    Quantity("own_at_switch", "Phi_n at the switch"),
    Quantity("others_at_switch", "largest modulus of other correlations at the switch"),
    Quantity(
        "final_stage", "1 if (1 - a_n)^2 falls to eps in K / (2 mask_ratio z^4 eps); tends to 1"
    ),
    Quantity("time", "flow time reached", "time"),
    Quantity("Phi_1", "final correlation with the feature of the global area"),
    Quantity("Phi_n", "final correlation with the feature of p's own area"),
    Quantity("Upsilon_n", "final correlation with the positions of p's own area"),
    Quantity("upsilon_ratio", "largest final |Upsilon| projected on an area, over Phi_n"),
    Quantity("a_n", "final attention to p's own area, masks that hide it included"),
    Quantity("shortfall", "final mean of (1 - a_n)^2, masks that hide the area aside"),
    Quantity("loss", "final loss of p"),
    Quantity("floor", "loss that no attention removes"),
    Quantity("excess", "final loss above the floor"),
    Quantity("bound", "error of the final loss"),
    *(Quantity(key, f"largest violation of '{name}'") for key, name in _INVARIANTS.items()),
    *COST,
)
OBSERVABLES = (
    Quantity("time", "learning rate x steps", "time"),
    Quantity("Phi_1", "correlation of p with the feature of the global area"),
    Quantity("Phi_n", "correlation of p with the feature of its own area"),
    Quantity("Phi_rest", "largest modulus of the other feature correlations (0: there are none)"),
    Quantity("Upsilon_n", "correlation with the positions of p's own area, averaged"),
    Quantity("Upsilon_max", "largest modulus of the position correlations projected on areas"),
    Quantity("a_n", "attention to p's own area"),
    Quantity("shortfall", "mean of (1 - a_n)^2, masks that hide the area aside"),
    Quantity("loss", "loss of p"),
    Quantity("excess", "loss above its floor"),
    Quantity("bound", "absolute error of the loss"),
)
CONSTANTS = (
    Quantity("P", "number of patches"),
    Quantity("kappa_c", "exponent of the global area"),
    Quantity("kappa_s", "exponent of the local areas"),
    Quantity("Delta", "information gap (1 - kappa_s) - 2 (1 - kappa_c)"),
    Quantity("K", "number of clusters"),
    Quantity("mask_ratio", "fraction of masked patches"),
    Quantity("z_low", "least scale"),
    Quantity("z_high", "greatest scale"),
    Quantity("C_1", "patches of the global area"),
    Quantity("C_n", "patches of p's own area"),
    Quantity("areas", "number of areas of a cluster"),
    Quantity("is_global", "1 if p is in the global area, else 0"),
    Quantity("horizon", "final time asked for", "time"),
)


class Masked(System):
    """Correlations Phi and Upsilon of one query patch; see the module."""

    name = "masked"
    title = "masked image modelling (Huang, Wen, Chi, Liang 2024)"
    tolerance = DEFAULT_TOLERANCE
    estimates = MappingProxyType({"sampling": "three standard errors", "mean_field": "estimated"})
    precompile = (*System.precompile, "masked")
    parameters, outcomes, observables, constants = PARAMETERS, OUTCOMES, OBSERVABLES, CONSTANTS

    portrait = ("Phi_global", "Phi_own")

    def build(self, values: Mapping[str, Any]) -> Case:
        """Return the case that these values describe."""
        check_names(values, PARAMETERS)
        problem = _problem(values)
        eps = finite("eps", values.get("eps", _EPS))
        require(0.0 < eps < 0.5, "eps", eps, "in (0, 1/2)")
        solver, settings = solver_settings(values, natural_horizon(problem, eps))
        method, moving = values.get("method", "auto"), values.get("moving", "all")
        require(method in METHODS, "method", method, f"one of {', '.join(METHODS)}")
        require(moving in MOVING, "moving", moving, f"one of {', '.join(MOVING)}")
        tolerance = tolerance_of(values)
        usual = DEFAULT_TOLERANCE if tolerance is None else tolerance
        quadrature = finite("quadrature", values.get("quadrature", usual))
        require(quadrature > 0.0, "quadrature", quadrature, "greater than 0")
        expectation = {
            "method": method,
            "tolerance": tolerance,
            "quadrature": quadrature,
            "moving": moving,
            "eps": eps,
        }
        return Case(self.name, dict(values), problem, solver, {**settings, **expectation})

    def population(self, case: Case) -> MaskedPopulation:
        """Return the population risk by the method that the case asks for."""
        settings = case.settings
        chosen = {name: settings[name] for name in _EXPECTATION if name in settings}
        return MaskedPopulation(case.problem, settings["method"], settings["tolerance"], **chosen)

    def summary(self, case: Case, run: Trajectory, population: Risk) -> dict[str, Any]:
        """Return the outcomes that exist: the phases, what is reached, what is violated."""
        assert isinstance(population, MaskedPopulation)
        found = {"floor": population.floor}
        if run.time.size == 0:
            return found
        last = {name: float(column[-1]) for name, column in self.observe(case, run).items()}
        violations = run.violations() if run.time.size > 1 else {}
        found |= {name: last[name] for name in last if name in {one.name for one in OUTCOMES}}
        found |= {key: violations[name] for key, name in _INVARIANTS.items() if name in violations}
        if last["Phi_n"] > 0.0:
            found["upsilon_ratio"] = last["Upsilon_max"] / last["Phi_n"]
        return found | _events(case, run, population)

    def observe(self, case: Case, trajectory: Trajectory) -> dict[str, np.ndarray]:
        """Return the observables at the records of a run."""
        assert isinstance(trajectory, MaskedTrajectory)
        layout = trajectory.problem.layout
        areas = layout.clusters[0]
        rest = [slot for slot in range(layout.phi_slots)
                if slot not in (areas.own_slot, areas.global_slot)]  # fmt: skip
        others = np.abs(trajectory.states[:, rest])
        projected = np.array(
            [projected_positions(trajectory.problem, x) for x in trajectory.states]
        )
        slots = np.unique(areas.slot)
        own = projected[:, int(np.flatnonzero(slots == areas.own_slot)[0])]
        return {
            "time": trajectory.time,
            "Phi_1": trajectory.phi_global[:, 0],
            "Phi_n": trajectory.phi_own[:, 0],
            "Phi_rest": others.max(axis=1, initial=0.0),
            "Upsilon_n": np.nan_to_num(own),  # an area of one patch holds no other position
            "Upsilon_max": np.fmax.reduce(np.abs(projected), axis=1),
            "a_n": trajectory.own_attention.min(axis=1),
            "shortfall": trajectory.shortfall.max(axis=1),
            "loss": trajectory.loss,
            "excess": trajectory.excess,
            "bound": trajectory.bound,
        }

    def attention(self, case: Case, trajectory: Trajectory, record: int) -> Attention:
        """Return the row of p, summed over cells, each hiding its share, at the mean scale z."""
        problem, state = trajectory.problem, trajectory.states[record]
        scale, rows = (problem.z_low + problem.z_top) / 2.0, []
        for k, areas in enumerate(problem.layout.clusters):
            size = problem.layout.size.astype(float)
            visible = size * (1.0 - problem.mask_ratio)
            visible[-1] = 0.0  # p itself is masked
            position = state[problem.layout.cell_slot]
            feature = scale * state[areas.slot[problem.layout.area[k]]]
            top = max(position.max(), (position + feature).max())
            seen = visible * np.exp(position + feature - top)
            masked = (size - visible) * np.exp(position - top)
            rows.append(np.concatenate([seen, masked]) / (seen.sum() + masked.sum()))
        cells = [name.removeprefix("Upsilon_") for name in problem.order_parameters[
            problem.layout.phi_slots:]]  # fmt: skip
        keys = [f"{cell}, {word}" for word in ("unmasked", "masked") for cell in cells]
        queries = tuple(f"p in cluster {k + 1}" for k in range(problem.K))
        caption = "Attention of p to the patches of each kind, each hiding its share"
        return Attention(np.array(rows), queries, tuple(keys), caption)

    def errors(self, case: Case, trajectory: Trajectory) -> dict[str, np.ndarray | float]:
        """Return the numerical error of each observable, to first order.

        Correlations: that of the run; losses: the bound of the expectation and the run's relative
        error; attentions, softmax functions of logits z Phi + Upsilon: what these give them.
        """
        columns, relative = self.observe(case, trajectory), relative_error(trajectory)
        largest = np.abs(trajectory.states).max(axis=1)
        logits = (1.0 + trajectory.problem.z_top) * (trajectory.resolution + relative * largest)
        found: dict[str, np.ndarray | float] = {"time": 0.0, "bound": 0.0}
        for name in ("Phi_1", "Phi_n", "Phi_rest", "Upsilon_n", "Upsilon_max"):
            found[name] = error_of_states(trajectory, columns[name])
        for name in ("loss", "excess"):
            found[name] = trajectory.bound + relative * trajectory.loss
        for name in ("a_n", "shortfall"):
            found[name] = 2.0 * logits * np.abs(columns[name]) + ROUNDING
        return found

    def describe(self, case: Case) -> dict[str, float]:
        """Return the constants of a case."""
        problem: MaskedProblem = case.problem
        nothing = problem.kappa_c is None  # explicit partitions
        areas = problem.layout.clusters[0]
        first = problem.partitions[0][0] if problem.partitions is not None else None
        return {
            "P": float(problem.P),
            "kappa_c": math.nan if nothing else float(problem.kappa_c or 0.0),
            "kappa_s": math.nan if nothing else float(problem.kappa_s or 0.0),
            "Delta": problem.information_gap,
            "K": float(problem.K),
            "mask_ratio": problem.mask_ratio,
            "z_low": problem.z_low,
            "z_high": problem.z_top,
            "C_1": float(problem.sizes[0] if first is None else len(first)),
            "C_n": float(problem.own_size()),
            "areas": float(areas.copies.sum()),
            "is_global": float(problem.roles[0] == "global"),
            "horizon": horizon_of(case),
        }

    def flags(self, case: Case) -> dict[str, Any]:
        """Return the fields of the problem, and of the rest what is not the default."""
        problem, settings = case.problem, case.settings
        if problem.partitions is not None:
            fields = ("mask_ratio", "z_low", "z_high")
            found = {name: getattr(problem, name) for name in fields}
            found["partitions"] = partitions_as_text(problem.partitions)
            found["query"] = problem.query
        else:
            found = {name: getattr(problem, name) for name in _FIELDS}
            distinct = dict.fromkeys(problem.roles)
            found["query"] = ",".join(distinct if len(distinct) == 1 else problem.roles)
        for name, usual in (("method", "auto"), ("moving", "all"), ("eps", _EPS)):
            if settings[name] != usual:
                found[name] = settings[name]
        return found


def _problem(values: Mapping[str, Any]) -> MaskedProblem:
    given: dict[str, Any] = {name: values[name] for name in _FIELDS if name in values}
    one_of(values, ("z", "z_low"), "z")
    one_of(values, ("z", "z_high"), "z")
    if "z" in values:
        require(finite("z", values["z"]) > 0.0, "z", values["z"], "greater than 0")
        given["z_low"] = values["z"]
    if "partitions" in values:
        for name in ("P", "kappa_c", "kappa_s", "K"):
            if name in values:
                raise ParameterError(f"{name} and partitions are not allowed together")
        partitions = partitions_from(values["partitions"])
        P = sum(len(area) for area in partitions[0])
        query = str(values.get("query", "0"))
        require(query.isdecimal(), "query", repr(query), "the index of a patch, with partitions")
        return MaskedProblem(P=P, partitions=partitions, query=int(query), **given)
    given = {"P": 10**6, "kappa_c": 0.95, "kappa_s": 0.3} | given
    words = tuple(word.strip() for word in str(values.get("query", "local")).split(","))
    return MaskedProblem(**given, query=words[0] if len(words) == 1 else words)


def natural_horizon(problem: MaskedProblem, eps: float) -> float:
    """Return a flow time by which p has learned where the theory holds, with some to spare.

    The growth of Phi_n from 0 takes of the order of ``K P / (C_n mask_ratio (1 - mask_ratio)
    z^4)``, the final stage ``K / (2 mask_ratio z^4 eps)`` (Theorem 4.1).
    """
    masked = problem.masked / problem.P
    unit = problem.K / (masked * problem.z_low**4)
    sparse = max(problem.P / problem.own_size(k) for k in range(problem.K))
    return float(f"{5.0 * unit * sparse / (1.0 - masked) + unit / eps:.3g}")


def _events(case: Case, run: Trajectory, population: MaskedPopulation) -> dict[str, float]:
    """Return the phases; nothing where the run is too short or feature correlations stand still."""
    if run.time.size < 2 or population.moving == "positions":
        return {}
    events = find_events(run, population, eps=case.settings.get("eps", _EPS))
    numbers = {name: float(getattr(events, name)) for name in (
        "phases", "initial_ratio", "rival_at_switch", "own_at_switch", "others_at_switch",
        "final_stage")}  # fmt: skip
    if events.phases == 0 and run.status is not Status.COMPLETED:
        numbers["phases"] = math.nan  # it might have been overtaken later
    return numbers | {name: getattr(events, name).time for name in ("switch", "found", "learned")}


SYSTEM = Masked()
