r"""Generalized linear models ``g(X) = phi(sum_j <w_j, X_j>)`` on the data of Assumption 1.

By Theorem 3.1 of Jelassi et al. (2022) their error is at least 1/8. The noise is independent of the
rest and cannot decrease the error, so that for monotone ``phi`` it is enough to consider linear
classifiers ``sign(sum_j a_j s_j - theta)``, ``s_j`` the coefficient of w* in patch ``j``.

*Their error.* Let :math:`A_\ell=\sum_{j\in S_\ell}a_j` and
:math:`R_\ell=\sum_{j\notin S_\ell}a_js_j`, which is symmetric. Averaging over both labels,

.. math:: P[\text{error}] = \tfrac12 - \frac1{2L}\sum_\ell
   P[\theta-A_\ell < R_\ell \le \theta+A_\ell] \qquad (A_\ell\ge 0).

Replacing ``a_j`` by ``|a_j|`` does not change the law of ``R_l`` and widens the window: let
``a >= 0``.

*Uniform weights are optimal when the noise is Gaussian.* Replace the random ``s_j`` by normal
variables of the same variance ``q``. The best ``theta`` is 0. With shares
:math:`n_\ell=\sum_{S_\ell}a_j^2`, :math:`\sum_\ell n_\ell=1`, Cauchy-Schwarz gives
:math:`A_\ell^2\le Cn_\ell`, so the window has probability at most
:math:`\mathrm{erf}\sqrt{c\,n_\ell/(1-n_\ell)}` with ``c = C/(2q) >= 1``. In
:math:`x=n/(1-n)` the logarithmic derivative of the slope is
:math:`-\frac1{2x}-c+\frac2{1+x}\le\frac12-c<0`: the bound is concave in ``n``, and Jensen's
inequality gives equal shares, which uniform weights attain. Hence :func:`gaussian_error`.
For the discrete ``s_j`` other weights can be a little better, because they break ties.
"""

import itertools
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, special

from dynamics.core.checks import require
from dynamics.core.errors import ParameterError
from dynamics.positional.baselines.set_sums import (
    joint_law,
    labelling_statistic,
)
from dynamics.positional.problem import Problem
from dynamics.positional.random_sets import law_of_set, sum_of_signs

Array = NDArray[np.float64]

#: Lower bound of the error in Theorem 3.1.
LEVEL = 1.0 / 8.0
#: Largest modulus of a determinant of order n with entries -1, 0, 1 (Hadamard's problem).
_DETERMINANTS = {5: 48, 7: 576}


class LinearError(NamedTuple):
    """Error of a linear classifier.

    Attributes
    ----------
    wrong, ties
        ``P[y g < 0]`` and ``P[y g = 0]``.
    bound
        Bound of the error of both.
    """

    wrong: float
    ties: float
    bound: float

    @property
    def coin(self) -> float:
        """Error probability when ties are decided by a coin, or by any fixed sign."""
        return self.wrong + 0.5 * self.ties

    @property
    def literal(self) -> float:
        """``P[y g <= 0]``, the event of Theorem 3.1 for phi(0) = 0."""
        return self.wrong + self.ties


def uniform_error(problem: Problem) -> LinearError:
    """Return the error of ``sign(sum_j <w*, X_j>)``, from the exact law of a sum of signs."""
    law, dropped = sum_of_signs(problem.D - problem.C, problem.q)
    centre = law.size // 2
    at = centre - problem.C
    if at < 0:
        return LinearError(0.0, 0.0, dropped)
    return LinearError(float(law[:at].sum()), float(law[at]), dropped)


def uniform_disagreement(problem: Problem) -> LinearError:
    """Return ``P[f* g < 0]`` and ``P[f* g = 0]`` of the uniform model: the event of Theorem 3.1.

    It differs from `uniform_error` if ``f*`` differs from the label. It is computed from the joint
    distribution of the total and of ``f*``; the cost grows with ``L``.
    """
    C = problem.C
    statistics = np.stack([np.arange(-C, C + 1), labelling_statistic(C)], axis=1)
    law = joint_law(law_of_set(C, problem.q), statistics, problem.L - 1)
    product = (law.values[:, 0] + C) * (law.values[:, 1] + C)
    wrong = float(law.probability[product < 0].sum())
    return LinearError(wrong, float(law.probability[product == 0].sum()), law.dropped)


def gaussian_error(problem: Problem) -> float:
    """Return the smallest error of any linear classifier for normal instead of discrete ``s_j``."""
    return float(special.ndtr(-problem.C / math.sqrt(problem.q * (problem.D - problem.C))))


def gaussian_critical_ratio(D: int, C: int) -> float:
    """Return ``qD/C^2`` at which `gaussian_error` is 1/8: ``0.7557 D/(D - C)``."""
    return float(special.ndtri(LEVEL)) ** -2 * D / (D - C)


def critical_ratio(D: int, C: int, *, literal: bool = False) -> float:
    """Return ``qD/C^2`` at which the error of the uniform model is 1/8.

    Parameters
    ----------
    D, C
        Number of patches and size of a set.
    literal
        Whether ties count as errors.

    Returns
    -------
    float
        ``nan`` if the error is smaller for all q.
    """

    def excess(q: float) -> float:
        error = uniform_error(Problem(D=D, C=C, q=q))
        return (error.literal if literal else error.coin) - LEVEL

    if excess(1.0) < 0.0:
        return math.nan
    low = 1e-3 * C**2 / D
    return float(optimize.brentq(excess, min(low, 0.5), 1.0, xtol=1e-12)) * D / C**2


def weights_error(
    problem: Problem, weights: ArrayLike, theta: int | None = None
) -> tuple[LinearError, int]:
    """Return the error of ``sign(sum_j a_j s_j - theta)`` and the threshold.

    The distributions of the sums outside each set are computed exactly by convolution.

    Parameters
    ----------
    problem
        Constants.
    weights
        Integers (D,), not negative; sets are contiguous blocks.
    theta
        Integer threshold; ``None`` means the one with the smallest error if ties are decided by a
        coin.

    Raises
    ------
    ParameterError
        If the weights are invalid.
    """
    a = _integers(problem, weights).reshape(problem.L, problem.C)
    reach = int(a.sum())
    angles = np.arange(reach + 1) * (2.0 * np.pi / (2 * reach + 1))
    factors = 1.0 - problem.q + problem.q * np.cos(a[:, :, None] * angles)
    single = factors.prod(axis=1)
    before = np.cumprod(np.vstack([np.ones_like(angles), single[:-1]]), axis=0)
    after = np.cumprod(np.vstack([np.ones_like(angles), single[:0:-1]]), axis=0)[::-1]
    law = np.fft.fftshift(np.fft.irfft(before * after, n=2 * reach + 1, axis=1), axes=1)
    below = np.concatenate([np.zeros((problem.L, 1)), np.cumsum(law, axis=1)], axis=1)
    thetas = np.arange(reach + 1) if theta is None else np.array([abs(theta)])
    A = a.sum(axis=1)[:, None]
    rows = np.arange(problem.L)[:, None]

    def up_to(level: NDArray[np.int64]) -> Array:
        return np.asarray(below[rows, np.clip(level + reach + 1, 0, 2 * reach + 1)])

    low, high = up_to(thetas - A - 1), 1.0 - up_to(thetas + A)  # wrong for y = +1, for y = -1
    at = up_to(thetas - A) - low + (1.0 - up_to(thetas + A - 1) - high)
    wrong, ties = 0.5 * (low + high).mean(axis=0), 0.5 * at.mean(axis=0)
    best = int(np.argmin(wrong + 0.5 * ties))
    chosen = int(thetas[best]) if theta is None else theta
    rounding = 1e-15 * problem.D
    return LinearError(float(wrong[best]), float(ties[best]), rounding), chosen


def _integers(problem: Problem, weights: ArrayLike) -> NDArray[np.int64]:
    """Return validated integer weights (D,)."""
    given = np.asarray(weights)
    require(given.shape == (problem.D,), "weights.shape", given.shape, f"({problem.D},)")
    whole = given.astype(np.int64)
    require(
        bool(np.all(whole == given) and whole.min() >= 0 and whole.any()),
        "weights",
        given.tolist(),
        "integers, at least 0 and not all 0",
    )
    return whole


def search_weights(
    problem: Problem, rng: np.random.Generator, *, starts: int = 20, largest: int = 6
) -> tuple[LinearError, NDArray[np.int64], int]:
    """Search for integer weights better than uniform ones by local search.

    The search starts at near-uniform and at random weights, and changes single entries by one as
    long as the error (ties decided by a coin) decreases.

    Parameters
    ----------
    problem
        Constants.
    rng
        Random generator.
    starts
        Number of starts.
    largest
        Largest weight.

    Returns
    -------
    tuple
        Error, weights (D,) and threshold: an upper bound of the optimum.
    """
    best: tuple[LinearError, NDArray[np.int64], int] | None = None
    for start in range(starts):
        level = int(rng.integers(2, largest + 1))
        if start % 3 == 0:  # some sets lowered as a whole
            a = np.repeat(level - rng.integers(0, 2, size=problem.L), problem.C)
        elif start % 3 == 1:
            a = np.clip(level + rng.integers(-1, 2, size=problem.D), 1, largest)
        else:
            a = rng.integers(1, largest + 1, size=problem.D)
        error, theta = weights_error(problem, a)
        improved = True
        while improved:
            improved = False
            for j in rng.permutation(problem.D):
                for change in (-1, 1):
                    trial = a.copy()
                    trial[j] = trial[j] + change
                    if not 0 <= trial[j] <= largest or not trial.any():
                        continue
                    trial_error, trial_theta = weights_error(problem, trial)
                    if trial_error.coin < error.coin - 1e-13:
                        a, error, theta, improved = trial, trial_error, trial_theta, True
        if best is None or error.coin < best[0].coin:
            best = error, a, theta
    assert best is not None
    return best


class CertifiedOptimum(NamedTuple):
    """Smallest error of all linear classifiers.

    Attributes
    ----------
    error, lower_bound
        Attained error, and its lower bound from the optimization.
    weights, theta
        Weights (D,) and threshold.
    """

    error: float
    lower_bound: float
    weights: Array
    theta: float


def best_linear_classifier(problem: Problem, *, time_limit: float = 300.0) -> CertifiedOptimum:
    """Return the best of *all* linear classifiers at D = 4 or 6, certified by branch and bound.

    A mixed-integer program chooses the side of every pattern. It may assume ``a >= 0`` (module
    docstring), ``theta >= 0`` (exchange the labels) and weights sorted within and between sets. A
    pattern is on the upper side if the score is at least theta + 1 and on the lower side if it is
    at most theta - 1. Only the better side of a pattern has a constraint, and a pattern whose sides
    are equally good is left out. By Cramer's rule a vertex of the feasible set has entries below
    the largest determinant with entries -1, 0, 1, so that this is a valid bound of the weights.

    Raises
    ------
    ParameterError
        Unless D is 4 or 6, or if no optimum is proved within ``time_limit`` seconds.
    """
    D, C = problem.D, problem.C
    require(D in (4, 6), "D", D, "4 or 6 for a certified optimum")
    patterns, upper, lower = _patterns(problem)
    offset = 0.5 * float(upper.sum())
    differ = upper != lower
    patterns, upper, lower = patterns[differ], upper[differ], lower[differ]
    largest = _DETERMINANTS[D + 1]
    big = (D + 1.0) * largest + 1.0
    count = len(patterns)
    sides = np.hstack([patterns, -np.ones((count, 1)), -big * np.eye(count)])
    order = []
    for first in range(D - 1):
        row = np.zeros(D + 1 + count)
        if (first + 1) % C:
            row[first : first + 2] = 1.0, -1.0
        else:
            row[first + 1 - C : first + 1], row[first + 1 : first + 1 + C] = 1.0, -1.0
        order.append(row)
    solution = optimize.milp(
        np.concatenate([np.zeros(D + 1), 0.5 * (lower - upper)]),
        constraints=[
            optimize.LinearConstraint(
                sides,
                np.where(upper > lower, 1.0 - big, -np.inf),
                np.where(upper > lower, np.inf, -1.0),
            ),
            optimize.LinearConstraint(np.array(order), 0.0, np.inf),
        ],
        bounds=optimize.Bounds(
            np.zeros(D + 1 + count),
            np.concatenate([np.full(D + 1, float(largest)), np.ones(count)]),
        ),
        integrality=np.concatenate([np.zeros(D + 1), np.ones(count)]),
        options={"time_limit": time_limit},
    )
    if solution.status != 0:
        raise ParameterError(
            f"D = {D}, C = {C}, q = {problem.q:g}: no optimum was proved in {time_limit:g} seconds"
        )
    return CertifiedOptimum(
        float(solution.fun) + offset,
        float(solution.mip_dual_bound) + offset,
        np.asarray(solution.x[:D]),
        float(solution.x[D]),
    )


def _patterns(problem: Problem) -> tuple[Array, Array, Array]:
    """Return the sign patterns (m, D) that occur and their probabilities given y = +1 and -1."""
    D, C, L, q = problem.D, problem.C, problem.L, problem.q
    patterns = np.array(list(itertools.product((-1.0, 0.0, 1.0), repeat=D)))
    blocks = patterns.reshape(-1, L, C)
    nonzero = np.abs(blocks).sum(axis=2)
    total = nonzero.sum(axis=1)
    upper, lower = np.zeros(len(patterns)), np.zeros(len(patterns))
    for number in range(L):
        features = total - nonzero[:, number]
        weight = (q / 2) ** features * (1.0 - q) ** (D - C - features) / L
        upper += weight * (blocks[:, number] == 1.0).all(axis=1)
        lower += weight * (blocks[:, number] == -1.0).all(axis=1)
    occurs = upper + lower > 0.0
    return patterns[occurs], upper[occurs], lower[occurs]


def zero_label_probability(problem: Problem) -> float:
    """Return ``P[f*(X) = 0]``, where every rule is wrong in the sense of Theorem 3.1."""
    labels = labelling_statistic(problem.C)[:, None]
    law = joint_law(law_of_set(problem.C, problem.q), labels, problem.L - 1)
    return float(law.probability[law.values[:, 0] == -problem.C].sum())


def decode_base_3(score: ArrayLike, D: int) -> NDArray[np.int64]:
    """Return the digits -1, 0, 1 (D, ...) of ``sum_j 3^j s_j``, for a non-monotone phi.

    With ``w_j = 3^j w*`` one score determines every coefficient, so that ``phi = f* after
    decoding`` makes a generalized linear model equal to the labelling function. Doubles have ``D <=
    33`` digits.
    """
    require(D <= 33, "D", D, "at most 33: 3^D must stay below 2^53")
    rest = np.rint(np.asarray(score, dtype=float)).astype(np.int64)
    digits = np.empty((D, *rest.shape), dtype=np.int64)
    for j in range(D):
        digits[j] = (rest + 1) % 3 - 1
        rest = (rest - digits[j]) // 3
    return digits
