r"""The labelling function of Assumption 1 and the probability that it differs from the label.

:math:`f^*(X) = \sum_\ell \mathrm{Threshold}_{0.9C}(\sum_{i\in S_\ell}\langle w^*, X_i\rangle)`
adds up the signal set and every random set whose sum exceeds the threshold. If enough random sets
have large sums of the opposite sign, :math:`f^*` differs from the label.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import scipy  # its subpackages load when they are used

from dynamics.positional.problem import Problem
from dynamics.positional.random_sets import law_of_set

_ROUNDING = 4e-14  # relative, of a binomial probability and of one convolution


class LabelError(NamedTuple):
    """Error of the labelling function.

    Attributes
    ----------
    error
        ``P[y f*(X) <= 0]``.
    ties
        ``P[f*(X) = 0]``, contained in ``error``.
    bound
        Estimated absolute error of both, small relative to ``error``.
    """

    error: float
    ties: float
    bound: float


def threshold(C: int) -> float:
    """Return the threshold 0.9 C for the modulus of the sum of a set (Assumption 1)."""
    return 0.9 * C


def label_error(problem: Problem) -> LabelError:
    """Return the probability that the labelling function f* differs from the label.

    Parameters
    ----------
    problem
        Constants of the data; only D, C and q are used.

    Returns
    -------
    LabelError
        The probability, accurate to rounding down to 1e-300 (0 below), ties included.

    Notes
    -----
    The number of random sets beyond the threshold is binomial, and the law of their sum is a
    convolution power. The binomial is cut where less than 1e-18 of the result remains. All terms
    are positive, so that there is no cancellation.
    """
    return _label_error(problem.C, problem.L - 1, problem.q)


@lru_cache(maxsize=64)
def _label_error(C: int, others: int, q: float) -> LabelError:
    """Return the error with ``others`` random sets in addition to the signal set."""
    law = law_of_set(C, q)
    sums = np.arange(-C, C + 1)
    exceeds = np.abs(sums) > threshold(C)
    probability = float(law[exceeds].sum())
    if probability == 0.0:
        return LabelError(0.0, 0.0, 0.0)
    single = np.where(exceeds, law, 0.0) / probability
    number = scipy.stats.binom(others, probability)
    total, error, ties, m = np.ones(1), 0.0, 0.0, 0
    while True:
        centre = C * m  # index of the sum 0 in the m-fold convolution
        mass = float(number.pmf(m))
        error += mass * float(total[: max(0, centre - C + 1)].sum())
        ties += mass * (float(total[centre - C]) if centre >= C else 0.0)
        rest = float(number.sf(m))
        if rest <= 1e-18 * error or m == others:
            return LabelError(error, ties, rest + _ROUNDING * (m + 1) * error)
        total = np.convolve(total, single)
        m += 1
