"""The emitted function of a stated theory: as plain Python, and compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynamics.core.jit import emitted_kernel
from dynamics.theory import functions
from dynamics.theory.data import Array, Orbits


def mean_function(source: str, name: str) -> Callable[..., float]:
    """Return the function ``mean`` of an emitted module, as plain Python."""
    module: dict[str, Any] = {}
    exec(compile(source, f"<derived from {name}>", "exec"), module)
    function: Callable[..., float] = module["mean"]
    return function


@cache
def compiled(source: str, name: str) -> Callable[..., float]:
    """Return the compiled twin of `mean_function`; its machine code is kept on disk."""
    found: Callable[..., float] = emitted_kernel(
        mean_function(source, name), source, beside=functions.softplus
    )
    return found


def columns(data: Orbits) -> tuple[np.ndarray, ...]:
    """Return the data as the emitted function takes them."""
    rows = [x for first, arrays in zip(data.first, data.arrays) for x in (first, *arrays)]
    return data.weight, *rows


def mean(
    function: Callable[..., float], data: Orbits, state: ArrayLike, constants: Sequence[float]
) -> tuple[float, Array]:
    """Return risk and gradient per entry.

    Parameters
    ----------
    function
        What `mean_function` or `compiled` returns.
    state, constants
        The order parameters (n,), and sizes and constants in the order of the theory.
    """
    theta, numbers = np.array(state, float), np.array(constants, float)
    out = np.empty(theta.size)
    return float(function(theta, numbers, *columns(data), out)), out
