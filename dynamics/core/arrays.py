"""Validation of array arguments: real entries, shape, unit norm."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynamics.core.checks import require
from dynamics.core.errors import ParameterError

Array = NDArray[np.float64]


def real_array(name: str, value: ArrayLike, shape: tuple[int, ...]) -> Array:
    """Return ``value`` as a float array of a given shape, or raise ParameterError.

    Complex numbers, other shapes and entries that are not finite are rejected.
    """
    try:
        if np.iscomplexobj(value):
            raise TypeError
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise ParameterError(f"{name} must be an array of real numbers of shape {shape}") from None
    require(array.shape == shape, f"{name}.shape", array.shape, f"{shape}")
    require(bool(np.all(np.isfinite(array))), name, "(some entry NaN or infinite)", "finite")
    return array


def unit_vector(name: str, value: ArrayLike, dimension: int) -> Array:
    """Return ``value`` (d,) normalised to 1, or raise ParameterError.

    The norm must be 1 within 1e-12.
    """
    vector = real_array(name, value, (dimension,))
    norm = float(np.linalg.norm(vector))
    require(abs(norm - 1.0) <= 1e-12, f"|{name}|", norm, "1 within 1e-12")
    return np.asarray(vector / norm)
