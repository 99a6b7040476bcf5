"""The emitted function of a stated theory, and its mean over the data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynamics.theory.data import Array, Orbits


def orbit_function(source: str, name: str) -> Callable[..., float]:
    """Return the function ``orbit`` of an emitted module, as plain Python."""
    module: dict[str, Any] = {}
    exec(compile(source, f"<derived from {name}>", "exec"), module)
    function: Callable[..., float] = module["orbit"]
    return function


def mean(
    orbit: Callable[..., float], data: Orbits, state: ArrayLike, constants: Sequence[float]
) -> tuple[float, Array]:
    """Return loss and gradient per entry, averaged over the data.

    Parameters
    ----------
    orbit
        What `orbit_function` returns, or a compiled twin of it.
    state, constants
        The order parameters (n,), and sizes and constants in the order of the theory.
    """
    theta, numbers = np.array(state, float), np.array(constants, float)
    out, loss, gradient = np.empty(theta.size), 0.0, np.zeros(theta.size)
    for b, weight in enumerate(data.weight):
        rows = [
            x[first[b] : first[b + 1]]
            for first, arrays in zip(data.first, data.arrays)
            for x in arrays
        ]
        loss += weight * orbit(theta, numbers, *rows, out)
        gradient += weight * out
    return loss, gradient
