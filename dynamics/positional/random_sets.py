"""The distribution of one random set: its types, and the sum n of its coefficients.

A set of C patches with coefficients +1, -1 (probability q/2 each) and 0 is of type (a, b) if a of
them are +1 and b are -1 (Assumption 1); ``n = a - b``. The sum over many sets has the distribution
of :func:`sum_of_signs`; :mod:`dynamics.positional.population.fourier.set_law` computes it with
certified errors.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynamics.positional.problem import Problem

Array = NDArray[np.float64]

#: Probability dropped by each truncation, far below the rounding error of a sum of probabilities.
TRIM = 1e-20


class SetTypes(NamedTuple):
    """Types of a random set and their probabilities.

    Attributes
    ----------
    plus, minus
        Numbers of coefficients +1 and -1 in each nonempty type, shape (types,).
    probability
        Probability of each type, shape (types,).
    empty
        Probability of the type (0, 0).
    """

    plus: np.ndarray
    minus: np.ndarray
    probability: np.ndarray
    empty: float


def set_types(problem: Problem) -> SetTypes:
    """Return the nonempty types with their multinomial (C; q/2, q/2, 1-q) probabilities."""
    C, q = problem.C, problem.q
    pairs = [(a, k - a) for k in range(1, C + 1) for a in range(k, -1, -1)]
    probability = [
        math.comb(C, a + b) * math.comb(a + b, a) * (q / 2) ** (a + b) * (1 - q) ** (C - a - b)
        for a, b in pairs
    ]
    plus, minus = np.array(pairs).T
    return SetTypes(
        plus, minus, np.array(probability), math.exp(C * math.log1p(-q)) if q < 1 else 0.0
    )


def log_probability(a: int, b: int, C: int, q: float) -> float:
    """Return the logarithm of the probability of type (a, b), however small."""
    log_zero = math.log1p(-q) if q < 1.0 else -math.inf
    zeros = C - a - b
    ways = math.comb(C, a) * math.comb(C - a, b)
    return math.log(ways) + (a + b) * math.log(q / 2) + (zeros * log_zero if zeros else 0.0)


def law_of_set(C: int, q: float) -> Array:
    """Return the probabilities of the sums -C .. C over one random set, shape (2C + 1,)."""
    return sum_of_signs(C, q, trim=0.0)[0]


def sum_of_signs(count: int, q: float, trim: float = TRIM) -> tuple[Array, float]:
    """Return the distribution of a sum of independent signs.

    Parameters
    ----------
    count
        Number of signs.
    q
        Probability that a sign is not 0; +1 and -1 have probability q/2 each.
    trim
        Tails with less probability are dropped at each step.

    Returns
    -------
    law : ndarray, shape (2r + 1,)
        Probabilities of the sums -r .. r, by repeated squaring of positive terms.
    lost : float
        Total dropped probability. A probability is too small by at most this number, in addition
        to rounding errors that are small relative to it.
    """
    result, power = np.ones(1), np.array([q / 2, 1.0 - q, q / 2])
    lost_result = lost_power = 0.0
    while True:
        if count % 2:
            result, lost = _trimmed(np.convolve(result, power), trim)
            lost_result += lost_power + lost
        count //= 2
        if not count:
            return result, lost_result
        power, lost = _trimmed(np.convolve(power, power), trim)
        lost_power = 2.0 * lost_power + lost


def _trimmed(law: Array, trim: float) -> tuple[Array, float]:
    """Drop both tails of a symmetric law, together below ``trim``; return it and their mass."""
    tail = np.cumsum(law)
    cut = min(int(np.searchsorted(tail, 0.5 * trim)), law.size // 2)
    lost = 2.0 * float(tail[cut - 1]) if cut else 0.0
    return law[cut : law.size - cut], lost
