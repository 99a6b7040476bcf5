"""Masked image modelling (Huang, Wen, Chi, Liang 2024) as a system: one query patch p.

Phi_1 and Phi_n are its correlations with the features of the global area and of its own area n.
Upsilon_n is the correlation with the positions of its own area (averaged, equation (5.1)), a_n its
attention to the unmasked patches of this area. With several clusters the correlations are those of
the first cluster, and the attention is the one of the worst cluster.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any

import numpy as np

from dynamics.core.annotations import (
    Choices,
    Doc,
    Ticks,
    Unreported,
    above,
    as_text,
    below,
    decades,
)
from dynamics.core.errors import ParameterError
from dynamics.core.parameters import Parameters, single_name
from dynamics.core.risk import Risk
from dynamics.core.trajectory import Status, Trajectory
from dynamics.masked import MaskedPopulation, MaskedProblem, MaskedTrajectory
from dynamics.masked.events import find_events, projected_positions
from dynamics.masked.partitions import partitions_from
from dynamics.masked.population import DEFAULT_TOLERANCE, METHODS, MOVING
from simulations.case import COST, Attention, Case, Quantity
from simulations.solver_options import ROUNDING, error_of_states, relative_error
from simulations.system import System

#: Parameters that explicit partitions replace.
_EXPONENTS = ("P", "kappa_c", "kappa_s", "K")
_INVARIANTS = {
    "worst own correlation grows": "own correlation grows",
    "worst positions sum to zero": "positions sum to zero",
    "worst loss non-increasing": "loss non-increasing",
}
_EXPECTATION = ("quadrature", "moving", "nodes", "samples", "seed")


@dataclass(frozen=True, slots=True)
class Expectation(Parameters):
    """Options of the expectation, the trained correlations, and the criterion of learning."""

    method: Annotated[str, Choices(*METHODS), Doc("method of the expectation")] = "auto"
    tolerance: Annotated[
        float | None,
        above(0),
        Unreported(),
        Doc("tolerance of loss and gradient", default="none; see the bound"),
    ] = None
    quadrature: Annotated[
        float | None,
        above(0),
        Unreported(),
        Doc(
            "accuracy of the mean over random scales",
            f"the tolerance, or {as_text(DEFAULT_TOLERANCE)}",
        ),
    ] = None
    moving: Annotated[str, Choices(*MOVING), Doc("what is trained")] = "all"
    eps: Annotated[
        float,
        above(0),
        below(0.5),
        Unreported(),
        Doc("(1 - a_n)^2 at which p has learned"),
        Ticks(*decades(-4, -1)),
    ] = 1e-2


OUTCOMES = (
    Quantity("phases", "2: Phi_1 moves first and is overtaken; 1: Phi_n leads; 0: not overtaken"),
    Quantity("initial_ratio", "|dPhi_1/dt| / (dPhi_n/dt) at the start"),
    Quantity("switch", "Phi_n begins to move faster than Phi_1", "time"),
    Quantity("attended", "a_n exceeds 1/2", "time"),
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
    Quantity("shortfall", "final mean of (1 - a_n)^2, without masks that hide the area"),
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
    Quantity("shortfall", "mean of (1 - a_n)^2, without masks that hide the area"),
    Quantity("loss", "loss of p"),
    Quantity("excess", "loss above its floor"),
    Quantity("bound", "absolute error of the loss"),
)


#: Constants that follow from the problem.
DERIVED = (
    Quantity("z_high", "greatest scale"),
    Quantity("Delta", "information gap (1 - kappa_s) - 2 (1 - kappa_c)"),
    Quantity("C_1", "patches of the global area"),
    Quantity("C_n", "patches of p's own area"),
    Quantity("areas", "number of areas of a cluster"),
    Quantity("is_global", "1 if p is in the global area, else 0"),
)


class Masked(System):
    """System of masked image modelling: correlations Phi and Upsilon of one query patch."""

    name = "masked"
    title = "masked image modelling (Huang, Wen, Chi, Liang 2024)"
    tolerance = DEFAULT_TOLERANCE
    estimates = MappingProxyType({"sampling": "three standard errors", "mean_field": "estimated"})
    precompile = (*System.precompile, "masked")
    problem, options = MaskedProblem, Expectation
    defaults = MappingProxyType({"P": 10**6, "kappa_c": 0.95, "kappa_s": 0.3})
    outcomes, observables, derived = OUTCOMES, OBSERVABLES, DERIVED

    derivations = ("masked-area-form", "masked-lemma-5.1", "masked-lemma-5.2")
    portrait = ("Phi_global", "Phi_own")

    def read_problem(self, values: Mapping[str, Any]) -> MaskedProblem:
        """Return the problem; partitions determine the numbers of patches and clusters."""
        single_name(("z", "z_high"), values)
        if "partitions" not in values:
            return MaskedProblem.from_values(values, self.defaults)
        for name in _EXPONENTS:
            if name in values:
                raise ParameterError(f"{name} and partitions are not allowed together")
        patches = sum(len(area) for area in partitions_from(values["partitions"])[0])
        return MaskedProblem.from_values({"query": "0", **values, "P": patches})

    def default_horizon(self, problem: MaskedProblem, options: Expectation) -> float:
        """Return a flow time that suffices for p to learn."""
        return default_horizon(problem, options.eps)

    def settings(self, problem: MaskedProblem, options: Expectation) -> dict[str, Any]:
        """Return the settings of the expectation; ``quadrature`` defaults to the tolerance."""
        default = DEFAULT_TOLERANCE if options.tolerance is None else options.tolerance
        quadrature = default if options.quadrature is None else options.quadrature
        return options.options() | {"quadrature": quadrature}

    def joint(self, draw: Any, fixed: Mapping[str, Any]) -> dict[str, Any]:
        """Draw sizes of areas that fit."""
        from simulations.masked.strategies import sizes

        return sizes(draw, fixed)

    def population(self, case: Case) -> MaskedPopulation:
        """Return the population risk, by the method of the case."""
        settings = case.settings
        chosen = {name: settings[name] for name in _EXPECTATION if name in settings}
        return MaskedPopulation(case.problem, settings["method"], settings["tolerance"], **chosen)

    def summary(self, case: Case, run: Trajectory, population: Risk) -> dict[str, Any]:
        """Return the available outcomes: phases, final state, violations."""
        assert isinstance(population, MaskedPopulation)
        outcomes = {"floor": population.floor}
        if run.time.size == 0:
            return outcomes
        last = {name: float(column[-1]) for name, column in self.observe(case, run).items()}
        violations = run.violations() if run.time.size > 1 else {}
        names = {quantity.name for quantity in OUTCOMES}
        outcomes |= {name: value for name, value in last.items() if name in names}
        for key, name in _INVARIANTS.items():
            if name in violations:
                outcomes[key] = violations[name]
        if last["Phi_n"] > 0.0:
            outcomes["upsilon_ratio"] = last["Upsilon_max"] / last["Phi_n"]
        return outcomes | _events(run, population, self.option(case, "eps"))

    def observe(self, case: Case, trajectory: Trajectory) -> dict[str, np.ndarray]:
        """Return the observables at the records of a run."""
        assert isinstance(trajectory, MaskedTrajectory)
        layout = trajectory.problem.layout
        areas = layout.clusters[0]
        main = (areas.own_slot, areas.global_slot)
        rest = [slot for slot in range(layout.phi_slots) if slot not in main]
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
            "Upsilon_n": np.nan_to_num(own),  # an area of one patch has no other position
            "Upsilon_max": np.fmax.reduce(np.abs(projected), axis=1),
            "a_n": trajectory.own_attention.min(axis=1),
            "shortfall": trajectory.shortfall.max(axis=1),
            "loss": trajectory.loss,
            "excess": trajectory.excess,
            "bound": trajectory.bound,
        }

    def attention(self, case: Case, trajectory: Trajectory, record: int) -> Attention:
        """Return the attention of p to each cell in each cluster, at the mean scale z.

        A fraction ``mask_ratio`` of each cell is masked.
        """
        problem, state = trajectory.problem, trajectory.states[record]
        scale, rows = (problem.z_low + problem.z_top) / 2.0, []
        for k, areas in enumerate(problem.layout.clusters):
            size = problem.layout.size.astype(float)
            visible = size * (1.0 - problem.mask_ratio)
            visible[-1] = 0.0  # p itself is masked
            position = state[problem.layout.cell_slot]
            feature = scale * state[areas.slot[problem.layout.area[k]]]
            top = max(position.max(), (position + feature).max())
            unmasked = visible * np.exp(position + feature - top)
            masked = (size - visible) * np.exp(position - top)
            rows.append(np.concatenate([unmasked, masked]) / (unmasked.sum() + masked.sum()))
        names = problem.order_parameters[problem.layout.phi_slots :]
        cells = [name.removeprefix("Upsilon_") for name in names]
        keys = [f"{cell}, {mask}" for mask in ("unmasked", "masked") for cell in cells]
        queries = tuple(f"p in cluster {k + 1}" for k in range(problem.K))
        caption = "Attention of p to the patches of each cell, with the same share masked in each"
        return Attention(np.array(rows), queries, tuple(keys), caption)

    def errors(self, case: Case, trajectory: Trajectory) -> dict[str, np.ndarray | float]:
        """Return the numerical error of each observable, to first order.

        Correlations have the error of the run. Losses have the bound of the expectation plus the
        relative error of the run. Attentions, softmax functions of logits z Phi + Upsilon, have
        the error propagated from these.
        """
        columns, relative = self.observe(case, trajectory), relative_error(trajectory)
        largest = np.abs(trajectory.states).max(axis=1)
        logits = (1.0 + trajectory.problem.z_top) * (trajectory.resolution + relative * largest)
        errors: dict[str, np.ndarray | float] = {"time": 0.0, "bound": 0.0}
        for name in ("Phi_1", "Phi_n", "Phi_rest", "Upsilon_n", "Upsilon_max"):
            errors[name] = error_of_states(trajectory, columns[name])
        for name in ("loss", "excess"):
            errors[name] = trajectory.bound + relative * trajectory.loss
        for name in ("a_n", "shortfall"):
            errors[name] = 2.0 * logits * np.abs(columns[name]) + ROUNDING
        return errors

    def derive(self, case: Case) -> dict[str, float]:
        """Return the constants that follow from the problem."""
        problem: MaskedProblem = case.problem
        areas = problem.partitions
        return {
            "z_high": problem.z_top,
            "Delta": problem.information_gap,
            "C_1": float(problem.sizes[0] if areas is None else len(areas[0][0])),
            "C_n": float(problem.own_size()),
            "areas": float(problem.layout.clusters[0].copies.sum()),
            "is_global": float(problem.roles[0] == "global"),
        }

    def flags(self, case: Case) -> dict[str, Any]:
        """Return the options that reproduce this case, without those that partitions determine."""
        omitted = () if case.problem.partitions is None else _EXPONENTS
        flags = super().flags(case)
        return {name: value for name, value in flags.items() if name not in omitted}


def default_horizon(problem: MaskedProblem, eps: float) -> float:
    """Return a flow time that suffices for p to learn where the theory holds.

    The growth of Phi_n from 0 takes a time of the order ``K P / (C_n mask_ratio (1 - mask_ratio)
    z^4)``, the final stage ``K / (2 mask_ratio z^4 eps)`` (Theorem 4.1).

    Parameters
    ----------
    problem
        Constants.
    eps
        Value of (1 - a_n)^2 at which p has learned.
    """
    masked = problem.masked / problem.P
    unit = problem.K / (masked * problem.z_low**4)
    sparse = max(problem.P / problem.own_size(k) for k in range(problem.K))
    return float(f"{5.0 * unit * sparse / (1.0 - masked) + unit / eps:.3g}")


def _events(run: Trajectory, population: MaskedPopulation, eps: float) -> dict[str, float]:
    """Return the phases; empty if the run is too short or feature correlations are fixed."""
    if run.time.size < 2 or population.moving == "positions":
        return {}
    events = find_events(run, population, eps=eps)
    names = (
        "phases",
        "initial_ratio",
        "rival_at_switch",
        "own_at_switch",
        "others_at_switch",
        "final_stage",
    )
    numbers = {name: float(getattr(events, name)) for name in names}
    if events.phases == 0 and run.status is not Status.COMPLETED:
        numbers["phases"] = math.nan  # Phi_n may overtake later
    times = {"switch": events.switch, "attended": events.attended, "learned": events.learned}
    return numbers | {name: event.time for name, event in times.items()}


SYSTEM = Masked()
