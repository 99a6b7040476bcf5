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
from dynamics.positional.samples.history import History, TrainingInterrupted, TrainingResult, Watch
from dynamics.positional.samples.partitions import set_of
from dynamics.positional.samples.training import start_of

#: Largest number of unknowns: beyond, the dense Jacobian costs more than descent.
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

    The limit of `train` as its one learning rate vanishes; ``horizon`` is learning rate x steps.
    The diagonal of A stays. With ``kappa = D`` the equation is stiff (v is fast, A is slow), and an
    implicit method with a Jacobian by differences takes the place of very many steps of descent.
    Arguments as in `train`; ``method``, ``rtol`` and ``atol`` as in `gradient_flow`.

    Returns
    -------
    TrainingResult
        Its history holds steps of the integrator, at most ``records`` of them.

    Raises
    ------
    ParameterError
        An argument outside its domain, or more than `MAX_UNKNOWNS` unknowns.
    TrainingInterrupted
        On Ctrl-C (a KeyboardInterrupt); its ``result`` holds what was computed.
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
    start_A, start_v = start_of(problem, rng, omega, initial)
    watch = Watch(problem, feature(problem, w_star), set_of(problem, partition), held_out)
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
            raise OverflowError("the output F overflowed on the way")
        return -np.concatenate([gradient.dv, gradient.dA[off]])

    def wrap(path: Path) -> TrainingResult:
        kept = thinned(len(path.times), records)
        states = [unpack(path.points[k]) for k in kept]
        rows = [
            watch.row(int(k), path.times[k], risk.gradient(*state).loss, *state)
            for k, state in zip(kept, states)
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
        raise TrainingInterrupted(wrap(interrupt.path)) from None
    return wrap(path)
