"""Means over the tokens of a softmax: an integral over t > 0 of products of means of one token.

With Z the sum of exp(score), Z^-p is the integral of t^(p-1) exp(-t Z) / (p-1)! over t, so that
independent tokens separate. Means of f^n g, f = t exp(y), g = exp(-f), are computed for all nodes
of log t at once; the trapezoidal rule in log t and in y converges exponentially, because both are
analytic in a strip of half-width pi/2. There is no certified bound.
"""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from dynamics.overlaps.trapezoid import CUT, Grid
from dynamics.theory.data import Array

#: Step in log t; the error of the rule is of order exp(-2 pi 1.4 / STEP), about 1e-19.
STEP = 0.2
#: The integrand is omitted where f or g of a token is below exp(-_EXPONENT) or exp(-exp(_UPPER)).
_EXPONENT, _UPPER = 40.0, 4.0


def log_times(tokens: Iterable[tuple[float, float]], number: int) -> Array:
    """Return the nodes in log t, (nodes,), for means and variances of scores.

    The integrand decreases like t below the nodes and like the tail of a normal distribution above.
    """
    pairs = [(mean, max(variance, 0.0)) for mean, variance in tokens]
    largest = max(mean + variance / 2.0 for mean, variance in pairs)
    first = -_EXPONENT - math.log(number) - largest
    last = _UPPER + min(CUT * math.sqrt(variance) - mean for mean, variance in pairs)
    if not math.isfinite(first + last):
        raise OverflowError(f"scores of means and variances {pairs} overflow")
    nodes = range(math.floor(first / STEP), math.ceil(last / STEP) + 1)
    return np.array([STEP * k for k in nodes])


def integrated(values: Any) -> Any:
    """Return the integral over log t of values at the nodes; a number is returned unchanged."""
    return STEP * float(np.sum(values)) if isinstance(values, np.ndarray) else values


class Token:
    """Means of functions of one normal score at all nodes.

    Parameters
    ----------
    mean, variance
        Moments of the score.
    times
        Nodes in log t (nodes,).
    """

    def __init__(self, mean: float, variance: float, times: Array) -> None:
        grid = Grid.of(("softmax",), np.array([mean]), np.array([[variance]]))
        self._scores, self._weights = grid.points(0), grid.weights[0]
        self._shifted = times[:, None] + self._scores
        with np.errstate(over="ignore"):
            self._f = np.exp(self._shifted)

    def mean(self, power: int, exponent: int) -> Array:
        """Return the mean of score^power f^exponent g, (nodes,)."""
        values = np.exp(exponent * self._shifted - self._f)
        return np.asarray(values @ (self._weights * self._scores**power))

    def power(self, number: int) -> Array:
        """Return the mean of g to a power, precise also for a large power of a mean close to 1."""
        lost = np.minimum(-np.expm1(-self._f) @ self._weights, 1.0)
        with np.errstate(divide="ignore"):
            return np.asarray(np.exp(number * np.log1p(-lost)) if number else np.ones_like(lost))
