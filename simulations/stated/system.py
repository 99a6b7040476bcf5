"""A theory stated in one file as the tools see it: run, swept, mapped, falsified without more code.

Parameters are its sizes, its constants and the start of each order parameter (its name and ``0``).
Names of orbits that are no identifiers become words: ``Upsilon[global to local]`` is
``Upsilon_global_to_local``.
"""

import hashlib
import math
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from dynamics import ParameterError, Risk, Trajectory
from dynamics.core.annotations import decades, evenly
from dynamics.core.checks import finite
from dynamics.core.parameters import Parameter, check_names, declared
from dynamics.theory.data import how_many
from dynamics.theory.risk import ROUNDING, StatedProblem, StatedRisk
from simulations.case import Case, Quantity
from simulations.parameter_strategies import reals
from simulations.solver_options import Solver, error_of_states, horizon_of
from simulations.stated import runs
from simulations.stated.check import require_agreement
from simulations.stated.law import Numbers, law
from simulations.stated.sizes import by_sum
from simulations.system import System
from symbolic.theory import Constant, Size, Theory, TheoryError, load_theory
from symbolic.theory.load import content

HORIZON = 1e3
#: Sizes tried in search of small ones; sizes drawn in a search have so many data orbits at most.
_TRIED, _DRAWN, _MOST_DRAWN = 2000, 24, 2000
#: Largest divisor on a slider.
_LARGEST_TICK = 100
#: Names that mean something else to the tools.
_TAKEN = {"system", "theory", "json", "out", "plot", "force", "help", "time", "loss", "bound",
          "gradient_bound", "largest_bound", "largest_gradient_bound", "status", "message",
          "evaluations", "seconds", "solver", "horizon", "learning_rate", "steps",
          "optimizer", "momentum", "weight_decay",
          "rtol"}  # fmt: skip


class StatedSystem(System):
    """A theory in a file of the user's; see the module.

    Parameters
    ----------
    path
        The file.
    digest
        What the file must be, where it was read before; ``None``: whatever it is.

    Raises
    ------
    TheoryError
        As of `symbolic.theory.load_theory`, if a name means something else to the tools, or if the
        derived reduction is not that of the full model.
    ParameterError
        If the file is another than before.
    """

    tolerance = ROUNDING

    def __init__(self, path: str | Path, digest: str | None = None) -> None:
        self.path = Path(path)
        self.fingerprint = hashlib.sha256(content(self.path)).hexdigest()[:16]
        if digest not in (None, self.fingerprint):
            raise ParameterError(f"{self.path} is not what it was: begin anew")
        self.stated: Theory = load_theory(self.path)
        self.name = f"stated:{self.stated.name}"
        self.title = f"{self.stated.name}, as {self.path.name} states it ({self.stated.paper})"
        self.words = {order.name: _word(order.name) for order in self.stated.orders}
        self._check_words()
        if digest is None:
            require_agreement(self.stated)
        self.parameters = tuple(self._parameters())
        columns = [Quantity(self.words[order.name], f"order parameter {order.orbit}")
                   for order in self.stated.orders]  # fmt: skip
        loss = Quantity("loss", "population risk")
        self.outcomes = (
            Quantity("time", "flow time reached", "time"),
            *(Quantity(one.name, f"final {one.meaning}") for one in columns),
            Quantity("initial_loss", "population risk at time 0"),
            Quantity("loss", "final population risk"),
            Quantity("bound", "error of it (certified)"),
            Quantity("largest_bound", "largest error of the loss along the run (certified)"),
            Quantity("largest_gradient_bound", "largest error of a gradient entry (certified)"),
            Quantity("evaluations", "of the gradient along the run"),
            Quantity("seconds", "wall time", "s"),
        )
        self.observables = (
            Quantity("time", "learning rate x steps", "time"), *columns, loss,
            Quantity("bound", "absolute error of the loss"),
            Quantity("gradient_bound", "largest absolute error of a gradient entry"),
        )  # fmt: skip
        named = [one for one in self.parameters if one.name not in _TAKEN]
        self.constants = (
            *(Quantity(one.name, one.meaning) for one in named),
            Quantity("horizon", "final time asked for", "time"),
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Send the name of the file and what it must be."""
        return StatedSystem, (str(self.path), self.fingerprint)

    @property
    def precompile(self) -> tuple[str, ...]:  # type: ignore[override]
        """What Python is given to compile the derived risk."""
        return "-m", "simulations.stated.precompile", str(self.path)

    def _check_words(self) -> None:
        names = [size.name for size in self.stated.sizes] + list(self.stated.free_constants)
        for word in self.words.values():
            names += [word, f"{word}0"]
        twice = sorted({name for name in names if names.count(name) > 1 or name in _TAKEN})
        if twice:
            raise TheoryError(
                f"{', '.join(twice)}: it means something else where the theory is run; choose "
                "another name",
                self.stated.location,
            )

    def _parameters(self) -> Iterator[Parameter]:
        defaults = self.default_values
        for size in self.stated.sizes:
            allowed = f"a divisor of {size.divides}, at least" if size.divides else "at least"
            yield Parameter(
                size.name, size.meaning or size.name, int, f"{allowed} {size.least}",
                usual=defaults[size.name], ticks=_ticks_of_size(size, defaults),
            )  # fmt: skip
        for constant in self.stated.free_constants.values():
            value = defaults[constant.name]
            yield Parameter(
                constant.name, f"constant {constant.name}", float, constant.allowed, usual=value,
                ticks=_ticks_of_constant(constant, value),
            )  # fmt: skip
        for order in self.stated.orders:
            name = f"{self.words[order.name]}0"
            yield Parameter(name, f"initial {order.name}", default=str(order.start))
        solver, tenth = dict(declared(Solver)), math.log10(self.horizon)
        ticks = decades(tenth - 4, tenth + 2, each=4)
        solver["horizon"] = replace(solver["horizon"], usual=self.horizon, ticks=ticks, default="")
        yield from solver.values()

    @property
    def command_option(self) -> str:
        """The words that choose this theory on the command line."""
        return f"--theory {shlex.quote(str(self.path))}"

    @cached_property
    def default_values(self) -> dict[str, float]:
        """Sizes and constants where none are given: those of the file, else small ones."""
        told = {k: x for k, x in self.stated.defaults.items() if k != "horizon"}
        constants = {name: x.example for name, x in self.stated.free_constants.items()}
        for sizes in self._sizes():
            try:
                return self.stated.checked({**constants, **sizes, **told})
            except TheoryError as error:
                refusal = error
        raise refusal

    @property
    def horizon(self) -> float:
        """Final time where none is given."""
        return float(self.stated.defaults.get("horizon", HORIZON))

    def _sizes(self) -> Iterator[dict[str, int]]:
        """Yield sizes, smallest first, those at which an order parameter has no entry left out."""
        sizes = self.stated.sizes
        ranges = [range(size.least, min(size.most, size.least + 6) + 1) for size in sizes]
        for row in islice(by_sum(ranges), _TRIED):
            found = {size.name: x for size, x in zip(sizes, row)}
            if self._has_all(found):
                yield found

    def _has_all(self, sizes: Mapping[str, float]) -> bool:
        """Tell whether every order parameter has an entry at these sizes."""
        numbers = Numbers(sizes)
        return all(numbers.real(order.count) >= 1 for order in self.stated.orders)

    def build(self, values: Mapping[str, Any]) -> Case:
        """Return the case that these values describe."""
        check_names(values, self.parameters)
        given = {name: values[name] for name in self.default_values if name in values}
        try:
            checked = self.stated.checked(self.default_values | given)
        except TheoryError as refusal:
            raise ParameterError(refusal.sentence) from None
        problem = runs.problem(self.stated, checked)
        start = {
            name: finite(f"{word}0", values.get(f"{word}0", problem.start[name]))
            for name, word in self.words.items()
        }
        solver = Solver.from_values(values)
        stated = StatedProblem(self.stated.name, checked, start)
        settings = solver.settings(values, self.horizon)
        return Case(self.name, dict(values), stated, solver.solver, settings)

    def population(self, case: Case) -> StatedRisk:
        """Return the risk over every data orbit."""
        return runs.risk_of(self.stated, case.problem)

    def summary(self, case: Case, trajectory: Trajectory, population: Risk) -> dict[str, Any]:
        """Return what is reached."""
        found: dict[str, Any] = {
            "status": trajectory.status.name.lower(),
            "message": trajectory.message,
            "evaluations": float(trajectory.stats["evaluations"]),
        }
        if trajectory.time.size == 0:
            return found
        ends = {word: float(trajectory.column(name)[-1]) for name, word in self.words.items()}
        return found | ends | {
            "time": float(trajectory.time[-1]),
            "initial_loss": float(trajectory.loss[0]),
            "loss": float(trajectory.loss[-1]),
            "bound": float(trajectory.bound[-1]),
            "largest_bound": float(np.max(trajectory.bound)),
            "largest_gradient_bound": float(np.max(trajectory.largest_gradient_bound)),
        }  # fmt: skip

    def observe(self, case: Case, trajectory: Trajectory) -> dict[str, np.ndarray]:
        """Return time, order parameters, risk and its bound at the records of a run."""
        states = {word: trajectory.column(name) for name, word in self.words.items()}
        bounds = {"bound": trajectory.bound, "gradient_bound": trajectory.largest_gradient_bound}
        return {"time": trajectory.time, **states, "loss": trajectory.loss, **bounds}

    def errors(self, case: Case, trajectory: Trajectory) -> Mapping[str, np.ndarray | float]:
        """Return the numerical error of each of these, to first order."""
        found = {name: error_of_states(trajectory, values)
                 for name, values in self.observe(case, trajectory).items()}  # fmt: skip
        return {**found, "time": 0.0, "bound": 0.0, "gradient_bound": 0.0,
                "loss": found["loss"] + trajectory.bound}  # fmt: skip

    def describe(self, case: Case) -> dict[str, float]:
        """Return sizes, constants, start and horizon."""
        start = {f"{self.words[name]}0": x for name, x in case.problem.start.items()}
        return {**case.problem.values, **start, "horizon": horizon_of(case)}

    def flags(self, case: Case) -> dict[str, Any]:
        """Return sizes and constants, what is given of the start, and the solver."""
        given = {f"{word}0" for word in self.words.values()} & set(case.values)
        start = {name: x for name, x in self.describe(case).items() if name in given}
        solver = {"solver": case.solver, **case.settings}
        return {**case.problem.values, **start, **solver}

    def cases(self, **fixed: Any) -> Any:
        """Return a strategy of small sizes and of constants in their domains."""
        rows = [row for row in islice(self._feasible(fixed), _DRAWN)]
        if not rows:
            return st.nothing()
        constants = {
            name: st.just(constant.example) | _within(constant)
            for name, constant in self.stated.free_constants.items()
            if name not in fixed
        }
        drawn = st.tuples(st.sampled_from(rows), st.fixed_dictionaries(constants))
        return drawn.map(lambda pair: {**pair[0], **pair[1], **fixed})

    def _feasible(self, fixed: Mapping[str, Any]) -> Iterator[dict[str, int]]:
        """Yield small sizes that agree with what is fixed and have few data orbits."""
        own = {name: fixed[name] for name in self.default_values if name in fixed}
        seen = set()
        for sizes in self._sizes():
            left = {name: x for name, x in sizes.items() if name not in own}
            if tuple(left.items()) in seen:
                continue
            seen.add(tuple(left.items()))
            try:
                values = self.stated.checked(self.default_values | left | own)
                if self._has_all(values) and how_many(law(self.stated, values)) <= _MOST_DRAWN:
                    yield left
            except (TheoryError, ParameterError):
                continue


def _ticks_of_size(size: Size, usual: Mapping[str, float]) -> tuple[float, ...]:
    """Return sizes worth trying: divisors of what it must divide, or half, twice and so on."""
    value = int(usual[size.name])
    if size.divides is None:
        found = [value * 2**power // 4 for power in range(5)]
    else:
        found = [x for x in range(1, _LARGEST_TICK + 1) if usual[size.divides] % x == 0]
    return tuple(sorted({x for x in found if size.least <= x <= size.most}))


def _ticks_of_constant(constant: Constant, value: float) -> tuple[float, ...]:
    """Return values worth trying of a constant: within its ends, else a decade around a value."""
    if math.isfinite(constant.low) and math.isfinite(constant.high):
        step = (constant.high - constant.low) / 20
        tried = evenly(constant.low, constant.high, step)
    elif value > 0.0:
        tried = tuple(value * x for x in decades(-1, 1))
    else:
        tried = evenly(value - 3.0, value + 3.0, 0.25)
    return tuple(x for x in tried if _is_allowed(constant, x))


def _within(constant: Constant) -> st.SearchStrategy[float]:
    """Draw values of a constant, those with few digits, within its domain and not far from 0."""
    low, high = max(constant.low, -3.0), min(constant.high, 3.0)
    if low > high:
        low, high = constant.low, constant.high
    allowed = reals(low, high).map(lambda x: float(f"{x:.3g}"))
    return allowed.filter(lambda x: _is_allowed(constant, x))


def _is_allowed(constant: Constant, value: float) -> bool:
    try:
        constant.checked(value)
    except TheoryError:
        return False
    return True


def _word(name: str) -> str:
    """Return a name as an identifier."""
    return re.sub(r"\W+", "_", name).strip("_")
