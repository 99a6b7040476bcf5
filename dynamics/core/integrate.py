"""Stiff integration of ordinary differential equations with dense output and stall detection."""

import math
import warnings
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from scipy.integrate import BDF, LSODA, OdeSolver, Radau

from dynamics.core.checks import finite, require
from dynamics.core.errors import ToleranceError
from dynamics.core.trajectory import Status

_LEAST_SHRINK = 1e-12  # smallest restart step, relative to the last accepted step
_MOST_STEPS = 30_000  # runs that reach their horizon take hundreds to a few thousand
_MOST_REMAINING = 1e30  # predicted remaining steps of a stalled run; slow phases have up to 1e6
_WINDOW_LIMITS = 250, 10_000  # smallest and largest window (in steps) of the stall test
_EXPENSIVE = 1e-3  # seconds per gradient above which the early stall test is applied
_EARLY = 64, 1e40  # window and predicted remaining steps of the early stall test
_WINDOW_SECONDS = 0.5  # predicted cost of a window
_MOST_FAILURES = 5  # consecutive failures of trial steps
_APART = 100  # failures more than this many steps apart are not consecutive

METHODS = {"Radau": Radau, "BDF": BDF, "LSODA": LSODA}


@dataclass
class Path:
    """Accepted steps of an integration; :meth:`at` is the dense output of the method.

    Attributes
    ----------
    times, points
        Time and solution (n,) after each accepted step, the start first.
    pieces
        For each step, the time origin of its solver and the SciPy interpolant.
    status, message
        Exit status, and a sentence with the numbers.
    stats
        Counts of evaluations, Jacobians, restarts and steps.
    """

    times: list[float] = field(default_factory=list)
    points: list[np.ndarray] = field(default_factory=list)
    pieces: list[Any] = field(default_factory=list)
    status: Status = Status.COMPLETED
    message: str = Status.COMPLETED.value
    stats: dict[str, float] = field(default_factory=dict)

    def at(self, time: float) -> np.ndarray:
        """Return the solution at a time between the first and the last step."""
        if time <= self.times[0]:
            return self.points[0]
        index = min(bisect_left(self.times, time), len(self.times) - 1)
        start, piece = self.pieces[index - 1]
        return np.asarray(piece(min(max(time - start, piece.t_min), piece.t_max)))

    def stall(self, reason: str) -> None:
        """End with the status of a stalled integrator and a reason."""
        self.status = Status.STALLED
        self.message = f"{Status.STALLED.value} ({reason})"


class PathInterrupted(KeyboardInterrupt):
    """Ctrl-C during an integration; the attribute ``path`` contains the steps up to that point."""

    def __init__(self, path: Path) -> None:
        super().__init__(path.status.value)
        self.path = path


def integrate(
    velocity: Callable[[np.ndarray], np.ndarray],
    jacobian: Callable[[np.ndarray], np.ndarray] | None,
    start: np.ndarray,
    horizon: float,
    *,
    method: str,
    rtol: float,
    atol: float,
    until: Callable[[np.ndarray], bool] | None = None,
    progress: Callable[[float], None] | None = None,
    seconds: float = 0.0,
) -> Path:
    """Integrate y' = velocity(y) from time 0 to ``horizon``.

    A trial step may reach a point where the velocity overflows or loses accuracy. The solver is
    then restarted from the last accepted step, with a smaller step and time measured from there;
    the path ends if that fails repeatedly.

    Parameters
    ----------
    velocity, jacobian
        Functions of y (n,) that return shapes (n,) and (n, n). ``jacobian=None`` means finite
        differences. Both may raise OverflowError or ToleranceError.
    start
        Initial value (n,).
    horizon
        Final time.
    method, rtol, atol
        Integrator of SciPy (see ``METHODS``) and its tolerances.
    until
        Predicate of y; the path ends after the first step where it is true.
    progress
        Called after each step with the fraction done on a logarithmic time scale.
    seconds
        Predicted cost of a velocity. Expensive runs are tested for a stall earlier.

    Returns
    -------
    Path
        Failures are reported by its status, not raised.

    Raises
    ------
    PathInterrupted
        On Ctrl-C; its attribute ``path`` contains the steps up to that point.
    """
    path = Path([0.0], [np.array(start, float)])
    window = int(np.clip(_WINDOW_SECONDS / max(seconds, 1e-9), *_WINDOW_LIMITS))
    create = partial(METHODS[method], rtol=rtol, atol=atol)
    steps = _Steps(path, create, velocity, jacobian, horizon)
    try:
        while steps.advance():
            time = path.times[-1]
            reason = _stall_reason(path.times, horizon, window, seconds > _EXPENSIVE)
            if reason is not None:
                path.stall(f"at time {time:.6g}: {reason}")
                break
            if until is not None and until(path.points[-1]):
                path.message = f"the stop condition was met at time {time:.6g}"
                break
            if progress is not None:
                progress(float(np.log1p(time) / np.log1p(horizon)))
    except KeyboardInterrupt:
        path.status, path.message = Status.INTERRUPTED, Status.INTERRUPTED.value
        raise PathInterrupted(path) from None
    finally:
        path.stats = {**steps.calls, "steps": len(path.times) - 1}
    return path


@dataclass
class _Steps:
    """Steps of a SciPy solver that is restarted where a trial step fails.

    Attributes
    ----------
    path
        The accepted steps.
    create
        Function that creates a solver.
    velocity, jacobian, horizon
        As in `integrate`.
    calls
        Counts of evaluations, Jacobians and restarts.
    solver, begin
        The current solver (``None`` before the first step and after the last failure), and the
        time from which it counts.
    shrink, last
        Factor of the first step of the next solver, and the length of the last accepted step.
    failures, failed_at
        Number of consecutive failures, and the number of accepted steps at the last one.
    """

    path: Path
    create: Callable[..., OdeSolver]
    velocity: Callable[[np.ndarray], np.ndarray]
    jacobian: Callable[[np.ndarray], np.ndarray] | None
    horizon: float
    calls: dict[str, int] = field(
        default_factory=lambda: {"evaluations": 0, "jacobians": 0, "restarts": 0}
    )
    solver: OdeSolver | None = None
    begin: float = 0.0
    shrink: float = 1.0
    last: float = math.inf
    failures: int = 0
    failed_at: int = 0

    def advance(self) -> bool:
        """Take one step; return False at the horizon and after a failure."""
        if len(self.path.times) == 1:
            self.restart(None)
        while self.solver is not None and self.solver.status == "running":
            try:
                with warnings.catch_warnings():  # the status reports what LSODA warns about
                    warnings.simplefilter("ignore", UserWarning)
                    message = self.solver.step()
            except (OverflowError, ToleranceError) as failure:
                self.retry(failure)
                continue
            if self.solver.status == "failed":
                self.path.stall(f"at time {self.begin + self.solver.t:.6g}: {message}")
                return False
            self.accept(self.solver)
            return True
        return False

    def accept(self, solver: OdeSolver) -> None:
        """Append the step of a solver to the path."""
        self.shrink = min(1.0, 10.0 * self.shrink)
        self.last = max(solver.step_size, float(np.spacing(solver.t)))
        self.path.times.append(float(self.begin + solver.t))
        self.path.points.append(solver.y.copy())
        self.path.pieces.append((self.begin, solver.dense_output()))

    def retry(self, failure: Exception) -> None:
        """Restart with a smaller step, or end the path after too many failures."""
        self.shrink *= 1e-2
        self.calls["restarts"] += 1
        steps = len(self.path.times) - 1
        self.failures = self.failures + 1 if steps - self.failed_at < _APART else 1
        self.failed_at = steps
        if self.shrink < _LEAST_SHRINK or self.failures > _MOST_FAILURES:
            self.fail(failure)
        else:
            self.restart(self.shrink * min(self.last, self.horizon))

    def restart(self, first_step: float | None) -> None:
        """Create a solver that starts at the last accepted step."""
        self.begin = self.path.times[-1]
        options = {} if self.jacobian is None else {"jac": self.counted_jacobian}
        try:
            self.solver = self.create(
                self.counted_velocity,
                0.0,
                self.path.points[-1],
                self.horizon - self.begin,
                first_step=first_step,
                **options,
            )
        except (OverflowError, ToleranceError) as failure:
            self.fail(failure)

    def fail(self, failure: Exception) -> None:
        """End the path with the status and message of an exception."""
        overflow = isinstance(failure, OverflowError)
        self.path.status = Status.OVERFLOW if overflow else Status.INACCURATE
        self.path.message = str(failure)
        self.solver = None

    def counted_velocity(self, _: float, y: np.ndarray) -> np.ndarray:
        """Return the velocity and count the call."""
        self.calls["evaluations"] += 1
        return _finite_or_overflow(self.velocity(y))

    def counted_jacobian(self, _: float, y: np.ndarray) -> np.ndarray:
        """Return the Jacobian and count the call."""
        assert self.jacobian is not None
        self.calls["jacobians"] += 1
        return _finite_or_overflow(self.jacobian(y))


def _finite_or_overflow(value: np.ndarray) -> np.ndarray:
    """Return an array, or raise OverflowError if an entry is not finite."""
    if not np.isfinite(value).all():
        raise OverflowError(Status.OVERFLOW.value)
    return value


def _stall_reason(times: list[float], horizon: float, window: int, expensive: bool) -> str | None:
    """Return the stall reason, or None if the run advances.

    A gradient flow does not oscillate: its steps grow with time, except in slow phases (thousands
    of steps where logits grow as log t up to times of 1e34). A run has stalled if the mean step
    does not grow from one window to the next and the predicted number of remaining steps is too
    large. The decision depends on the steps, not on wall time, and is therefore reproducible.
    """
    steps = len(times) - 1
    if steps >= _MOST_STEPS:
        return f"{steps} steps"
    tests = (_EARLY, (window, _MOST_REMAINING)) if expensive else ((window, _MOST_REMAINING),)
    for span, limit in tests:
        if steps % span == 0 and steps >= 2 * span:
            passed = np.diff([times[-1 - 2 * span], times[-1 - span], times[-1]])
            before, now = np.maximum(passed, math.ulp(times[-1])) / span
            if now <= 1.1 * before and (remaining := (horizon - times[-1]) / now) > limit:
                return f"after {steps} steps, it would need {remaining:.1e} more at this pace"
    return None


def check_method(method: str, rtol: float, atol: float) -> None:
    """Raise ParameterError unless method and tolerances are allowed."""
    require(method in METHODS, "method", method, f"one of {', '.join(METHODS)}")
    require(1e-13 <= finite("rtol", rtol) < 1.0, "rtol", rtol, "in [1e-13, 1)")
    require(finite("atol", atol) > 0.0, "atol", atol, "greater than 0")
