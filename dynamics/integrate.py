"""Stiff integration of an ordinary differential equation, step by step, with dense output."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.integrate import BDF, LSODA, Radau

from dynamics.errors import ToleranceError
from dynamics.problem import finite, require
from dynamics.trajectory import Status

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
        return np.asarray(self.pieces[index - 1](time))


def integrate(
    velocity: Callable[[np.ndarray], np.ndarray],
    jacobian: Callable[[np.ndarray], np.ndarray] | None,
    start: np.ndarray,
    horizon: float,
    *,
    method: str,
    rtol: float,
    atol: float,
    progress: Callable[[float], None] | None = None,
) -> Path:
    """Integrate y' = velocity(y) from 0 to ``horizon``; trouble ends the path with a status.

    ``progress`` is called after each step with the fraction done on a logarithmic clock.
    KeyboardInterrupt is not caught: the path given back so far is attached to it as ``path``.
    """
    path = Path([0.0], [np.array(start, float)])
    calls = {"evaluations": 0, "jacobians": 0}

    def counted(_: float, y: np.ndarray) -> np.ndarray:
        calls["evaluations"] += 1
        return velocity(y)

    def counted_jacobian(_: float, y: np.ndarray) -> np.ndarray:
        calls["jacobians"] += 1
        assert jacobian is not None
        return jacobian(y)

    exact = {} if jacobian is None else {"jac": counted_jacobian}
    try:
        solver = METHODS[method](
            counted, 0.0, path.points[0], horizon, rtol=rtol, atol=atol, **exact
        )
        while solver.status == "running":
            complaint = solver.step()
            if solver.status == "failed":
                path.status = Status.STALLED
                path.message = f"{Status.STALLED.value} (at time {solver.t:.6g}: {complaint})"
                break
            path.times.append(float(solver.t))
            path.points.append(solver.y.copy())
            path.pieces.append(solver.dense_output())
            if progress is not None:
                progress(float(np.log1p(solver.t) / np.log1p(horizon)))
    except OverflowError as failure:
        path.status, path.message = Status.OVERFLOW, str(failure)
    except ToleranceError as failure:
        path.status, path.message = Status.INACCURATE, str(failure)
    except KeyboardInterrupt as interrupt:
        path.status, path.message = Status.INTERRUPTED, Status.INTERRUPTED.value
        interrupt.path = path  # type: ignore[attr-defined]
        raise
    finally:
        path.stats = {**calls, "steps": len(path.times) - 1}
    return path


def check_method(method: str, rtol: float, atol: float) -> None:
    """Raise one clear sentence unless the solver settings are usable."""
    require(method in METHODS, "method", method, f"one of {', '.join(METHODS)}")
    require(1e-13 <= finite("rtol", rtol) < 1.0, "rtol", rtol, "in [1e-13, 1)")
    require(finite("atol", atol) > 0.0, "atol", atol, "greater than 0")
