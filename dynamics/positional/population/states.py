"""The random sets as data: types of a set, multisets of types, and their probabilities.

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

#: Beyond it the number of ways to fill a set exceeds a float.
LARGEST_SET = 500

#: Exceeds the absolute error of a weight that underflowed on the way.
UNDERFLOWN_WEIGHT = 1e-250


class StateTable(NamedTuple):
    """Weighted multisets of set types, sorted by the total sum T of all coefficients.

    State ``i`` has weight ``weight[i]`` and consists of ``copies[j]`` random sets of type
    ``kind[j]`` for ``start[i] <= j < start[i+1]``, the other random sets being empty. States
    ``offset[t] .. offset[t+1]`` share the sum ``total[t]`` (the signal set counts C).
    """

    plus: np.ndarray  # float (types,)
    minus: np.ndarray  # float (types,)
    total: np.ndarray  # float (sums,)
    offset: np.ndarray  # int64 (sums + 1,)
    weight: np.ndarray  # float (states,)
    start: np.ndarray  # int64 (states + 1,)
    kind: np.ndarray  # int32 (entries,)
    copies: np.ndarray  # float (entries,)

    @property
    def nbytes(self) -> int:
        """Memory held by the arrays."""
        return sum(part.nbytes for part in self)


def count_states(problem: Problem, limit: int) -> np.ndarray:
    """Return how many multisets have at most K features, for K = 0 .. limit (floats)."""
    sets = min(limit, problem.L - 1)
    counts = np.zeros((limit + 1, sets + 1))
    counts[0, 0] = 1.0
    for size in range(1, min(problem.C, limit) + 1):
        for _ in range(size + 1):  # the number of types (a, b) with a + b = size
            for k in range(size, limit + 1):
                counts[k, 1:] += counts[k - size, :-1]
    return np.cumsum(counts.sum(axis=1))


def enumerate_states(problem: Problem, K: int) -> StateTable:
    """Return every multiset with at most K features outside the signal set, exactly weighted."""
    types = set_types(problem)
    size = types.plus + types.minus
    n_states, n_entries = _walk(size, types.probability, problem.L - 1, K, *_buffers(0, 0))
    weight, sets, start, kind, count = _buffers(n_states, n_entries)
    _walk(size, types.probability, problem.L - 1, K, weight, sets, start, kind, count)
    if types.empty > 0.0:
        weight *= np.exp((problem.L - 1 - sets) * (problem.C * math.log1p(-problem.q)))
    else:
        weight *= sets == problem.L - 1
    return _sorted_table(problem, types, weight, start, kind, count)


def weight_error(problem: Problem, K: int) -> float:
    """Return a bound of the relative error of the weights of :func:`enumerate_states`.

    With the unit roundoff u and powers, exp, log1p within 4 ulp: (C + 24) u for the probability of
    a type, 3 u to multiply one in, and 10 u of the exponent for the empty sets. Weights that
    underflow on the way are off by at most `UNDERFLOWN_WEIGHT`.
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
    """Return ``samples`` independent images as weighted states.

    ``laws`` are further laws of one set (probabilities of the types, the empty one last); half of
    the images follow the data, the others one of these each, in equal parts. An image x weighs
    P(x) / (n M(x)), M the mixture of all laws in these parts: at most 2 / n.
    """
    types = set_types(problem)
    law = np.append(types.probability, types.empty)
    every = [law / law.sum(), *laws]
    parts = _parts(samples, len(laws))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.maximum(np.log(np.stack(every) / every[0]), -1e4)  # finite where a law is 0
    ratio[:, every[0] == 0.0] = 0.0
    rows, kinds, counts, weights, done = [], [], [], [], 0
    for part, chosen in zip(parts, every):
        chunk = max(1, 4_000_000 // law.size)
        for first in range(0, part, chunk):
            drawn = rng.multinomial(problem.L - 1, chosen, size=min(chunk, part - first))
            row, kind = np.nonzero(drawn[:, :-1])
            rows.append(row + done)
            kinds.append(kind)
            counts.append(drawn[row, kind])
            logs = drawn @ ratio.T + np.log(np.maximum(parts, 1e-300))
            weights.append(np.exp(-np.logaddexp.reduce(logs, axis=1)))
            done += drawn.shape[0]
    start = np.searchsorted(np.concatenate(rows), np.arange(samples + 1))
    kind, count = np.concatenate(kinds), np.concatenate(counts)
    return _sorted_table(problem, types, np.concatenate(weights), start, kind, count)


def _parts(samples: int, laws: int) -> list[int]:
    """Return how many images follow the data, and each of the other laws."""
    each = samples // (2 * laws) if laws else 0
    return [samples - laws * each, *[each] * laws]


def select_states(states: StateTable, keep: np.ndarray) -> StateTable:
    """Return the states marked in the boolean array ``keep``."""
    entries = np.repeat(keep, np.diff(states.start))
    sums = np.add.reduceat(keep.astype(np.int64), states.offset[:-1])
    return states._replace(
        total=states.total[sums > 0],
        offset=np.concatenate([[0], np.cumsum(sums[sums > 0])]),
        weight=states.weight[keep],
        start=np.concatenate([[0], np.cumsum(np.diff(states.start)[keep])]),
        kind=states.kind[entries],
        copies=states.copies[entries],
    )


def _buffers(n_states: int, n_entries: int) -> tuple[np.ndarray, ...]:
    return (
        np.empty(n_states),
        np.empty(n_states, np.int64),
        np.zeros(n_states + 1, np.int64),
        np.empty(n_entries, np.int32),
        np.empty(n_entries),
    )


@kernel
def _walk(size, probability, available, K, weight, sets, start, kind, count):
    """Depth-first walk over non-decreasing sequences of types; fills the arrays if they are long.

    Returns the number of states and of run-length encoded entries.
    """
    fill = weight.size > 0
    sequence = np.zeros(K + 1, np.int64)  # the types chosen so far
    run = np.zeros(K + 1, np.int64)  # how many equal types end the sequence here
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
                        kind[n_entries + runs] = sequence[i]
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
            entering = True  # and go on from the same candidate: it may repeat
        elif depth == 0:
            return n_states, n_entries
        else:  # types are sorted by size: nothing larger fits either
            depth -= 1
            candidate = sequence[depth] + 1


def _sorted_table(
    problem: Problem,
    types: SetTypes,
    weight: np.ndarray,
    start: np.ndarray,
    kind: np.ndarray,
    count: np.ndarray,
) -> StateTable:
    """Sort the states by their total sum T, so that each T is tabulated once and reused."""
    lengths = np.diff(start)
    charge = np.concatenate([[0], np.cumsum(count * (types.plus - types.minus)[kind])])
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
        kind=kind[entries].astype(np.int32),
        copies=count[entries].astype(float),
    )
