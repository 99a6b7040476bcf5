r"""How signs are counted: which multisets are enumerated, and what that leaves out.

A function of D, C and q alone. *Crowded sets*: only the multisets of crowded types are enumerated,
and lone patches have a law in closed form; *halves*: see
:mod:`dynamics.positional.population.fourier.signs.halves`. Either in a tree pruned by probability
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

#: A remainder below this, or below the tolerance, is not worth another enumeration.
ENOUGH = 1e-7

#: Multisets of crowded sets beyond these are left out.
_MOST_NODES = 400_000

#: Numbers in the table of lone patches; some six such arrays are made.
_MOST_NUMBERS = 10**7


class SignLaw(NamedTuple):
    """How signs are counted, for all |R| <= ``reach``; a function of D, C, q alone.

    ``symmetric``: the probability of the multisets that tie whatever the weights; ``accuracy``: the
    relative error of all enumerated probabilities.
    """

    reach: int
    tolerance: float
    symmetric: float
    accuracy: float
    crowded: CrowdedLaw | None
    halves: Halves | None


class CrowdedLaw(NamedTuple):
    """Multisets of crowded types, and the law of the lone ones.

    The tree has one node per multiset: ``parent`` (the multiset without its last set), ``last``
    (type of that set), ``number`` (of its sets), ``total`` (sum of their n) and ``weight``, the
    probability that exactly these crowded sets occur. ``single`` are the indices of types (1, 0)
    and (0, 1), -1 if impossible. ``cumulative[number, d + offset, j]`` is the probability, given
    ``number`` crowded sets, of ``d`` more lone +1 than lone -1 and fewer than ``j`` of the rarer.
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
    """Enumerate along the road that leaves out less; crowded sets if that is little enough.

    Kept for the next problem: those of a grid often differ in what the model alone knows.
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


def _accuracy(law: SetLaw, most: int, log_keep: float, lone: float) -> float:
    """Bound the relative error of the probability of a multiset, from that of its logarithm.

    It adds up, for each of ``most`` sets and ``lone`` lone patches, the logarithms of a
    probability, of a number of sets and of a factorial, and ``log_keep`` or more for each other.
    """
    sets = law.L - 1.0
    each = law.log_size + math.log(sets + 1.0) + math.log(most + lone + 2.0) + abs(log_keep)
    others = sets * min(abs(log_keep) + max(law.log_p_empty, -745.0) * -1.0, 745.0)
    if log_keep < -600.0:
        others = 0.0  # no set can be empty: nothing is added up for others
    return UNIT * (64.0 + 16.0 * (most + lone) * each + 8.0 * (1.0 + law.log_size) * others)


def _crowded_law(law: SetLaw, tolerance: float, reach: int) -> tuple[CrowdedLaw | None, float]:
    """Build the tree for a remainder of about ``tolerance``, or the largest tree allowed.

    Returns it with its remainder; None where the table of lone patches is too large.
    """
    crowded = np.flatnonzero(law.plus + law.minus >= 2)
    crowded = crowded[np.argsort(-law.log_p[crowded], kind="stable")]
    log_keep = _log_not_crowded(law)
    tree = multisets(
        law.log_p[crowded], law.n[crowded], law.L - 1, log_keep, 0.2 * tolerance, _MOST_NODES
    )
    offset = reach + int(np.abs(tree.total).max())
    numbers = (tree.number.max() + 1.0) * (2.0 * offset + 1.0) * _width(law, log_keep)
    if numbers > _MOST_NUMBERS:
        return None, math.inf
    built = CrowdedLaw(
        parent=tree.parent,
        last=crowded[tree.last],
        number=tree.number,
        total=tree.total,
        weight=tree.weight,
        single=np.array([_index(law, 1, 0), _index(law, 0, 1)]),
        cumulative=_lone_law(law, int(tree.number.max()), offset, log_keep),
        offset=offset,
    )
    return built, 1.0 - float(tree.weight.sum())


def _index(law: SetLaw, plus: int, minus: int) -> int:
    found = np.flatnonzero((law.plus == plus) & (law.minus == minus))
    return int(found[0]) if len(found) else -1


def _log_not_crowded(law: SetLaw) -> float:
    """Return the log-probability that a set is empty or holds a lone patch.

    It is multiplied by up to D: near 0 it must keep its digits.
    """
    many = law.plus + law.minus
    crowded, lone = float(law.p[many > 1].sum()), float(law.p[many == 1].sum())
    return math.log1p(-crowded) if crowded < 0.5 else math.log(max(lone + law.p_empty, 1e-300))


def _lone_law(law: SetLaw, most: int, offset: int, log_keep: float) -> np.ndarray:
    """Tabulate the cumulative law of lone +1 and lone -1 among the sets that are not crowded."""
    log_lone = _log_lone(law, log_keep)
    log_none = law.log_p_empty - log_keep
    width = _width(law, log_keep)
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


def _log_lone(law: SetLaw, log_keep: float) -> float:
    single = _index(law, 1, 0)
    return float(law.log_p[single]) - log_keep if single >= 0 else -math.inf


def _width(law: SetLaw, log_keep: float) -> int:
    """Return how many pairs of lone patches are tabulated."""
    mean = (law.L - 1) * math.exp(_log_lone(law, log_keep))
    return min((law.L - 1) // 2 + 1, int(mean + 12 * math.sqrt(mean) + 30))


def _sums_of_logs(numbers: np.ndarray) -> np.ndarray:
    """Return the sums of no, one, two, ... logarithms, with more digits where there are."""
    logs = np.log(numbers).astype(np.longdouble)
    return np.concatenate([[0.0], np.cumsum(logs).astype(float)])


def _times(count: np.ndarray, log_p: float) -> np.ndarray:
    if log_p > -math.inf:
        return count * log_p
    return np.where(count > 0, -1e300, 0.0)
