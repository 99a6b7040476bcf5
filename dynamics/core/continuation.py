"""Pseudo-arclength continuation of curves given by n - 1 equations in n unknowns."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Equations = Callable[[Array], Array]

_DIFFERENCE = 1e-5  # step of the central differences, in units of the unknowns
_ITERATIONS, _SHRINK, _GROW = 12, 0.5, 1.4
_LEAST_STEP = 1e-7
_LEAST_COSINE = 0.98  # between the tangents of consecutive points; else the step is halved


class ContinuationError(ArithmeticError):
    """Newton's method did not reach the curve, or the continuation failed."""


def follow_curve(
    equations: Equations,
    start: ArrayLike,
    direction: ArrayLike,
    inside: Callable[[Array], bool],
    *,
    step: float = 0.05,
    most: int = 2000,
    accuracy: float = 1e-9,
) -> Array:
    """Compute the curve through ``start`` on which all equations vanish.

    The tangent t is the null vector of the Jacobian. A step x + ds t is corrected by Newton's
    method in the plane t . (x' - x) = ds, which passes folds (turning points in any unknown). The
    step ``ds`` adapts between 1e-7 and ``step``.

    Parameters
    ----------
    equations
        Function from the unknowns (n,) to the residuals (n-1,); both should be of order 1.
    start
        Initial guess (n,) of a point of the curve.
    direction
        Vector (n,) that selects the sign of the first tangent: their product is positive.
    inside
        Predicate of a point. The first point where it is false is the last one returned.
    step, most
        Largest step, and largest number of points.
    accuracy
        Convergence tolerance of Newton's method: largest change in the last correction.

    Returns
    -------
    ndarray
        Points of the curve, shape (m, n).

    Raises
    ------
    ContinuationError
        If Newton's method does not converge at the start, or later with the smallest step.
    """
    reference = np.asarray(direction, float)
    point, tangent = _corrected(equations, np.asarray(start, float), reference, accuracy)
    points, ds = [point], step
    while len(points) < most and inside(point):
        try:
            next_point, next_tangent = _corrected(
                equations, point + ds * tangent, tangent, accuracy
            )
            if next_tangent @ tangent < _LEAST_COSINE:
                raise ContinuationError("the curve turns too sharply for this step")
        except (ContinuationError, ArithmeticError) as failure:
            ds *= _SHRINK
            if ds < _LEAST_STEP:
                raise ContinuationError(f"the curve is lost near {point}: {failure}") from failure
            continue
        point, tangent = next_point, next_tangent
        points.append(point)
        ds = min(step, ds * _GROW)
    return np.array(points)


def folds(points: Array, column: int) -> NDArray[np.int64]:
    """Return the indices of the folds of a curve (m, n): where one unknown is locally extremal."""
    steps = np.diff(points[:, column])
    return np.flatnonzero(steps[:-1] * steps[1:] < 0.0) + 1


def _corrected(
    equations: Equations, guess: Array, along: Array, accuracy: float
) -> tuple[Array, Array]:
    """Return the point of the curve with along . (x - guess) = 0, and its tangent."""
    x = guess.copy()
    for _ in range(_ITERATIONS):
        jacobian = _jacobian(equations, x)
        residual = np.append(np.asarray(equations(x)), along @ (x - guess))
        try:
            change = np.linalg.solve(np.vstack([jacobian, along]), -residual)
        except np.linalg.LinAlgError as failure:
            raise ContinuationError("the equations are singular here") from failure
        x = x + change
        if not np.isfinite(x).all():
            break
        if np.abs(change).max() <= accuracy:
            return x, _tangent(_jacobian(equations, x), along)
    raise ContinuationError("Newton's method does not converge")


def _jacobian(equations: Equations, x: Array) -> Array:
    """Return the Jacobian (n-1, n) by central differences."""
    columns = []
    for shift in np.eye(x.size) * _DIFFERENCE:
        columns.append(np.asarray(equations(x + shift)) - np.asarray(equations(x - shift)))
    return np.array(columns).T / (2.0 * _DIFFERENCE)


def _tangent(jacobian: Array, along: Array) -> Array:
    """Return the unit null vector whose product with ``along`` is positive."""
    if not np.isfinite(jacobian).all():
        raise ContinuationError("the equations are not finite here")
    null = np.linalg.svd(jacobian)[2][-1]
    return np.asarray(null if null @ along > 0.0 else -null)
