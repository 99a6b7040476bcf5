"""What a theory offers to the tools that run many problems: names, and how to run one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    from dynamics import Trajectory

#: What became of a run, beside the names of :class:`dynamics.Status` in lower case.
INVALID, FAILED = "invalid", "failed"


@dataclass(frozen=True)
class Parameter:
    """A name that a configuration, a grid or a search may set; aliases are parameters too."""

    name: str
    meaning: str
    kind: type = float  # int, float or str
    allowed: str = ""


@dataclass(frozen=True)
class Quantity:
    """A number that a run or a problem has."""

    name: str
    meaning: str
    unit: str = ""


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


@dataclass(frozen=True)
class System:
    """A theory as the tools see it.

    Attributes
    ----------
    parameters
        What may be set.
    outcomes
        One number per run; nan where it does not exist. ``status`` and ``message`` come with them.
    observables
        One number per record of a run.
    constants
        One number per case.
    build
        ``build(values) -> Case``; raises :class:`dynamics.ParameterError` with one sentence.
    solve
        ``solve(case, progress=None) -> Trajectory``; raises what the solver and the expectation
        raise (:class:`dynamics.ToleranceError`, Ctrl-C as :class:`dynamics.Interrupted`).
    measure
        ``measure(case) -> outcomes`` of a run made from scratch. Never raises for a run that fails:
        its ``status`` says so. A pure function of the case but for ``seconds``.
    summarize
        ``summarize(case, trajectory) -> outcomes`` of a run at hand.
    observe
        ``observe(case, trajectory) -> {observable: array over the records}``.
    errors
        ``errors(case, trajectory) -> {observable: numerical error}`` of these, to first order.
    describe
        ``describe(case) -> {constant: number}``.
    cases
        ``cases(**fixed)`` is a Hypothesis strategy of mappings that `build` accepts.
    command
        ``command(case)`` is the shell command that makes this run.
    """

    name: str
    title: str
    parameters: tuple[Parameter, ...]
    outcomes: tuple[Quantity, ...]
    observables: tuple[Quantity, ...]
    constants: tuple[Quantity, ...]
    build: Callable[[Mapping[str, Any]], Case]
    solve: Callable[..., Trajectory]
    measure: Callable[[Case], dict[str, float | str]]
    summarize: Callable[[Case, Trajectory], dict[str, float | str]]
    observe: Callable[[Case, Trajectory], dict[str, np.ndarray]]
    errors: Callable[[Case, Trajectory], Mapping[str, np.ndarray | float]]
    describe: Callable[[Case], dict[str, float]]
    cases: Callable[..., Any]
    command: Callable[[Case], str]

    def parameter(self, name: str) -> Parameter | None:
        """Return the parameter with this name, ``None`` if there is none."""
        return next((one for one in self.parameters if one.name == name), None)

    @property
    def accuracy(self) -> str | None:
        """The parameter that makes the expectation more accurate at its cost, if there is one."""
        return next((n for n in ("quadrature", "tolerance") if self.parameter(n)), None)


#: Outcomes that tell of the cost of a run and differ from one run to the next.
VOLATILE = ("seconds",)
