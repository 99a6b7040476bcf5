"""Positional attention (Jelassi, Sander, Li 2022) as a system: order parameters alpha, gamma, rho.

The outcomes of a run are those of Section 4.1: times of the events, the final state, and the
violations of invariants.
"""

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, cast

import numpy as np

from dynamics import Population, Problem, Risk, State, Trajectory
from dynamics.core.annotations import (
    Choices,
    Doc,
    Flag,
    Ticks,
    Unreported,
    above,
    as_text,
    decades,
    evenly,
)
from dynamics.core.errors import ToleranceError
from dynamics.core.parameters import Parameters
from dynamics.positional.events import find_events
from dynamics.positional.labelling import label_error
from dynamics.positional.population.population import DEFAULT_TOLERANCE, METHODS
from dynamics.positional.samples.partitions import three_valued
from dynamics.positional.trajectory import patch_association_fails
from simulations.case import COST, Attention, Case, Quantity
from simulations.solver_options import ROUNDING, Solver, error_of_states, relative_error
from simulations.system import System

# raised by event detection if the expectation fails there or a root is lost in rounding
_UNLOCATED = (ArithmeticError, ValueError)
HORIZON = 1e6
_SHOWN = 64  # largest number of patches of a displayed attention matrix
#: Longest run, in seconds, on samples that were not requested; seconds of a flow per sampled image
#: and per entry of the table of sets.
_LONGEST_SAMPLED, _PER_IMAGE, _PER_ENTRY = 30.0, 6e-5, 6e-5
_FINER = ("relative", "samples", "seed")  # options of `Population` that only Python callers set
_START = {"alpha0": "alpha", "gamma0": "gamma", "rho0": "rho"}
_INVARIANTS = {
    "worst gamma >= rho": "gamma >= rho",
    "worst patch association": "patch association",
    "worst loss non-increasing": "loss non-increasing",
    "worst simplex": "simplex",
    "worst v in span(w*)": "v in span(w*)",
    "worst symmetry of A": "symmetry of A",
}


@dataclass(frozen=True, slots=True)
class Start(Parameters):
    """Initial state of a run, and method and tolerance of the expectation."""

    alpha0: Annotated[
        float | None,
        Flag("alpha"),
        Doc("initial alpha", default="nu^(1/(p-1)), Parametrization 3.1"),
    ] = None
    gamma0: Annotated[float, Flag("gamma"), Doc("initial gamma"), Ticks(*evenly(-2, 2, 0.1))] = 0.0
    rho0: Annotated[float, Flag("rho"), Doc("initial rho"), Ticks(*evenly(-2, 2, 0.1))] = 0.0
    method: Annotated[str, Choices(*METHODS), Doc("method of the expectation")] = "auto"
    tolerance: Annotated[
        float | None,
        above(0),
        Unreported(),
        Doc("tolerance of loss and gradient", as_text(DEFAULT_TOLERANCE)),
    ] = None


@dataclass(frozen=True, slots=True)
class Solution(Solver):
    """Solver options with a default horizon that does not depend on the problem."""

    horizon: Annotated[
        float,
        above(0),
        Doc("final time; with gd, in place of steps"),
        Ticks(*decades(2, 8, each=4)),
    ] = HORIZON


OUTCOMES = (
    Quantity("T0", "end of Event I: alpha within 1 % of its quasi-steady value", "time"),
    Quantity("T1", "end of Event II: gamma exceeds the largest |rho| of the run", "time"),
    Quantity("onset", "start of Event III: alpha rises again", "time"),
    Quantity("rise", "factor of that rise (1 if there is none)"),
    Quantity("alpha_star", "quasi-steady alpha at the start"),
    Quantity("initial_alpha", "alpha at time 0"),
    Quantity("time", "flow time reached", "time"),
    Quantity("alpha", "final alpha"),
    Quantity("gamma", "final attention logit within a set"),
    Quantity("rho", "final attention logit across sets"),
    Quantity("Lambda", "final weight of a patch on itself"),
    Quantity("Gamma", "final weight on a patch of the same set"),
    Quantity("Xi", "final weight on a patch of another set"),
    Quantity("G", "final D (Lambda + (C-1) Gamma)"),
    Quantity("loss", "final population risk"),
    Quantity("test_error", "final P[yF <= 0]"),
    Quantity("test_error_floor", "P[y f* <= 0] of the labelling function itself"),
    Quantity("best_test_error", "least error of any rule: ties of f* decided by a coin"),
    Quantity("bound", "error of the final loss (certified, or three standard errors)"),
    Quantity("association", "1 if Top_C of every row of A is its set at the end"),
    *(Quantity(key, f"largest violation of '{name}'") for key, name in _INVARIANTS.items()),
    Quantity("stable_learning_rate", "largest stable learning rate at the start and after Event I"),
    *COST,
)
OBSERVABLES = (
    Quantity("time", "learning rate x steps", "time"),
    Quantity("alpha", "v = alpha w*"),
    Quantity("gamma", "attention logit within a set"),
    Quantity("rho", "attention logit across sets"),
    Quantity("Lambda", "weight of a patch on itself"),
    Quantity("Gamma", "weight on a patch of the same set"),
    Quantity("Xi", "weight on a patch of another set"),
    Quantity("G", "D (Lambda + (C-1) Gamma)"),
    Quantity("loss", "population risk"),
    Quantity("test_error", "P[yF <= 0]"),
    Quantity("bound", "absolute error of the loss"),
)


class Positional(System):
    """System of positional attention with the order parameters alpha, gamma and rho."""

    name = "positional"
    title = "positional attention (Jelassi, Sander, Li 2022)"
    problem, options, solver = Problem, Start, Solution
    defaults = MappingProxyType({"D": 64, "C": 4, "qD": 2.0})
    outcomes, observables = OUTCOMES, OBSERVABLES
    tolerance = DEFAULT_TOLERANCE
    estimates = MappingProxyType({"sampling": "three standard errors"})
    precompile = (*System.precompile, "fourier", "enumeration")
    examples = (
        ("patchdyn run --D 24 --C 4 --qD 2 --horizon 1e4 --json", ""),
        ("patchdyn run --D 16 --p 5 --solver gd --learning-rate 1e-3 --steps 20000", ""),
        ("patchdyn run --gamma -0.5 --rho 1e-2 --out run.nc", "from another start"),
    )

    preview = MappingProxyType({"tolerance": 1e-6, "rtol": 1e-5})
    derivations = ("attention", "lemma-4.1", "lemma-4.2")
    portrait = ("gamma", "rho")

    def settings(self, problem: Problem, options: Start) -> dict[str, Any]:
        """Return the initial state, and method and tolerance of the expectation."""
        start = problem.initial_state._replace(gamma=options.gamma0, rho=options.rho0)
        if options.alpha0 is not None:
            start = start._replace(alpha=options.alpha0)
        return {"initial": start, "method": options.method, "tolerance": options.tolerance}

    def option(self, case: Case, name: str) -> Any:
        """Return an option of a case; options of the start come from its initial state."""
        if name not in _START:
            return super().option(case, name)
        return float(getattr(case.settings["initial"], _START[name]))

    def joint(self, draw: Any, fixed: Mapping[str, Any]) -> dict[str, Any]:
        """Draw sizes D and C such that C divides D."""
        from simulations.positional.strategies import sizes

        return sizes(draw, fixed)

    def population(self, case: Case) -> Population:
        """Return the population risk, by the method of the case."""
        settings = case.settings
        chosen = {name: settings[name] for name in _FINER if name in settings}
        return Population(case.problem, settings["method"], settings["tolerance"], **chosen)

    def check_start(self, case: Case, population: Risk) -> None:
        """Raise ToleranceError also if a run needs samples that were not requested and is slow."""
        super().check_start(case, population)
        population = cast(Population, population)
        if population.method != "sampling" or case.settings["method"] == "sampling":
            return
        states, problem = population.expectation.states, case.problem
        entries = states.total.size * states.plus.size
        seconds = _PER_IMAGE * population.expectation.samples + _PER_ENTRY * entries
        if seconds > _LONGEST_SAMPLED:
            raise ToleranceError(
                f"D = {problem.D} is not allowed with q = {problem.q:g}: no certified expectation "
                f"is affordable, and a run on sampled images takes about {seconds:.0f} s; choose a "
                "smaller D or q, or method = sampling for such a run"
            )

    def start(self, case: Case) -> State:
        """Return the initial state."""
        initial: State = case.settings["initial"]
        return initial

    def summary(self, case: Case, trajectory: Trajectory, population: Risk) -> dict[str, Any]:
        """Return the available outcomes: events, final state, violations."""
        problem, floor = trajectory.problem, label_error(trajectory.problem)
        outcomes: dict[str, float] = {
            "test_error_floor": floor.error,
            "best_test_error": floor.error - floor.ties / 2,
        }
        if trajectory.time.size == 0:
            return outcomes
        alpha, gamma, rho = trajectory.final
        violations = trajectory.violations()
        outcomes |= dict(zip(("Lambda", "Gamma", "Xi", "G"), trajectory.attention[-1].tolist()))
        outcomes |= {
            "initial_alpha": float(trajectory.alpha[0]),
            "time": float(trajectory.time[-1]),
            "alpha": alpha,
            "gamma": gamma,
            "rho": rho,
            "loss": float(trajectory.loss[-1]),
            "bound": float(trajectory.bound[-1]),
            "association": float(
                not patch_association_fails(problem.beta, np.array([gamma]), np.array([rho]))[0]
            ),
            **{key: violations[name] for key, name in _INVARIANTS.items() if name in violations},
        }
        return outcomes | _test_error(trajectory, population) | _events(trajectory, population)

    def details(self, case: Case, trajectory: Trajectory, population: Risk) -> dict[str, Any]:
        """Return times, states and definitions of the events; none for descent."""
        if trajectory.solver != "gradient flow" or trajectory.time.size < 2:
            return {"events": None}
        try:
            events = find_events(trajectory, population)
        except ArithmeticError:  # the expectation fails along a run that failed
            return {"events": None}
        located = {
            key: {"time": event.time, "state": event.state, "definition": event.definition}
            for key in ("T0", "T1", "onset", "end_of_rise")
            for event in (getattr(events, key),)
        }
        numbers = ("alpha_star", "rise", "alpha_after_event_I")
        return {"events": located | {name: getattr(events, name) for name in numbers}}

    def certify(
        self, conjecture: str, box: str, precision: int, progress: Callable[[float], None] | None
    ) -> tuple[dict[str, Any], str]:
        """Prove or refute gamma >= rho on a box; return the certificate as data and as text."""
        from simulations.positional.invariance.certified import certify_conjecture

        return certify_conjecture(conjecture, box, precision, progress)

    def observe(self, case: Case, trajectory: Trajectory) -> dict[str, np.ndarray]:
        """Return the observables at the records of a run; test errors if they were computed."""
        columns = dict(zip(("alpha", "gamma", "rho"), trajectory.states.T))
        columns |= dict(zip(("Lambda", "Gamma", "Xi", "G"), trajectory.attention.T))
        columns |= {name: getattr(trajectory, name) for name in ("time", "loss", "bound")}
        columns |= trajectory.observed
        names = (quantity.name for quantity in OBSERVABLES)
        return {name: columns[name] for name in names if name in columns}

    def attention(self, case: Case, trajectory: Trajectory, record: int) -> Attention:
        """Return the attention matrix S of the first patches, with contiguous sets."""
        problem = trajectory.problem
        shown = min(problem.D, _SHOWN)
        Lambda, Gamma, Xi, _ = trajectory.attention[record]
        sets = np.arange(shown) // problem.C
        S = three_valued(sets, Gamma, Xi, Lambda)
        part = f"; rows sum to one over all {problem.D} patches" if shown < problem.D else ""
        names = tuple(f"patch {i + 1}, set {k + 1}" for i, k in enumerate(sets.tolist()))
        return Attention(S, names, names, f"S of {shown} patches, sets of {problem.C}{part}")

    def errors(self, case: Case, trajectory: Trajectory) -> dict[str, np.ndarray | float]:
        """Return the numerical error of each observable, to first order.

        Order parameters have the error of the run. Loss and test error have the certified bound of
        the expectation plus the relative error of the run. Attention weights, softmax functions of
        the order parameters, have the relative error propagated from these.
        """
        columns, relative = self.observe(case, trajectory), relative_error(trajectory)
        logits = np.abs(trajectory.states[:, 1:]).max(axis=1)
        shift = (
            2.0 * (trajectory.resolution + relative * logits) / trajectory.problem.tau + ROUNDING
        )
        errors: dict[str, np.ndarray | float] = {"time": 0.0}
        errors |= {
            name: error_of_states(trajectory, columns[name]) for name in ("alpha", "gamma", "rho")
        }
        for name in {"loss", "test_error"} & set(columns):
            errors[name] = trajectory.bound + relative * np.abs(columns[name])
        return {name: np.abs(values) * shift for name, values in columns.items()} | errors

    def flags(self, case: Case) -> dict[str, Any]:
        """Return the options that reproduce this case; ``alpha0`` only if not the default."""
        flags = super().flags(case)
        if flags.get("alpha0") == case.problem.initial_state.alpha:
            del flags["alpha0"]
        return flags


def _test_error(trajectory: Trajectory, population: Risk) -> dict[str, float]:
    """Return the final test error; empty if the expectation fails."""
    try:
        last = population.observe(trajectory.at_records([-1]))
        return {"test_error": float(last.test_error[0])}
    except ArithmeticError:
        return {}


def _events(trajectory: Trajectory, population: Risk) -> dict[str, float]:
    """Return the times of the events; empty if the expectation fails along the run."""
    from dynamics.positional.slow_manifold import largest_stable_learning_rate

    if trajectory.time.size < 2:
        return {}
    outcomes: dict[str, float] = {}
    with contextlib.suppress(*_UNLOCATED):
        events = find_events(trajectory, population)
        outcomes = {
            "T0": events.T0.time,
            "T1": events.T1.time,
            "onset": events.onset.time,
            "rise": events.rise,
            "alpha_star": events.alpha_star,
        }
    with contextlib.suppress(*_UNLOCATED):
        rate = largest_stable_learning_rate(population, trajectory.at(0.0))
        outcomes["stable_learning_rate"] = rate
    return outcomes


SYSTEM = Positional()
