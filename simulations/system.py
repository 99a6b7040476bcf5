"""What a theory offers to the tools that run many problems: names, and how to run one."""

from __future__ import annotations

import contextlib
import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from time import perf_counter
from typing import TYPE_CHECKING, Any

from dynamics.core.errors import ParameterError
from dynamics.core.parameters import (
    Parameter,
    Parameters,
    check_names,
    declared,
    meanings_of_constants,
)
from simulations.running import Solver, horizon_of

if TYPE_CHECKING:
    import numpy as np

    from dynamics import Risk, Trajectory

#: Records of a run: outcomes are read off these and off the dense output between them.
RECORDS = 80
#: What became of a run, beside the names of :class:`dynamics.Status` in lower case.
INVALID, FAILED = "invalid", "failed"


@dataclass(frozen=True)
class Quantity:
    """A number that a run or a problem has."""

    name: str
    meaning: str
    unit: str = ""


#: Outcomes of the runs of all theories, which :class:`System` fills in.
COST = (
    Quantity("evaluations", "of the gradient along the run"),
    Quantity("seconds", "wall time", "s"),
)


@dataclass(frozen=True)
class Attention:
    """What queries give to keys at one state: rows sum to one unless the caption says otherwise."""

    weights: np.ndarray  # (queries, keys)
    queries: tuple[str, ...]
    keys: tuple[str, ...]
    caption: str


@dataclass(frozen=True)
class Case:
    """One run to make: a problem, how it is solved, and the values it was built from.

    ``settings`` are keyword arguments of the solver and of the population expectation, all of them
    filled in, so that a case says everything its result depends on.
    """

    system: str
    values: Mapping[str, Any]
    problem: Any
    solver: str  # "flow" or "gd"
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Options(Parameters):
    """The options of a theory that has none beside those of the solver."""


class System(ABC):
    """A theory as the tools see it: names, and how to run one of its problems.

    A theory gives the class attributes and the abstract methods; how a run is made, measured and
    written down is the same for all.

    Attributes
    ----------
    name, title
        The name of its folders, and what people call it.
    problem, options, solver
        The dataclasses whose fields are the parameters: those of the problem; the start and the
        accuracy of the expectation; the solver.
    usual
        Values of parameters that are not given, where they differ from the defaults of the fields.
    derived
        Constants of a case that `derive` returns, beside its numerical parameters.
    outcomes
        One number per run; nan where it does not exist. ``status`` and ``message`` come with them.
    observables
        One number per record of a run; the first is the time.
    tolerance
        Accuracy asked of the expectation unless a case says otherwise.
    estimates
        Methods of the expectation whose bound is none but an estimate: name -> what it is.
    examples
        Flags of `patchdyn run` that are worth trying, with a few words each.
    sketch
        Values of the parameters with which a run is accurate enough to be looked at, and quick.
    portrait
        The two order parameters whose plane tells most; where there are none such, those that
        move farthest.
    """

    name: str
    title: str
    problem: type[Any]
    options: type[Any] = Options
    solver: type[Solver] = Solver
    usual: Mapping[str, Any] = {}
    derived: tuple[Quantity, ...] = ()
    outcomes: tuple[Quantity, ...]
    observables: tuple[Quantity, ...]
    estimates: Mapping[str, str] = {}
    tolerance: float
    examples: tuple[tuple[str, str], ...] = ()
    sketch: Mapping[str, Any] = {}
    portrait: tuple[str, str] | None = None
    #: What Python is given to compile, once and before any result, what the runs will load.
    precompile: tuple[str, ...] = ("-m", "dynamics.precompile")
    #: Digest of what is not in the packages and the results depend on, a user's file.
    fingerprint: str = ""

    @property
    def chosen_by(self) -> str:
        """The words that choose this theory on the command line."""
        return f"--system {self.name}"

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the parameters: they contain functions, and a worker declares them again."""
        return {name: value for name, value in vars(self).items() if name != "parameters"}

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """What may be set, in a configuration, a grid, a search and on the command line."""
        found = {**declared(self.problem), **declared(self.options), **declared(self.solver)}
        return tuple(replace(x, usual=self.usual.get(n, x.usual)) for n, x in found.items())

    @cached_property
    def constants(self) -> tuple[Quantity, ...]:
        """The numbers of a case: those of the problem, of the start and the final time."""
        found = {**meanings_of_constants(self.problem), **meanings_of_constants(self.options)}
        quantities = (Quantity(name, meaning) for name, meaning in found.items())
        return (*quantities, *self.derived, Quantity("horizon", "final time asked for", "time"))

    def build(self, values: Mapping[str, Any]) -> Case:
        """Return the case that these values describe.

        Raises
        ------
        ParameterError
            With one sentence, for a name or a value that is not allowed.
        """
        check_names(values, self.parameters)
        problem = self.read_problem(values)
        options = self.options.from_values(values, self.usual)
        solver = self.solver.from_values(values, self.usual)
        settings = solver.settings(values, self.natural_horizon(problem, options))
        return Case(
            self.name, dict(values), problem, solver.solver,
            settings | self.settings(problem, options),
        )  # fmt: skip

    def read_problem(self, values: Mapping[str, Any]) -> Any:
        """Return the problem that values describe."""
        return self.problem.from_values(values, self.usual)

    def natural_horizon(self, problem: Any, options: Any) -> float | None:
        """Return the final time of a flow where none is given and the solver has no default."""
        return None

    def settings(self, problem: Any, options: Any) -> dict[str, Any]:
        """Return the settings of a case that are not of the solver: the options."""
        return dict(options.options())

    @abstractmethod
    def population(self, case: Case) -> Risk:
        """Return the risk that the run descends."""

    @abstractmethod
    def observe(self, case: Case, trajectory: Trajectory) -> dict[str, np.ndarray]:
        """Return the observables at the records of a run, all of them if the run holds them.

        ``population.observe(trajectory)`` does.
        """

    @abstractmethod
    def errors(self, case: Case, trajectory: Trajectory) -> Mapping[str, np.ndarray | float]:
        """Return the numerical error of each of these, to first order."""

    def describe(self, case: Case) -> dict[str, float]:
        """Return the constants of a case."""
        start = {name: self.option(case, name) for name in meanings_of_constants(self.options)}
        found = {**case.problem.constants(), **start, **self.derive(case)}
        return {**found, "horizon": horizon_of(case)}

    def derive(self, case: Case) -> dict[str, float]:
        """Return the constants `derived`, which follow from the problem."""
        return {}

    def cases(self, **fixed: Any) -> Any:
        """Return a Hypothesis strategy of values that `build` accepts, the simplest first.

        Parameters are drawn as declared, those of `joint` together; fixed values stay.
        """
        from simulations.draws import cases

        return cases(self, fixed)

    def joint(self, draw: Any, fixed: Mapping[str, Any]) -> dict[str, Any]:
        """Draw the parameters that are not independent of each other, but for the fixed ones."""
        return {}

    def option(self, case: Case, name: str) -> Any:
        """Return the value of an option that a case has; the default where it has none."""
        return case.settings.get(name, declared(self.options)[name].usual)

    def flags(self, case: Case) -> dict[str, Any]:
        """Return the options that reproduce this case: the problem, and what is no default."""
        solver = {**{name: case.settings.get(name) for name in declared(self.solver)},
                  "solver": case.solver}  # fmt: skip
        options = {name: self.option(case, name) for name in declared(self.options)}
        changed = {name: value for name, value in options.items()
                   if value != declared(self.options)[name].usual}  # fmt: skip
        return {**case.problem.options(), **changed, **solver}

    @abstractmethod
    def summary(self, case: Case, trajectory: Trajectory, population: Risk) -> dict[str, Any]:
        """Return the outcomes of a run that exist; what the runs of all theories tell is added.

        A run may hold no record, if the expectation failed at its start.
        """

    def start(self, case: Case) -> Any:
        """Return the initial state; ``None`` for that of the problem."""
        return None

    def certify(
        self, conjecture: str, box: str, precision: int, progress: Callable[[float], None] | None
    ) -> tuple[dict[str, Any], str]:
        """Prove or refute a conjecture on a box; return the certificate as data and as text.

        Raises
        ------
        ParameterError
            If the theory has no certificates, or none for this conjecture.
        """
        raise ParameterError(f"--certify is not allowed with {self.chosen_by}: it has none")

    def details(self, case: Case, trajectory: Trajectory, population: Risk) -> dict[str, Any]:
        """Return what `patchdyn run --json` tells beside what it tells of every theory."""
        return {}

    def attention(self, case: Case, trajectory: Trajectory, record: int) -> Attention | None:
        """Return the attention at a record of a run, or a part of it; ``None`` if it has none."""
        return None

    def parameter(self, name: str) -> Parameter | None:
        """Return the parameter with this name, ``None`` if there is none."""
        return next((one for one in self.parameters if one.name == name), None)

    @property
    def accuracy(self) -> str | None:
        """The parameter that makes the expectation more accurate at its cost, if there is one."""
        return next((n for n in ("quadrature", "tolerance") if self.parameter(n)), None)

    def solve(
        self,
        case: Case,
        progress: Callable[[float], None] | None = None,
        records: int = RECORDS,
        population: Risk | None = None,
    ) -> Trajectory:
        """Make the run of a case; ``population`` is that of the case, if it is at hand.

        Raises
        ------
        ToleranceError
            If the expectation cannot be had to its tolerance at the start.
        Interrupted
            On Ctrl-C, with what had been computed.
        """
        from dynamics import gradient_descent, gradient_flow

        population, settings = population or self.population(case), case.settings
        common = {"initial": self.start(case), "records": records, "progress": progress}
        if case.solver == "flow":
            accuracy = {name: settings[name] for name in ("rtol", "atol")}
            return gradient_flow(population, horizon=settings["horizon"], **accuracy, **common)
        names = ("learning_rate", "steps", "optimizer", "momentum", "weight_decay")
        chosen = {name: settings[name] for name in names if name in settings}
        return gradient_descent(population, **chosen, **common)

    def refuse_hopeless(self, case: Case, population: Risk) -> None:
        """Raise ToleranceError if the expectation cannot be had even at the start."""
        start = self.start(case)
        with contextlib.suppress(OverflowError):  # the solver tells it with its status
            population.evaluate(case.problem.initial_state if start is None else start)

    def measure(self, case: Case) -> dict[str, float | str]:
        """Return the outcomes of a run made from scratch: pure but for ``seconds``.

        A run that cannot be made is not an error: its ``status`` says so.
        """
        with warnings.catch_warnings():  # an expectation that is estimated is told by its bound
            warnings.simplefilter("ignore", UserWarning)
            began = perf_counter()
        found = self._outcomes(lambda: self._measured(case))
        return found | {"seconds": perf_counter() - began}

    def _measured(self, case: Case) -> dict[str, Any]:
        population = self.population(case)
        return self._told(case, self.solve(case, population=population), population)

    def _told(self, case: Case, run: Trajectory, population: Risk) -> dict[str, Any]:
        common = {"status": run.status.name.lower(), "message": run.message}
        evaluations = {"evaluations": float(run.stats["evaluations"])}
        return common | evaluations | self.summary(case, run, population)

    def summarize(
        self, case: Case, trajectory: Trajectory, population: Risk, seconds: float = math.nan
    ) -> dict[str, float | str]:
        """Return the outcomes of a run at hand, and of the risk that it descended.

        ``seconds`` is the time that the run took, where it was measured.
        """
        found = self._outcomes(lambda: self._told(case, trajectory, population))
        return found | {"seconds": seconds}

    def _outcomes(self, summary: Callable[[], Mapping[str, Any]]) -> dict[str, float | str]:
        from numpy.linalg import LinAlgError

        from dynamics import Interrupted, ToleranceError

        found: dict[str, float | str] = {quantity.name: math.nan for quantity in self.outcomes}
        try:
            found |= summary()
        except Interrupted:
            raise
        except ToleranceError as refusal:
            found |= {"status": "inaccurate", "message": str(refusal)}
        except (ArithmeticError, ParameterError, LinAlgError, MemoryError) as failure:
            found |= {"status": FAILED, "message": f"{type(failure).__name__}: {failure}"}
        return found


#: Outcomes that tell of the cost of a run and differ from one run to the next.
VOLATILE = ("seconds",)
