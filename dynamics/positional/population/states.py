"""Tables of images: multisets of types of random sets, and their probabilities.

By exchangeability the output F depends on an image only through how many random sets are of each
*type* (a, b) = (number of +1, number of -1). A :class:`StateTable` lists such multisets with their
weights, either all that have at most K features outside the signal set, or a random sample.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dynamics.core.jit import kernel
from dynamics.positional.problem import Problem
from dynamics.positional.random_sets import SetTypes, set_types

#: Largest C for which the number of arrangements of a set is a finite float.
LARGEST_SET = 500

#: Upper bound of the absolute error of a weight that underflowed during its computation.
UNDERFLOWN_WEIGHT = 1e-250


class StateTable(NamedTuple):
    """Weighted multisets of set types, sorted by the total sum T of all coefficients.

    State ``i`` has weight ``weight[i]`` and consists of ``copies[j]`` random sets of type
    ``type_index[j]`` for ``start[i] <= j < start[i+1]``; the other random sets are empty. The
    states ``offset[t] .. offset[t+1]`` have the sum ``total[t]``, to which the signal set
    contributes C.

    Attributes
    ----------
    plus, minus
        Numbers of +1 and -1 in each type, float (types,).
    total
        The values of T, float (sums,).
    offset
        First state of each sum, int64 (sums + 1,).
    weight
        Weight of each state, float (states,).
    start
        First entry of each state, int64 (states + 1,).
    type_index
        Index of a type, int32 (entries,).
    copies
        Number of sets of this type, float (entries,).
    """

    plus: np.ndarray
    minus: np.ndarray
    total: np.ndarray
    offset: np.ndarray
    weight: np.ndarray
    start: np.ndarray
    type_index: np.ndarray
    copies: np.ndarray

    @property
    def nbytes(self) -> int:
        """Memory of the arrays in bytes."""
        return sum(array.nbytes for array in self)


def count_states(problem: Problem, limit: int) -> np.ndarray:
    """Return the number of multisets with at most K features, K = 0 .. limit, float (limit + 1,).

    Parameters
    ----------
    problem
        Constants of the data.
    limit
        Largest number of features outside the signal set.
    """
    sets = min(limit, problem.L - 1)
    counts = np.zeros((limit + 1, sets + 1))
    counts[0, 0] = 1.0
    for size in range(1, min(problem.C, limit) + 1):
        for _ in range(size + 1):  # the number of types (a, b) with a + b = size
            for k in range(size, limit + 1):
                counts[k, 1:] += counts[k - size, :-1]
    return np.cumsum(counts.sum(axis=1))


def enumerate_states(problem: Problem, K: int) -> StateTable:
    """Return the table of all multisets with at most K features outside the signal set."""
    types = set_types(problem)
    size = types.plus + types.minus
    n_states, n_entries = _walk(size, types.probability, problem.L - 1, K, *_buffers(0, 0))
    weight, sets, start, type_index, count = _buffers(n_states, n_entries)
    _walk(size, types.probability, problem.L - 1, K, weight, sets, start, type_index, count)
    if types.empty > 0.0:
        weight *= np.exp((problem.L - 1 - sets) * (problem.C * math.log1p(-problem.q)))
    else:
        weight *= sets == problem.L - 1
    return _sorted_table(problem, types, weight, start, type_index, count)


def weight_error(problem: Problem, K: int) -> float:
    """Return a bound of the relative error of the weights of :func:`enumerate_states`.

    With the unit roundoff u and errors of powers, exp and log1p below 4 ulp, the probability of a
    type has the relative error (C + 24) u, each product adds 3 u, and the empty sets 10 u times the
    exponent. Weights that underflow have an absolute error of at most `UNDERFLOWN_WEIGHT`.
    """
    sets = min(K, problem.L - 1)
    empty = (problem.D - problem.C) * abs(math.log1p(-problem.q)) if problem.q < 1.0 else 0.0
    return (sets * (problem.C + 27.0) + 10.0 * min(empty, 750.0) + 9.0) * 2.0**-53


def sample_states(
    problem: Problem,
    samples: int,
    rng: np.random.Generator,
    laws: Sequence[np.ndarray] = (),
) -> StateTable:
    """Return independent random images as weighted states.

    Half of the images follow the data distribution P, the others the proposals in equal parts. The
    weight of an image x is P(x) / (n M(x)), at most 2 / n, where M is the mixture of P and the
    proposals.

    Parameters
    ----------
    problem
        Constants of the data.
    samples
        Number n of images.
    rng
        Random generator.
    laws
        Proposals: probabilities of the types of one set, the empty type last.
    """
    types = set_types(problem)
    law = np.append(types.probability, types.empty)
    mixture = [law / law.sum(), *laws]
    parts = _parts(samples, len(laws))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.maximum(np.log(np.stack(mixture) / mixture[0]), -1e4)  # finite where a law is 0
    ratio[:, mixture[0] == 0.0] = 0.0
    rows, indices, counts, weights, done = [], [], [], [], 0
    for part, component in zip(parts, mixture):
        chunk = max(1, 4_000_000 // law.size)
        for first in range(0, part, chunk):
            images = rng.multinomial(problem.L - 1, component, size=min(chunk, part - first))
            row, index = np.nonzero(images[:, :-1])
            rows.append(row + done)
            indices.append(index)
            counts.append(images[row, index])
            logs = images @ ratio.T + np.log(np.maximum(parts, 1e-300))
            weights.append(np.exp(-np.logaddexp.reduce(logs, axis=1)))
            done += images.shape[0]
    start = np.searchsorted(np.concatenate(rows), np.arange(samples + 1))
    index, count = np.concatenate(indices), np.concatenate(counts)
    return _sorted_table(problem, types, np.concatenate(weights), start, index, count)


def _parts(samples: int, laws: int) -> list[int]:
    """Return the numbers of images that follow the data distribution and each proposal."""
    size = samples // (2 * laws) if laws else 0
    return [samples - laws * size, *[size] * laws]


def select_states(states: StateTable, mask: np.ndarray) -> StateTable:
    """Return the states of a table selected by a boolean array (states,)."""
    entries = np.repeat(mask, np.diff(states.start))
    sums = np.add.reduceat(mask.astype(np.int64), states.offset[:-1])
    return states._replace(
        total=states.total[sums > 0],
        offset=np.concatenate([[0], np.cumsum(sums[sums > 0])]),
        weight=states.weight[mask],
        start=np.concatenate([[0], np.cumsum(np.diff(states.start)[mask])]),
        type_index=states.type_index[entries],
        copies=states.copies[entries],
    )


def _buffers(n_states: int, n_entries: int) -> tuple[np.ndarray, ...]:
    """Return the arrays that :func:`_walk` fills: weight, sets, start, type_index, count."""
    return (
        np.empty(n_states),
        np.empty(n_states, np.int64),
        np.zeros(n_states + 1, np.int64),
        np.empty(n_entries, np.int32),
        np.empty(n_entries),
    )


@kernel
def _walk(size, probability, available, K, weight, sets, start, type_index, count):
    """Visit all non-decreasing sequences of types depth-first; fill the arrays unless empty.

    Return the number of states and of run-length encoded entries.
    """
    fill = weight.size > 0
    sequence = np.zeros(K + 1, np.int64)  # the current sequence of types
    run = np.zeros(K + 1, np.int64)  # length of the run of equal types that ends here
    product = np.ones(K + 2)  # multinomial weight without the empty sets
    left = np.zeros(K + 2, np.int64)  # features still allowed
    left[0] = K
    depth, candidate = 0, 0
    n_states, n_entries = 0, 0
    entering = True
    while True:
        if entering:
            runs = 0
            for i in range(depth):
                if i + 1 == depth or sequence[i + 1] != sequence[i]:
                    if fill:
                        type_index[n_entries + runs] = sequence[i]
                        count[n_entries + runs] = run[i]
                    runs += 1
            n_entries += runs
            if fill:
                weight[n_states] = product[depth]
                sets[n_states] = depth
                start[n_states + 1] = n_entries
            n_states += 1
            entering = False
        if candidate < size.size and depth < available and size[candidate] <= left[depth]:
            repeats = depth > 0 and sequence[depth - 1] == candidate
            run[depth] = run[depth - 1] + 1 if repeats else 1
            sequence[depth] = candidate
            step = probability[candidate] * (available - depth) / run[depth]
            product[depth + 1] = product[depth] * step
            left[depth + 1] = left[depth] - size[candidate]
            depth += 1
            entering = True  # continue with the same candidate, which may repeat
        elif depth == 0:
            return n_states, n_entries
        else:  # types are sorted by size: larger ones do not fit either
            depth -= 1
            candidate = sequence[depth] + 1


def _sorted_table(
    problem: Problem,
    types: SetTypes,
    weight: np.ndarray,
    start: np.ndarray,
    type_index: np.ndarray,
    count: np.ndarray,
) -> StateTable:
    """Return the states sorted by their total sum T, so that each T is tabulated once."""
    lengths = np.diff(start)
    charge = np.concatenate([[0], np.cumsum(count * (types.plus - types.minus)[type_index])])
    totals = (problem.C + charge[start[1:]] - charge[start[:-1]]).astype(np.int64)
    order = np.argsort(totals, kind="stable")
    new_start = np.concatenate([[0], np.cumsum(lengths[order])])
    entries = np.arange(new_start[-1]) + np.repeat(
        start[:-1][order] - new_start[:-1], lengths[order]
    )
    unique, offset = np.unique(totals[order], return_index=True)
    return StateTable(
        plus=types.plus.astype(float),
        minus=types.minus.astype(float),
        total=unique.astype(float),
        offset=np.append(offset, order.size).astype(np.int64),
        weight=weight[order],
        start=new_start.astype(np.int64),
        type_index=type_index[entries].astype(np.int32),
        copies=count[entries].astype(float),
    )
