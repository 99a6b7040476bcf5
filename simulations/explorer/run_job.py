"""Computation of a run for the page, in a worker process, in the order of its cost.

First come order parameters, loss, invariants and attention; then the results that need further
evaluations of the risk: test errors, events, and the flow field of the phase portrait.
"""

import contextlib
import math
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from dynamics import Risk, ToleranceError, Trajectory
from simulations.case import Attention, Case
from simulations.commands.run_summary import describe_violation
from simulations.solver_options import error_of_states
from simulations.system import System
from simulations.workers import Channel

#: Numbers of records, of attention matrices, and of arrows along each axis of the portrait.
RECORDS, ATTENTION_RECORDS, ARROWS = 60, 25, 9
#: Seconds between two progress messages.
_INTERVAL = 0.25


@dataclass(frozen=True)
class Task:
    """Run to compute.

    Attributes
    ----------
    theory, case
        Theory and case.
    axes
        Order parameters of the phase portrait; ``None``: the default ones.
    """

    theory: System
    case: Case
    axes: tuple[str, str] | None = None


class EquationsTask(NamedTuple):
    """Theory whose derived equations are requested."""

    theory: System


class Progress(NamedTuple):
    """Completed fraction of a run."""

    fraction: float


class InvariantCheck(NamedTuple):
    """Largest violation of an invariant along a run, and its numerical error.

    ``description`` states when the invariant is violated; it is empty if the invariant holds.
    """

    name: str
    statement: str
    source: str
    worst: float
    error: float
    graded: bool
    description: str


class Column(NamedTuple):
    """Values of a quantity at the records of a run, and their numerical errors."""

    values: np.ndarray
    error: np.ndarray
    meaning: str


@dataclass(frozen=True)
class RunData:
    """Records of a run.

    Attributes
    ----------
    time
        Times of the records, shape (n,).
    columns
        Mapping from name to column: observables, then order parameters.
    order_parameters
        Names of the order parameters.
    axes
        Order parameters of the phase portrait.
    status, message
        Status of the run and its explanation.
    expectation
        Description of the method of the expectation.
    bound
        Meaning of the bound of the loss, such as ``"certified"``.
    invariants
        Violations of the invariants.
    attention_records, attention
        Indices of the records with an attention matrix, and the matrices.
    notes
        Warnings.
    seconds
        Wall time.
    """

    time: np.ndarray
    columns: dict[str, Column]
    order_parameters: tuple[str, ...]
    axes: tuple[str, str] | None
    status: str
    message: str
    expectation: str
    bound: str
    invariants: tuple[InvariantCheck, ...]
    attention_records: tuple[int, ...]
    attention: tuple[Attention, ...]
    notes: tuple[str, ...]
    seconds: float


class Observed(NamedTuple):
    """Columns that need an evaluation of the risk at each record."""

    columns: dict[str, Column]


class Outcomes(NamedTuple):
    """Mapping from outcome to value; nan if undefined."""

    values: dict[str, float | str]


@dataclass(frozen=True)
class FlowField:
    """Gradient flow in the plane of two order parameters.

    The other order parameters are those of the nearest record of the run, with distances relative
    to the window; thus arrows near the path show the flow along the run.

    Attributes
    ----------
    axes
        The two order parameters.
    points, flow
        Points and minus the gradient there, shape (n, 2); nan where the gradient is unavailable.
    """

    axes: tuple[str, str]
    points: np.ndarray
    flow: np.ndarray


#: Last run of this process by key, so that a change of the portrait does not repeat it.
_last: dict[str, tuple[Risk, Trajectory, tuple[str, ...], float]] = {}


def compute(task: Task | EquationsTask, channel: Channel) -> float | list[str]:
    """Compute a run (`compute_run`), or return the derived equations of a theory in LaTeX."""
    if isinstance(task, EquationsTask):
        return list(task.theory.equations)
    return compute_run(task, channel)


def compute_run(task: Task, channel: Channel) -> float:
    """Compute a run and report its results.

    Parameters
    ----------
    task
        Run to compute.
    channel
        Receives `Progress`, `RunData`, `Observed`, `Outcomes` and `FlowField`, in this order.

    Returns
    -------
    float
        Wall time in seconds.

    Raises
    ------
    ToleranceError
        If the run has no records.
    Cancelled
        If the job is cancelled.
    """
    start = time.perf_counter()
    population, run, notes, seconds = _run(task, channel)
    if not run.time.size:
        raise ToleranceError(f"the run has no records: {run.message}")
    first = run_data(task, population, run, notes, seconds)
    channel.report(first)
    if not run.is_observed:
        with contextlib.suppress(ArithmeticError):  # of a failed run, at its last records
            run = population.observe(run)
            columns = _columns(task, run)
            added = {name: columns[name] for name in columns.keys() - first.columns}
            channel.report(Observed(added))
    channel.report(Outcomes(dict(task.theory.summarize(task.case, run, population))))
    axes = axes_of(task, run)
    if axes is not None:
        channel.report(flow_field(run, population, axes, channel.check))
    return time.perf_counter() - start


def _run(task: Task, channel: Channel) -> tuple[Risk, Trajectory, tuple[str, ...], float]:
    """Return risk, run, warnings and seconds of a task, from the cache if possible."""
    case, start, reported = task.case, time.perf_counter(), [0.0]
    key = f"{task.theory.name} {case.solver} {case.problem!r} {dict(case.settings)!r}"
    if key not in _last:
        _last.clear()

        def progress(fraction: float) -> None:
            channel.check()
            if (now := time.perf_counter()) - reported[0] > _INTERVAL:
                reported[0] = now
                channel.report(Progress(fraction))

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            population = task.theory.population(case)
            task.theory.check_start(case, population)
            run = task.theory.solve(case, progress, RECORDS, population)
        notes = tuple(dict.fromkeys(str(warning.message) for warning in caught))
        _last[key] = population, run, notes, time.perf_counter() - start
    return _last[key]


def run_data(
    task: Task, population: Risk, run: Trajectory, notes: tuple[str, ...] = (), seconds: float = 0.0
) -> RunData:
    """Return the records of a run for the page."""
    spaced = np.linspace(0, run.time.size - 1, ATTENTION_RECORDS).round().astype(int)
    records = np.unique(spaced).tolist()
    matrices = [task.theory.attention(task.case, run, record) for record in records]
    attention = tuple(matrix for matrix in matrices if matrix is not None)
    return RunData(
        time=run.time,
        columns=_columns(task, run),
        order_parameters=tuple(run.order_parameters),
        axes=axes_of(task, run),
        status=run.status.name.lower(),
        message=run.message,
        expectation=population.reason or population.method,
        bound=task.theory.estimates.get(population.method, "certified"),
        invariants=check_invariants(run),
        attention_records=tuple(records) if attention else (),
        attention=attention,
        notes=notes,
        seconds=seconds,
    )


def _columns(task: Task, run: Trajectory) -> dict[str, Column]:
    """Return the observables and the order parameters of a run, with their errors."""
    observed = task.theory.observe(task.case, run)
    errors = task.theory.errors(task.case, run)
    meanings = {quantity.name: quantity.meaning for quantity in task.theory.observables}
    columns = {}
    for name, values in observed.items():
        if name != "time":
            error = np.broadcast_to(errors.get(name, math.nan), values.shape)
            columns[name] = Column(np.asarray(values, float), np.array(error), meanings[name])
    for name in run.order_parameters:
        if name not in columns:
            values = run.column(name)
            error = error_of_states(run, values)
            columns[name] = Column(np.array(values), error, "order parameter")
    return columns


def check_invariants(run: Trajectory) -> tuple[InvariantCheck, ...]:
    """Return the largest violation of each invariant along a run."""
    violated = run.violated()
    checks = []
    for invariant in run.invariants:
        name, description = invariant.name, ""
        if name in violated:
            violation = {**asdict(violated[name]), "graded": invariant.graded}
            description = describe_violation(name, violation)
        checks.append(
            InvariantCheck(
                name=name,
                statement=invariant.statement,
                source=invariant.source,
                worst=float(invariant.worst(run)),
                error=float(invariant.noise(run)),
                graded=invariant.graded,
                description=description,
            )
        )
    return tuple(checks)


def axes_of(task: Task, run: Trajectory) -> tuple[str, str] | None:
    """Return the axes of the portrait: those of the task or the theory, else the largest ranges."""
    names = run.order_parameters
    for axes in (task.axes, task.theory.portrait):
        if axes is not None and set(axes) <= set(names) and axes[0] != axes[1]:
            return axes
    if len(names) < 2:
        return None
    reach = np.ptp(run.states, axis=0)
    first, second = sorted(np.argsort(-reach, kind="stable")[:2].tolist())
    return names[first], names[second]


def window(values: np.ndarray) -> tuple[float, float]:
    """Return the ends of an axis that shows all values, with a margin."""
    low, high = float(np.min(values)), float(np.max(values))
    margin = 0.15 * (high - low) or 0.1 * abs(high) or 1.0
    return low - margin, high + margin


def flow_field(
    run: Trajectory,
    population: Risk,
    axes: tuple[str, str],
    check: Callable[[], Any] = lambda: None,
) -> FlowField:
    """Return the flow on a grid of points around the path of a run.

    Parameters
    ----------
    run, population
        Run and its risk.
    axes
        Order parameters of the plane.
    check
        Called before each evaluation of the gradient; raises to cancel.
    """
    columns = [run.order_parameters.index(name) for name in axes]
    path = run.states[:, columns]
    ends = np.array([window(column) for column in path.T])
    ticks = [np.linspace(low, high, ARROWS + 2)[1:-1] for low, high in ends.tolist()]
    points = np.stack(np.meshgrid(*ticks), axis=-1).reshape(-1, 2)
    size, flow = ends[:, 1] - ends[:, 0], np.full(points.shape, math.nan)
    for index, point in enumerate(points):
        check()
        distance = (((path - point) / size) ** 2).sum(axis=1)
        state = run.states[int(np.argmin(distance))].copy()
        state[columns] = point
        try:
            gradient = np.asarray(population.gradient(population.state(state)), float)
        except ArithmeticError:
            continue
        flow[index] = -gradient[columns]
    return FlowField(axes, points, flow)
