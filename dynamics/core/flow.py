"""The gradient flow of any theory: gradient descent with a vanishing learning rate."""

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
    r"""Integrate :math:`\dot\theta = -g(\theta)`, g the theory's gradient (entrywise for (P)).

    Flow time is learning rate x steps, so that gradient descent with a small learning rate follows
    the flow with an error proportional to it. The dynamics of (P) is fast in alpha (times of order
    1) and slow in gamma and rho (up to 1e8): a stiff method with the exact Jacobian takes about a
    thousand evaluations where descent takes 1e8 steps.

    Parameters
    ----------
    population
        The risk to descend.
    horizon
        Final time, between 1e-30 and 1e100 (below, SciPy's step sizes underflow).
    initial
        Start; ``None`` means the problem's own (Parametrization 3.1).
    method, rtol, atol
        ``"LSODA"``, ``"BDF"`` or ``"Radau"`` of SciPy, and its tolerances per step.
    until
        Ends the run early after the first step at whose state it holds.
    records
        At most so many steps, first and last included, are kept; their loss costs one gradient
        each. Dense output does not depend on them, events between two of them may be missed.
    progress
        Called after each step with the fraction done on a logarithmic clock.

    Returns
    -------
    Trajectory
        Records at steps of the integrator, dense output in between. Overflow, loss of accuracy and
        a stalled integrator are told by its status, not raised.

    Raises
    ------
    ParameterError
        If an argument is outside its domain.
    Interrupted
        On Ctrl-C (a KeyboardInterrupt); its ``trajectory`` holds what was computed.
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

    def wrap(path: Path) -> Trajectory:
        kept = thinned(len(path.times), records)
        return assemble(
            population,
            "gradient flow",
            np.array(path.times)[kept],
            np.array(path.points)[kept],
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
        raise Interrupted(wrap(interrupt.path)) from None
    return wrap(path)
