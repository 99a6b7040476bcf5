r"""Explicit transformers for Theorem 3.2 of Jelassi et al. (2022), without training.

The model is (T), :math:`F(X)=\sum_i\mathrm{act}(\kappa\sum_jS_{ij}\langle v,X_j\rangle)` with ``v =
alpha w*``. Its output is a sum over the rows ``i``, so that it does not matter which row attends to
a set: if the rows of set ``l`` attend to the set ``pi(l)``, ``pi`` a permutation without fixed
points, then

.. math:: F = C\sum_\ell \mathrm{act}(\kappa\alpha\,n_{\pi(\ell)}/C)
   = C\sum_\ell \mathrm{act}(\kappa\alpha\,n_\ell/C),

the output of attention to the own set, while Top_C of every row avoids it.

For scores that are inner products of encodings, as in the paper, ``A = P^T P`` with its diagonal,
this is impossible: for the ``i`` of largest ``|p_i|``, :math:`\langle
p_i,p_j\rangle\le|p_i||p_j|\le|p_i|^2` (Cauchy-Schwarz), so ``i`` itself is among its C largest
entries, unless C other patches tie with it by ``p_j = p_i``. `paired_gram` implements both
exceptions: without the diagonal, and with ties.
"""

import itertools
import math
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize

from dynamics.core.checks import require
from dynamics.core.errors import ParameterError
from dynamics.positional.baselines.set_sums import joint_law, labelling_statistic
from dynamics.positional.labelling import threshold
from dynamics.positional.problem import Problem
from dynamics.positional.random_sets import law_of_set
from dynamics.positional.samples.data import draw_coefficients
from dynamics.positional.samples.partitions import contiguous

Array = NDArray[np.float64]

#: Largest number of patterns ``L 3^(D-C)`` that `exact_error` enumerates.
MAX_PATTERNS = 5_000_000
_CHUNK = 20_000


class RuleError(NamedTuple):
    """Error of a rule ``F``, ties included.

    Attributes
    ----------
    error
        ``P[f* F <= 0]`` (Theorem 3.2).
    label_error
        ``P[y F <= 0]``.
    bound
        Absolute error of both: certified, or three standard errors for a sample.
    """

    error: float
    label_error: float
    bound: float


def derangement_scores(problem: Problem, strength: float | None = None) -> Array:
    """Return scores ``A`` (D, D) whose rows attend to the next set instead of their own.

    ``A_ij = strength`` for ``j`` in ``S_{l(i)+1}`` (cyclically), ``beta`` on the diagonal, 0
    elsewhere.

    Parameters
    ----------
    problem
        Constants.
    strength
        ``None`` means ``tau (20 + log D)`` above ``max(beta, 0)``: other entries of the softmax add
        up to about e^-20.
    """
    if strength is None:
        strength = max(problem.beta, 0.0) + problem.tau * (20.0 + math.log(problem.D))
    owner = np.arange(problem.D) // problem.C
    A = np.where((owner[:, None] + 1) % problem.L == owner, strength, 0.0)
    np.fill_diagonal(A, problem.beta)
    return A


def block_scores(problem: Problem, strength: float | None = None) -> Array:
    """Return scores ``A`` (D, D) whose rows attend to their own set, including the diagonal."""
    return np.roll(_off_diagonal(derangement_scores(problem, strength)), problem.C, axis=0)


def _off_diagonal(A: Array) -> Array:
    """Return a matrix with zero diagonal."""
    return A - np.diag(np.diag(A))


def paired_gram(problem: Problem, within: float, scale: float) -> tuple[Array, Array]:
    """Return ``A = P^T P`` (D, D), in which every set attends to a partner set, and ``P`` (D, D).

    Inside a pair of sets the encodings have unit norm, inner product ``within`` in one set and
    ``(1 + (C-1) within)/C`` (the largest that is positive semidefinite) across; pairs are
    orthogonal. Inner products across exceed those within: without the diagonal Top_C of
    every row is the partner set. At ``within = 1`` all encodings of a pair coincide and tie.

    Parameters
    ----------
    problem
        Constants with an even number of sets.
    within
        Inner product within a set, in [0, 1].
    scale
        Factor of all inner products.

    Raises
    ------
    ParameterError
        If the number of sets is odd or ``within`` is outside [0, 1].
    """
    C, L = problem.C, problem.L
    require(L % 2 == 0, "L", L, "even, to pair the sets")
    require(0.0 <= within <= 1.0, "within", within, "in [0, 1]")
    across = (1.0 + (C - 1) * within) / C
    pair = np.where(np.kron(np.eye(2), np.ones((C, C))) > 0.0, within, across)
    np.fill_diagonal(pair, 1.0)
    A = scale * np.kron(np.eye(L // 2), pair)
    values, vectors = np.linalg.eigh(A)
    P = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    return np.asarray(A), np.asarray(P)


def own_set_margin(A: ArrayLike, partition: ArrayLike, *, diagonal: bool = True) -> Array:
    """Return per row the C-th largest entry outside the own set minus the largest inside, (D,).

    Positive: Top_C of the row avoids its set. Negative: it does not. Zero: there is a tie.

    Parameters
    ----------
    A
        Scores (D, D).
    partition
        Patch indices of each set, (L, C).
    diagonal
        Whether ``A_ii`` is included.
    """
    A, sets = np.asarray(A, dtype=float), np.asarray(partition)
    C = sets.shape[1]
    owner = np.empty(A.shape[0], dtype=int)
    owner[sets] = np.arange(len(sets))[:, None]
    same = owner[:, None] == owner
    inside = same if diagonal else same & ~np.eye(len(owner), dtype=bool)
    others = np.where(same, -np.inf, A)
    return np.asarray(np.sort(others, axis=1)[:, -C] - np.where(inside, A, -np.inf).max(axis=1))


def softmax(problem: Problem, A: Array) -> Array:
    """Return the attention weights; the rows add up to 1."""
    weights = np.exp((A - A.max(axis=1, keepdims=True)) / problem.tau)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def exact_error(problem: Problem, A: ArrayLike, alpha: float) -> RuleError:
    """Return the error of model (T) with scores ``A`` (D, D) over all ``L 3^(D-C)`` images.

    ``F`` and ``f*`` are odd, so that y = +1 is enough. ``F`` within rounding of 0 counts as an
    error.

    Raises
    ------
    ParameterError
        If there are more than `MAX_PATTERNS` images.
    """
    free = problem.D - problem.C
    if problem.L * 3.0**free > MAX_PATTERNS:
        raise ParameterError(
            f"D = {problem.D}, C = {problem.C} is not allowed: more than {MAX_PATTERNS} images"
        )
    S = softmax(problem, np.asarray(A, dtype=float))
    wrong = np.zeros(2)
    for number in range(problem.L):
        for signs in _sign_patterns(free):
            features = np.count_nonzero(signs, axis=1)
            weight = (problem.q / 2) ** features * (1.0 - problem.q) ** (free - features)
            s = np.insert(signs, [number * problem.C] * problem.C, 1.0, axis=1)
            wrong += [weight @ failed for failed in _fails(problem, S, alpha, s)]
    error, label_error = (wrong / problem.L).tolist()
    return RuleError(error, label_error, 1e-14)


def _sign_patterns(free: int) -> Iterator[Array]:
    """Yield all patterns of -1, 0, 1 in chunks (n, free)."""
    head = min(free, 9)
    tail = np.array(list(itertools.product((-1.0, 0.0, 1.0), repeat=head)))
    for first in itertools.product((-1.0, 0.0, 1.0), repeat=free - head):
        yield np.hstack([np.tile(first, (len(tail), 1)), tail])


def _fails(problem: Problem, S: Array, alpha: float, s: Array) -> tuple[Array, Array]:
    """Return where ``f* F <= 0`` and where ``F <= 0``, for images (n, D) with y = +1."""
    scale = problem.kappa * alpha
    O = scale * (s @ S.T)  # noqa: E741 - the paper's name
    terms = O.copy()  # products are ten times faster than a general power
    for _ in range(problem.p - 1):
        terms *= O
    terms += problem.nu * O
    F = terms.sum(axis=1)
    rounding = 8.0 * problem.D * np.finfo(float).eps * np.abs(terms).sum(axis=1)
    sums = s.reshape(len(s), problem.L, problem.C).sum(axis=2)
    f_star = np.where(np.abs(sums) > threshold(problem.C), sums, 0.0).sum(axis=1)
    return np.sign(f_star) * F <= rounding, rounding >= F


def sampled_error(
    problem: Problem, A: ArrayLike, alpha: float, images: int, rng: np.random.Generator
) -> RuleError:
    """Return the error of model (T) with scores ``A`` (D, D) on random images, for y = +1."""
    S = softmax(problem, np.asarray(A, dtype=float))
    wrong, left, sets = np.zeros(2), images, contiguous(problem)
    while left:
        count = min(left, _CHUNK)
        coefficients, y = draw_coefficients(problem, count, rng, sets)
        s = (coefficients * y[:, None]).astype(float)
        wrong += [failed.sum() for failed in _fails(problem, S, alpha, s)]
        left -= count
    share = wrong / images
    spread = 3.0 * math.sqrt(float(np.max(share * (1.0 - share))) / images) + 3.0 / images
    return RuleError(float(share[0]), float(share[1]), spread)


@cache
def block_error(problem: Problem, alpha: float) -> RuleError:
    """Return the exact error of uniform attention to one set per row, the limit of large scores.

    It is the same for attention to the own set and for every derangement (module docstring). It is
    computed from the joint distribution of the sums of ``n^p``, ``n`` and ``f*`` over the sets.
    """
    C = problem.C
    n = np.arange(-C, C + 1)
    visible = labelling_statistic(C)
    return _sum_error(problem, alpha, C, law_of_set(C, problem.q), n, visible, problem.L - 1, (C,))


def paired_error(problem: Problem, alpha: float) -> RuleError:
    """Return the exact error of uniform attention to the own set and its partner."""
    C = problem.C
    require(problem.L % 2 == 0, "L", problem.L, "even, to pair the sets")
    n, visible, law = np.arange(-C, C + 1), labelling_statistic(C), law_of_set(C, problem.q)
    pairs = np.add.outer(n, n).ravel()
    labels = np.add.outer(visible, visible).ravel()
    both = np.outer(law, law).ravel()
    return _sum_error(problem, alpha, 2 * C, both, pairs, labels, problem.L // 2 - 1, (C, *n), law)


def _sum_error(
    problem: Problem,
    alpha: float,
    size: int,
    single: Array,
    sums: NDArray[np.int64],
    visible: NDArray[np.int64],
    count: int,
    signal: tuple[int, ...],
    partner: Array | None = None,
) -> RuleError:
    """Return the error of ``size sum_u act(kappa alpha m_u / size)`` over units with sums ``m_u``.

    ``signal`` contains the sum of the signal set and, for units of two sets, the sums that its
    partner takes with the probabilities ``partner``.
    """
    p, C = problem.p, problem.C
    law = joint_law(single, np.stack([sums**p, sums, visible], axis=1), count)
    powers, totals, labels = law.values.T
    x = problem.kappa * alpha / size
    partners = [(0, 1.0)] if partner is None else list(zip(signal[1:], partner.tolist()))
    error = label_error = 0.0
    for n, probability in partners:
        high = x**p * (powers + (C + n) ** p)
        low = problem.nu * x * (totals + C + n)
        F = high + low
        F = np.where(np.abs(F) <= 1e-13 * (np.abs(high) + np.abs(low)), 0.0, F)
        f_star = labels + C + (n if abs(n) > threshold(C) else 0)
        error += probability * float(law.probability[f_star * F <= 0.0].sum())
        label_error += probability * float(law.probability[F <= 0.0].sum())
    return RuleError(error, label_error, law.dropped + 1e-15 * count)


def best_gram_margin(
    problem: Problem, rng: np.random.Generator, *, diagonal: bool, iterations: int = 100
) -> tuple[float, Array]:
    """Search for encodings ``P`` (D, D), ``|p_i| <= 1``, whose Gram matrix avoids the own sets.

    SLSQP maximizes, from a random start, the smallest ``<p_i, p_j> - <p_i, p_k>`` over all ``i``,
    ``j`` in the next set and ``k`` in the own set, ``k = i`` only with ``diagonal``. Return the
    smallest `own_set_margin` and ``P``.
    """
    D, C, L = problem.D, problem.C, problem.L
    owner = np.arange(D) // C
    triples = np.array(
        [
            (i, j, k)
            for i, j, k in itertools.product(range(D), repeat=3)
            if owner[j] == (owner[i] + 1) % L and owner[k] == owner[i] and (diagonal or k != i)
        ]
    )
    i, j, k = triples.T
    rows = np.arange(len(triples))

    def slack(x: Array) -> Array:
        P = x[:-1].reshape(D, D)  # encodings as rows
        return np.concatenate(
            [np.einsum("nd,nd->n", P[i], P[j] - P[k]) - x[-1], 1.0 - (P * P).sum(axis=1)]
        )

    def slope(x: Array) -> Array:
        P = x[:-1].reshape(D, D)
        J = np.zeros((len(triples) + D, D, D))
        np.add.at(J, (rows, i), P[j] - P[k])
        np.add.at(J, (rows, j), P[i])
        np.add.at(J, (rows, k), -P[i])
        J[len(triples) + np.arange(D), np.arange(D)] = -2.0 * P
        last = np.concatenate([-np.ones(len(triples)), np.zeros(D)])
        return np.hstack([J.reshape(len(J), -1), last[:, None]])

    start = rng.normal(size=(D, D)) / math.sqrt(D)
    direction = np.zeros(D * D + 1)
    direction[-1] = -1.0
    solution = optimize.minimize(
        lambda x: -x[-1],
        np.append(start.ravel(), -1.0),
        jac=lambda x: direction,
        constraints={"type": "ineq", "fun": slack, "jac": slope},
        method="SLSQP",
        options={"maxiter": iterations, "ftol": 1e-9},
    )
    P = solution.x[:-1].reshape(D, D).T
    P = P / max(1.0, float(np.linalg.norm(P, axis=0).max()))
    margin = own_set_margin(P.T @ P, contiguous(problem), diagonal=diagonal)
    return float(margin.min()), P
