"""What is computed of a run for a page, by a process of its own, in the order of its cost.

First the course: order parameters, loss, invariants and attention; then what takes evaluations of
the risk: test errors, events, and the field of the portrait.
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
from simulations.commands.run_summary import describe_violation
from simulations.running import error_of_states
from simulations.system import Attention, Case, System
from simulations.workers import Channel

#: Records of a run, moments at which its attention is kept, arrows of the field a side.
RECORDS, MOMENTS, ARROWS = 60, 25, 9
#: Seconds between two tellings of progress.
_BEAT = 0.25


@dataclass(frozen=True)
class Task:
    """A run to be looked at, and the axes of its portrait (``None``: those that tell most)."""

    theory: System
    case: Case
    axes: tuple[str, str] | None = None


class Progress(NamedTuple):
    """The fraction of a run that is done."""

    fraction: float


class Held(NamedTuple):
    """What a run says about one invariant: its worst violation beside its numerical error."""

    name: str
    statement: str
    place: str
    worst: float
    error: float
    graded: bool
    words: str  # empty where it holds


class Column(NamedTuple):
    """A number along a run, with its numerical error."""

    values: np.ndarray
    error: np.ndarray
    meaning: str


@dataclass(frozen=True)
class Course:
    """A run as its records tell it.

    ``columns`` are the observables and the order parameters, in this order; ``moments`` the indices
    of the records at which the attention is kept.
    """

    time: np.ndarray
    columns: dict[str, Column]
    order_parameters: tuple[str, ...]
    axes: tuple[str, str] | None
    status: str
    message: str
    expectation: str
    bound: str  # what the bound of the loss is: certified, or an estimate and which
    invariants: tuple[Held, ...]
    moments: tuple[int, ...]
    attention: tuple[Attention, ...]
    notes: tuple[str, ...]
    seconds: float


class Observed(NamedTuple):
    """Columns that took an evaluation of the risk at each record."""

    columns: dict[str, Column]


class Outcomes(NamedTuple):
    """What came out, by name; nan where it does not exist."""

    values: dict[str, float | str]


@dataclass(frozen=True)
class Field:
    """Where the flow goes in the plane of two order parameters.

    The others are those of the nearest record of the run (distances relative to the window), so
    that the arrows beside the path are those of the run itself. ``flow`` is minus the gradient,
    shape (n, 2); nan where it cannot be had.
    """

    axes: tuple[str, str]
    points: np.ndarray  # (n, 2)
    flow: np.ndarray  # (n, 2)


#: The last run of this process, by what it depends on: another portrait needs no other run.
_last: dict[str, tuple[Risk, Trajectory, tuple[str, ...], float]] = {}


def look(task: Task, channel: Channel) -> float:
    """Report everything that a page shows of a run; return the seconds that it took.

    Raises
    ------
    ToleranceError
        If the run holds no state.
    Cancelled
        If the job is cancelled.
    """
    began = time.perf_counter()
    population, run, notes, seconds = _run(task, channel)
    if not run.time.size:
        raise ToleranceError(f"the run holds no state: {run.message}")
    first = course(task, population, run, notes, seconds)
    channel.report(first)
    if not run.is_observed:
        with contextlib.suppress(ArithmeticError):  # not available all along a run that failed
            run = population.observe(run)
            columns = _columns(task, run)
            added = {name: columns[name] for name in columns.keys() - first.columns}
            channel.report(Observed(added))
    channel.report(Outcomes(dict(task.theory.summarize(task.case, run, population))))
    axes = axes_of(task, run)
    if axes is not None:
        channel.report(field_of(run, population, axes, channel.check))
    return time.perf_counter() - began


def _run(task: Task, channel: Channel) -> tuple[Risk, Trajectory, tuple[str, ...], float]:
    case, began, reported = task.case, time.perf_counter(), [0.0]
    key = f"{task.theory.name} {case.solver} {case.problem!r} {dict(case.settings)!r}"
    if key not in _last:
        _last.clear()

        def progress(fraction: float) -> None:
            channel.check()
            if (now := time.perf_counter()) - reported[0] > _BEAT:
                reported[0] = now
                channel.report(Progress(fraction))

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            population = task.theory.population(case)
            task.theory.refuse_hopeless(case, population)
            run = task.theory.solve(case, progress, RECORDS, population)
        notes = tuple(dict.fromkeys(str(warning.message) for warning in caught))
        _last[key] = population, run, notes, time.perf_counter() - began
    return _last[key]


def course(
    task: Task, population: Risk, run: Trajectory, notes: tuple[str, ...] = (), seconds: float = 0.0
) -> Course:
    """Return a run as its records tell it."""
    moments = np.unique(np.linspace(0, run.time.size - 1, MOMENTS).round().astype(int)).tolist()
    attention = [task.theory.attention(task.case, run, record) for record in moments]
    kept = tuple(one for one in attention if one is not None)
    return Course(
        time=run.time,
        columns=_columns(task, run),
        order_parameters=tuple(run.order_parameters),
        axes=axes_of(task, run),
        status=run.status.name.lower(),
        message=run.message,
        expectation=population.reason or population.method,
        bound=task.theory.estimates.get(population.method, "certified"),
        invariants=held(run),
        moments=tuple(moments) if kept else (),
        attention=kept,
        notes=notes,
        seconds=seconds,
    )


def _columns(task: Task, run: Trajectory) -> dict[str, Column]:
    observed = task.theory.observe(task.case, run)
    errors = task.theory.errors(task.case, run)
    meanings = {one.name: one.meaning for one in task.theory.observables}
    found = {}
    for name, values in observed.items():
        if name != "time":
            error = np.broadcast_to(errors.get(name, math.nan), values.shape)
            found[name] = Column(np.asarray(values, float), np.array(error), meanings[name])
    for name in run.order_parameters:
        if name not in found:
            values = run.column(name)
            error = error_of_states(run, values)
            found[name] = Column(np.array(values), error, "order parameter")
    return found


def held(run: Trajectory) -> tuple[Held, ...]:
    """Return what a run says about each invariant."""
    broken = run.violated()
    return tuple(
        Held(
            one.name, one.statement, one.place, float(worst), float(one.noise(run)), one.graded,
            describe_violation(one.name, {**asdict(broken[one.name]), "graded": one.graded})
            if one.name in broken else "",
        )
        for one in run.invariants
        for worst in [one.worst(run)]
    )  # fmt: skip


def axes_of(task: Task, run: Trajectory) -> tuple[str, str] | None:
    """Return the axes of the portrait: those asked for, or of the theory, or that move farthest."""
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
    """Return the ends of an axis on which values are seen, with a margin."""
    low, high = float(np.min(values)), float(np.max(values))
    margin = 0.15 * (high - low) or 0.1 * abs(high) or 1.0
    return low - margin, high + margin


def field_of(
    run: Trajectory,
    population: Risk,
    axes: tuple[str, str],
    check: Callable[[], Any] = lambda: None,
) -> Field:
    """Return the flow on a grid of the window of the path."""
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
    return Field(axes, points, flow)
