"""All multisets of types of random sets, with weights for sums in Bernstein form in q."""

import math
from typing import NamedTuple

import numpy as np

from dynamics.positional.population.states import enumerate_states
from dynamics.positional.problem import Problem
from dynamics.positional.validated.images import features_and_totals, patterns, require_complete


class AllImages(NamedTuple):
    """All multisets of types of random sets, without q.

    Attributes
    ----------
    plus, minus
        Numbers of +1 and -1 of each type, empty sets included, float (types,).
    features, total
        Number of features outside the signal set, and sum T, of each state, int64 (states,).
    weight
        Contribution of each state to its Bernstein coefficient, float (states,).
    start, type_index, copies
        State i has ``copies[j]`` sets of type ``type_index[j]``, start[i] <= j < start[i + 1].
    """

    plus: np.ndarray
    minus: np.ndarray
    features: np.ndarray
    total: np.ndarray
    weight: np.ndarray
    start: np.ndarray
    type_index: np.ndarray
    copies: np.ndarray


def all_images(problem: Problem) -> AllImages:
    """Return all multisets, and verify that none is missing; q is not used."""
    N, others = problem.D - problem.C, problem.L - 1
    table = enumerate_states(problem, N)
    features, total = features_and_totals(problem, table)
    counts = patterns(problem, table)
    require_complete(problem, N, table, features, counts)
    weight = [n / (2**k * math.comb(N, k)) for n, k in zip(counts, features.tolist())]
    start, types, copies = [0], list[int](), list[float]()
    for first, last in zip(table.start, table.start[1:]):
        own = table.copies[first:last].tolist()
        types += [*table.type_index[first:last].tolist(), table.plus.size]
        copies += [*own, others - sum(own)]
        start.append(len(types))
    return AllImages(
        np.append(table.plus, 0.0),
        np.append(table.minus, 0.0),
        features,
        total,
        np.array(weight),
        np.array(start),
        np.array(types),
        np.array(copies),
    )
