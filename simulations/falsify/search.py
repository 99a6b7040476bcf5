"""Search for counterexamples with Hypothesis: random problems, targeting, shrinking."""

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from dynamics import ParameterError
from dynamics.core.checks import finite, integer, require
from dynamics.core.parameters import check_names
from simulations.case import Case
from simulations.falsify.report import Report
from simulations.falsify.trial import Conjecture, Filter, Result, Trial, attempt, confirm
from simulations.seeds import seed_at
from simulations.system import System
from simulations.theories import DEFAULT, from_file, is_from_file, load

#: Default horizon of the runs of a built-in theory.
HORIZON = 1e5
#: Tolerance of the expectation; runs that confirm a violation use a hundredth of it.
TOLERANCE = 1e-8
#: Time limit of a run: a share of the budget, and at least some seconds. Longer runs are undecided.
_SHARE_OF_A_RUN, _LEAST_OF_A_RUN = 0.1, 2.0
#: Share of the budget that is reserved for the confirmation of violations.
_RESERVED = 0.1
#: Share of the horizon that is run first if a violation at any time is a counterexample.
_BEGINNING = 1e-3
#: The search ends after this many problems if none satisfies the filter.
_MISSES = 1000
#: Numbers of problems in the first and in the largest round.
_FIRST_ROUND, _LARGEST_ROUND = 40, 640
#: Largest number of runs for shrinking.
_SHRINKS = 400
#: Number of violations larger than the simplest that are confirmed, until one is.
_CONFIRMED_LARGEST = 3


class OutOfTime(BaseException):
    """The budget is spent. A BaseException, which Hypothesis does not treat as a failing test."""


class RunTooLong(Exception):
    """A run took more than its share of the budget."""


class _Violation(Exception):
    """A violation, reported to Hypothesis as a failing test."""


def falsify(
    conjecture: str,
    *,
    where: str | None = None,
    system: str | System = DEFAULT,
    budget: float = 60.0,
    seed: int = 0,
    fixed: Mapping[str, Any] | None = None,
    ranges: Mapping[str, tuple[float, float]] | None = None,
    horizon: float | None = None,
    most: int | None = None,
    progress: Callable[[float, str], None] | None = None,
) -> Report:
    """Search for a counterexample to a conjecture, and simplify it.

    Parameters
    ----------
    conjecture
        A statement about a run, in the language of :mod:`simulations.falsify.language`, such as
        ``"gamma >= rho"``.
    where
        A statement about the constants of the problem; only problems that satisfy it are run.
        Equalities such as ``D == 64`` fix a parameter.
    system
        The theory, its name, or the name ``FILE.py`` of its file.
    budget
        Time limit in seconds, including shrinking and confirmation.
    seed
        Seed of the random problems. The same seed gives the same search if the budget suffices, in
        the same environment: Hypothesis also tries constants of the modules that are imported.
    fixed
        Mapping from the name of a parameter to a fixed value, such as ``{"solver": "gd", "steps":
        500}``.
    ranges
        Mapping from the name of a parameter to its smallest and largest value, such as ``{"K": (4,
        200)}``. Other sizes and constants are sampled in the range that the theory declares; those
        of a theory in a file are small or near the defaults of the file.
    horizon
        Final time of the runs, unless it is in ``fixed`` or ``ranges``. The default is 1e5; for a
        theory in a file it is the horizon of the file.
    most
        Largest number of problems; ``None`` searches until the budget is spent.
    progress
        Called with the fraction of the budget spent and a line of text.

    Returns
    -------
    Report
        The counterexample, or ``None``, and the counts of results.

    Raises
    ------
    ParameterError
        If the conjecture or the filter is not valid (the message marks the character with a caret),
        or if no problem satisfies the filter.
    """
    require(finite("budget", budget) > 0.0, "budget", budget, "greater than 0 seconds")
    theory = system if isinstance(system, System) else _named(system)
    chosen, ranges = dict(fixed or {}), dict(ranges or {})
    if horizon is not None:
        chosen["horizon"] = finite("horizon", horizon)
    elif not {"horizon", "steps"} & {*chosen, *ranges}:
        declared = theory.parameter("horizon")
        if declared is not None and is_from_file(theory.name):
            chosen["horizon"] = declared.default
        else:
            chosen["horizon"] = HORIZON
    if theory.accuracy is not None and theory.accuracy not in ranges:
        chosen.setdefault(theory.accuracy, TOLERANCE)
    search = _Search(
        Conjecture(conjecture, theory),
        Filter(where, theory) if where is not None else None,
        chosen,
        ranges,
        budget,
        integer("seed", seed, 0, 2**63),
        most,
        progress,
    )
    return search.run()


@dataclass
class _Search:
    """State of a search in progress."""

    conjecture: Conjecture
    filter: Filter | None
    fixed: dict[str, Any]
    ranges: dict[str, tuple[float, float]]
    budget: float
    seed: int
    most: int | None
    progress: Callable[[float, str], None] | None
    began: float = field(default_factory=time.monotonic)
    trials: dict[str, Trial] = field(default_factory=dict)
    violations: list[Trial] = field(default_factory=list)  # the simplest is the last
    confirmed: Trial | None = None  # the first violation, with its numerical error
    accepted: int = 0  # problems that satisfy the filter
    misses: int = 0  # problems that do not
    unconfirmed: int = 0
    shrinks: int = 0
    rounds: int = 0
    enlarging: bool = False  # whether the search goes on for a larger violation
    counterexample: Trial | None = None
    largest: Trial | None = None

    def run(self) -> Report:
        """Search until a violation is found or the budget is spent; then for a larger one."""
        if self.filter is not None:
            self.fixed = dict(self.filter.equalities()) | self.fixed
        check_names(self.fixed, self.conjecture.system.parameters)
        interrupted = False
        try:
            self._search()
            if self.misses and not self.accepted:
                self._raise_unsatisfied()
            self.counterexample = self.largest = self._simplest_confirmed()
            if self.counterexample is not None:
                self._enlarge(self.counterexample)
        except KeyboardInterrupt:  # includes its subclass Interrupted
            interrupted = True
            self.counterexample = self.counterexample or self.confirmed
            self.largest = self.largest or self.counterexample
        return self._report(interrupted)

    def _search(self) -> None:
        """Search in rounds of Hypothesis until a violation is found or the budget is spent."""
        with suppress(OutOfTime):
            for size in _rounds():
                before = len(self.trials)
                self._round(size)
                if self.violations or (len(self.trials) == before > 0):
                    return
                if not self.trials and not self.misses:  # no problem has parameters in the ranges
                    return

    def _enlarge(self, simplest: Trial) -> None:
        """Try further problems and find the largest violation that a more precise run confirms."""
        self.enlarging = True
        with suppress(OutOfTime):
            self._round(_FIRST_ROUND)
        violated = [trial for trial in self.trials.values() if trial.result is Result.VIOLATED]
        violated.sort(key=lambda trial: -trial.violation)
        for trial in violated[:_CONFIRMED_LARGEST]:
            if not trial.violation > simplest.violation:
                return
            try:
                self._check_time(reserved=0.0)
                checked = self._confirm(trial)
            except OutOfTime:
                return
            if checked is not None:
                self.largest = checked
                return

    def _round(self, size: int) -> None:
        """Run Hypothesis on at most ``size`` random problems, and shrink a violation."""
        import hypothesis
        from hypothesis import HealthCheck, Phase

        seed = seed_at(self.seed, self.rounds)
        self.rounds += 1

        @hypothesis.seed(seed)
        @hypothesis.settings(
            max_examples=size,
            deadline=None,
            database=None,
            derandomize=False,
            phases=(Phase.generate, Phase.target, Phase.shrink),
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
            verbosity=hypothesis.Verbosity.quiet,
        )
        @hypothesis.given(self.conjecture.system.cases(self.ranges, **self.fixed))
        def search(values: dict[str, Any]) -> None:
            self._example(values)

        try:
            search()
        except _Violation:
            pass
        except hypothesis.errors.Unsatisfiable:  # the filter: the next round tries more problems
            pass
        except hypothesis.errors.InvalidArgument:
            given = ", ".join(f"{name} = {value}" for name, value in self.fixed.items())
            raise ParameterError(f"no problem of this system has {given}") from None
        except hypothesis.errors.Flaky:  # the repetition of a run hit its time limit
            pass

    def _example(self, values: dict[str, Any]) -> None:
        """Test one problem; raise `_Violation` for a counterexample."""
        import hypothesis

        self._check_time()
        case = self.conjecture.system.build(values)
        if self.filter is not None and not self.filter.accepts(case):
            self.misses += 1
            if self.misses >= _MISSES and not self.accepted:
                self._raise_unsatisfied()
            hypothesis.reject()
        self.accepted += 1
        trial = self._trial(case)
        if math.isfinite(trial.violation) and (self.enlarging or not self.violations):
            hypothesis.target(trial.violation, label="violation")
        if trial.result is not Result.VIOLATED or self.enlarging:
            return
        if not self.violations:
            self.confirmed = self._confirm(trial)
            if self.confirmed is None:
                self.trials[repr(case)] = Trial(case, Result.NOISE, message="not confirmed")
                return
        self.violations.append(trial)
        raise _Violation

    def _trial(self, case: Case) -> Trial:
        """Return the trial of a case; cases that Hypothesis repeats are not run again."""
        if (known := self.trials.get(repr(case))) is not None:
            return known
        simplifying = bool(self.violations) and not self.enlarging
        if self.most is not None and len(self.trials) >= self.most and not simplifying:
            raise OutOfTime
        if simplifying:
            self.shrinks += 1
            if self.shrinks > _SHRINKS:
                raise OutOfTime
        trial = self._attempt(case)
        self.trials[repr(case)] = trial
        if self.progress is not None:
            phase = f"simplifying, {self.shrinks} runs" if simplifying else "searching"
            self.progress(self._spent(), f"{phase}, {len(self.trials)} problems")
        return trial

    def _attempt(self, case: Case) -> Trial:
        """Run a case, first its beginning if a violation there is a counterexample."""
        conjecture, trial = self.conjecture, None
        if (
            not conjecture.of_runs
            and "horizon" in case.values
            and "horizon" not in conjecture.names
        ):
            short = {"horizon": _BEGINNING * case.values["horizon"]}
            begun = conjecture.system.build({**case.values, **short})
            if self.filter is None or self.filter.accepts(begun):
                trial = self._run(begun)
        if trial is not None and trial.result is Result.VIOLATED:
            return trial
        return self._run(case)

    def _run(self, case: Case) -> Trial:
        """Run a case within its time limit."""
        share = max(_LEAST_OF_A_RUN, _SHARE_OF_A_RUN * self.budget)
        try:
            return attempt(self.conjecture, case, self._watch(share))
        except RunTooLong as stop:
            return Trial(case, Result.INCOMPLETE, message=str(stop))

    def _watch(self, share: float, reserved: float = _RESERVED) -> Callable[[float], None]:
        """Return a progress callback that ends a run when its time limit is reached."""
        first: list[float] = []

        def watch(_: float) -> None:
            now = time.monotonic()
            first.append(now) if not first else None
            self._check_time(reserved)
            if now - first[0] > share:
                raise RunTooLong(f"took more than {share:.3g} s")

        return watch

    def _check_time(self, reserved: float = _RESERVED) -> None:
        """Raise `OutOfTime` if the budget is spent up to a reserved share."""
        if self._spent() > 1.0 - reserved:
            raise OutOfTime

    def _spent(self) -> float:
        """Return the spent share of the budget."""
        return (time.monotonic() - self.began) / self.budget

    def _confirm(self, trial: Trial) -> Trial | None:
        """Return the trial with its error, or ``None`` if it is not confirmed."""
        try:
            confirmed = confirm(self.conjecture, trial, self._watch(math.inf, reserved=0.0))
        except OutOfTime:
            self.unconfirmed += not self.confirmed
            raise
        self.unconfirmed += confirmed is None
        return confirmed

    def _simplest_confirmed(self) -> Trial | None:
        """Return the simplest violation that a more precise run confirms."""
        for trial in self.violations[::-1]:
            try:
                checked = self._confirm(trial)
            except OutOfTime:
                break
            if checked is not None:
                return checked
        return self.confirmed

    def _raise_unsatisfied(self) -> None:
        """Raise the error of a filter that no problem satisfies."""
        assert self.filter is not None
        raise ParameterError(
            f"where = {self.filter.text} is not allowed: none of {self.misses} random problems "
            f"satisfies it; fix parameters by equalities such as D == 64, or give their range"
        )

    def _report(self, interrupted: bool) -> Report:
        describe = self.conjecture.system.describe
        rows = [describe(trial.case) for trial in self.trials.values()]
        return Report(
            self.conjecture.text,
            self.filter.text if self.filter else None,
            self.conjecture.system,
            self.counterexample,
            self.largest,
            dict(Counter(trial.result for trial in self.trials.values())),
            {name: (min(row[name] for row in rows), max(row[name] for row in rows))
             for name in (rows[0] if rows else ())},
            self.unconfirmed,
            self.shrinks,
            time.monotonic() - self.began,
            self.seed,
            interrupted,
        )  # fmt: skip


def _rounds() -> Iterator[int]:
    """Yield the number of problems of each round, doubled up to a limit."""
    size = _FIRST_ROUND
    while True:
        yield size
        size = min(2 * size, _LARGEST_ROUND)


def _named(system: str) -> System:
    """Return the theory with a name, or the one in the file ``FILE.py``."""
    return from_file(system) if system.endswith(".py") else load(system)
