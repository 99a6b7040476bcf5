r"""Smallest error of a classifier that knows some of the sets on Assumption 1 (Theorem 5.2).

*Without knowledge of the sets* means that the partition is uniformly random for the learner.
Suppose that the learner is given w*, and the signal set of each of its N samples. It then knows the
``m`` sets that were a signal at least once. All partitions of the ``U = C (L - m)`` other patches
are equally likely, because coefficients outside a signal set do not depend on the partition. Given
coefficients ``s`` of w*, with ``a_+`` (``a_-``) known sets of only +1 (-1) and ``n_+`` (``n_-``)
unknown patches with +1 (-1), each of the ``L - m`` unknown sets has only +1 with probability
:math:`\binom{n_+}C/\binom UC`. Hence

.. math:: \frac{P[s\mid y=+1]}{P[s\mid y=-1]} = \frac{a_+ + g(n_+)}{a_- + g(n_-)},\qquad
   g(n) = (L-m)\binom nC\Big/\binom UC,

and the sign of :math:`T = a_+ - a_- + g(n_+) - g(n_-)` is the Bayes rule. Its error `bayes_error`,
averaged over ``m``, is a lower bound for the error of *any* learner from N samples (`least_error`),
averaged over partitions, because additional information can be ignored and the noise is
independent. For ``m = 0`` the rule is the majority of the features: then the uniform linear model
is the best of all rules.

``m`` follows the coupon collector: ``E[m] = L (1 - (1 - 1/L)^N)``, and every set was a signal after
``L (1 + 1/2 + ... + 1/L)``, about ``L log L``, samples on average. A fixed error below the linear
rule's needs a fixed fraction of the sets, hence N of order ``L = D/C``: the power of D is one.
"""

import math
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from dynamics.core.checks import integer, require
from dynamics.positional.problem import Problem
from dynamics.positional.random_sets import sum_of_signs

Array = NDArray[np.float64]

#: Probability of the counts of features that are left out.
_TAIL = 1e-18
_LARGEST = 2**62


class BayesError(NamedTuple):
    """Error of the best rule that knows some of the sets.

    Attributes
    ----------
    wrong, ties
        ``P[y T < 0]`` and ``P[T = 0]``.
    """

    wrong: float
    ties: float

    @property
    def coin(self) -> float:
        """Error with ties decided by a coin: the smallest error of any rule."""
        return self.wrong + 0.5 * self.ties


def bayes_error(problem: Problem, known: int) -> BayesError:
    """Return the smallest error of a rule that knows w* and ``known`` of the L sets.

    It is exact up to rounding and a probability of 1e-17: the counts of features among the unknown
    patches are multinomial and independent of the known sets, and T is compared in integers.

    Parameters
    ----------
    problem
        Constants.
    known
        Number of known sets.

    Raises
    ------
    ParameterError
        Unless ``0 <= known <= L``, or if T does not fit into an integer.
    """
    L, C = problem.L, problem.C
    known = integer("known", known, 0)
    require(known <= L, "known", known, f"at most L = {L}")
    wrong = ties = 0.0
    if known:
        part = _signs(problem, known, known - 1, 1, C * (L - known), 0)
        wrong, ties = known / L * part[0], known / L * part[1]
    if known < L:
        part = _signs(problem, known, known, 0, C * (L - known - 1), C)
        wrong, ties = wrong + (1 - known / L) * part[0], ties + (1 - known / L) * part[1]
    return BayesError(wrong, ties)


def _signs(
    problem: Problem, known: int, random: int, whole: int, free: int, given: int
) -> tuple[float, float]:
    """Return ``P[T < 0]`` and ``P[T = 0]`` at y = +1 for one case of the signal set.

    ``random`` known sets and ``free`` unknown patches are random; the signal adds ``whole`` known
    sets and ``given`` unknown patches of +1.
    """
    L, C, half = problem.L, problem.C, problem.q / 2
    unknown = C * (L - known)
    scale = math.comb(unknown, C) if unknown else 1
    require(L * scale < _LARGEST, "binomial(D, C) L", L * scale, f"below {_LARGEST}")
    most = int(stats.binom.isf(_TAIL, free, half)) + 1 if free else 0
    n = np.arange(min(most, free) + 1)
    plus, minus = n[:, None], n
    rest = free - plus - minus
    with np.errstate(invalid="ignore", divide="ignore"):
        log = (
            special.gammaln(free + 1.0)
            - special.gammaln(plus + 1.0)
            - special.gammaln(minus + 1.0)
            - special.gammaln(np.maximum(rest, 0) + 1.0)
            + special.xlogy(plus + minus, half)
            + special.xlogy(np.maximum(rest, 0), 1.0 - 2 * half)
        )
    law = np.where(rest >= 0, np.exp(log), 0.0)
    subsets = np.array([math.comb(k, C) for k in range(int(n[-1]) + given + 1)], dtype=np.int64)
    excess = (L - known) * (subsets[plus + given] - subsets[minus])
    sets, _ = sum_of_signs(random, 2.0 * half**C)
    wrong = ties = 0.0
    for difference, mass in enumerate(sets, start=whole - sets.size // 2):
        T = excess + difference * scale
        wrong += float(mass * law[T < 0].sum())
        ties += float(mass * law[T == 0].sum())
    return wrong, ties


def known_sets_law(L: int, N: int) -> Array:
    """Return the probabilities (L + 1,) of the number of different sets in N uniform samples."""
    law = np.eye(1, L + 1)[0]
    for _ in range(N):
        law = _draw(law)
    return law


def _draw(law: Array) -> Array:
    """Return the probabilities of the number of known sets after one more sample."""
    L = law.size - 1
    m = np.arange(L + 1)
    new = law * (L - m) / L
    return np.asarray(law * m / L + np.concatenate([[0.0], new[:-1]]))


def coupon_collector(L: int) -> float:
    """Return the mean number of samples until each of L sets has occurred, ``L H_L``."""
    return float(L * (1.0 / np.arange(1, L + 1)).sum())


def least_error(problem: Problem, N: int) -> float:
    """Return a lower bound of the mean error of any learner from N samples."""
    return float(known_sets_law(problem.L, integer("N", N, 0)) @ _errors(problem))


def least_samples(problem: Problem, threshold: float) -> int:
    """Return the smallest N for which `least_error` is at most ``threshold``.

    Raises
    ------
    ParameterError
        If ``threshold`` is not above the error with all sets known.
    """
    errors = _errors(problem)
    require(
        threshold > errors[-1],
        "threshold",
        threshold,
        f"above {errors[-1]:.3g}, the error with all sets known",
    )
    law, N = np.eye(1, problem.L + 1)[0], 0
    while law @ errors > threshold:
        law, N = _draw(law), N + 1
    return N


@cache
def _errors(problem: Problem) -> Array:
    """Return `bayes_error` with a coin for ties, for 0 to L known sets, (L + 1,)."""
    return np.array([bayes_error(problem, known).coin for known in range(problem.L + 1)])
