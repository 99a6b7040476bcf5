r"""The labelling function of Assumption 1 and the error that no model of this kind can avoid.

:math:`f^*(X) = \sum_\ell \mathrm{Threshold}_{0.9C}(\sum_{i\in S_\ell}\langle w^*, X_i\rangle)`
counts the signal set and every random set that happens to look like one. When random sets imitate
negated signal sets, :math:`f^*` itself is wrong.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import scipy  # its subpackages load when they are used

from dynamics.positional.problem import Problem
from dynamics.positional.random_sets import law_of_set

_ROUNDING = 4e-14  # relative, of a binomial probability and of one convolution


class LabelError(NamedTuple):
    """``P[y f*(X) <= 0]``, the part of it with ``f*(X) = 0``, and an estimate of their error.

    The error is absolute and small relative to ``error`` itself, however small that is.
    """

    error: float
    ties: float
    bound: float


def threshold(C: int) -> float:
    """Return the level 0.9 C that a set's sum must exceed in modulus."""
    return 0.9 * C


def label_error(problem: Problem) -> LabelError:
    """Return the probability that random sets outvote the signal set.

    Conditions on the number of random sets beyond the threshold (binomial) and convolves the law
    of their sums; the binomial is cut where less than 1e-18 of the result remains. All terms are
    positive, so the result is right to rounding down to 1e-300 (0 below).
    """
    return _label_error(problem.C, problem.L - 1, problem.q)


@lru_cache(maxsize=64)
def _label_error(C: int, others: int, q: float) -> LabelError:
    law = law_of_set(C, q)
    sums = np.arange(-C, C + 1)
    visible = np.abs(sums) > threshold(C)
    chance = float(law[visible].sum())
    if chance == 0.0:
        return LabelError(0.0, 0.0, 0.0)
    single = np.where(visible, law, 0.0) / chance
    number = scipy.stats.binom(others, chance)
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
