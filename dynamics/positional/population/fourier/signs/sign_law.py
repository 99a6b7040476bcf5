"""Multisets that are enumerated for the signs, and the probability that is left out.

These are functions of D, C and q alone. *Crowded sets*: only the multisets of crowded types are
enumerated, and lone patches have a distribution in closed form; *halves*: see
:mod:`dynamics.positional.population.fourier.signs.halves`. Both use a tree pruned by probability
(notebook ``fourier_method``, Section 7).
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from dynamics.positional.population.fourier.errors import UNIT
from dynamics.positional.population.fourier.set_law import SetLaw, set_law
from dynamics.positional.population.fourier.signs.halves import Halves, halves_law
from dynamics.positional.population.fourier.signs.multisets import multisets
from dynamics.positional.population.fourier.signs.power_sums import symmetric_probability
from dynamics.positional.problem import Problem

#: A remainder below this, or below the tolerance, is accepted without another enumeration.
ENOUGH = 1e-7

#: Largest number of multisets of crowded sets.
_MOST_NODES = 400_000

#: Largest size of the table of lone patches; about six such arrays are made.
_MOST_NUMBERS = 10**7


class SignLaw(NamedTuple):
    """Multisets to enumerate for all |R| <= ``reach``; a function of D, C, q alone.

    Attributes
    ----------
    reach, tolerance
        Largest |R|, and the requested error.
    symmetric
        Probability of the multisets with F = 0 for all weights.
    accuracy
        Relative error of all enumerated probabilities.
    crowded, halves
        Multisets of one of the two algorithms; the other is ``None``.
    """

    reach: int
    tolerance: float
    symmetric: float
    accuracy: float
    crowded: CrowdedLaw | None
    halves: Halves | None


class CrowdedLaw(NamedTuple):
    """Multisets of crowded types, and the distribution of lone patches.

    Attributes
    ----------
    parent, last, number, total
        Nodes of the tree: the multiset without its last set, the type of that set, the number of
        sets, and the sum of their n.
    weight
        Probability that exactly these crowded sets occur.
    single
        Indices of the types (1, 0) and (0, 1), -1 if impossible.
    cumulative, offset
        ``cumulative[number, d + offset, j]`` is the probability, given ``number`` crowded sets, of
        ``d`` more lone +1 than lone -1 and fewer than ``j`` of the rarer.
    """

    parent: np.ndarray
    last: np.ndarray
    number: np.ndarray
    total: np.ndarray
    weight: np.ndarray
    single: np.ndarray
    cumulative: np.ndarray
    offset: int


@lru_cache(maxsize=2)
def sign_law(D: int, C: int, q: float, tolerance: float) -> SignLaw:
    """Return the multisets of the algorithm that leaves out less; crowded sets if that is enough.

    They are cached because problems of a sweep often have the same data.
    """
    law = set_law(Problem(D=D, C=C, q=q))
    reach = int(np.searchsorted(-law.log_tail, -math.log(0.01 * tolerance)))
    reach = min(reach, len(law.log_tail) - 1)
    crowded, left_out = _crowded_law(law, tolerance, reach)
    enough = max(ENOUGH, tolerance)
    symmetric = symmetric_probability(law)
    if left_out > enough:
        halves, left_out_of_halves = halves_law(law.L - 1, law, enough)
        if left_out_of_halves < left_out:
            most = max(int(half.number.max()) for half in halves)
            accuracy = _accuracy(law, 2 * most, max(law.log_p_empty, -690.0), 0.0)
            return SignLaw(reach, tolerance, symmetric, accuracy, None, halves)
    lone = crowded.cumulative.shape[2] + crowded.offset if crowded is not None else 0
    most = int(crowded.number.max()) if crowded is not None else 0
    accuracy = _accuracy(law, most, _log_not_crowded(law), 2.0 * lone)
    return SignLaw(reach, tolerance, symmetric, accuracy, crowded, None)


def _accuracy(law: SetLaw, most: int, log_other: float, lone: float) -> float:
    """Bound the relative error of the probability of a multiset, from the one of its logarithm.

    The logarithm is a sum: for each of ``most`` sets and ``lone`` lone patches, the logarithms of a
    probability, of a number of sets and of a factorial, and ``log_other`` or more for each other
    set.
    """
    sets = law.L - 1.0
    per_set = law.log_size + math.log(sets + 1.0) + math.log(most + lone + 2.0) + abs(log_other)
    others = sets * min(abs(log_other) + max(law.log_p_empty, -745.0) * -1.0, 745.0)
    if log_other < -600.0:
        others = 0.0  # no set can be empty, so that there are no other sets
    return UNIT * (64.0 + 16.0 * (most + lone) * per_set + 8.0 * (1.0 + law.log_size) * others)


def _crowded_law(law: SetLaw, tolerance: float, reach: int) -> tuple[CrowdedLaw | None, float]:
    """Return the tree for a remainder of about ``tolerance`` or the largest one, and the remainder.

    The tree is None if the table of lone patches is too large.
    """
    crowded = np.flatnonzero(law.plus + law.minus >= 2)
    crowded = crowded[np.argsort(-law.log_p[crowded], kind="stable")]
    log_other = _log_not_crowded(law)
    tree = multisets(
        law.log_p[crowded], law.n[crowded], law.L - 1, log_other, 0.2 * tolerance, _MOST_NODES
    )
    offset = reach + int(np.abs(tree.total).max())
    numbers = (tree.number.max() + 1.0) * (2.0 * offset + 1.0) * _width(law, log_other)
    if numbers > _MOST_NUMBERS:
        return None, math.inf
    built = CrowdedLaw(
        parent=tree.parent,
        last=crowded[tree.last],
        number=tree.number,
        total=tree.total,
        weight=tree.weight,
        single=np.array([_index(law, 1, 0), _index(law, 0, 1)]),
        cumulative=_lone_law(law, int(tree.number.max()), offset, log_other),
        offset=offset,
    )
    return built, 1.0 - float(tree.weight.sum())


def _index(law: SetLaw, plus: int, minus: int) -> int:
    """Return the index of a type, or -1."""
    indices = np.flatnonzero((law.plus == plus) & (law.minus == minus))
    return int(indices[0]) if len(indices) else -1


def _log_not_crowded(law: SetLaw) -> float:
    """Return the log-probability that a set is empty or has a lone patch.

    It is computed without cancellation because it is multiplied by up to D.
    """
    features = law.plus + law.minus
    crowded, lone = float(law.p[features > 1].sum()), float(law.p[features == 1].sum())
    return math.log1p(-crowded) if crowded < 0.5 else math.log(max(lone + law.p_empty, 1e-300))


def _lone_law(law: SetLaw, most: int, offset: int, log_other: float) -> np.ndarray:
    """Return the cumulative distribution of lone +1 and -1 among the sets that are not crowded."""
    log_lone = _log_lone(law, log_other)
    log_none = law.log_p_empty - log_other
    width = _width(law, log_other)
    j = np.arange(width)[None, :]
    d = np.abs(np.arange(-offset, offset + 1))[:, None]
    table = np.zeros((most + 1, 2 * offset + 1, width + 1))
    factorial = _sums_of_logs(np.arange(1, 2 * width + offset + 2))
    lone = 2 * j + d
    for k in range(most + 1):
        sets = law.L - 1 - k
        steps = np.arange(int(lone.max()))
        falling = _sums_of_logs(np.maximum(sets - steps, 1))
        logs = falling[lone] - factorial[j] - factorial[j + d]
        logs = logs + _times(lone, log_lone) + _times(np.maximum(sets - lone, 0), log_none)
        table[k, :, 1:] = np.cumsum(np.where(lone <= sets, np.exp(logs), 0.0), axis=1)
    return table


def _log_lone(law: SetLaw, log_other: float) -> float:
    """Return the log-probability of a lone +1 in a set that is not crowded."""
    single = _index(law, 1, 0)
    return float(law.log_p[single]) - log_other if single >= 0 else -math.inf


def _width(law: SetLaw, log_other: float) -> int:
    """Return the number of tabulated pairs of lone patches."""
    mean = (law.L - 1) * math.exp(_log_lone(law, log_other))
    return min((law.L - 1) // 2 + 1, int(mean + 12 * math.sqrt(mean) + 30))


def _sums_of_logs(numbers: np.ndarray) -> np.ndarray:
    """Return the sums of 0, 1, 2, ... logarithms, in extended precision where available."""
    logs = np.log(numbers).astype(np.longdouble)
    return np.concatenate([[0.0], np.cumsum(logs).astype(float)])


def _times(count: np.ndarray, log_p: float) -> np.ndarray:
    """Return count times log_p, with 0 times -inf = 0."""
    if log_p > -math.inf:
        return count * log_p
    return np.where(count > 0, -1e300, 0.0)
