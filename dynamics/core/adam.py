"""The Adam optimizer in NumPy, as fast as compiled code from about ten thousand parameters on."""

import math
from typing import NamedTuple

import numpy as np

_EPSILON = 1e-8


class Moments(NamedTuple):
    """Exponential moving averages of the gradient and of its square, starting at zero."""

    mean: np.ndarray
    square: np.ndarray


def initial_moments(parameters: np.ndarray) -> Moments:
    """Return the moments before the first step."""
    return Moments(np.zeros_like(parameters), np.zeros_like(parameters))


def adam(
    gradient: np.ndarray,
    moments: Moments,
    steps_done: int,
    betas: tuple[float, float] = (0.9, 0.999),
) -> tuple[np.ndarray, Moments]:
    r"""Return the update direction of Adam (Kingma, Ba 2015) and the new moments.

    With t = ``steps_done`` + 1, the parameters move by minus the learning rate times

    .. math:: m / (1 - b_1^t) \big/ \bigl(\sqrt{s / (1 - b_2^t)} + 10^{-8}\bigr),
       \quad m \leftarrow b_1 m + (1 - b_1) g, \quad s \leftarrow b_2 s + (1 - b_2) g^2.

    Parameters
    ----------
    gradient
        Gradient g, an array of any shape.
    moments
        Moments (m, s) after the previous step; see :func:`initial_moments`.
    steps_done
        Number of previous steps.
    betas
        Decay rates (b_1, b_2).
    """
    first, second = betas
    mean = first * moments.mean + (1.0 - first) * gradient
    square = second * moments.square + (1.0 - second) * gradient * gradient
    size = np.sqrt(square / (1.0 - second ** (steps_done + 1)))
    direction = mean / (1.0 - first ** (steps_done + 1)) / (size + _EPSILON)
    return direction, Moments(mean, square)


def clipped(gradient: np.ndarray, norm: float) -> np.ndarray:
    """Return a gradient, scaled to a norm if it is larger (gradient clipping)."""
    length = math.sqrt(float(np.square(gradient).sum()))
    return gradient if length <= norm else gradient * (norm / length)
