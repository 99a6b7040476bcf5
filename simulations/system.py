"""Interface between theories and the tools that run them."""

from __future__ import annotations

import contextlib
import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from time import perf_counter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from dynamics.core.errors import ParameterError
from dynamics.core.parameters import (
    Parameter,
    Parameters,
    check_names,
    declared,
    meanings_of_constants,
)
from simulations.case import FAILED, Attention, Case, Quantity
from simulations.solver_options import Solver, horizon_of
from symbolic.catalogue import CATALOGUE

if TYPE_CHECKING:
    import numpy as np
    import xarray

    from dynamics import Risk, Trajectory

#: Default number of records of a run; outcomes use these and the dense output between them.
RECORDS = 80


@dataclass(frozen=True, slots=True)
class Options(Parameters):
    """Options of a theory that has only those of the solver."""


class System(ABC):
    """Interface of a theory to the tools.

    A theory defines the class attributes and the abstract methods. Running, measuring and
    describing a case are the same for all theories.

    Attributes
    ----------
    name
        Name of the theory and of its folders.
    title
        Name in headings.
    problem, options, solver
        Dataclasses whose fields are the parameters: problem; start and accuracy of the
        expectation; solver.
    defaults
        Default values of parameters that differ from those of the fields.
    derived
        Constants returned by `derive`, in addition to the numerical parameters.
    outcomes
        Numbers of a run; nan if undefined. ``status`` and ``message`` are added.
    observables
        Numbers at each record of a run; the first one is the time.
    tolerance
        Default tolerance of the expectation.
    estimates
        Methods of the expectation without a certified bound: mapping from name to description.
    derivations
        Derivations with the equations of the reduced dynamics, by their names in the catalogue.
    examples
        Example commands of `patchdyn run`, each with a comment.
    preview
        Parameter values for fast runs that are accurate enough for plots.
    portrait
        The two order parameters of the phase portrait; ``None``: the two that change most.
    precompile
        Arguments of Python that compile the kernels.
    fingerprint
        Digest of files outside the packages that the results depend on.
    """

    name: str
    title: str
    problem: type[Any]
    options: type[Any] = Options
    solver: type[Solver] = Solver
    defaults: Mapping[str, Any] = {}
    derived: tuple[Quantity, ...] = ()
    outcomes: tuple[Quantity, ...]
    observables: tuple[Quantity, ...]
    estimates: Mapping[str, str] = {}
    tolerance: float
    derivations: tuple[str, ...] = ()
    examples: tuple[tuple[str, str], ...] = ()
    preview: Mapping[str, Any] = {}
    portrait: tuple[str, str] | None = None
    precompile: tuple[str, ...] = ("-m", "dynamics.precompile")
    fingerprint: str = ""

    @property
    def equations(self) -> Sequence[str]:
        """Derived equations as formulas in LaTeX; empty if there is no derivation to show."""
        from symbolic.core.printing import annotated  # imports SymPy

        derivations = [CATALOGUE[name] for name in self.derivations]
        return [annotated(equation, d.notation) for d in derivations for equation in d.equations]

    @property
    def command_option(self) -> str:
        """Command-line option that chooses this theory."""
        return f"--system {self.name}"

    def __getstate__(self) -> dict[str, Any]:
        """Omit the parameters: they contain functions that cannot be pickled."""
        return {name: value for name, value in vars(self).items() if name != "parameters"}

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """Parameters of problem, options and solver, with the defaults of the theory."""
        known = {**declared(self.problem), **declared(self.options), **declared(self.solver)}
        return tuple(
            replace(parameter, default=self.defaults.get(name, parameter.default))
            for name, parameter in known.items()
        )

    @cached_property
    def constants(self) -> tuple[Quantity, ...]:
        """Numbers of a case: those of the problem and of the start, and the final time."""
        meanings = {**meanings_of_constants(self.problem), **meanings_of_constants(self.options)}
        quantities = (Quantity(name, meaning) for name, meaning in meanings.items())
        return (*quantities, *self.derived, Quantity("horizon", "requested final time", "time"))

    def build(self, values: Mapping[str, Any]) -> Case:
        """Return the case with these parameters.

        Parameters
        ----------
        values
            Mapping from name of a parameter to its value; other parameters have their defaults.

        Raises
        ------
        ParameterError
            If a name or a value is not allowed.
        """
        check_names(values, self.parameters)
        problem = self.read_problem(values)
        options = self.options.from_values(values, self.defaults)
        solver = self.solver.from_values(values, self.defaults)
        settings = solver.settings(values, self.default_horizon(problem, options))
        settings |= self.settings(problem, options)
        return Case(self.name, dict(values), problem, solver.solver, settings)

    def read_problem(self, values: Mapping[str, Any]) -> Any:
        """Return the problem with these parameters."""
        return self.problem.from_values(values, self.defaults)

    def default_horizon(self, problem: Any, options: Any) -> float | None:
        """Return the default final time of gradient flow, ``None`` if the solver has one."""
        return None

    def settings(self, problem: Any, options: Any) -> dict[str, Any]:
        """Return the settings of a case in addition to those of the solver: the options."""
        return dict(options.options())

    @abstractmethod
    def population(self, case: Case) -> Risk:
        """Return the population risk of a case."""

    @abstractmethod
    def observe(self, case: Case, trajectory: Trajectory) -> dict[str, np.ndarray]:
        """Return the observables at the records of a run.

        Parameters
        ----------
        case
            Case of the run.
        trajectory
            Run with n records; some observables are included only after
            ``population.observe(trajectory)``.

        Returns
        -------
        dict of str to ndarray
            Name and values of each observable, each of shape (n,).
        """

    @abstractmethod
    def errors(self, case: Case, trajectory: Trajectory) -> Mapping[str, np.ndarray | float]:
        """Return the first-order numerical error of each observable, shape (n,) or a number."""

    def describe(self, case: Case) -> dict[str, float]:
        """Return name and value of each constant of a case."""
        start = {name: self.option(case, name) for name in meanings_of_constants(self.options)}
        constants = {**case.problem.constants(), **start, **self.derive(case)}
        return {**constants, "horizon": horizon_of(case)}

    def derive(self, case: Case) -> dict[str, float]:
        """Return the values of the constants `derived`."""
        return {}

    def cases(
        self, ranges: Mapping[str, tuple[float, float]] = MappingProxyType({}), /, **fixed: Any
    ) -> Any:
        """Return a Hypothesis strategy of values that `build` accepts.

        Parameters
        ----------
        ranges
            Mapping from name to range of parameters that are sampled in this range.
        fixed
            Parameters that are not sampled, as keyword arguments.
        """
        from simulations.parameter_strategies import cases

        return cases(self, fixed, ranges)

    def joint(self, draw: Any, fixed: Mapping[str, Any]) -> dict[str, Any]:
        """Sample the parameters that depend on each other, except the fixed ones."""
        return {}

    def option(self, case: Case, name: str) -> Any:
        """Return the value of an option of a case, or its default."""
        return case.settings.get(name, declared(self.options)[name].default)

    def flags(self, case: Case) -> dict[str, Any]:
        """Return name and value of the command-line options that reproduce a case."""
        solver = {name: case.settings.get(name) for name in declared(self.solver)}
        options = {name: self.option(case, name) for name in declared(self.options)}
        changed = {
            name: value
            for name, value in options.items()
            if value != declared(self.options)[name].default
        }
        return {**case.problem.options(), **changed, **solver, "solver": case.solver}

    @abstractmethod
    def summary(self, case: Case, trajectory: Trajectory, population: Risk) -> dict[str, Any]:
        """Return the outcomes of a run, without undefined ones and those common to all theories.

        The run has no records if the expectation failed at its start.
        """

    def start(self, case: Case) -> Any:
        """Return the initial state of a case; ``None``: the initial state of its problem."""
        return None

    def certify(
        self, conjecture: str, box: str, precision: int, progress: Callable[[float], None] | None
    ) -> tuple[dict[str, Any], str]:
        """Prove or refute a conjecture on a box.

        Parameters
        ----------
        conjecture
            Statement such as ``"gamma >= rho"``.
        box
            Values and ranges of parameters, such as ``"D=64, C=4, qD=0..2"``.
        precision
            Bits of ball arithmetic.
        progress
            Called with the fraction that is done.

        Returns
        -------
        tuple of dict and str
            Certificate as data and as text.

        Raises
        ------
        ParameterError
            If the theory has no certificates, or none for this conjecture.
        """
        raise ParameterError(
            f"--certify is not allowed with {self.command_option}: this theory has no certificates"
        )

    def dataset(self, case: Case, trajectory: Trajectory, population: Risk) -> xarray.Dataset:
        """Return a run as a labelled dataset with its observables."""
        return population.observe(trajectory).to_dataset()

    def details(self, case: Case, trajectory: Trajectory, population: Risk) -> dict[str, Any]:
        """Return results that `patchdyn run --json` prints for this theory only."""
        return {}

    def attention(self, case: Case, trajectory: Trajectory, record: int) -> Attention | None:
        """Return the attention matrix, or a part of it, at a record; ``None`` without attention."""
        return None

    def parameter(self, name: str) -> Parameter | None:
        """Return the parameter with this name, ``None`` if there is none."""
        return next((parameter for parameter in self.parameters if parameter.name == name), None)

    @property
    def accuracy(self) -> str | None:
        """Name of the parameter that sets the accuracy of the expectation, ``None`` without one."""
        return next((n for n in ("quadrature", "tolerance") if self.parameter(n)), None)

    def solve(
        self,
        case: Case,
        progress: Callable[[float], None] | None = None,
        records: int = RECORDS,
        population: Risk | None = None,
    ) -> Trajectory:
        """Run a case.

        Parameters
        ----------
        case
            Problem and settings.
        progress
            Called with the fraction that is done.
        records
            Number of records.
        population
            Population risk of the case; by default `population` computes it.

        Raises
        ------
        ToleranceError
            If the expectation does not reach its tolerance at the start.
        Interrupted
            On Ctrl-C, with the trajectory so far.
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

    def check_start(self, case: Case, population: Risk) -> None:
        """Raise ToleranceError if the expectation does not reach its tolerance at the start."""
        start = self.start(case)
        with contextlib.suppress(OverflowError):  # the solver reports it as a status
            population.evaluate(case.problem.initial_state if start is None else start)

    def measure(self, case: Case) -> dict[str, float | str]:
        """Run a case and return its outcomes.

        A case that cannot be run does not raise: its outcomes are nan and its ``status`` and
        ``message`` give the reason.
        """
        with warnings.catch_warnings():  # the bound shows whether an expectation is estimated
            warnings.simplefilter("ignore", UserWarning)
            start = perf_counter()
        outcomes = self._outcomes(lambda: self._run_and_summarize(case))
        return outcomes | {"seconds": perf_counter() - start}

    def _run_and_summarize(self, case: Case) -> dict[str, Any]:
        population = self.population(case)
        return self._summary(case, self.solve(case, population=population), population)

    def _summary(self, case: Case, run: Trajectory, population: Risk) -> dict[str, Any]:
        """Return the defined outcomes of a run, including status, message and evaluations."""
        common = {"status": run.status.name.lower(), "message": run.message}
        evaluations = {"evaluations": float(run.stats["evaluations"])}
        return common | evaluations | self.summary(case, run, population)

    def summarize(
        self, case: Case, trajectory: Trajectory, population: Risk, seconds: float = math.nan
    ) -> dict[str, float | str]:
        """Return the outcomes of a run.

        Parameters
        ----------
        case, trajectory, population
            Case, run and population risk.
        seconds
            Wall time of the run.
        """
        outcomes = self._outcomes(lambda: self._summary(case, trajectory, population))
        return outcomes | {"seconds": seconds}

    def _outcomes(self, summary: Callable[[], Mapping[str, Any]]) -> dict[str, float | str]:
        """Return all outcomes: nan, updated by ``summary()``, or with the status of its error."""
        from numpy.linalg import LinAlgError

        from dynamics import Interrupted, ToleranceError

        outcomes: dict[str, float | str] = {quantity.name: math.nan for quantity in self.outcomes}
        try:
            outcomes |= summary()
        except Interrupted:
            raise
        except ToleranceError as error:
            outcomes |= {"status": "inaccurate", "message": str(error)}
        except (ArithmeticError, ParameterError, LinAlgError, MemoryError) as error:
            outcomes |= {"status": FAILED, "message": f"{type(error).__name__}: {error}"}
        return outcomes
