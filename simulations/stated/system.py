"""The `System` of a user-defined theory, for runs, sweeps, maps, the explorer and `falsify`.

Its parameters are sizes, constants and the initial value of each order parameter (the name followed
by ``0``). Names of orbits are converted to identifiers: ``Upsilon[global to local]`` becomes
``Upsilon_global_to_local``.
"""

from __future__ import annotations

import hashlib
import math
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from dynamics import ParameterError, Risk, Status, Trajectory, gradient_flow
from dynamics.core.annotations import decades, evenly
from dynamics.core.checks import finite
from dynamics.core.parameters import Parameter, check_names, declared
from dynamics.core.schedule import recorded_steps
from dynamics.overlaps.one_pass import OnePassRisk
from dynamics.overlaps.risk import OverlapRisk
from dynamics.theory.risk import ROUNDING, TheoryProblem, TheoryRisk
from simulations.case import Case, Quantity
from simulations.falsify.bounded import Bounded
from simulations.solver_options import Solver, error_of_states, horizon_of
from simulations.stated import overlap_check, overlaps, runs
from simulations.stated.check import require_agreement
from simulations.stated.formulas import first_times, observables
from simulations.stated.law import Numbers
from simulations.stated.overlap_runs import OverlapSolver, stochastic_runs
from simulations.stated.sizes import by_sum
from simulations.system import RECORDS, System
from symbolic.overlaps import OverlapTheory, export
from symbolic.theory import Constant, Size, Theory, TheoryError
from symbolic.theory.export.printed import latex_equations
from symbolic.theory.load import content, load_statement

if TYPE_CHECKING:
    import xarray

HORIZON = 1e3
#: Number of sizes tried for the defaults.
_TRIED = 2000
#: Number of seeds of a random start, as slider values and in random cases.
SEEDS = 20
#: Largest divisor among the slider values.
_LARGEST_TICK = 100
_STANDARD_ERROR = Quantity(
    "standard_error", "of the final risk, if it is an estimate from a sample"
)
#: Names that are reserved by the tools.
_TAKEN = {"system", "theory", "json", "out", "plot", "force", "help", "time", "loss", "bound",
          "gradient_bound", "largest_bound", "largest_gradient_bound", "initial_loss", "status",
          "message", "evaluations", "seconds", "solver", "horizon", "learning_rate", "steps",
          "optimizer", "momentum", "weight_decay", "standard_error", "format", "dpi", "size",
          "style", "scale", "with", "rtol"}  # fmt: skip


#: Outcome of one-pass SGD on vectors.
_DISTANCE = Quantity(
    "sgd_distance", "largest distance of the flow from the mean of the runs of sgd, in their "
    "standard deviations",
)  # fmt: skip


class UserTheorySystem(System):
    """A user-defined theory in a file.

    Parameters
    ----------
    path
        The file.
    digest
        Expected fingerprint of the file; ``None`` accepts any content.

    Raises
    ------
    TheoryError
        As `symbolic.theory.load_theory`, if a name is reserved by the tools, or if the derived
        reduction does not agree with the full model.
    ParameterError
        If the file does not have the expected fingerprint.
    """

    tolerance = ROUNDING
    estimates = MappingProxyType(
        {
            "sample": "an estimate: see standard_error",
            "tensor rule in three dimensions": "an estimate in three dimensions",
            "rule for softmax over tokens": "an estimate of softmax over tokens",
        }
    )

    def __init__(self, path: str | Path, digest: str | None = None) -> None:
        self.path = Path(path)
        self.fingerprint = hashlib.sha256(content(self.path)).hexdigest()[:16]
        if digest not in (None, self.fingerprint):
            raise ParameterError(f"{self.path} was changed since it was read: restart the command")
        self.theory: Theory | OverlapTheory = load_statement(self.path)
        self.name = f"stated:{self.theory.name}"
        self.title = f"{self.theory.name}, as {self.path.name} states it ({self.theory.paper})"
        self.identifiers = {order.name: order.identifier for order in self.theory.orders}
        self._check_identifiers()
        self.solver = OverlapSolver if isinstance(self.theory, OverlapTheory) else Solver
        if digest is None:
            if isinstance(self.theory, OverlapTheory):
                overlap_check.require_agreement(self.theory)
            else:
                require_agreement(self.theory)
        self.parameters = tuple(self._parameters())
        columns = [
            Quantity(self.identifiers[order.name], f"order parameter {order.orbit}")
            for order in self.theory.orders
        ]
        loss = Quantity("loss", "population risk")
        own = [Quantity(name, text) for name, text in self.theory.observables.items()]
        self.outcomes = (
            *(
                Quantity(name, f"first time with {text}", "time")
                for name, text in self.theory.events.items()
            ),
            Quantity("time", "flow time reached", "time"),
            *(Quantity(column.name, f"final {column.meaning}") for column in (*columns, *own)),
            Quantity("initial_loss", "population risk at time 0"),
            Quantity("loss", "final population risk"),
            Quantity("bound", "error of the final population risk (certified)"),
            *([_STANDARD_ERROR] if self._may_be_sampled else []),
            Quantity("largest_bound", "largest error of the loss along the run (certified)"),
            Quantity("largest_gradient_bound", "largest error of a gradient entry (certified)"),
            Quantity("evaluations", "of the gradient along the run"),
            Quantity("seconds", "wall time", "s"),
            *([_DISTANCE] if isinstance(self.theory, OverlapTheory) else []),
        )
        self.observables = (
            Quantity("time", "learning rate x steps", "time"), *columns, *own, loss,
            Quantity("bound", "absolute error of the loss"),
            Quantity("gradient_bound", "largest absolute error of a gradient entry"),
        )  # fmt: skip
        constants = [parameter for parameter in self.parameters if parameter.name not in _TAKEN]
        self.constants = (
            *(Quantity(constant.name, constant.meaning) for constant in constants),
            Quantity("horizon", "requested final time", "time"),
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the path and the fingerprint of the file."""
        return UserTheorySystem, (str(self.path), self.fingerprint)

    @property
    def _may_be_sampled(self) -> bool:
        """Whether the data of a run may be sampled, because there are too many of them."""
        theory = self.theory
        return isinstance(theory, Theory) and theory.is_ordered and not theory.is_framed

    @property
    def precompile(self) -> tuple[str, ...]:  # type: ignore[override]
        """Arguments of Python that compile the derived risk."""
        return "-m", "simulations.stated.precompile", str(self.path)

    def _check_identifiers(self) -> None:
        """Raise TheoryError if a name is reserved or occurs twice."""
        names = [size.name for size in self.theory.sizes] + list(self.theory.free_constants)
        for identifier in self.identifiers.values():
            names += [identifier, f"{identifier}0"]
        names += [*self.theory.observables, *self.theory.events]
        names += ["seed"] * self.theory.is_random
        conflicts = sorted({name for name in names if names.count(name) > 1 or name in _TAKEN})
        if conflicts:
            raise TheoryError(
                f"{', '.join(conflicts)} is not allowed as a name: it is reserved or occurs twice; "
                "choose another name",
                self.theory.location,
            )

    def _parameters(self) -> Iterator[Parameter]:
        """Yield sizes, constants, initial values and the parameters of the solver."""
        defaults = self.default_values
        for size in self.theory.sizes:
            allowed = f"a divisor of {size.divides}, at least" if size.divides else "at least"
            yield Parameter(
                size.name, size.meaning or size.name, int, f"{allowed} {size.least}",
                default=defaults[size.name], ticks=_ticks_of_size(size, defaults),
            )  # fmt: skip
        for constant in self.theory.free_constants.values():
            value = defaults[constant.name]
            yield Parameter(
                constant.name, f"constant {constant.name}", float, constant.allowed, default=value,
                ticks=_ticks_of_constant(constant, value),
            )  # fmt: skip
        for order in self.theory.orders:
            name = f"{self.identifiers[order.name]}0"
            yield Parameter(name, f"initial {order.name}", default_text=str(order.start))
        if self.theory.is_random:
            yield Parameter(
                "seed", "seed of the random start", int, "an integer, at least 0", default=0,
                ticks=tuple(range(SEEDS)),
            )  # fmt: skip
        solver, tenth = dict(declared(self.solver)), math.log10(self.horizon)
        ticks = decades(tenth - 4, tenth + 2, each=4)
        solver["horizon"] = replace(
            solver["horizon"], default=self.horizon, ticks=ticks, default_text=""
        )
        yield from solver.values()

    @property
    def equations(self) -> list[str]:
        """Derived equations of the file, for all sizes, as formulas in LaTeX."""
        if isinstance(self.theory, OverlapTheory):
            return export.latex_equations(self.theory)
        return latex_equations(self.theory)

    @property
    def command_option(self) -> str:
        """Command-line options that select this theory."""
        return f"--theory {shlex.quote(str(self.path))}"

    @cached_property
    def default_values(self) -> dict[str, float]:
        """Default sizes and constants: those of the file, else small ones."""
        given = {k: x for k, x in self.theory.defaults.items() if k != "horizon"}
        constants = {name: x.example for name, x in self.theory.free_constants.items()}
        for sizes in self._sizes():
            try:
                return self.theory.checked({**constants, **sizes, **given})
            except TheoryError as error:
                failure = error
        raise failure

    @property
    def horizon(self) -> float:
        """Default final time."""
        return float(self.theory.defaults.get("horizon", HORIZON))

    def _sizes(self) -> Iterator[dict[str, int]]:
        """Yield sizes at which every order parameter has an entry, smallest first."""
        sizes = self.theory.sizes
        ranges = [range(size.least, min(size.most, size.least + 6) + 1) for size in sizes]
        for row in islice(by_sum(ranges), _TRIED):
            values = {size.name: x for size, x in zip(sizes, row)}
            if self.has_all(values):
                yield values

    def has_all(self, sizes: Mapping[str, float]) -> bool:
        """Return whether every order parameter has an entry at these sizes."""
        numbers = Numbers(sizes)
        return all(numbers.real(x) >= 1 for x in self.theory.order_parameters.values())

    def build(self, values: Mapping[str, Any]) -> Case:
        """Return the case with these parameter values."""
        check_names(values, self.parameters)
        given = {name: values[name] for name in self.default_values if name in values}
        try:
            checked = self.theory.checked(self.default_values | given)
        except TheoryError as error:
            raise ParameterError(error.sentence) from None
        problem = self._problem(checked, values.get("seed", 0))
        start = {
            name: finite(f"{identifier}0", values.get(f"{identifier}0", problem.start[name]))
            for name, identifier in self.identifiers.items()
        }
        solver = self.solver.from_values(values)
        problem = TheoryProblem(self.theory.name, checked, start)
        if isinstance(self.theory, OverlapTheory):  # are these the overlaps of some vectors?
            overlaps.risk(self.theory, checked, start).checked(problem.initial_state)
        settings = solver.settings(values, self.horizon)
        return Case(self.name, dict(values), problem, solver.solver, settings)

    @property
    def theory_of_index_sets(self) -> Theory:
        """The theory, for tools that enumerate its data.

        Raises
        ------
        ParameterError
            If it is a theory in overlaps.
        """
        if isinstance(self.theory, OverlapTheory):
            raise ParameterError(
                f"{self.theory.name} is not allowed here: it is a theory in overlaps, whose data "
                "are not enumerated; use run, sweep, map or falsify"
            )
        return self.theory

    def _problem(self, checked: dict[str, float], seed: int) -> TheoryProblem:
        """Return the problem at checked sizes and constants."""
        if not isinstance(self.theory, OverlapTheory):
            return runs.problem(self.theory, checked, seed)
        try:
            problem: TheoryProblem = overlaps.risk(self.theory, checked).problem
        except TheoryError as error:
            raise ParameterError(error.sentence) from None
        for name in self.identifiers:
            if name not in problem.start:
                raise ParameterError(f"{name} does not exist at these sizes: choose larger ones")
        return problem

    def population(self, case: Case) -> TheoryRisk | OverlapRisk:
        """Return the risk over all data."""
        if not isinstance(self.theory, OverlapTheory):
            return runs.risk_of(self.theory, case.problem, samples=runs.SAMPLES)
        numbers = case.problem.values, case.problem.start
        if case.solver != "sgd":
            return overlaps.risk(self.theory, *numbers)
        chosen = {name: case.settings[name] for name in ("learning_rate", "batch")}
        try:
            return overlaps.one_pass(self.theory, *numbers, **chosen)
        except TheoryError as error:
            raise ParameterError(error.sentence) from None

    def solve(
        self,
        case: Case,
        progress: Callable[[float], None] | None = None,
        records: int = RECORDS,
        population: Risk | None = None,
    ) -> Trajectory:
        """Run a case; with solver sgd, the flow with noise, and runs on vectors to compare."""
        if case.solver != "sgd":
            return super().solve(case, progress, records, population)
        population = population or self.population(case)
        accuracy = {name: case.settings[name] for name in ("rtol", "atol")}
        flow = gradient_flow(population, horizon=horizon_of(case), records=records, **accuracy)
        assert isinstance(population, OnePassRisk)
        assert isinstance(self.theory, OverlapTheory)
        population.runs = stochastic_runs(
            self.theory,
            case.problem.values,
            case.problem.start,
            schedule=recorded_steps(case.settings["steps"], "linear", RECORDS),
            progress=progress,
            **{name: case.settings[name] for name in ("learning_rate", "batch", "runs", "seed")},
        )
        return flow

    def summary(self, case: Case, trajectory: Trajectory, population: Risk) -> dict[str, Any]:
        """Return the outcomes of a run."""
        outcomes: dict[str, Any] = {
            "status": trajectory.status.name.lower(),
            "message": trajectory.message,
            "evaluations": float(trajectory.stats["evaluations"]),
        }
        if trajectory.time.size == 0:
            return outcomes
        last = self.observe(case, trajectory.at_records([-1]))
        outcomes |= {name: float(values[0]) for name, values in last.items()}
        risk = cast(TheoryRisk | OverlapRisk, population)
        if isinstance(risk, TheoryRisk) and risk.form == "sample":
            outcomes["standard_error"] = risk.standard_error(trajectory.states[-1])[0]
        outcomes |= first_times(self.theory, self.describe(case), trajectory, risk)
        if isinstance(risk, OnePassRisk) and trajectory.status is Status.COMPLETED:
            flow = np.array([trajectory.at(time) for time in risk.runs.time])
            outcomes["sgd_distance"] = float(np.max(risk.runs.distance(flow)))
        return outcomes | {
            "initial_loss": float(trajectory.loss[0]),
            "largest_bound": float(np.max(trajectory.bound)),
            "largest_gradient_bound": float(np.max(trajectory.largest_gradient_bound)),
        }  # fmt: skip

    def observe(self, case: Case, trajectory: Trajectory) -> dict[str, np.ndarray]:
        """Return time, order parameters, own observables, risk and its bound at the records."""
        columns = self._columns(trajectory)
        exact = {name: Bounded.exact(values) for name, values in columns.items()}
        own = observables(self.theory, self.describe(case), exact)
        return columns | {name: number.value for name, number in own.items()}

    def _columns(self, trajectory: Trajectory) -> dict[str, np.ndarray]:
        """Return the observables of every theory at the records of a run."""
        states = {
            identifier: trajectory.column(name) for name, identifier in self.identifiers.items()
        }
        bounds = {"bound": trajectory.bound, "gradient_bound": trajectory.largest_gradient_bound}
        return {"time": trajectory.time, **states, "loss": trajectory.loss, **bounds}

    def errors(self, case: Case, trajectory: Trajectory) -> Mapping[str, np.ndarray | float]:
        """Return the numerical error of each observable, to first order."""
        columns = self._columns(trajectory)
        errors = {name: error_of_states(trajectory, values) for name, values in columns.items()}
        errors |= {"loss": errors["loss"] + trajectory.bound}
        errors |= dict.fromkeys(("time", "bound", "gradient_bound"), np.zeros(trajectory.time.size))
        bounded = {name: Bounded.within(values, errors[name]) for name, values in columns.items()}
        if not np.isfinite(trajectory.bound).all():  # of an estimate: nothing is certified
            return {
                name: np.full(trajectory.time.size, np.inf)
                for name in (*errors, *self.theory.observables)
            }
        own = observables(self.theory, self.describe(case), bounded)
        return errors | {name: number.error for name, number in own.items()}

    def dataset(self, case: Case, trajectory: Trajectory, population: Risk) -> xarray.Dataset:
        """Return a run as a dataset, with the observables of the file."""
        data = super().dataset(case, trajectory, population)
        columns, texts = self.observe(case, trajectory), self.theory.observables
        if isinstance(population, OnePassRisk):
            data = data.assign(population.runs.variables(self.identifiers))
        return data.assign(
            {name: ("time", columns[name], {"long_name": text}) for name, text in texts.items()}
        )

    def describe(self, case: Case) -> dict[str, float]:
        """Return sizes, constants, start and horizon."""
        start = {f"{self.identifiers[name]}0": x for name, x in case.problem.start.items()}
        return {**case.problem.values, **start, **self._seed(case), "horizon": horizon_of(case)}

    def _seed(self, case: Case) -> dict[str, int]:
        """Return the seed of the random start as a mapping, empty without one."""
        return {"seed": int(case.values.get("seed", 0))} if self.theory.is_random else {}

    def flags(self, case: Case) -> dict[str, Any]:
        """Return the options of sizes, constants, given initial values and the solver."""
        given = {f"{name}0" for name in self.identifiers.values()} & set(case.values)
        start = {name: x for name, x in self.describe(case).items() if name in given}
        solver = {"solver": case.solver, **case.settings}
        return {**case.problem.values, **start, **self._seed(case), **solver}

    def cases(
        self, ranges: Mapping[str, tuple[float, float]] = MappingProxyType({}), /, **fixed: Any
    ) -> Any:
        """Return a strategy of sizes and of constants in their domains; see `System.cases`."""
        from simulations.stated.strategies import cases

        return cases(self, fixed, ranges)


def _ticks_of_size(size: Size, defaults: Mapping[str, float]) -> tuple[float, ...]:
    """Return slider values of a size: divisors, or powers of two times the default."""
    value = int(defaults[size.name])
    if size.divides is None:
        ticks = [value * 2**power // 4 for power in range(5)]
    else:
        ticks = [x for x in range(1, _LARGEST_TICK + 1) if defaults[size.divides] % x == 0]
    return tuple(sorted({x for x in ticks if size.least <= x <= size.most}))


def _ticks_of_constant(constant: Constant, value: float) -> tuple[float, ...]:
    """Return slider values of a constant: its range, or a decade around a value."""
    if math.isfinite(constant.low) and math.isfinite(constant.high):
        step = (constant.high - constant.low) / 20
        tried = evenly(constant.low, constant.high, step)
    elif value > 0.0:
        tried = tuple(value * x for x in decades(-1, 1))
    else:
        tried = evenly(value - 3.0, value + 3.0, 0.25)
    return tuple(x for x in tried if constant.allows(x))
