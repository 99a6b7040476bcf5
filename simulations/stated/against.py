"""A logged training run next to its theory.

The weights of the run are projected on the order parameters. The theory starts at the projected
start. If the learning rate is known, it takes the same steps; if not, the time scale of its flow is
fitted. A run that leaves the manifold is distinguished from one that follows another rate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy as sp
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from scipy.optimize import minimize_scalar

from dynamics.core.checks import finite, require
from dynamics.core.errors import ParameterError, ToleranceError
from dynamics.core.noise import stochastic_descent
from dynamics.core.provenance import provenance
from dynamics.core.risk import Risk
from dynamics.overlaps.risk import OverlapRisk
from simulations import theories
from simulations.files import to_json
from simulations.stated.overlap_check import require_agreement
from simulations.stated.overlaps import risk as overlap_risk
from simulations.stated.projection import SHARE, Projection, array, project
from simulations.stated.user_theory import UserTheory
from symbolic.overlaps import OverlapTheory
from symbolic.overlaps.language import Family
from symbolic.theory import Theory
from symbolic.theory.load import load_statement

if TYPE_CHECKING:
    import xarray

    from simulations.system import System

Array = NDArray[np.float64]
#: Default tolerance of distance and error, and number of runs in the band of SGD.
TOLERANCE, RUNS = 0.05, 100
#: Relative accuracy of the flow, its pieces of time, and time scales tried in each of them.
_RTOL, _PIECES, _TRIED = 1e-6, 10.0 ** np.arange(-4.0, 11.0, 0.25), 15
#: The flow has passed the end of the run at this multiple of the time at which it is nearest to it.
_PAST = 3.0
_MOST_STEPS, _RECORDS = 10**7, 500


class Verdict(Enum):
    """Result of the comparison."""

    FOLLOWS = "follows the theory"
    OTHER_RATE = "follows the theory at another rate"
    LEAVES = "leaves the manifold of the theory"
    DIFFERS = "stays on the manifold but does not follow the theory"


@dataclass(frozen=True)
class Comparison:
    """A run next to its theory.

    Attributes
    ----------
    verdict
        Result at the tolerance.
    theory, values
        Name, and sizes and constants of the theory.
    steps
        Logged steps, (times,).
    projection
        Order parameters of the run, their distance from the manifold, and the order of elements.
    predicted
        Order parameters of the theory, (times, n): of descent if the learning rate is known, of the
        mean over seeds for SGD, otherwise of the flow or descent at the fitted time scale.
    error
        Largest difference at each time, relative to the largest value of an order parameter or 5 %
        of the largest of all; for SGD the difference from the band, (times,).
    tolerance
        Tolerance of distance and error.
    learning_rate
        Learning rate of the run; ``None`` if it is unknown.
    time_scale
        Flow time per step that fits best; ``None`` if none was fitted.
    band
        For SGD, the bounds (2, times, n) that 10 % and 90 % of the seeds are below; else ``None``.
    """

    verdict: Verdict
    theory: str
    values: Mapping[str, float]
    steps: NDArray[np.int64]
    projection: Projection
    predicted: Array
    error: Array
    tolerance: float
    learning_rate: float | None = None
    time_scale: float | None = None
    band: Array | None = None

    @property
    def follows(self) -> bool:
        """Whether the run follows the theory, at its own learning rate if that is known."""
        return self.verdict is Verdict.FOLLOWS

    @property
    def sentence(self) -> str:
        """The verdict with its numbers."""
        numbers = (
            f"distance at most {self.projection.distance.max():.2g}, error at most "
            f"{self.error.max():.2g}, tolerance {self.tolerance:g}"
        )
        if self.verdict is Verdict.LEAVES:
            first = self.steps[np.argmax(self.projection.distance > self.tolerance)]
            numbers += f"; first off the manifold at step {first}"
        if self.time_scale is not None:
            numbers += f"; fitted flow time per step {self.time_scale:.4g}"
        if self.time_scale is not None and self.learning_rate is not None:
            numbers += f" = {self.time_scale / self.learning_rate:.4g} x the learning rate"
        return f"the run {self.verdict.value} ({numbers})"

    def summary(self) -> dict[str, Any]:
        """Return the results without the time series, safe for JSON."""
        return {
            "theory": self.theory,
            "values": dict(self.values),
            "verdict": self.verdict.value,
            "sentence": self.sentence,
            "tolerance": self.tolerance,
            "largest_distance": float(self.projection.distance.max()),
            "largest_error": float(self.error.max()),
            "learning_rate": self.learning_rate,
            "time_scale": self.time_scale,
            "orders": self.projection.orders,
            "provenance": provenance(),
        }

    def to_dataset(self) -> xarray.Dataset:
        """Return the time series of run and theory; the attribute ``summary`` is JSON."""
        import xarray

        dims = ("step", "parameter")
        data: dict[str, Any] = {
            "logged": (dims, self.projection.states, {"long_name": "projected run"}),
            "theory": (dims, self.predicted, {"long_name": "theory from the same start"}),
            "distance": ("step", self.projection.distance, {"long_name": "off the manifold"}),
            "error": ("step", self.error, {"long_name": "difference from the theory"}),
        }
        if self.band is not None:
            data |= {name: (dims, bound) for name, bound in zip(("low", "high"), self.band)}
        coords = {"step": self.steps, "parameter": list(self.projection.names)}
        attrs = {"summary": to_json(self.summary()), "tolerance": self.tolerance}
        return xarray.Dataset(data, coords, attrs | {"sentence": self.sentence})


@dataclass(frozen=True)
class _Model:
    """Theory with its sizes and constants, projected run and risk."""

    statement: Theory | OverlapTheory
    values: Mapping[str, float]
    projection: Projection
    risk: Risk

    @property
    def states(self) -> Array:
        """Order parameters of the run, (times, n), in the order of the risk."""
        return self.projection.states

    def slope(self, state: Array) -> Array:
        """Return what descent multiplies by minus the learning rate of the weights, (n,)."""
        return np.asarray(self.risk.gradient(state), float) / self.projection.norms


def against(
    arrays: Mapping[str, Any],
    theory: str | Path,
    *,
    tolerance: float = TOLERANCE,
    runs: int = RUNS,
    seed: int = 0,
    **values: Any,
) -> Comparison:
    """Compare a logged training run with its theory.

    Parameters
    ----------
    arrays
        Mapping from the name of a tensor, or of a family of vectors, to its values at each time,
        (times, ...). Fixed vectors may be logged once. ``steps`` (times,) are the numbers of steps;
        ``learning_rate`` is omitted if it is unknown; ``batch`` is the number of new samples of
        each step of SGD, omitted for descent on the population risk. A scalar of the theory may be
        logged as an array, of which it is the coefficient of ``NAME.direction``.
    theory
        File of a theory, or the name of a built-in theory with a statement, such as
        ``"positional"``.
    tolerance
        Largest relative distance from the manifold and error of a run that follows the theory.
    runs, seed
        Number of seeds of the band of SGD, and their root.
    values
        Sizes and constants. Sizes that follow from the shapes may be omitted.

    Returns
    -------
    Comparison
        Verdict, order parameters of run and theory, distance and error.

    Raises
    ------
    ParameterError, TheoryError
        If an array or a value is missing or not allowed.

    Examples
    --------
    >>> from patchdyn import against
    >>> rate, a = 0.1, [0.5]
    >>> for _ in range(50):
    ...     a.append(a[-1] - rate * (a[-1] - 1.0))
    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "line.py"
    >>> _ = file.write_text('''
    ... from symbolic.theory import Data, Gaussian, Tensor, Theory
    ... x, a = Gaussian("x", ()), Tensor("a")
    ... def loss(a, x):
    ...     return 0.5 * (a * x - x) ** 2
    ... THEORY = Theory("line", "example", sizes=(), parameters=(a,), data=Data(x), loss=loss)
    ... ''')
    >>> against({"a": a, "learning_rate": rate}, file).verdict
    <Verdict.FOLLOWS: 'follows the theory'>
    """
    tolerance = finite("tolerance", tolerance)
    require(tolerance > 0.0, "tolerance", tolerance, "greater than 0")
    models = _models(arrays, theory, values)
    steps = _steps(arrays, len(models[0].states))
    rate, batch = _scalar(arrays, "learning_rate"), _scalar(arrays, "batch")
    sampling = None if batch is None else (int(batch), runs, seed)
    results = [_compared(model, rate, steps, sampling, tolerance) for model in models]
    return min(results, key=lambda result: float(result.error.max()))


def _compared(
    model: _Model,
    rate: float | None,
    steps: NDArray[np.int64],
    sampling: tuple[int, int, int] | None,
    tolerance: float,
) -> Comparison:
    """Return the comparison of a run with one model; ``sampling`` is batch, runs and seed."""
    band, scale = None, None
    if rate is None:
        scale, predicted = _fitted(model, steps)
    elif sampling is None:
        predicted = _descent(model, rate, steps)
    else:
        predicted, band = _stochastic(model, rate, steps, sampling)
    error = _error(model.states, predicted, band)
    if model.projection.distance.max() > tolerance:
        verdict = Verdict.LEAVES
    elif error.max() <= tolerance:
        verdict = Verdict.FOLLOWS
    else:
        verdict = Verdict.DIFFERS
        if rate is not None:
            scale, flow = _fitted(model, steps)
            if _error(model.states, flow, None).max() <= tolerance:
                verdict = Verdict.OTHER_RATE
    return Comparison(
        verdict, model.statement.name, model.values, steps, model.projection, predicted, error,
        tolerance, rate, scale, band,
    )  # fmt: skip


def _models(
    arrays: Mapping[str, Any], theory: str | Path, values: Mapping[str, Any]
) -> list[_Model]:
    """Return the theory and its risk with each projection of the run."""
    system, path = _located(theory)
    statement = load_statement(path)
    if system is not None and any(system.parameter(x.name) is None for x in statement.sizes):
        system = None  # its sizes are others: the risk is derived from the statement
    given = {**_sizes(statement, arrays, values), **values}
    case = None if system is None else system.build(given)
    if case is None:
        defaults = {name: x for name, x in statement.defaults.items() if name != "horizon"}
        checked = statement.checked({**defaults, **given})
    else:
        known = {size.name for size in statement.sizes} | statement.free_constants.keys()
        checked = {name: x for name, x in case.problem.constants().items() if name in known}
    models = []
    for projection in project(statement, checked, arrays):
        if system is not None and case is not None:
            risk = system.population(case)
        elif isinstance(statement, OverlapTheory):
            require_agreement(statement)
            start = dict(zip(projection.names, projection.states[0].tolist()))
            risk = overlap_risk(statement, checked, start)
        else:
            risk = UserTheory(statement).risk(**checked)
        models.append(_Model(statement, checked, _ordered(projection, risk), risk))
    return models


def _ordered(projection: Projection, risk: Risk) -> Projection:
    """Return a projection with the order parameters of a risk, in their order."""
    names = list(projection.names)
    if sorted(names) != sorted(risk.order_parameters):
        raise ParameterError(
            f"the run is not allowed: the risk has the order parameters "
            f"{', '.join(risk.order_parameters)} and the statement {', '.join(names)}"
        )
    order = [names.index(name) for name in risk.order_parameters]
    return replace(
        projection,
        names=tuple(risk.order_parameters),
        states=projection.states[:, order],
        norms=projection.norms[order],
    )


def _located(theory: str | Path) -> tuple[System | None, Path]:
    """Return the built-in theory, ``None`` for a file, and the path of its statement."""
    name = str(theory)
    if name not in theories.names():
        if Path(name).suffix != ".py":
            raise ParameterError(
                f"theory = {name} is not allowed: it must be a file FILE.py or one of "
                f"{', '.join(theories.names())}"
            )
        return None, Path(name)
    (package,) = (x for x in theories.packages_of_derivations() if x.endswith(f".{name}"))
    spec = find_spec(f"{package}.stated")
    if spec is None or spec.origin is None:
        raise ParameterError(f"theory = {name} is not allowed: it has no statement in a file")
    return theories.load(name), Path(spec.origin)


def _sizes(
    statement: Theory | OverlapTheory, arrays: Mapping[str, Any], known: Mapping[str, Any]
) -> dict[str, int]:
    """Return the sizes that follow from the shapes of the run."""
    equations = []
    for tensor in statement.parameters:
        shape = np.shape(arrays.get(tensor.name, ()))
        if isinstance(tensor, Family):
            axes = [tensor.number, tensor.space.dimension][tensor.over is None :]
        else:
            axes = [axis.count for axis in tensor.axes]
        if len(shape) == len(axes) + 1:
            equations += list(zip(axes, shape[1:]))
    sizes: dict[str, int] = {}
    for _ in statement.sizes:
        for axis, length in equations:
            at = {x: {**known, **sizes}.get(x.name, x) for x in axis.free_symbols}
            free = (axis.subs(at) - length).free_symbols
            if len(free) == 1:
                (symbol,) = free
                roots = sp.solve(axis.subs(at) - length, symbol)
                size = max((int(x) for x in roots if x.is_Integer), default=0)
                sizes |= {symbol.name: size} if size > 0 else {}
    return sizes


def _steps(arrays: Mapping[str, Any], times: int) -> NDArray[np.int64]:
    """Return the logged steps; by default 0, 1, ..."""
    if times < 2:
        raise ParameterError("the run is not allowed: it must be logged at two times at least")
    if "steps" not in arrays:
        return np.arange(times)
    steps = array(arrays, "steps")
    if steps.shape != (times,) or (np.diff(steps) <= 0).any() or (steps != np.round(steps)).any():
        raise ParameterError(
            f"steps is not allowed: it must be {times} increasing whole numbers, one for each time"
        )
    require(steps[-1] - steps[0] <= _MOST_STEPS, "steps", steps[-1], f"at most {_MOST_STEPS}")
    return steps.astype(np.int64)


def _scalar(arrays: Mapping[str, Any], name: str) -> float | None:
    """Return a positive number of the run, ``None`` if it is missing."""
    if name not in arrays:
        return None
    value = array(arrays, name)
    if value.size != 1 or not value.item() > 0.0 or (name == "batch" and value.item() % 1):
        allowed = "a positive whole number" if name == "batch" else "a positive number"
        raise ParameterError(f"{name} is not allowed: it must be {allowed}")
    return float(value.item())


def _error(states: Array, predicted: Array, band: Array | None) -> Array:
    """Return the relative difference of run and theory at each time, (times,)."""
    low, high = (predicted, predicted) if band is None else band
    if not np.isfinite(predicted).all():
        return np.where(np.isfinite(predicted).all(axis=1), 0.0, np.inf)
    size = np.maximum(np.abs(states).max(axis=0), np.abs(predicted).max(axis=0))
    size = np.maximum(size, max(SHARE * size.max(), np.finfo(float).tiny))
    outside = np.maximum(np.maximum(low - states, states - high), 0.0)
    return np.asarray((outside / size).max(axis=1))


def _descent(model: _Model, rate: float, steps: NDArray[np.int64]) -> Array:
    """Return the order parameters of descent at the logged steps; inf after it diverges."""
    state, risk = model.states[0], model.risk
    rows = [state]
    for number in np.diff(steps).tolist():
        for _ in range(number):
            try:
                state = (
                    np.asarray(risk.step(state, rate))
                    if isinstance(risk, OverlapRisk)
                    else (state - rate * model.slope(state))
                )
            except OverflowError:
                state = np.full_like(state, np.inf)
            if not np.isfinite(state).all():
                break
        rows.append(state)
        if not np.isfinite(state).all():
            break
    rows += [np.full_like(state, np.inf)] * (steps.size - len(rows))
    return np.array(rows)


def _stochastic(
    model: _Model, rate: float, steps: NDArray[np.int64], sampling: tuple[int, int, int]
) -> tuple[Array, Array]:
    """Return mean (times, n) and band (2, times, n) of SGD over seeds at the logged steps."""
    if (model.projection.norms != 1.0).any():
        raise ParameterError("batch is not allowed with a scalar that is logged as a direction")
    (batch, runs, seed), total = sampling, int(steps[-1] - steps[0])
    band = stochastic_descent(
        model.risk, learning_rate=rate, steps=total, runs=runs, batch=batch, seed=seed,
        initial=model.states[0], record="linear", records=min(total + 1, _RECORDS),
    )  # fmt: skip
    times = rate * (steps - steps[0])
    columns = [
        np.array([np.interp(times, band.time, column) for column in rows.T]).T
        for rows in (band.mean, band.low, band.high)
    ]
    return columns[0], np.array(columns[1:])


def _fitted(model: _Model, steps: NDArray[np.int64]) -> tuple[float | None, Array]:
    """Return the flow time per step that fits best, and flow or descent at the logged steps.

    Descent at this learning rate is returned if it is closer to the run than the flow. Without a
    fit, the time scale is ``None`` and the flow stays at its start.
    """
    past = steps - steps[0]
    pieces = _flow(model)
    if not pieces:
        return None, np.broadcast_to(model.states[0], model.states.shape)

    def flow(log_scale: float) -> Array:
        times = np.exp(log_scale) * past
        which = np.searchsorted([piece.t_max for piece in pieces], times)
        return np.array([pieces[k](time) for k, time in zip(which.tolist(), times.tolist())])

    def misfit(log_scale: float) -> float:
        return float(_error(model.states, flow(log_scale), None).mean())

    last = np.log(pieces[-1].t_max / past[-1] * (1.0 - 1e-12))
    first = np.log(pieces[0].t_max / past[-1])
    tried = np.linspace(first, last, _TRIED * len(pieces))
    best = int(np.argmin([misfit(x) for x in tried.tolist()]))
    ends = tried[[max(best - 1, 0), min(best + 1, tried.size - 1)]]
    fit = minimize_scalar(misfit, bounds=ends, method="bounded", options={"xatol": 1e-9})
    scale = float(np.exp(fit.x))
    candidates = [flow(fit.x), _descent(model, scale, steps)]
    return scale, min(candidates, key=lambda x: float(_error(model.states, x, None).max()))


def _flow(model: _Model) -> list[Any]:
    """Return the flow as dense outputs of successive pieces of time.

    It ends where the flow rests, has passed the end of the run, or cannot be computed.
    """
    target, nearest = model.states[-1], (np.inf, 0.0)
    state, pieces, start = model.states[0], list[Any](), 0.0
    atol = _RTOL * max(float(np.abs(model.states).max()), np.finfo(float).tiny)
    for end in _PIECES.tolist():
        try:
            result = solve_ivp(
                lambda _, x: -model.slope(x), (start, end), state,
                method="LSODA", rtol=_RTOL, atol=atol, dense_output=True,
            )  # fmt: skip
        except (ArithmeticError, ToleranceError):
            break
        if not result.success:
            break
        pieces.append(result.sol)
        away = np.abs(result.y.T - target).max(axis=1)
        nearest = min(nearest, (float(away.min()), float(result.t[np.argmin(away)])))
        moved, state, start = np.abs(result.y[:, -1] - state).max(), result.y[:, -1], end
        total = np.abs(state - model.states[0]).max()
        passed = end >= _PAST * nearest[1] and total > SHARE * np.abs(model.states).max()
        if passed or moved <= atol < total:
            break
    return pieces
