"""Gradient flow of the population risk of any theory."""

from collections.abc import Callable
from typing import Any

import numpy as np

from dynamics.core.checks import finite, integer, require
from dynamics.core.descent import MOST_RECORDS
from dynamics.core.integrate import Path, PathInterrupted, check_method, integrate
from dynamics.core.risk import Risk
from dynamics.core.schedule import thinned
from dynamics.core.trajectory import Interrupted, Trajectory, assemble


def gradient_flow(
    population: Risk,
    *,
    horizon: float,
    initial: Any = None,
    method: str = "LSODA",
    rtol: float = 1e-8,
    atol: float = 1e-11,
    until: Callable[[Any], bool] | None = None,
    records: int = 300,
    progress: Callable[[float], None] | None = None,
) -> Trajectory:
    r"""Integrate the gradient flow :math:`\dot\theta = -g(\theta)`, g the theory's gradient.

    Flow time is learning rate x steps: gradient descent with a small learning rate follows the flow
    with an error proportional to the learning rate. The dynamics of problem (P) of Jelassi et al.
    is fast in alpha (times of order 1) and slow in gamma and rho (up to 1e8). A stiff method with
    the exact Jacobian needs about a thousand evaluations where descent needs 1e8 steps.

    Parameters
    ----------
    population
        The risk to minimise.
    horizon
        Final time, between 1e-30 and 1e100 (below, SciPy's step sizes underflow).
    initial
        Initial state; ``None`` means ``population.problem.initial_state``.
    method, rtol, atol
        Integrator of SciPy (``"LSODA"``, ``"BDF"`` or ``"Radau"``), and its tolerances per step.
    until
        Predicate of the state; the run ends after the first step where it is true.
    records
        Maximal number of records, first and last step included. Each costs an evaluation of the
        loss. Dense output does not depend on them, but events between two records may be missed.
    progress
        Called after each step with the fraction done on a logarithmic time scale.

    Returns
    -------
    Trajectory
        Records at steps of the integrator, dense output in between. Overflow, loss of accuracy and
        a stalled integrator are reported by its status, not raised.

    Raises
    ------
    ParameterError
        If an argument is outside its domain.
    Interrupted
        On Ctrl-C (a KeyboardInterrupt); its ``trajectory`` is the run up to that point.
    """
    horizon = finite("horizon", horizon)
    require(1e-30 <= horizon <= 1e100, "horizon", horizon, "between 1e-30 and 1e100")
    check_method(method, rtol, atol)
    records = integer("records", records, 2, MOST_RECORDS)
    start = population.checked(population.problem.initial_state if initial is None else initial)

    def velocity(y: np.ndarray) -> np.ndarray:
        return -np.asarray(population.gradient(population.state(y)))

    def jacobian(y: np.ndarray) -> np.ndarray:
        return -population.jacobian(population.state(y))

    def stop(y: np.ndarray) -> bool:
        return until is not None and until(population.state(y))

    def to_trajectory(path: Path) -> Trajectory:
        stored = thinned(len(path.times), records)
        return assemble(
            population,
            "gradient flow",
            np.array(path.times)[stored],
            np.array(path.points)[stored],
            path.status,
            path.message,
            resolution=10.0 * atol,
            settings={"method": method, "rtol": rtol, "atol": atol, "horizon": horizon},
            stats=path.stats,
            interpolant=path,
        )

    try:
        path = integrate(
            velocity,
            jacobian,
            np.array(start, float),
            horizon,
            method=method,
            rtol=rtol,
            atol=atol,
            until=stop,
            progress=progress,
            seconds=population.predicted_seconds,
        )
    except PathInterrupted as interrupt:
        raise Interrupted(to_trajectory(interrupt.path)) from None
    return to_trajectory(path)
