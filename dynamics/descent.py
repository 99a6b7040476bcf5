"""Gradient descent on the population risk: the loop, written once."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from time import perf_counter

import numpy as np
from numba.extending import overload

from dynamics._jit import kernel, plain_twin
from dynamics.enumeration import StatePlan, gradient_within
from dynamics.errors import ToleranceError
from dynamics.invariants import loss_non_increasing
from dynamics.population import Population, checked_state
from dynamics.problem import State, finite, require
from dynamics.slow_manifold import SlowManifold
from dynamics.trajectory import Interrupted, Status, Trajectory, assemble

_RUNNING, _NOT_FINITE, _INACCURATE = 0, 1, 2
_SECONDS_BETWEEN_REPORTS = 0.2


def _gradient(plan, alpha, gamma, rho):
    """Return the entrywise gradient and whether it is within the tolerance, by any method."""
    return plan.gradient_within(alpha, gamma, rho)


@overload(_gradient)
def _compiled_gradient(plan, alpha, gamma, rho):
    if getattr(plan, "instance_class", None) is StatePlan:
        return lambda plan, alpha, gamma, rho: gradient_within(plan, alpha, gamma, rho)


@kernel
def _descend(plan, start, learning_rate, first, last, records, rows):
    """Iterate theta <- theta - learning_rate * g(theta) from step ``first`` to ``last``.

    Fills ``rows[i]`` when step ``records[i]`` is reached. Returns state, step and why it stopped.
    """
    alpha, gamma, rho = start
    position = np.searchsorted(records, first)
    for step in range(first, last):
        if position < records.size and records[position] == step:
            rows[position, 0], rows[position, 1], rows[position, 2] = alpha, gamma, rho
            position += 1
        g_alpha, g_gamma, g_rho, within = _gradient(plan, alpha, gamma, rho)
        if not math.isfinite(g_alpha + g_gamma + g_rho):
            return (alpha, gamma, rho), step, _NOT_FINITE
        if not within:
            return (alpha, gamma, rho), step, _INACCURATE
        alpha -= learning_rate * g_alpha
        gamma -= learning_rate * g_gamma
        rho -= learning_rate * g_rho
    if position < records.size and records[position] == last:
        rows[position, 0], rows[position, 1], rows[position, 2] = alpha, gamma, rho
    return (alpha, gamma, rho), last, _RUNNING


def gradient_descent(
    population: Population,
    *,
    learning_rate: float,
    steps: int,
    initial: State | None = None,
    record: str = "log",
    records: int = 200,
    progress: Callable[[float], None] | None = None,
) -> Trajectory:
    r"""Run gradient descent on (P), reduced to three scalars but with entrywise semantics.

    Every entry of ``A`` moves by ``-learning_rate * dL/dA_ij`` as in the paper's (GD), so the
    reduced update divides :math:`\partial\ell/\partial\gamma` by D(C-1) and
    :math:`\partial\ell/\partial\rho` by D(D-C) (Lemmas 4.1 and 4.2).

    Parameters
    ----------
    population
        The expectation to descend.
    learning_rate, steps
        Step size (> 0) and number of steps (>= 1).
    initial
        Start; ``None`` means Parametrization 3.1.
    record, records
        At most ``records`` steps are kept, on a ``"log"`` or ``"linear"`` schedule; the first and
        the last always are.
    progress
        Called with the fraction done, a few times a second.

    Returns
    -------
    Trajectory
        Its time is ``learning_rate * step``. Divergence, instability, overflow and loss of accuracy
        are told by its status, not raised.

    Raises
    ------
    ParameterError
        If an argument is outside its domain.
    Interrupted
        On Ctrl-C (a KeyboardInterrupt); its ``trajectory`` holds what was computed.
    """
    learning_rate = finite("learning_rate", learning_rate)
    require(learning_rate > 0.0, "learning_rate", learning_rate, "greater than 0")
    require(finite("steps", steps) == int(steps) and steps >= 1, "steps", steps, "an integer >= 1")
    require(record in ("log", "linear"), "record", record, "'log' or 'linear'")
    require(finite("records", records) >= 2, "records", records, "at least 2")
    start = population.problem.initial_state if initial is None else checked_state(initial)
    schedule = _schedule(int(steps), record, int(records))
    rows = np.full((schedule.size, 3), np.nan)
    run = _Run(population, learning_rate, start, schedule, rows)
    try:
        status = run.to(int(steps), progress)
    except KeyboardInterrupt:
        raise Interrupted(run.trajectory(Status.INTERRUPTED)) from None
    return run.trajectory(status)


def _schedule(steps: int, record: str, records: int) -> np.ndarray:
    if record == "linear":
        return np.unique(np.linspace(0, steps, min(records, steps + 1)).astype(np.int64))
    wanted = np.unique(np.geomspace(1, steps, records).round().astype(np.int64))
    return np.concatenate([[0], wanted])


class _Run:
    """A run in progress: advanced in chunks, so that progress and Ctrl-C are served in between."""

    def __init__(
        self,
        population: Population,
        learning_rate: float,
        start: State,
        schedule: np.ndarray,
        rows: np.ndarray,
    ) -> None:
        self.population = population
        self.learning_rate = learning_rate
        self.start, self.state, self.step = start, start, 0
        self.schedule, self.rows = schedule, rows
        self.note = ""

    def to(self, steps: int, progress: Callable[[float], None] | None) -> Status:
        """Advance to the last step and return the status."""
        expectation = self.population.expectation
        chunk = 1
        while self.step < steps:
            began, before = perf_counter(), self.step
            # the Fourier method outweighs the interpreter: its loop is the same one, not compiled
            loop = _descend if isinstance(expectation.plan, StatePlan) else plain_twin(_descend)
            state, self.step, reason = loop(
                expectation.plan, tuple(self.state), self.learning_rate, self.step,
                min(steps, self.step + chunk), self.schedule, self.rows,
            )  # fmt: skip
            self.state = State(*state)
            self.population.evaluations += self.step - before
            if reason == _NOT_FINITE:
                return self._diverged()
            if reason == _INACCURATE:
                try:
                    expectation.gradient(self.state)  # enlarges its tables or refuses
                except (ToleranceError, OverflowError) as refusal:
                    self.note = str(refusal)
                    return self._diverged() if self._grew() else Status.INACCURATE
            if progress is not None:
                progress(self.step / steps)
            seconds = perf_counter() - began
            if seconds < _SECONDS_BETWEEN_REPORTS:
                chunk = min(2 * chunk, 1_000_000)
            elif chunk > 1 and seconds > 2 * _SECONDS_BETWEEN_REPORTS:
                chunk //= 2
        return Status.COMPLETED

    def _grew(self) -> bool:
        return abs(self.state.alpha) > 10.0 * max(abs(self.start.alpha), 1e-3)

    def _diverged(self) -> Status:
        if not self._grew() and self.step == 0:
            return Status.OVERFLOW
        return Status.DIVERGED

    def trajectory(self, status: Status) -> Trajectory:
        """Return what was recorded, with the last finite state at its end."""
        kept = self.schedule <= self.step
        time, rows = self.learning_rate * self.schedule[kept], self.rows[kept]
        recorded = np.isfinite(rows).all(axis=1)
        time, rows = time[recorded], rows[recorded]
        if status is not Status.COMPLETED and np.isfinite(self.state).all():
            now = self.learning_rate * self.step
            if time.size == 0 or time[-1] < now:
                time, rows = np.append(time, now), np.vstack([rows, self.state])
        run = assemble(
            self.population,
            "gradient descent",
            time,
            rows,
            status,
            self._message(status),
            resolution=1e-13,
            settings={"learning_rate": self.learning_rate, "steps": int(self.schedule[-1])},
            stats={"steps": self.step},
        )
        if run.status is Status.COMPLETED and loss_non_increasing.worst(run) > 0.0:
            unstable = Status.UNSTABLE
            return dataclasses.replace(run, status=unstable, message=self._message(unstable))
        return run

    def _message(self, status: Status) -> str:
        if status not in (Status.DIVERGED, Status.UNSTABLE):
            return self.note or status.value
        stable = largest_stable_learning_rate(self.population, self.start)
        return (
            f"{status.value}; at step {self.step} alpha = {self.state.alpha:.6g} with learning "
            f"rate {self.learning_rate:.6g}, while the largest stable one (2 / largest curvature "
            f"on the quasi-steady state of the start) is {stable:.6g}"
            + (f" ({self.note})" if self.note else "")
        )


def largest_stable_learning_rate(population: Population, start: State) -> float:
    """Return the largest learning rate that is stable both at a state and where alpha settles.

    Both matter: alpha relaxes to its quasi-steady value at the given (gamma, rho) long before the
    attention moves, and the curvature there is what descent lives with.
    """
    rates = [population.largest_stable_learning_rate(start)]
    try:
        settled = SlowManifold(population).alpha(start.gamma, start.rho, guess=start.alpha)
        rates.append(population.largest_stable_learning_rate(start._replace(alpha=settled)))
    except ArithmeticError:
        pass  # no quasi-steady value: the start alone decides
    return min(rates)
