"""Evaluate a conjecture on a run: the worst violation and its numerical error."""

import ast
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

import numpy as np

from dynamics import Risk, Trajectory
from dynamics.core.trajectory import Status, assemble
from simulations.case import Case
from simulations.falsify.bounded import Bounded
from simulations.falsify.language import depends_on_the_whole_run, holds, parse, violation
from simulations.system import RECORDS, System
from symbolic.core.grammar import names_in

_EVENT = 1e-4  # relative error of the time of an event
_REFINED, _ROUNDS = 17, 3  # times around the worst record, and rounds of refinement
_TIGHTER = 1e-2  # factor of the tolerances of a confirming run
_HIDDEN = {"bound", "seconds", "evaluations"}


class Result(StrEnum):
    """Result of a conjecture on one run."""

    HOLDS = "holds"
    VIOLATED = "violated"
    NOISE = "within the numerical error"
    UNDEFINED = "undefined"
    INCOMPLETE = "did not complete"


@dataclass(frozen=True)
class Trial:
    """A conjecture evaluated on one run.

    Attributes
    ----------
    case, result
        The case and the result.
    violation, bound
        The worst violation (positive: the conjecture is false) and its numerical error.
    time
        Time of the worst violation; ``None`` if the conjecture is about the run as a whole.
    since
        Time of the first record with a violation beyond its error.
    values
        Values of the names in the conjecture at the worst violation.
    message
        Why the run did not complete.
    """

    case: Case
    result: Result
    violation: float = math.nan
    bound: float = math.inf
    time: float | None = None
    since: float | None = None
    values: Mapping[str, float] = field(default_factory=dict)
    message: str = ""


class Conjecture:
    """A statement over the names of a system."""

    def __init__(self, text: str, system: System) -> None:
        self.text, self.system = text, system
        observed = {q.name for q in system.observables} - _HIDDEN
        constant = {q.name for q in system.constants}
        self.outcomes = {
            q.name: q
            for q in system.outcomes
            if q.name.isidentifier() and q.name not in observed | constant | _HIDDEN
        }
        self.tree = parse(text, observed | constant | set(self.outcomes))
        self.names = names_in(self.tree)
        self.of_runs = depends_on_the_whole_run(self.tree, self.outcomes)

    def evaluate(self, case: Case, trajectory: Trajectory, population: Risk) -> Trial:
        """Evaluate the conjecture on a run.

        A run that stopped early can violate a conjecture at a time that it reached, unless the
        conjecture is about the run as a whole. It cannot show that the conjecture holds.

        Parameters
        ----------
        case, trajectory
            The case and its run.
        population
            The risk of the run, or an equal one.
        """
        completed = trajectory.status is Status.COMPLETED
        if trajectory.time.size == 0 or (self.of_runs and not completed):
            return Trial(case, Result.INCOMPLETE, message=trajectory.message)
        with np.errstate(all="ignore"):
            trial = self._worst(case, trajectory, population)
        if not completed and trial.result is not Result.VIOLATED:
            return Trial(case, Result.INCOMPLETE, message=trajectory.message)
        return trial

    def _worst(self, case: Case, trajectory: Trajectory, population: Risk) -> Trial:
        """Return the trial at the worst violation, refined between the records."""
        fixed = self._scalars(case, trajectory, population)
        along = self._observed(case, trajectory, population)
        violations = violation(self.tree, fixed | along)
        if np.ndim(violations.value) == 0:
            return self._trial(case, violations, None, fixed)
        for _ in range(_ROUNDS):
            times = along["time"].value
            index = _worst_index(violations)
            around = times[max(index - 1, 0) : index + 2]
            new = np.setdiff1d(np.linspace(around[0], around[-1], _REFINED), times)
            if new.size == 0:
                break
            finer = self._observed(case, resample(trajectory, population, new), population)
            along = {name: _merge(times, along[name], new, finer[name]) for name in along}
            violations = violation(self.tree, fixed | along)
        index = _worst_index(violations)
        here = {name: numbers.at(index) for name, numbers in along.items()}
        trial = self._trial(case, violations.at(index), float(here["time"].value), fixed | here)
        false = along["time"].value[violations.low > 0.0]
        return replace(trial, since=float(false[0])) if false.size else trial

    def _trial(
        self, case: Case, worst: Bounded, time: float | None, known: Mapping[str, Bounded]
    ) -> Trial:
        """Return the trial for a violation and the values of the names."""
        value, low = float(worst.value), float(worst.low)
        if low > 0.0:
            result = Result.VIOLATED
        elif math.isnan(value):
            result = Result.UNDEFINED
        else:
            result = Result.HOLDS if value <= 0.0 else Result.NOISE
        named = {name: float(known[name].value) for name in sorted(self.names & set(known))}
        error = value - low if math.isfinite(value) else (0.0 if low > 0.0 else math.inf)
        return Trial(case, result, value, error, time, None, named)

    def _scalars(self, case: Case, trajectory: Trajectory, population: Risk) -> dict[str, Bounded]:
        """Return the exact constants, and the outcomes that the conjecture uses."""
        known = {name: Bounded.exact(x) for name, x in self.system.describe(case).items()}
        if not (used := self.names & set(self.outcomes)):
            return known
        outcomes = self.system.summarize(case, trajectory, population)
        for name in used:
            value = float(outcomes[name])
            if self.outcomes[name].unit == "time" and math.isnan(value):
                # the event does not occur before the horizon
                known[name] = Bounded(math.inf, float(trajectory.time[-1]), math.inf)
            elif math.isnan(value):
                known[name] = Bounded(value, -math.inf, math.inf)
            else:
                known[name] = Bounded.within(value, _EVENT * abs(value))
        return known

    def _observed(self, case: Case, trajectory: Trajectory, population: Risk) -> dict[str, Bounded]:
        """Return the time and the observables that the conjecture uses, at the records."""
        columns = self.system.observe(case, trajectory)
        observables = {observable.name for observable in self.system.observables}
        if (self.names & observables) - set(columns):
            trajectory = population.observe(trajectory)
            columns = self.system.observe(case, trajectory)
        errors = self.system.errors(case, trajectory)
        return {
            name: Bounded.within(values, errors[name])
            for name, values in columns.items()
            if name in self.names or name == "time"
        }


class Filter:
    """A statement over the constants of a system that selects problems."""

    def __init__(self, text: str, system: System) -> None:
        self.text, self.system = text, system
        self.tree = parse(text, {quantity.name for quantity in system.constants})
        self.names = names_in(self.tree)

    def accepts(self, case: Case) -> bool:
        """Return whether a problem satisfies the statement."""
        known = {name: Bounded.exact(x) for name, x in self.system.describe(case).items()}
        with np.errstate(all="ignore"):
            return holds(self.tree, known)

    def equalities(self) -> Iterator[tuple[str, float | int]]:
        """Yield name and value of the parameters that the statement fixes to a number."""
        statements = [self.tree]
        match self.tree:
            case ast.BoolOp(op=ast.And(), values=values):
                statements = values
        for statement in statements:
            match statement:
                case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
                    for side, other in ((left, right), (right, left)):
                        name, value = getattr(side, "id", None), _literal(other)
                        if name is None or value is None or not self.system.parameter(name):
                            continue
                        yield name, int(value) if value.is_integer() else value


def _literal(node: ast.expr) -> float | None:
    """Return the value of a number with its signs, or ``None``."""
    match node:
        case ast.Constant(value=float(value)):
            return value
        case ast.UnaryOp(op=ast.UAdd() | ast.USub() as sign, operand=operand):
            inner = _literal(operand)
            return -inner if inner is not None and isinstance(sign, ast.USub) else inner
    return None


def attempt(
    conjecture: Conjecture,
    case: Case,
    progress: Callable[[float], None] | None = None,
    records: int = RECORDS,
) -> Trial:
    """Run a case and evaluate a conjecture; if the run fails, the result is INCOMPLETE."""
    try:
        population = conjecture.system.population(case)
        if population.is_estimate:
            return Trial(case, Result.INCOMPLETE, message=f"the risk is {population.reason}")
        run = conjecture.system.solve(case, progress, records, population)
        return conjecture.evaluate(case, run, population)
    except (ArithmeticError, np.linalg.LinAlgError, MemoryError) as failure:
        return Trial(case, Result.INCOMPLETE, message=str(failure) or type(failure).__name__)


def confirm(
    conjecture: Conjecture, trial: Trial, progress: Callable[[float], None] | None = None
) -> Trial | None:
    """Confirm a violation by a run with a hundredth of the tolerances.

    Returns
    -------
    Trial or None
        The trial with its error: the larger of its bound and of the difference between the two
        runs. ``None`` if the violation does not exceed the error.
    """
    tighter = attempt(conjecture, _tightened(conjecture.system, trial.case), progress)
    if tighter.result is not Result.VIOLATED:
        return None
    if math.isfinite(trial.violation):
        bound = max(trial.bound, abs(trial.violation - tighter.violation))
        if not trial.violation > bound:
            return None
        trial = replace(trial, bound=bound)
    return trial


def resample(trajectory: Trajectory, population: Risk, times: np.ndarray) -> Trajectory:
    """Return a trajectory at other times (dense output between records), with its losses."""
    states = np.array([trajectory.at(float(time)) for time in times])
    return assemble(
        population,
        trajectory.solver,
        times,
        states,
        trajectory.status,
        trajectory.message,
        resolution=trajectory.resolution,
        settings=trajectory.settings,
    )


def _worst_index(violations: Bounded) -> int:
    """Return the index of the largest violation; those beyond their error take precedence."""
    values = np.nan_to_num(violations.value, nan=-np.inf, posinf=np.inf, neginf=-np.inf)
    certain = violations.low > 0.0
    return int(np.argmax(np.where(certain, values, -np.inf) if certain.any() else values))


def _merge(times: np.ndarray, old: Bounded, new: np.ndarray, finer: Bounded) -> Bounded:
    """Merge numbers at old and new times in order of time."""
    order = np.argsort(np.concatenate([times, new]), kind="stable")
    parts = ((old.value, finer.value), (old.low, finer.low), (old.high, finer.high))
    return Bounded(*(np.concatenate(pair)[order] for pair in parts))


def _tightened(system: System, case: Case) -> Case:
    """Return the case with a hundredth of its tolerances."""
    values = dict(case.values)
    defaults = {} if system.accuracy is None else {system.accuracy: system.tolerance}
    given = defaults | {k: v for k, v in case.settings.items() if v}
    for name in {"rtol", *defaults}:
        if name in given:
            values[name] = max(given[name] * _TIGHTER, 1e-13)
    return system.build(values)
