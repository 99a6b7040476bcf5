"""Gradient descent on the population risk of any theory."""

import dataclasses
import math
from collections.abc import Callable
from functools import cache
from time import perf_counter
from typing import Any

import numpy as np
from numba.extending import overload

from dynamics.core.checks import finite, integer, require
from dynamics.core.compiled_gradients import compiled_gradient
from dynamics.core.errors import ToleranceError
from dynamics.core.invariants import loss_non_increasing
from dynamics.core.jit import kernel
from dynamics.core.optimizers import Optimizer, optimizer_of
from dynamics.core.optimizers import step as optimizer_step
from dynamics.core.risk import Risk
from dynamics.core.schedule import recorded_steps
from dynamics.core.trajectory import Interrupted, Status, Trajectory, assemble

_RUNNING, _NOT_FINITE, _INACCURATE = 0, 1, 2
_SECONDS_BETWEEN_REPORTS = 0.2

#: Upper limits of the arguments ``steps`` and ``records``.
MOST_STEPS, MOST_RECORDS = 10**15, 10**7


def _gradient(gradient_plan, theta, out):
    """Write the gradient at theta to ``out``; return whether it is within tolerance."""
    return gradient_plan.gradient_within(theta, out)


@overload(_gradient)
def _compiled_gradient(gradient_plan, theta, out):
    """Return the registered kernel for compiled callers of `_gradient`."""
    gradient = compiled_gradient(getattr(gradient_plan, "instance_class", None))
    if gradient is not None:
        return lambda gradient_plan, theta, out: gradient(gradient_plan, theta, out)


def _descend(gradient_plan, theta, learning_rate, first, last, records, rows, optimizer=None):
    """Iterate theta <- theta - learning_rate * g(theta) from step ``first`` to ``last``, in place.

    Write theta to ``rows[i]`` at step ``records[i]``. Return the step reached and the stop code.
    ``optimizer`` is the code of another optimizer with its moments; the compiler removes the branch
    that is not taken.
    """
    gradient = np.empty_like(theta)
    position = np.searchsorted(records, first)
    for step in range(first, last):
        if position < records.size and records[position] == step:
            rows[position, :] = theta
            position += 1
        within = _gradient(gradient_plan, theta, gradient)
        if not math.isfinite(np.sum(gradient)):
            return step, _NOT_FINITE
        if not within:
            return step, _INACCURATE
        if optimizer is None:
            theta -= learning_rate * gradient
        else:
            optimizer_step(theta, gradient, learning_rate, step, *optimizer)
    if position < records.size and records[position] == last:
        rows[position, :] = theta
    return last, _RUNNING


@cache
def descent_loop(plan_class: Any) -> Callable[..., tuple[int, int]]:
    """Return the descent loop for a class of plans, compiled if its gradient is compiled.

    Each class has its own loop and its own cache entries, named after the source of both.
    """
    if compiled_gradient(plan_class) is None:
        return _descend
    return kernel(_descend, specialised_for=plan_class)


def gradient_descent(
    population: Risk,
    *,
    learning_rate: float,
    steps: int,
    initial: Any = None,
    record: str = "log",
    records: int = 200,
    progress: Callable[[float], None] | None = None,
    optimizer: str = "gd",
    **constants: float,
) -> Trajectory:
    r"""Minimise a population risk by gradient descent on the order parameters.

    The update is :math:`\theta \leftarrow \theta - \eta\, g(\theta)`, with g the theory's
    ``gradient``. The gradient is that of the full model with respect to a single entry: for problem
    (P) of Jelassi et al., each entry of ``A`` moves by ``-learning_rate * dL/dA_ij``, so that
    the reduced update divides :math:`\partial\ell/\partial\gamma` by D(C-1) and
    :math:`\partial\ell/\partial\rho` by D(D-C) (Lemmas 4.1 and 4.2).

    Parameters
    ----------
    population
        The risk to minimise.
    learning_rate, steps
        Step size (> 0) and number of steps (1 to 10^15).
    initial
        Initial state; ``None`` means ``population.problem.initial_state``.
    record, records
        Store at most ``records`` steps on a ``"log"`` or ``"linear"`` schedule, the first and the
        last included.
    progress
        Called with the fraction done, a few times a second.
    optimizer, constants
        ``"gd"``, ``"momentum"``, ``"adam"`` or ``"sign"``, with ``momentum`` (0.9) and
        ``weight_decay`` (0): see `dynamics.core.optimizers.Optimizer`.

    Returns
    -------
    Trajectory
        Its time is ``learning_rate * step``. Divergence, instability, overflow and loss of accuracy
        are reported by its status, not raised.

    Raises
    ------
    ParameterError
        If an argument is outside its domain, or if the optimizer does not commute with the symmetry
        group of the theory.
    Interrupted
        On Ctrl-C (a KeyboardInterrupt); its ``trajectory`` is the run up to that point.
    """
    rule = optimizer_of(optimizer, constants)
    population.check_optimizer(rule)
    learning_rate = finite("learning_rate", learning_rate)
    require(learning_rate > 0.0, "learning_rate", learning_rate, "greater than 0")
    steps = integer("steps", steps, 1, MOST_STEPS)
    require(
        math.isfinite(learning_rate * steps),
        "learning_rate",
        learning_rate,
        f"such that learning_rate x steps is finite ({steps} steps)",
    )
    require(record in ("log", "linear"), "record", record, "'log' or 'linear'")
    records = integer("records", records, 2, MOST_RECORDS)
    start = population.checked(population.problem.initial_state if initial is None else initial)
    schedule = recorded_steps(steps, record, records)
    run = _Run(population, learning_rate, rule, start, schedule)
    try:
        status = run.to(steps, progress)
    except KeyboardInterrupt:
        raise Interrupted(run.trajectory(Status.INTERRUPTED)) from None
    return run.trajectory(status)


class _Run:
    """Gradient descent in progress, in chunks of steps between reports of progress and Ctrl-C."""

    def __init__(
        self,
        population: Risk,
        learning_rate: float,
        optimizer: Optimizer,
        start: Any,
        schedule: np.ndarray,
    ) -> None:
        self.population = population
        self.learning_rate, self.optimizer = learning_rate, optimizer
        self.moments = np.zeros((2, len(start)))
        self.start = start
        self.theta = np.array(start, float)
        self.step = 0
        self.schedule = schedule
        self.rows = np.full((schedule.size, self.theta.size), np.nan)
        self.evaluated_before = population.evaluations
        self.note = ""

    def to(self, steps: int, progress: Callable[[float], None] | None) -> Status:
        """Advance to a step and return the status."""
        chunk, gradient_plan = 1, None
        while self.step < steps:
            began = perf_counter()
            try:
                if gradient_plan is None:
                    gradient_plan = self._new_plan()
                reason = self._advance(gradient_plan, min(steps, self.step + chunk))
                if reason == _INACCURATE:  # outdated plan, or no plan is accurate enough
                    gradient_plan = self._new_plan()
                    reason = self._advance(gradient_plan, self.step + 1)
                if reason == _INACCURATE:
                    self.population.gradient(self.population.state(self.theta))
                    reason = self._advance(self.population, self.step + 1)
            except OverflowError:
                return self._diverged()
            except ToleranceError as failure:
                self.note = str(failure)
                return self._diverged() if self._grew() else Status.INACCURATE
            if reason == _NOT_FINITE:
                return self._diverged()
            if progress is not None:
                progress(self.step / steps)
            seconds = perf_counter() - began
            if seconds < _SECONDS_BETWEEN_REPORTS:
                chunk = min(2 * chunk, 1_000_000)
            elif chunk > 1 and seconds > 2 * _SECONDS_BETWEEN_REPORTS:
                chunk //= 2
        return Status.COMPLETED

    def _new_plan(self) -> Any:
        """Return the gradient plan of the current state."""
        state = self.population.state(self.theta)
        return self.population.descent_plan(state, self.learning_rate, self.optimizer)

    def _advance(self, gradient_plan: Any, last: int) -> int:
        """Run the loop on a plan up to a step; return the stop code."""
        before, loop = self.step, descent_loop(gradient_plan.__class__)
        code = self.optimizer.code(self.population.trained)
        is_in_plan = self.optimizer.is_plain or self.population.plans_contain_optimizer
        optimizer = None if is_in_plan else (code, self.moments)
        with np.errstate(over="ignore", invalid="ignore"):  # the loop tests for these itself
            self.step, reason = loop(
                gradient_plan,
                self.theta,
                self.learning_rate,
                self.step,
                last,
                self.schedule,
                self.rows,
                optimizer,
            )
        if gradient_plan is not self.population:  # a risk counts its own evaluations
            self.population.evaluations += self.step - before
        return reason

    def _grew(self) -> bool:
        return self.population.has_grown(np.array(self.start, float), self.theta)

    def _diverged(self) -> Status:
        if not self._grew() and self.step == 0:
            return Status.OVERFLOW
        return Status.DIVERGED

    def trajectory(self, status: Status) -> Trajectory:
        """Return the recorded states, followed by the last finite state."""
        evaluations = self.population.evaluations - self.evaluated_before
        reached = self.schedule <= self.step
        time, rows = self.learning_rate * self.schedule[reached], self.rows[reached]
        recorded = np.isfinite(rows).all(axis=1)
        time, rows = time[recorded], rows[recorded]
        if status is not Status.COMPLETED and np.isfinite(self.theta).all():
            now = self.learning_rate * self.step
            if time.size == 0 or time[-1] < now:
                time, rows = np.append(time, now), np.vstack([rows, self.theta])
        run = assemble(
            self.population,
            "gradient descent",
            time,
            rows,
            status,
            self._message(status),
            resolution=1e-13,
            settings={
                "learning_rate": self.learning_rate,
                "steps": int(self.schedule[-1]),
                **self.optimizer.settings(),
            },
            stats={"evaluations": evaluations, "steps": self.step},
        )
        falls = self.optimizer.is_plain  # of other optimizers the loss may rise
        if falls and run.status is Status.COMPLETED and loss_non_increasing.worst(run) > 0.0:
            unstable = Status.UNSTABLE
            return dataclasses.replace(run, status=unstable, message=self._message(unstable))
        return run

    def _message(self, status: Status) -> str:
        if status not in (Status.DIVERGED, Status.UNSTABLE):
            return self.note or status.value
        largest = int(np.argmax(np.abs(self.theta)))
        return (
            f"{status.value}; at step {self.step} {self.population.order_parameters[largest]} = "
            f"{self.theta[largest]:.6g} with learning rate {self.learning_rate:.6g}, while "
            f"{self.population.learning_rate_hint(self.start)}"
            + (f" ({self.note})" if self.note else "")
        )


def warm_up(risk: Risk) -> None:
    """Compile the kernels of a risk: evaluate it and take two steps of gradient descent."""
    start = risk.problem.initial_state
    risk.gradient(start)
    risk.jacobian(start)
    risk.evaluate(start)
    gradient_descent(risk, learning_rate=0.01, steps=2)
