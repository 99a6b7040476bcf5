"""Full-batch gradient descent on the empirical risk (E)."""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from dynamics.core.arrays import real_array
from dynamics.core.checkpoint import Checkpoint, fingerprint
from dynamics.core.checks import finite, integer, require
from dynamics.core.errors import ParameterError
from dynamics.core.schedule import recorded_steps
from dynamics.core.trajectory import Status
from dynamics.positional.partition import checked_partition
from dynamics.positional.problem import Problem
from dynamics.positional.samples.curvature import stability
from dynamics.positional.samples.data import feature, fits_into_memory
from dynamics.positional.samples.gradient import EmpiricalRisk, FixedScores, FixedValue, Gradient
from dynamics.positional.samples.held_out import HeldOut
from dynamics.positional.samples.history import (
    History,
    Recorder,
    TrainingInterrupted,
    TrainingResult,
)
from dynamics.positional.samples.partitions import set_of

_SECONDS_BETWEEN_REPORTS = 0.2
_RISE = 1e-6  # larger relative rises of the loss are not rounding, even in single precision
_TRAINABLE = ("both", "A", "v")

Evaluator: TypeAlias = EmpiricalRisk | FixedScores | FixedValue


def initial_weights(
    problem: Problem, rng: np.random.Generator, omega: float = 1e-3
) -> tuple[np.ndarray, np.ndarray]:
    """Return random initial weights as in Parametrization 3.1.

    ``v ~ N(0, omega^2 I)`` and ``A_ij ~ N(0, omega^2)`` off the diagonal, ``A_ii = beta``.

    Parameters
    ----------
    problem
        Constants of the model.
    rng
        Random generator.
    omega
        Standard deviation, at least 0.

    Returns
    -------
    A : ndarray, shape (D, D)
        Attention scores.
    v : ndarray, shape (d,)
        Value vector.
    """
    omega = finite("omega", omega)
    require(omega >= 0.0, "omega", omega, "at least 0")
    A = omega * rng.standard_normal((problem.D, problem.D))
    np.fill_diagonal(A, problem.beta)
    return A, omega * rng.standard_normal(problem.dimension)


def train(
    problem: Problem,
    X: np.ndarray,
    y: ArrayLike,
    *,
    learning_rate: float,
    steps: int,
    rng: np.random.Generator | None = None,
    omega: float = 1e-3,
    initial: tuple[ArrayLike, ArrayLike] | None = None,
    learning_rate_A: float | None = None,
    learning_rate_v: float | None = None,
    momentum: float = 0.0,
    trainable: str = "both",
    w_star: ArrayLike | None = None,
    partition: Any = None,
    held_out: HeldOut | None = None,
    record: str | Sequence[int] = "log",
    records: int = 200,
    keep_states: bool = False,
    progress: Callable[[float], None] | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_seconds: float = 30.0,
    resume: bool = False,
    threads: int | None = None,
) -> TrainingResult:
    r"""Run full-batch gradient descent on the empirical risk (E).

    ``v`` and every off-diagonal entry of ``A`` change by minus the learning rate times their
    partial derivative; the diagonal of A is constant. The default is one rate for both, as in the
    paper's (GD).

    Parameters
    ----------
    problem, X, y
        Constants; data (N, D, d), float64 or float32; labels (N,) in {-1, +1}.
    learning_rate, steps
        Step size (> 0) and number of steps (>= 1).
    rng, omega
        Random generator and scale of the initial weights (`initial_weights`). ``rng`` is required
        if ``initial`` is not given.
    initial
        Initial weights ``(A, v)``, including the diagonal of A.
    learning_rate_A, learning_rate_v
        Separate rates for A and for v. Note that ``kappa = D`` with one rate is equivalent to
        ``kappa = 1`` with D times the initial v and D^2 times the rate of v.
    momentum
        Heavy-ball momentum in [0, 1).
    trainable
        ``"both"``, ``"A"`` or ``"v"``; the other one is constant.
    w_star, partition
        Feature (``None``: first unit vector) and sets (``None``: contiguous) for the records.
    held_out
        Samples for the test error of the records; ``None`` for no test error.
    record, records
        Recorded steps: at most ``records`` steps on a ``"log"`` or ``"linear"`` schedule, or a
        list of steps. The first and the last step are always recorded.
    keep_states
        Whether to store A and v of every record.
    progress
        Called with the completed fraction, a few times per second.
    checkpoint, checkpoint_seconds, resume
        File to which the state is written atomically at intervals of at least this many seconds, on
        Ctrl-C and at the end. ``resume`` continues from it if it exists; the result is identical to
        that of an uninterrupted run, bit for bit.
    threads
        Largest number of threads; the result does not depend on it.

    Returns
    -------
    TrainingResult
        Divergence and instability are reported by its status. The message then contains the
        largest stable learning rate (`stability`).

    Raises
    ------
    ParameterError
        If an argument is outside its domain, or if the checkpoint is damaged or from another run.
    TrainingInterrupted
        On Ctrl-C (a KeyboardInterrupt); its ``result`` contains the completed steps.
    """
    settings = _settings(learning_rate, steps, learning_rate_A, learning_rate_v, momentum)
    require(trainable in _TRAINABLE, "trainable", trainable, f"one of {', '.join(_TRAINABLE)}")
    A, v = resolve_initial(problem, rng, omega, initial)
    recorder = Recorder(problem, feature(problem, w_star), set_of(problem, partition), held_out)
    schedule = _schedule(settings["steps"], record, records)
    risk = EmpiricalRisk(problem, X, y, threads=threads)
    settings |= {"trainable": trainable, "samples": risk.N, "dtype": str(X.dtype)}
    state = _State(0, A, v, np.zeros_like(A), np.zeros_like(v), np.inf, 0.0)
    evaluator: Evaluator = risk
    if trainable == "A":
        evaluator = FixedValue(risk, v)
    elif trainable == "v" and fits_into_memory(2 * risk.X.nbytes):
        evaluator = FixedScores(risk, A)
    run = _Run(evaluator, problem, settings, state, schedule, recorder, keep_states)
    if checkpoint is not None:
        sets = checked_partition(problem, partition)
        description = (asdict(problem), settings, recorder.description, keep_states)
        mark = fingerprint(description, risk.X, risk.y, A, v, schedule, recorder.w, sets)
        run.saved = Checkpoint(
            Path(checkpoint), mark, finite("checkpoint_seconds", checkpoint_seconds)
        )
        if resume:
            run.restore()
    try:
        status, message = run.descend(progress)
    except KeyboardInterrupt:
        run.save()
        status = Status.INTERRUPTED
        raise TrainingInterrupted(run.result(status, status.value)) from None
    run.save()
    if status in (Status.UNSTABLE, Status.DIVERGED):
        weights = (run.state.A, run.state.v) if status is Status.UNSTABLE else (A, v)
        where = "at the end" if status is Status.UNSTABLE else "at the start"
        stable = _largest_stable(problem, risk, settings, *weights)
        message += f"; {where} the largest stable learning_rate is {stable:.3g}"
    return run.result(status, message)


def _largest_stable(
    problem: Problem, risk: EmpiricalRisk, settings: dict[str, Any], A: np.ndarray, v: np.ndarray
) -> float:
    """Return the largest stable learning rate for the settings' ratio of the rates of A and v."""
    rate = settings["learning_rate"]
    trained = {"A": "A", "v": "v"}.get(settings["trainable"], "both")
    return stability(
        problem,
        risk.X,
        risk.y,
        A,
        v,
        block=trained,
        momentum=settings["momentum"],
        relative=(settings["learning_rate_A"] / rate, settings["learning_rate_v"] / rate),
    ).learning_rate


def _settings(
    learning_rate: float,
    steps: int,
    learning_rate_A: float | None,
    learning_rate_v: float | None,
    momentum: float,
) -> dict[str, Any]:
    """Return the validated settings of the optimizer."""
    rates = {"learning_rate": learning_rate}
    rates["learning_rate_A"] = learning_rate if learning_rate_A is None else learning_rate_A
    rates["learning_rate_v"] = learning_rate if learning_rate_v is None else learning_rate_v
    for name, rate in rates.items():
        rates[name] = finite(name, rate)
        require(rates[name] > 0.0, name, rate, "greater than 0")
    momentum = finite("momentum", momentum)
    require(0.0 <= momentum < 1.0, "momentum", momentum, "in [0, 1)")
    return {**rates, "momentum": momentum, "steps": integer("steps", steps, 1)}


def resolve_initial(
    problem: Problem,
    rng: np.random.Generator | None,
    omega: float,
    initial: tuple[ArrayLike, ArrayLike] | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return a copy of the given initial weights (A, v), or random ones."""
    if initial is not None:
        A = real_array("A", initial[0], (problem.D, problem.D)).copy()
        return A, real_array("v", initial[1], (problem.dimension,)).copy()
    if rng is None:
        raise ParameterError("rng = None is not allowed: rng must be given unless initial is")
    return initial_weights(problem, rng, omega)


def _schedule(steps: int, record: str | Sequence[int], records: int) -> np.ndarray:
    """Return the recorded steps, increasing, with the first and the last."""
    if not isinstance(record, str):
        chosen = np.array([integer("record", step, 0) for step in record], dtype=np.int64)
        return np.unique(np.concatenate([[0], chosen[chosen <= steps], [steps]]))
    require(record in ("log", "linear"), "record", record, "'log', 'linear' or a list of steps")
    records = integer("records", records, 2)
    return recorded_steps(steps, record, records)


class _State(NamedTuple):
    """State of the optimizer. It is replaced atomically, so that Ctrl-C leaves it consistent."""

    step: int
    A: np.ndarray
    v: np.ndarray
    momentum_A: np.ndarray
    momentum_v: np.ndarray
    loss: float  # of the previous step
    rise: float  # largest relative rise of the loss so far


class _Run:
    """A run in progress."""

    saved: Checkpoint | None = None

    def __init__(
        self,
        risk: Evaluator,
        problem: Problem,
        settings: dict[str, Any],
        state: _State,
        schedule: np.ndarray,
        recorder: Recorder,
        keep_states: bool,
    ) -> None:
        self.risk, self.problem, self.settings, self.state = risk, problem, settings, state
        self.schedule, self.recorder, self.keep_states = schedule, recorder, keep_states
        self.rows: list[list[float]] = []
        self.states: list[tuple[np.ndarray, np.ndarray]] = []
        self.evaluations = 0

    def descend(self, progress: Callable[[float], None] | None) -> tuple[Status, str]:
        """Advance to the last step; return status and message."""
        steps, schedule = self.settings["steps"], set(self.schedule.tolist())
        reported = perf_counter()
        with np.errstate(over="ignore", invalid="ignore"):
            while True:
                step, A, v = self.state[:3]
                if len(self.rows) and self.rows[-1][0] == steps:
                    break  # resumed after the last step
                if not self._compiled_steps():
                    gradient = self.risk.gradient(A, v)
                    self.evaluations += 1
                    if not gradient.finite:
                        return self._failed()
                    if step in schedule:
                        if self.keep_states:
                            self.states.append((A, v))
                        time = step * self.settings["learning_rate"]
                        self.rows.append(self.recorder.row(step, time, gradient.loss, A, v))
                    if step == steps:
                        break
                    self.state = self._next(gradient)
                if perf_counter() - reported > _SECONDS_BETWEEN_REPORTS:
                    reported = perf_counter()
                    if progress is not None:
                        progress(self.state.step / steps)
                    if self.saved is not None and self.saved.is_due():
                        self.save()
        if progress is not None:
            progress(1.0)
        if self.settings["momentum"] == 0.0 and self.state.rise > _RISE:
            status = Status.UNSTABLE
            return status, f"{status.value} (by up to {self.state.rise:.3g} of its value in a step)"
        return Status.COMPLETED, Status.COMPLETED.value

    def _compiled_steps(self) -> int:
        """Take steps up to the next record in compiled code, if possible; return their number."""
        step, A, v, push_A, push_v, before, rise = self.state
        ahead = int(self.schedule[np.searchsorted(self.schedule, step)]) - step
        if ahead == 0 or not isinstance(self.risk, FixedScores) or not self.risk.is_single_chunk:
            return 0
        rates = (self.settings["momentum"], self.settings["learning_rate_v"])
        v, push_v, taken, before, rise = self.risk.descend(v, push_v, rates, (before, rise), ahead)
        if taken:
            self.evaluations += taken
            self.state = _State(step + taken, A, v, push_A, push_v, before, rise)
        return taken

    def _next(self, gradient: Gradient) -> _State:
        """Return the state after one step."""
        step, A, v, push_A, push_v, before, rise = self.state
        settings = self.settings
        if settings["trainable"] != "v":
            push_A = settings["momentum"] * push_A - settings["learning_rate_A"] * gradient.dA
            A = A + push_A
        if settings["trainable"] != "A":
            push_v = settings["momentum"] * push_v - settings["learning_rate_v"] * gradient.dv
            v = v + push_v
        if math.isfinite(before) and gradient.loss > before:
            rise = max(rise, (gradient.loss - before) / before if before > 0.0 else np.inf)
        return _State(step + 1, A, v, push_A, push_v, gradient.loss, rise)

    def _failed(self) -> tuple[Status, str]:
        """Return status and message after a loss or gradient that is not finite."""
        status = Status.OVERFLOW if self.state.step == 0 else Status.DIVERGED
        return status, f"{status.value} (at step {self.state.step})"

    def save(self) -> None:
        """Write the state and the records before it to the checkpoint, if there is one."""
        if self.saved is None:
            return
        indices = [i for i, row in enumerate(self.rows) if row[0] < self.state.step]
        done = bool(self.rows) and self.rows[-1][0] == self.settings["steps"]
        if done:
            indices = list(range(len(self.rows)))
        arrays = {name: np.asarray(value) for name, value in self.state._asdict().items()}
        arrays["rows"] = np.array([self.rows[i] for i in indices]).reshape(len(indices), -1)
        if self.keep_states:
            D, d = self.state.A.shape[0], self.state.v.size
            arrays["kept_A"] = np.array([self.states[i][0] for i in indices]).reshape(-1, D, D)
            arrays["kept_v"] = np.array([self.states[i][1] for i in indices]).reshape(-1, d)
        self.saved.write(arrays)

    def restore(self) -> None:
        """Continue from the checkpoint, if there is one."""
        assert self.saved is not None
        arrays = self.saved.read()
        if arrays is None:
            return
        step, A, v, push_A, push_v, loss, rise = (arrays[name] for name in _State._fields)
        self.state = _State(int(step), A, v, push_A, push_v, float(loss), float(rise))
        self.rows = arrays["rows"].tolist()
        if self.keep_states:
            self.states = list(zip(arrays["kept_A"], arrays["kept_v"]))

    def result(self, status: Status, message: str) -> TrainingResult:
        """Return the result of the completed steps."""
        indices = [i for i, row in enumerate(self.rows) if row[0] <= self.state.step]
        states = [self.states[i] for i in indices] if self.keep_states else None
        stats = {"evaluations": self.evaluations, "steps": self.state.step, "rise": self.state.rise}
        return TrainingResult(
            self.problem,
            self.state.A,
            self.state.v,
            History.of([self.rows[i] for i in indices], states),
            status,
            message,
            dict(self.settings),
            stats,
        )
