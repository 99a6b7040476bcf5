"""The search for a counterexample: Hypothesis draws problems, steers by the violation, shrinks."""

import ast
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from dynamics import ParameterError
from dynamics.core.checks import finite, integer, require
from dynamics.core.parameters import check_names
from simulations.case import Case
from simulations.falsify.trial import Conjecture, Filter, Result, Trial, attempt, confirm
from simulations.seeds import seed_at
from simulations.system import System
from simulations.theories import DEFAULT, command, load

#: Time up to which runs are followed unless the case says otherwise.
HORIZON = 1e5
#: Error of the expectation along them; the runs that confirm a violation have a hundredth of it.
TOLERANCE = 1e-8
#: A run may take this part of the budget (and at least so many seconds); then it is undecided.
_SHARE_OF_A_RUN, _LEAST_OF_A_RUN = 0.1, 2.0
#: Part of the budget that is kept for the runs that confirm what was found.
_KEPT = 0.1
#: Part of the horizon that is tried first where a violation at any time decides.
_BEGINNING = 1e-3
#: So many problems in a row that do not satisfy the filter end the search.
_MISSES = 1000
_FIRST_ROUND, _LARGEST_ROUND = 40, 640
_SHRINKS = 400  # runs spent on simplifying


class OutOfTime(BaseException):
    """The budget is spent: leaves Hypothesis without being taken for a failure."""


class RunTooLong(Exception):
    """One run took more than its share of the budget."""


class _Found(Exception):
    """A violation, told to Hypothesis as a failure."""


@dataclass(frozen=True)
class Report:
    """What a search found.

    ``counterexample`` is a confirmed trial, the simplest that was reached, or ``None``;
    ``unconfirmed`` counts violations which no more precise run showed within the budget.
    ``results`` counts distinct problems by what their run said; ``ranges`` holds the least and
    greatest value of each constant among them. ``interrupted`` tells of Ctrl-C.
    """

    conjecture: str
    where: str | None
    system: System
    counterexample: Trial | None
    results: Mapping[str, int]
    ranges: Mapping[str, tuple[float, float]]
    unconfirmed: int
    shrinks: int
    seconds: float
    seed: int
    interrupted: bool = False

    @property
    def falsified(self) -> bool:
        """Whether there is a counterexample."""
        return self.counterexample is not None

    @property
    def tried(self) -> int:
        """How many distinct problems were run."""
        return sum(self.results.values())

    @property
    def undecided(self) -> int:
        """How many of them say nothing: the run did not complete, or its numbers are undefined."""
        return sum(self.results.get(one, 0) for one in (Result.INCOMPLETE, Result.UNDEFINED))

    @property
    def command(self) -> str | None:
        """The shell command that reruns the counterexample."""
        return command(self.counterexample.case, self.system) if self.counterexample else None


def falsify(
    conjecture: str,
    *,
    where: str | None = None,
    system: str | System = DEFAULT,
    budget: float = 60.0,
    seed: int = 0,
    fixed: Mapping[str, Any] | None = None,
    horizon: float | None = None,
    most: int | None = None,
    progress: Callable[[float, str], None] | None = None,
) -> Report:
    """Search for a problem whose run violates a conjecture, and simplify it.

    Parameters
    ----------
    conjecture
        A statement of :mod:`simulations.falsify.grammar` about a run from its initial state.
    where
        A statement over the constants of the problem; only problems that satisfy it are run.
        Equalities such as ``D == 64`` fix a parameter instead of waiting for it to be drawn.
    system
        The theory, by name.
    budget
        Seconds, shrinking and confirmation included.
    seed
        The same seed and enough time give the same search.
    fixed
        Values of parameters that are not drawn (``{"solver": "gd", "steps": 500}``).
    horizon
        Final time of the runs, 1e5 unless given here or in ``fixed``.
    most
        Ends the search after so many problems, ``None``: at the end of the budget.
    progress
        Called with the fraction of the budget spent and a line of text.

    Raises
    ------
    ParameterError
        One sentence, for a conjecture or filter that cannot be read (with a caret under the
        character) or that no problem satisfies.
    """
    require(finite("budget", budget) > 0.0, "budget", budget, "greater than 0 seconds")
    theory = load(system) if isinstance(system, str) else system
    chosen = dict(fixed or {})
    if horizon is not None:
        chosen["horizon"] = finite("horizon", horizon)
    elif not {"horizon", "steps"} & set(chosen):
        chosen["horizon"] = HORIZON
    if theory.accuracy is not None:
        chosen.setdefault(theory.accuracy, TOLERANCE)
    search = _Search(
        Conjecture(conjecture, theory),
        Filter(where, theory) if where is not None else None,
        chosen, budget, integer("seed", seed, 0, 2**63), most, progress,
    )  # fmt: skip
    return search.run()


@dataclass
class _Search:
    """One search under way."""

    conjecture: Conjecture
    filter: Filter | None
    fixed: dict[str, Any]
    budget: float
    seed: int
    most: int | None
    progress: Callable[[float, str], None] | None
    began: float = field(default_factory=time.monotonic)
    trials: dict[str, Trial] = field(default_factory=dict)
    found: list[Trial] = field(default_factory=list)  # violations, the simplest so far last
    confirmed: Trial | None = None  # the first of them, as a more precise run has it
    kept: int = 0  # problems drawn that satisfy the filter, and those that do not
    misses: int = 0
    unconfirmed: int = 0
    shrinks: int = 0

    def run(self) -> Report:
        """Search in rounds of Hypothesis until something is found or the time is up."""
        if self.filter is not None:
            self.fixed = dict(_equalities(self.filter.tree, self.conjecture.system)) | self.fixed
        check_names(self.fixed, self.conjecture.system.parameters)
        interrupted, counterexample = False, None
        try:
            try:
                for number, size in enumerate(_rounds()):
                    before = len(self.trials)
                    self._round(size, seed_at(self.seed, number))
                    if self.found or (len(self.trials) == before > 0):
                        break
            except OutOfTime:
                pass
            if self.misses and not self.kept:
                self._nothing_satisfies()
            counterexample = self._confirmed()
        except KeyboardInterrupt:  # Interrupted, with the trajectory of the run, is one too
            interrupted, counterexample = True, self.confirmed
        return self._report(counterexample, interrupted)

    def _round(self, size: int, seed: int) -> None:
        """Let Hypothesis draw at most ``size`` problems, and shrink what it finds."""
        import hypothesis
        from hypothesis import HealthCheck, Phase

        @hypothesis.seed(seed)
        @hypothesis.settings(
            max_examples=size, deadline=None, database=None, derandomize=False,
            phases=(Phase.generate, Phase.target, Phase.shrink), report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck), verbosity=hypothesis.Verbosity.quiet,
        )  # fmt: skip
        @hypothesis.given(self.conjecture.system.cases(**self.fixed))
        def search(values: dict[str, Any]) -> None:
            self._example(values)

        try:
            search()
        except _Found:
            pass
        except hypothesis.errors.Unsatisfiable:  # so far; the next round draws more
            pass
        except hypothesis.errors.InvalidArgument:
            given = ", ".join(f"{name} = {value}" for name, value in self.fixed.items())
            raise ParameterError(f"no problem of this system has {given}") from None
        except hypothesis.errors.Flaky:  # a run that was cut short, told again: nothing new
            pass

    def _example(self, values: dict[str, Any]) -> None:
        import hypothesis

        self._check_time()
        case = self.conjecture.system.build(values)
        if self.filter is not None and not self.filter.keeps(case):
            self.misses += 1
            if self.misses >= _MISSES and not self.kept:
                self._nothing_satisfies()
            hypothesis.reject()
        self.kept += 1
        trial = self._trial(case)
        if math.isfinite(trial.violation) and not self.found:
            hypothesis.target(trial.violation, label="violation")
        if trial.result is not Result.VIOLATED:
            return
        if not self.found:
            self.confirmed = self._confirm(trial)
            if self.confirmed is None:
                self.trials[repr(case)] = Trial(case, Result.NOISE, message="not confirmed")
                return
        self.found.append(trial)
        raise _Found

    def _trial(self, case: Case) -> Trial:
        """Run a case once; Hypothesis asks for some again."""
        if (known := self.trials.get(repr(case))) is not None:
            return known
        if self.most is not None and len(self.trials) >= self.most and not self.found:
            raise OutOfTime
        if self.found:
            self.shrinks += 1
            if self.shrinks > _SHRINKS:
                raise OutOfTime
        trial = self._attempt(case)
        self.trials[repr(case)] = trial
        if self.progress is not None:
            doing = f"simplifying, {self.shrinks} runs" if self.found else "searching"
            self.progress(self._spent(), f"{doing}, {len(self.trials)} problems")
        return trial

    def _attempt(self, case: Case) -> Trial:
        """Run a case, first its beginning if a violation there decides."""
        conjecture, trial = self.conjecture, None
        if (
            not conjecture.of_runs
            and "horizon" in case.values
            and "horizon" not in conjecture.names
        ):
            short = {"horizon": _BEGINNING * case.values["horizon"]}
            begun = conjecture.system.build({**case.values, **short})
            if self.filter is None or self.filter.keeps(begun):
                trial = self._run(begun)
        if trial is not None and trial.result is Result.VIOLATED:
            return trial
        return self._run(case)

    def _run(self, case: Case) -> Trial:
        share = max(_LEAST_OF_A_RUN, _SHARE_OF_A_RUN * self.budget)
        try:
            return attempt(self.conjecture, case, self._watch(share))
        except RunTooLong as stop:
            return Trial(case, Result.INCOMPLETE, message=str(stop))

    def _watch(self, share: float, kept: float = _KEPT) -> Callable[[float], None]:
        """Return what a run reports to, which stops it when its time is up."""
        first: list[float] = []

        def watch(_: float) -> None:
            now = time.monotonic()
            first.append(now) if not first else None
            self._check_time(kept)
            if now - first[0] > share:
                raise RunTooLong(f"took more than {share:.3g} s")

        return watch

    def _check_time(self, kept: float = _KEPT) -> None:
        if self._spent() > 1.0 - kept:
            raise OutOfTime

    def _spent(self) -> float:
        return (time.monotonic() - self.began) / self.budget

    def _confirm(self, trial: Trial) -> Trial | None:
        """Return the trial with its error, ``None`` if a more precise run does not show it."""
        try:
            found = confirm(self.conjecture, trial, self._watch(math.inf, kept=0.0))
        except OutOfTime:
            self.unconfirmed += not self.confirmed
            raise
        self.unconfirmed += found is None
        return found

    def _confirmed(self) -> Trial | None:
        """Return the simplest violation that a more precise run shows too."""
        for trial in self.found[::-1]:
            try:
                checked = self._confirm(trial)
            except OutOfTime:
                break
            if checked is not None:
                return checked
        return self.confirmed

    def _nothing_satisfies(self) -> None:
        assert self.filter is not None
        raise ParameterError(
            f"where = {self.filter.text} is not allowed: none of {self.misses} problems drawn "
            f"satisfies it; fix parameters by equalities such as D == 64"
        )

    def _report(self, counterexample: Trial | None, interrupted: bool) -> Report:
        describe = self.conjecture.system.describe
        rows = [describe(trial.case) for trial in self.trials.values()]
        return Report(
            self.conjecture.text,
            self.filter.text if self.filter else None,
            self.conjecture.system,
            counterexample,
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
    """Yield how many problems each round draws: ever more."""
    size = _FIRST_ROUND
    while True:
        yield size
        size = min(2 * size, _LARGEST_ROUND)


def _equalities(tree: ast.expr, system: System) -> Iterator[tuple[str, float | int]]:
    """Yield the parameters that a filter fixes to a number."""
    parts = [tree]
    match tree:
        case ast.BoolOp(op=ast.And(), values=statements):
            parts = statements
    for part in parts:
        match part:
            case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
                for side, value in ((left, right), (right, left)):
                    name, literal = getattr(side, "id", None), _literal(value)
                    if name is not None and literal is not None and system.parameter(name):
                        yield name, int(literal) if literal.is_integer() else literal


def _literal(node: ast.expr) -> float | None:
    match node:
        case ast.Constant(value=float(value)):
            return value
        case ast.UnaryOp(op=ast.UAdd() | ast.USub() as sign, operand=operand):
            inner = _literal(operand)
            return -inner if inner is not None and isinstance(sign, ast.USub) else inner
    return None
