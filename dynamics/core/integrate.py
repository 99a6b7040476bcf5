"""Stiff integration of an ordinary differential equation, step by step, with dense output."""

import math
import warnings
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.integrate import BDF, LSODA, OdeSolver, Radau

from dynamics.core.checks import finite, require
from dynamics.core.errors import ToleranceError
from dynamics.core.trajectory import Status

_LEAST_SHRINK = 1e-12  # of the last good step: a failure at smaller steps is final
_MOST_STEPS = 30_000  # runs that get anywhere take hundreds to a few thousand
_HOPELESS = 1e30  # further steps of a run that gets nowhere; passages have 1e6 to go and arrive
_PACES = 250, 10_000  # least and most steps over which the pace is taken, twice
_DEAR = 1e-3  # seconds of a gradient, from which on a run is looked at early
_EARLY = 64, 1e40  # over how many steps, twice, and the further steps that end it
_PATIENCE = 0.5  # predicted seconds of so many steps
_MOST_FAILURES = 5  # trial steps that may fail in turn: beyond, the run creeps along a wall
_APART = 100  # steps after which a failure is not in turn with those before

METHODS = {"Radau": Radau, "BDF": BDF, "LSODA": LSODA}


@dataclass
class Path:
    """The steps taken so far; :meth:`at` interpolates to the order of the method."""

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


class PathInterrupted(KeyboardInterrupt):
    """Ctrl-C during an integration; ``path`` holds the steps taken until then."""

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
    """Integrate y' = velocity(y) from 0 to ``horizon``; trouble ends the path with a status.

    A trial step may land where the velocity cannot be had (overflow, loss of accuracy): the solver
    is then restarted from its last step, on a fresh clock and with a smaller step, and the path
    ends only if that does not help. It also ends after the first step at which ``until`` holds.
    ``progress`` is called after each step with the fraction done on a logarithmic clock; where
    ``seconds``, the predicted cost of a velocity, are many, a run that gets nowhere ends early.
    Ctrl-C raises `PathInterrupted`, which holds the path so far.
    """
    path = Path([0.0], [np.array(start, float)])
    pace = int(np.clip(_PATIENCE / max(seconds, 1e-9), *_PACES))
    calls = {"evaluations": 0, "jacobians": 0, "restarts": 0}

    def counted(_: float, y: np.ndarray) -> np.ndarray:
        calls["evaluations"] += 1
        found = velocity(y)
        if not np.isfinite(found).all():
            raise OverflowError(Status.OVERFLOW.value)
        return found

    def counted_jacobian(_: float, y: np.ndarray) -> np.ndarray:
        calls["jacobians"] += 1
        assert jacobian is not None
        found = jacobian(y)
        if not np.isfinite(found).all():
            raise OverflowError(Status.OVERFLOW.value)
        return found

    def started(first_step: float | None) -> tuple[float, OdeSolver | None]:
        """Return the time at which a fresh clock starts, and a solver on it (None: it cannot)."""
        begin = path.times[-1]
        try:
            return begin, METHODS[method](
                counted,
                0.0,
                path.points[-1],
                horizon - begin,
                rtol=rtol,
                atol=atol,
                first_step=first_step,
                **({} if jacobian is None else {"jac": counted_jacobian}),
            )
        except (OverflowError, ToleranceError) as failure:
            _end(path, failure)
            return begin, None

    try:
        shrink, last, failures, failed_at = 1.0, horizon, 0, 0
        begin, solver = started(None)
        while solver is not None and solver.status == "running":
            try:
                with warnings.catch_warnings():  # LSODA warns of what the status tells
                    warnings.simplefilter("ignore", UserWarning)
                    complaint = solver.step()
            except (OverflowError, ToleranceError) as failure:
                shrink *= 1e-2
                calls["restarts"] += 1
                steps = len(path.times) - 1
                failures = failures + 1 if steps - failed_at < _APART else 1
                failed_at = steps
                if shrink < _LEAST_SHRINK or failures > _MOST_FAILURES:
                    _end(path, failure)
                    break
                begin, solver = started(shrink * last)
                continue
            if solver.status == "failed":
                path.status = Status.STALLED
                now = begin + solver.t
                path.message = f"{Status.STALLED.value} (at time {now:.6g}: {complaint})"
                break
            shrink = min(1.0, 10.0 * shrink)
            last = max(solver.step_size, float(np.spacing(solver.t)))
            path.times.append(float(begin + solver.t))
            path.points.append(solver.y.copy())
            path.pieces.append((begin, solver.dense_output()))
            if (reason := _creeps(path.times, horizon, pace, seconds > _DEAR)) is not None:
                path.status = Status.STALLED
                path.message = f"{Status.STALLED.value} (at time {path.times[-1]:.6g}: {reason})"
                break
            if until is not None and until(path.points[-1]):
                path.message = f"the run ended at time {path.times[-1]:.6g}, where it was told to"
                break
            if progress is not None:
                progress(float(np.log1p(path.times[-1]) / np.log1p(horizon)))
    except KeyboardInterrupt:
        path.status, path.message = Status.INTERRUPTED, Status.INTERRUPTED.value
        raise PathInterrupted(path) from None
    finally:
        path.stats = {**calls, "steps": len(path.times) - 1}
    return path


def _creeps(times: list[float], horizon: float, pace: int, dear: bool) -> str | None:
    """Return why a run gets nowhere (None: it does); early where steps are ``dear``.

    A gradient flow does not oscillate: its steps grow with time, but for passages (thousands of
    steps were seen where logits grow as log t up to times of 1e34). Told from the steps alone and
    not from the clock, so that the same run ends at the same step everywhere.
    """
    steps = len(times) - 1
    if steps >= _MOST_STEPS:
        return f"{steps} steps"
    for span, hopeless in (_EARLY, (pace, _HOPELESS)) if dear else ((pace, _HOPELESS),):
        if steps % span == 0 and steps >= 2 * span:
            passed = np.diff([times[-1 - 2 * span], times[-1 - span], times[-1]])
            before, now = np.maximum(passed, math.ulp(times[-1])) / span  # as far as it is shown
            if now <= 1.1 * before and (needed := (horizon - times[-1]) / now) > hopeless:
                return f"after {steps} steps, it would need {needed:.1e} more at this pace"
    return None


def _end(path: Path, failure: Exception) -> None:
    overflow = isinstance(failure, OverflowError)
    path.status = Status.OVERFLOW if overflow else Status.INACCURATE
    path.message = str(failure)


def check_method(method: str, rtol: float, atol: float) -> None:
    """Raise one clear sentence unless the solver settings are usable."""
    require(method in METHODS, "method", method, f"one of {', '.join(METHODS)}")
    require(1e-13 <= finite("rtol", rtol) < 1.0, "rtol", rtol, "in [1e-13, 1)")
    require(finite("atol", atol) > 0.0, "atol", atol, "greater than 0")
