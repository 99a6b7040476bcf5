"""One conjecture against one run: where it is violated most, and whether beyond the error."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

import numpy as np

from dynamics import Risk, Trajectory
from dynamics.core.trajectory import Status, assemble
from simulations.case import Case
from simulations.falsify.bounded import Bounded
from simulations.falsify.grammar import names_in, parse
from simulations.falsify.meaning import depends_on_the_whole_run, holds, violation
from simulations.system import System

_EVENT = 1e-4  # relative error of the time of an event
_REFINED, _ROUNDS = 17, 3  # times looked at between two records, and how often
_TIGHTER = 1e-2  # of the tolerances of a confirming run
_HIDDEN = {"bound", "seconds", "evaluations"}


class Result(StrEnum):
    """What one run says about a conjecture."""

    HOLDS = "holds"
    VIOLATED = "violated"
    NOISE = "within the numerical error"
    UNDEFINED = "undefined"
    INCOMPLETE = "did not complete"


@dataclass(frozen=True)
class Trial:
    """A conjecture on one run.

    ``violation`` is the worst one (positive: false), at ``time`` (``None`` if the conjecture is
    about the run as a whole), and the first record beyond its error is at ``since``; ``bound`` is
    the numerical error of that number, and ``values`` are the names of the conjecture there.
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
    """A statement over the names of a system, ready to be tried on its runs."""

    def __init__(self, text: str, system: System) -> None:
        self.text, self.system = text, system
        observed = {q.name for q in system.observables} - _HIDDEN
        constant = {q.name for q in system.constants}
        self.outcomes = {
            q.name: q for q in system.outcomes
            if q.name.isidentifier() and q.name not in observed | constant | _HIDDEN
        }  # fmt: skip
        self.tree = parse(text, observed | constant | set(self.outcomes))
        self.names = names_in(self.tree)
        self.of_runs = depends_on_the_whole_run(self.tree, self.outcomes)

    def judge(self, case: Case, trajectory: Trajectory, population: Risk) -> Trial:
        """Return what a run says; ``population`` is the risk that it descended, or an equal one.

        A run that stopped early still shows a violation at a time it reached, unless the
        conjecture is about the run as a whole; it never shows that the conjecture holds.
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
        fixed = self._scalars(case, trajectory, population)
        along = self._observed(case, trajectory, population)
        found = violation(self.tree, fixed | along)
        if np.ndim(found.value) == 0:
            return self._trial(case, found, None, fixed)
        for _ in range(_ROUNDS):
            times = along["time"].value
            index = _worst_index(found)
            around = times[max(index - 1, 0) : index + 2]
            new = np.setdiff1d(np.linspace(around[0], around[-1], _REFINED), times)
            if new.size == 0:
                break
            finer = self._observed(case, resample(trajectory, population, new), population)
            along = {name: _merge(times, along[name], new, finer[name]) for name in along}
            found = violation(self.tree, fixed | along)
        index = _worst_index(found)
        here = {name: numbers.at(index) for name, numbers in along.items()}
        trial = self._trial(case, found.at(index), float(here["time"].value), fixed | here)
        false = along["time"].value[found.low > 0.0]
        return replace(trial, since=float(false[0])) if false.size else trial

    def _trial(
        self, case: Case, found: Bounded, time: float | None, known: Mapping[str, Bounded]
    ) -> Trial:
        value, low = float(found.value), float(found.low)
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
        """Return the constants, exact, and the outcomes of the run that are asked for."""
        known = {name: Bounded.exact(x) for name, x in self.system.describe(case).items()}
        if not (wanted := self.names & set(self.outcomes)):
            return known
        outcomes = self.system.summarize(case, trajectory, population)
        for name in wanted:
            value = float(outcomes[name])
            if self.outcomes[name].unit == "time" and math.isnan(value):
                # it does not happen within the run: at no time up to the horizon
                known[name] = Bounded(math.inf, float(trajectory.time[-1]), math.inf)
            elif math.isnan(value):
                known[name] = Bounded(value, -math.inf, math.inf)
            else:
                known[name] = Bounded.within(value, _EVENT * abs(value))
        return known

    def _observed(self, case: Case, trajectory: Trajectory, population: Risk) -> dict[str, Bounded]:
        """Return time and the observables that are asked for, over the records of a run."""
        columns = self.system.observe(case, trajectory)
        if (self.names & {one.name for one in self.system.observables}) - set(columns):
            trajectory = population.observe(trajectory)
            columns = self.system.observe(case, trajectory)
        errors = self.system.errors(case, trajectory)
        return {
            name: Bounded.within(values, errors[name])
            for name, values in columns.items()
            if name in self.names or name == "time"
        }


class Filter:
    """A statement over the constants of a system, which chooses problems."""

    def __init__(self, text: str, system: System) -> None:
        self.text, self.system = text, system
        self.tree = parse(text, {quantity.name for quantity in system.constants})
        self.names = names_in(self.tree)

    def keeps(self, case: Case) -> bool:
        """Return whether a problem satisfies it."""
        known = {name: Bounded.exact(x) for name, x in self.system.describe(case).items()}
        with np.errstate(all="ignore"):
            return holds(self.tree, known)


def attempt(
    conjecture: Conjecture, case: Case, progress: Callable[[float], None] | None = None
) -> Trial:
    """Run a case and judge it; a run that cannot be made is a trial that did not complete."""
    try:
        population = conjecture.system.population(case)
        run = conjecture.system.solve(case, progress, population=population)
        return conjecture.judge(case, run, population)
    except (ArithmeticError, np.linalg.LinAlgError, MemoryError) as failure:
        return Trial(case, Result.INCOMPLETE, message=str(failure) or type(failure).__name__)


def confirm(
    conjecture: Conjecture, trial: Trial, progress: Callable[[float], None] | None = None
) -> Trial | None:
    """Run again, a hundred times more precisely; return the trial with its error, or ``None``.

    The error is the larger of the bound and of the difference between the two runs, and the
    violation must exceed it.
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
    """Return a run at other times, evaluated there (dense output between records)."""
    states = np.array([trajectory.at(float(time)) for time in times])
    return assemble(
        population, trajectory.solver, times, states,
        trajectory.status, trajectory.message,
        resolution=trajectory.resolution, settings=trajectory.settings,
    )  # fmt: skip


def _worst_index(found: Bounded) -> int:
    """Return where a violation is largest, those beyond their error first."""
    values = np.nan_to_num(found.value, nan=-np.inf, posinf=np.inf, neginf=-np.inf)
    certain = found.low > 0.0
    return int(np.argmax(np.where(certain, values, -np.inf) if certain.any() else values))


def _merge(times: np.ndarray, old: Bounded, new: np.ndarray, finer: Bounded) -> Bounded:
    order = np.argsort(np.concatenate([times, new]), kind="stable")
    parts = ((old.value, finer.value), (old.low, finer.low), (old.high, finer.high))
    return Bounded(*(np.concatenate(pair)[order] for pair in parts))


def _tightened(system: System, case: Case) -> Case:
    values = dict(case.values)
    usual = {} if system.accuracy is None else {system.accuracy: system.tolerance}
    given = usual | {k: v for k, v in case.settings.items() if v}
    for name in {"rtol", *usual}:
        if name in given:
            values[name] = max(given[name] * _TIGHTER, 1e-13)
    return system.build(values)
