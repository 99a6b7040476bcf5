"""The emitted function of a user-defined theory, as plain Python and compiled."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynamics.core.jit import emitted_kernel, plain_python
from dynamics.theory import functions
from dynamics.theory.data import Array, Orbits
from dynamics.theory.rows import distinct


def mean_function(source: str, name: str) -> Callable[..., float]:
    """Return the function ``mean`` of an emitted module, as plain Python."""
    module: dict[str, Any] = {}
    exec(compile(source, f"<derived from {name}>", "exec"), module)
    function: Callable[..., float] = module["mean"]
    return function


@cache
def compiled(source: str, name: str) -> Callable[..., float]:
    """Return `mean_function` compiled; the machine code is cached on disk."""
    kernel: Callable[..., float] = emitted_kernel(
        mean_function(source, name), source, callee=functions.softplus
    )
    return kernel


def columns(
    function: Callable[..., Any], data: Orbits, exactly: Callable[[float], Any] | None = None
) -> tuple[np.ndarray, ...]:
    """Return the data arguments of an emitted function, including the distinct rows of families.

    Parameters
    ----------
    function
        Result of `mean_function` or `compiled`. The function ``rows`` of its module computes the
        rows.
    data
        Configurations up to symmetry.
    exactly
        Function that converts floats to another number type, such as balls. Rows of such numbers
        are not merged.
    """

    def numbers(x: np.ndarray) -> np.ndarray:
        if exactly is None or x.dtype == object:
            return x
        return np.vectorize(exactly, [object])(x)

    blocks = zip(data.first, data.arrays)
    given = [x for first, arrays in blocks for x in (first, *map(numbers, arrays))]
    rows = plain_python(function).__globals__.get("rows")
    tables = rows(*given) if rows else ()
    return numbers(data.weight), *given, *(x for table in tables for x in distinct(table))


def mean(
    function: Callable[..., float], data: Orbits, state: ArrayLike, constants: Sequence[float]
) -> tuple[float, Array]:
    """Return risk and gradient per entry.

    Parameters
    ----------
    function
        Result of `mean_function` or `compiled`.
    data
        Configurations up to symmetry.
    state, constants
        Order parameters (n,), and sizes and constants in the order of the theory.
    """
    theta, numbers = np.array(state, float), np.array(constants, float)
    out = np.empty(theta.size)
    return float(function(theta, out, numbers, *columns(function, data))), out
