"""Adam in NumPy: nothing to compile, and no slower than compiled at some ten thousand numbers."""

import math
from typing import NamedTuple

import numpy as np

_EPSILON = 1e-8


class Moments(NamedTuple):
    """Running means of the gradient and of its square, entry by entry, beginning with zero."""

    mean: np.ndarray
    square: np.ndarray


def at_rest(parameters: np.ndarray) -> Moments:
    """Return the moments before the first step."""
    return Moments(np.zeros_like(parameters), np.zeros_like(parameters))


def adam(
    gradient: np.ndarray, kept: Moments, done: int, means: tuple[float, float] = (0.9, 0.999)
) -> tuple[np.ndarray, Moments]:
    r"""Return the direction to step against, for a learning rate of 1, and the moments.

    .. math:: m / (1 - b_1^t) \big/ \bigl(\sqrt{s / (1 - b_2^t)} + 10^{-8}\bigr),
       \quad m \leftarrow b_1 m + (1 - b_1) g, \quad s \leftarrow b_2 s + (1 - b_2) g^2

    (Kingma, Ba 2015) with t = ``done`` + 1, where ``done`` counts the steps before, and b the
    weights of the past in ``means``.
    """
    first, second = means
    mean = first * kept.mean + (1.0 - first) * gradient
    square = second * kept.square + (1.0 - second) * gradient * gradient
    size = np.sqrt(square / (1.0 - second ** (done + 1)))
    direction = mean / (1.0 - first ** (done + 1)) / (size + _EPSILON)
    return direction, Moments(mean, square)


def clipped(gradient: np.ndarray, norm: float) -> np.ndarray:
    """Return a gradient, scaled down to this norm if it is longer."""
    length = math.sqrt(float(np.square(gradient).sum()))
    return gradient if length <= norm else gradient * (norm / length)
