"""Samples as token counts per pattern: validation, sampling, enumeration with probabilities."""

import math
from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from dynamics.core.checks import integer, require
from dynamics.core.errors import ParameterError
from dynamics.shallow.kernels import Samples
from dynamics.shallow.problem import ShallowProblem

#: Largest number of distinct samples that are enumerated.
MOST_CELLS = 10**6


class Counts(NamedTuple):
    """Sampled token counts.

    Attributes
    ----------
    counts, queried
        Tokens and queried tokens per pattern, (N, M).
    labels
        Labels, +1 or -1, (N,).
    """

    counts: np.ndarray
    labels: np.ndarray
    queried: np.ndarray


class Cells(NamedTuple):
    """All distinct samples with their probabilities.

    Attributes
    ----------
    counts, queried
        Tokens and queried tokens per pattern, (cells, M).
    labels
        Labels, +1 or -1, (cells,).
    probability
        Probability of each cell, with sum 1, (cells,).
    """

    counts: np.ndarray
    labels: np.ndarray
    queried: np.ndarray
    probability: np.ndarray


def finite_array(name: str, value: Any, shape: tuple[int | None, ...]) -> np.ndarray:
    """Return a new array of finite floats of a shape (None: any length).

    Raises
    ------
    ParameterError
        If ``value`` is not such an array, or is empty.
    """
    try:
        array = np.array(value, dtype=float, order="C")
    except (TypeError, ValueError):
        raise ParameterError(f"{name} is not allowed: {name} must contain real numbers") from None
    fits = array.ndim == len(shape) and all(n in (None, k) for n, k in zip(shape, array.shape))
    allowed = ", ".join("any" if n is None else str(n) for n in shape)
    require(fits and array.size > 0, f"shape of {name}", array.shape, f"({allowed}) and not empty")
    require(bool(np.isfinite(array).all()), name, "an array with inf or nan", "finite")
    return array


def validated_samples(
    counts: Any, labels: Any, queried: Any = None, weights: Any = None
) -> Samples:
    """Return samples as fractions, with weights that sum to 1.

    Parameters
    ----------
    counts, queried
        Tokens and queried tokens per pattern, (N, M); ``queried`` None: all tokens.
    labels
        Labels, +1 or -1, (N,).
    weights
        Relative weights of the samples, (N,); None: equal.

    Raises
    ------
    ParameterError
        If counts are not whole numbers or a sample is empty, labels are not +-1, more tokens are
        queried than there are, or weights are negative or all zero.
    """
    keys = finite_array("counts", counts, (None, None))
    N, M = keys.shape
    require(M >= 3, "M", M, "at least 3: two discriminative patterns and an irrelevant one")
    queries = keys if queried is None else finite_array("queried", queried, (N, M))
    for name, array in (("counts", keys), ("queried", queries)):
        whole = bool((array >= 0.0).all() and (array == np.floor(array)).all())
        require(whole, name, "an array with other entries", "whole numbers, 0 or more")
        filled = bool((array.sum(axis=1) > 0.0).all())
        require(filled, name, "an array with an empty row", "at least one token in each sample")
    excess = np.argwhere(queries > keys)
    if len(excess):
        n, i = excess[0]
        raise ParameterError(
            f"queried = {queries[n, i]:g} tokens of pattern {i} in sample {n} is not allowed: "
            f"queried must be at most the {keys[n, i]:g} there are"
        )
    y = finite_array("labels", labels, (N,))
    require(bool(np.isin(y, (-1.0, 1.0)).all()), "labels", "an array with other entries", "+-1")
    share = np.ones(N) if weights is None else finite_array("weights", weights, (N,))
    require(
        bool((share >= 0.0).all() and share.sum() > 0.0),
        "weights",
        "an array with a negative entry or none above 0",
        "0 or more, not all 0",
    )
    return normalized_samples(keys, queries, y, share)


def normalized_samples(
    counts: np.ndarray, queried: np.ndarray, labels: np.ndarray, weights: np.ndarray
) -> Samples:
    """Return samples with counts as fractions, and weights that sum to 1."""
    keys, queries = (x / x.sum(axis=1, keepdims=True) for x in (counts, queried))
    return Samples(keys, queries, labels, weights / weights.sum())


def sample(problem: ShallowProblem, N: int, rng: np.random.Generator) -> Counts:
    r"""Return N random labelled samples of token counts; both labels have probability 1/2.

    A sample consists of :math:`\alpha_*L` tokens with the pattern of its label (0 for +1, 1 for
    -1), :math:`\alpha_\#L` tokens with the other discriminative pattern, and irrelevant tokens with
    independent patterns, or all with the same one (``background="single"``). Of its tokens
    ``problem.queried`` are queried, sampled without replacement.

    Parameters
    ----------
    problem
        Constants of the data.
    N
        Number of samples, 1 to 10^8.
    rng
        Random generator.

    Raises
    ------
    ParameterError
        If N is not allowed.
    """
    N = integer("N", N, 1, 10**8)
    irrelevant, M = problem.irrelevant, problem.M
    labels = np.where(rng.random(N) < 0.5, 1.0, -1.0)
    counts = np.zeros((N, M), np.int64)
    own = np.where(labels > 0.0, 0, 1)
    counts[np.arange(N), own] = problem.relevant
    counts[np.arange(N), 1 - own] = problem.confusion
    if problem.background == "single":
        counts[np.arange(N), rng.integers(2, M, N)] += irrelevant
    else:
        counts[:, 2:] = rng.multinomial(irrelevant, np.full(M - 2, 1.0 / (M - 2)), size=N)
    if problem.queried in (None, problem.L):
        return Counts(counts, labels, counts)
    queried = [rng.multivariate_hypergeometric(row, problem.queried) for row in counts]
    return Counts(counts, labels, np.array(queried))


def cells(problem: ShallowProblem) -> Cells:
    """Return all distinct samples of a problem with their probabilities.

    The weights ``rng.multinomial(N, cells.probability)`` represent N random samples at a cost
    independent of N.

    Raises
    ------
    ParameterError
        If there are more than `MOST_CELLS`.
    """
    positive = _enumerated(problem, ordered=True)
    counts, queried, probability = (np.concatenate([x, x]) for x in positive)
    half = len(counts) // 2
    for array in (counts, queried):
        array[half:, [0, 1]] = array[half:, [1, 0]]
    labels = np.repeat([1.0, -1.0], half)
    return Cells(counts, labels, queried, probability / 2.0)


def representatives(problem: ShallowProblem) -> Cells:
    """Return the samples of label +1 up to permutations of the irrelevant patterns.

    Raises
    ------
    ParameterError
        If there are more than `MOST_CELLS`.
    """
    counts, queried, probability = _enumerated(problem, ordered=False)
    return Cells(counts, np.ones(len(counts)), queried, probability)


def _enumerated(problem: ShallowProblem, *, ordered: bool) -> tuple[np.ndarray, ...]:
    """Return counts, queried counts and probabilities of the samples of label +1.

    If not ``ordered``, samples that differ by a permutation of the irrelevant patterns are one row.
    """
    expected = cell_number(problem, ordered=ordered)
    require(
        expected * (2 if ordered else 1) <= MOST_CELLS,
        "L",
        problem.L,
        f"small enough for at most {MOST_CELLS:g} cells (here {expected:.2g})",
    )
    rows = []
    for irrelevant, probability in _irrelevant(problem, ordered):
        counts = (problem.relevant, problem.confusion, *irrelevant)
        for queried, conditional in _queried(counts, problem):
            rows.append((counts, queried, probability * conditional))
    return tuple(np.array(column) for column in zip(*rows))


def cell_number(problem: ShallowProblem, *, ordered: bool = False) -> int:
    """Return the number of cells of label +1 without enumerating them.

    It is an upper bound if a part of the tokens is queried. Numbers above 10^18 are returned as
    10^18.
    """
    parts, total = problem.M - 2, problem.irrelevant
    if problem.background == "single":
        number = parts if ordered else 1
    elif ordered:
        number = math.comb(total + parts - 1, parts - 1)
    else:
        number = _partition_number(total, parts)
    if problem.queried in (None, problem.L):
        return number
    # upper bound: the ways to distribute the queried tokens of a cell over M patterns
    most = math.comb(problem.queried + problem.M - 1, problem.M - 1)
    return min(number * most, 10**18)


def _partition_number(total: int, parts: int) -> int:
    """Return the number of partitions of ``total`` into at most ``parts`` parts, at most 10^18."""
    ways = [1] + [0] * total
    for part in range(1, min(parts, total) + 1):
        for n in range(part, total + 1):
            ways[n] = min(ways[n] + ways[n - part], 10**18)
    return ways[total]


def _irrelevant(problem: ShallowProblem, ordered: bool) -> Iterator[tuple[tuple[int, ...], float]]:
    """Yield counts of the irrelevant patterns and their probability.

    If not ``ordered``, yield nonincreasing counts only, with the probability of all permutations.
    """
    parts, total = problem.M - 2, problem.irrelevant
    if problem.background == "single":
        for pattern in range(parts if ordered else 1):
            yield tuple(total * (k == pattern) for k in range(parts)), (1.0 / parts) ** ordered
        return
    for counts in _compositions(total, parts, ordered, total):
        ways = math.factorial(total)
        for k in counts:
            ways //= math.factorial(k)
        if not ordered:
            ways *= math.factorial(parts)
            for k in set(counts):
                ways //= math.factorial(counts.count(k))
        yield counts, ways / parts**total


def _compositions(total: int, parts: int, ordered: bool, largest: int) -> Iterator[tuple[int, ...]]:
    """Yield tuples of ``parts`` counts, at most ``largest``, with the sum ``total``.

    If not ``ordered``, yield nonincreasing tuples only.
    """
    if parts == 1:
        yield (total,)
        return
    least = 0 if ordered else -(-total // parts)
    for first in range(min(total, largest), least - 1, -1):
        for rest in _compositions(total - first, parts - 1, ordered, total if ordered else first):
            yield (first, *rest)


def _queried(
    counts: tuple[int, ...], problem: ShallowProblem
) -> Iterator[tuple[tuple[int, ...], float]]:
    """Yield queried counts and their (multivariate hypergeometric) probability given the counts."""
    if problem.queried in (None, problem.L):
        yield counts, 1.0
        return
    ways = math.comb(problem.L, problem.queried)
    for head in product(*(range(k + 1) for k in counts[:-1])):
        last = problem.queried - sum(head)
        if 0 <= last <= counts[-1]:
            queried = (*head, last)
            yield queried, math.prod(map(math.comb, counts, queried)) / ways
