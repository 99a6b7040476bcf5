"""Approximate solution as the centre of a tube: collocation in floating point, without bounds."""

from typing import Protocol

import numpy as np
from numpy.polynomial import legendre

from dynamics.core.tube.clocks import Clock

_ITERATIONS = 12
_CONVERGED = 1e-13
_TINY = 1e-300


class Velocity(Protocol):
    """A velocity and its Jacobian in floating point."""

    def velocity_at(self, theta: np.ndarray) -> np.ndarray:
        """Return the velocity (n,)."""

    def jacobian_at(self, theta: np.ndarray) -> np.ndarray:
        """Return its Jacobian (n, n)."""


def radau_nodes(count: int) -> np.ndarray:
    """Return the nodes of the right Radau rule on (-1, 1], including 1."""
    difference = np.zeros(count + 1)
    difference[count], difference[count - 1] = 1.0, -1.0
    nodes = np.sort(legendre.legroots(difference).real)
    nodes[-1] = 1.0
    return nodes


def collocated(
    field: Velocity, clock: Clock, start: np.ndarray, length: float, degree: int, guess: np.ndarray
) -> np.ndarray | None:
    """Return a polynomial P with P(-1) = start and rate f(P) at the collocation nodes.

    The equations are solved by Newton's method with Jacobians at the guess.

    Parameters
    ----------
    field
        The velocity f.
    clock
        Gradient flow or descent.
    start
        Initial state (n,).
    length
        Length of the piece.
    degree
        Degree of the polynomial.
    guess
        Initial values at the nodes, shape (degree, n).

    Returns
    -------
    ndarray or None
        Coefficients (degree + 1, n) of the powers of u in [-1, 1]; None without convergence.
    """
    n = start.size
    nodes, rates = clock.rates(radau_nodes(degree), degree, length)
    points = np.concatenate([[-1.0], nodes])
    to_powers = np.linalg.inv(points[:, None] ** np.arange(degree + 1))
    table = rates @ to_powers  # rates at the nodes from the values at -1 and the nodes
    values = guess.copy()
    try:
        matrix = _newton_matrix(field, table, values, n)
        last = np.inf
        for _ in range(_ITERATIONS):
            rate = table[:, :1] * start + table[:, 1:] @ values
            residual = rate - np.array([field.velocity_at(value) for value in values])
            step = np.linalg.solve(matrix, residual.ravel()).reshape(values.shape)
            if not np.isfinite(step).all():
                return None
            values -= step
            scale = np.abs(start) if start.any() else np.max(np.abs(values), axis=0)
            size = float(np.max(np.abs(step) / (scale + max(np.max(scale) * 1e-3, _TINY))))
            if size < _CONVERGED or (size < 1e-9 and size > 0.3 * last):
                return np.asarray(to_powers @ np.vstack([start, values]))
            if size > 0.3 * last:
                matrix = _newton_matrix(field, table, values, n)
            last = size
    except (ArithmeticError, np.linalg.LinAlgError):
        return None
    return None


def varied(
    field: Velocity,
    clock: Clock,
    start: np.ndarray,
    length: float,
    curve: np.ndarray,
    drive: list[np.ndarray],
) -> np.ndarray:
    """Return the derivative S of a curve by a constant: S' = J S + g at the collocation nodes.

    Parameters
    ----------
    field, clock
        Velocity and clock of the curve.
    start
        Derivative of the initial state (n,).
    length
        Length of the piece.
    curve
        Coefficients (degree + 1, n) of the curve.
    drive
        Derivative g (n,) of the velocity by the constant, at the nodes.

    Returns
    -------
    ndarray, shape (degree + 1, n)
        Coefficients of the powers of u in [-1, 1].
    """
    degree = len(curve) - 1
    nodes, rates = clock.rates(radau_nodes(degree), degree, length)
    points = np.concatenate([[-1.0], nodes])
    to_powers = np.linalg.inv(points[:, None] ** np.arange(degree + 1))
    table = rates @ to_powers
    values = np.polynomial.polynomial.polyval(nodes, curve).T
    right = np.array(drive) - table[:, :1] * start
    inner = np.linalg.solve(_newton_matrix(field, table, values, start.size), right.ravel())
    return np.asarray(to_powers @ np.vstack([start, inner.reshape(right.shape)]))


def nodes_on(curve: np.ndarray) -> np.ndarray:
    """Return the points (degree, n) of a curve at the collocation nodes of the flow."""
    nodes = radau_nodes(len(curve) - 1)
    return np.asarray(np.polynomial.polynomial.polyval(nodes, curve).T)


def _newton_matrix(field: Velocity, table: np.ndarray, values: np.ndarray, n: int) -> np.ndarray:
    """Return the derivative of rate - f at the nodes with respect to the values there."""
    matrix = np.kron(table[:, 1:], np.eye(n))
    for i, value in enumerate(values):
        matrix[n * i : n * (i + 1), n * i : n * (i + 1)] -= field.jacobian_at(value)
    return matrix
