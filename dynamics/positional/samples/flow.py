"""The gradient flow of the empirical risk (E), by a stiff integrator, at small sizes."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynamics.core.checks import finite, integer, require
from dynamics.core.integrate import Path, PathInterrupted, check_method, integrate
from dynamics.core.schedule import thinned
from dynamics.positional.problem import Problem
from dynamics.positional.samples.data import feature
from dynamics.positional.samples.gradient import EmpiricalRisk
from dynamics.positional.samples.held_out import HeldOut
from dynamics.positional.samples.history import (
    History,
    Recorder,
    TrainingInterrupted,
    TrainingResult,
)
from dynamics.positional.samples.partitions import set_of
from dynamics.positional.samples.training import resolve_initial

#: Largest number of unknowns; the dense Jacobian of larger problems is slower than descent.
MAX_UNKNOWNS = 2000


def train_by_flow(
    problem: Problem,
    X: np.ndarray,
    y: ArrayLike,
    *,
    horizon: float,
    rng: np.random.Generator | None = None,
    omega: float = 1e-3,
    initial: tuple[ArrayLike, ArrayLike] | None = None,
    method: str = "BDF",
    rtol: float = 1e-4,
    atol: float = 1e-7,
    w_star: ArrayLike | None = None,
    partition: Any = None,
    held_out: HeldOut | None = None,
    records: int = 100,
    keep_states: bool = False,
    progress: Callable[[float], None] | None = None,
    threads: int | None = None,
) -> TrainingResult:
    r"""Integrate the gradient flow of the empirical risk (E).

    .. math:: \dot A=-\nabla_A\hat{\mathcal L}(A,v),\qquad \dot v=-\nabla_v\hat{\mathcal L}(A,v)

    This is the limit of `train` for a vanishing learning rate. The diagonal of A is constant. With
    ``kappa = D`` the equation is stiff (v is fast, A is slow): an implicit method with a Jacobian
    by finite differences replaces very many steps of descent.

    Parameters
    ----------
    horizon
        End of the integration, positive; it corresponds to learning rate x steps.
    method, rtol, atol
        Solver and tolerances, as in `gradient_flow`.
    problem, X, y, rng, omega, initial, w_star, partition, held_out, records, keep_states
        As in `train`.
    progress, threads
        As in `train`.

    Returns
    -------
    TrainingResult
        Its history contains at most ``records`` steps of the integrator.

    Raises
    ------
    ParameterError
        If an argument is outside its domain, or if there are more than `MAX_UNKNOWNS` unknowns.
    TrainingInterrupted
        On Ctrl-C (a KeyboardInterrupt); its ``result`` contains the completed steps.
    """
    horizon = finite("horizon", horizon)
    require(horizon > 0.0, "horizon", horizon, "greater than 0")
    check_method(method, rtol, atol)
    records = integer("records", records, 2)
    D, d = problem.D, problem.dimension
    unknowns = D * (D - 1) + d
    require(
        unknowns <= MAX_UNKNOWNS, "D (D - 1) + d", unknowns, f"at most {MAX_UNKNOWNS} for a flow"
    )
    start_A, start_v = resolve_initial(problem, rng, omega, initial)
    recorder = Recorder(problem, feature(problem, w_star), set_of(problem, partition), held_out)
    risk = EmpiricalRisk(problem, X, y, threads=threads)
    off = ~np.eye(D, dtype=bool)

    def unpack(point: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        A = start_A.copy()
        A[off] = point[d:]
        return A, point[:d]

    def velocity(point: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore", invalid="ignore"):
            gradient = risk.gradient(*unpack(point))
        if not gradient.finite:
            raise OverflowError("the output F overflowed during the integration")
        return -np.concatenate([gradient.dv, gradient.dA[off]])

    def as_result(path: Path) -> TrainingResult:
        indices = thinned(len(path.times), records)
        states = [unpack(path.points[k]) for k in indices]
        rows = [
            recorder.row(int(k), path.times[k], risk.gradient(*state).loss, *state)
            for k, state in zip(indices, states)
        ]
        settings = {"method": method, "rtol": rtol, "atol": atol, "horizon": horizon}
        settings |= {"samples": risk.N, "dtype": str(X.dtype)}
        return TrainingResult(
            problem,
            *unpack(path.points[-1]),
            History.of(rows, states if keep_states else None),
            path.status,
            path.message,
            settings,
            path.stats,
        )

    begin = np.concatenate([start_v, start_A[off]])
    try:
        path = integrate(
            velocity, None, begin, horizon, method=method, rtol=rtol, atol=atol, progress=progress
        )
    except PathInterrupted as interrupt:
        raise TrainingInterrupted(as_result(interrupt.path)) from None
    return as_result(path)
