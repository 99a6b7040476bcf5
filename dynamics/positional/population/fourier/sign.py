r"""Test error P[F <= 0] and ties P[F = 0] by counting, with a certified remainder.

No smoothing resolves the sign of a discrete ``F`` (a band-limited majorant of the step leaves the
density of ``F`` over its bandwidth, some 1e-4 for the 1e4 nodes that one could afford), so the
signs are counted, for every total ``R`` for which they are not certain by Chernoff bounds, along
one of two roads; of each the probability that was not enumerated is known and bounds the error.
Only sums of powers are added up (:mod:`dynamics.positional.population.fourier.powers`), with their
errors; where they leave the sign open and no symmetry decides it, the probability goes into the
bound.

*Crowded sets.* Given ``R = r``, sets with a single +1 or a single -1 are summed in closed form: if
``j`` sets hold a lone -1 then ``j + r - n`` hold a lone +1 (``n`` the sum over all other sets), and
``F`` is linear in ``j``, so ``P[F <= 0]`` is a value of a cumulative sum tabulated once. Only the
multisets of the other ("crowded") types are enumerated, in a tree pruned by probability; they
become rare as D grows at fixed q D.

*Halves* (:mod:`dynamics.positional.population.fourier.halves`). Many features in few sets leave no
type rare. There each half of the sets is enumerated, and the two are joined by sorting.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from dynamics.core.jit import kernel
from dynamics.positional.population.fourier.halves import Halves, count_by_halves, halves_law
from dynamics.positional.population.fourier.multisets import multisets
from dynamics.positional.population.fourier.plan import SetLaw, set_law, slack, tilt
from dynamics.positional.population.fourier.powers import power_tables, symmetric_probability
from dynamics.positional.population.fourier.rounding import MARGIN, UNIT
from dynamics.positional.problem import Problem

#: A remainder below this, or below the tolerance, is not worth another enumeration.
ENOUGH = 1e-7

#: Multisets of crowded sets beyond these are left out.
_MOST_NODES = 400_000

#: Numbers in the table of lone patches; some six such arrays are made.
_MOST_NUMBERS = 10**7

#: Pairs of a total and a multiset that are visited at most: some ten seconds.
_MOST_VISITS = 5 * 10**8


class Signs(NamedTuple):
    """P[F <= 0] and P[F = 0], and the absolute errors of either."""

    error: float
    ties: float
    error_bound: float
    ties_bound: float


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
    problem = Problem(D=D, C=C, q=q)
    law = set_law(problem)
    reach = int(np.searchsorted(-law.log_tail, -math.log(0.01 * tolerance)))
    reach = min(reach, len(law.log_tail) - 1)
    crowded, left_out = _crowded_law(problem, law, tolerance, reach)
    enough = max(ENOUGH, tolerance)
    symmetric = symmetric_probability(
        law.plus, law.minus, law.p, law.p_empty, problem.L - 1, problem.C
    )
    if left_out > enough:
        halves, left_out_of_halves = halves_law(problem.L - 1, law, enough)
        if left_out_of_halves < left_out:
            most = max(int(half.number.max()) for half in halves)
            accuracy = _accuracy(problem, law, 2 * most, max(law.log_p_empty, -690.0), 0.0)
            return SignLaw(reach, tolerance, symmetric, accuracy, None, halves)
    lone = crowded.cumulative.shape[2] + crowded.offset if crowded is not None else 0
    most = int(crowded.number.max()) if crowded is not None else 0
    accuracy = _accuracy(problem, law, most, _log_not_crowded(law), 2.0 * lone)
    return SignLaw(reach, tolerance, symmetric, accuracy, crowded, None)


def _accuracy(problem: Problem, law: SetLaw, most: int, log_keep: float, lone: float) -> float:
    """Bound the relative error of the probability of a multiset, from that of its logarithm.

    It adds up, for each of ``most`` sets and ``lone`` lone patches, the logarithms of a
    probability, of a number of sets and of a factorial, and ``log_keep`` or more for each other.
    """
    sets = problem.L - 1.0
    each = law.log_size + math.log(sets + 1.0) + math.log(most + lone + 2.0) + abs(log_keep)
    others = sets * min(abs(log_keep) + max(law.log_p_empty, -745.0) * -1.0, 745.0)
    if log_keep < -600.0:
        others = 0.0  # no set can be empty: nothing is added up for others
    return UNIT * (64.0 + 16.0 * (most + lone) * each + 8.0 * (1.0 + law.log_size) * others)


def _crowded_law(
    problem: Problem, law: SetLaw, tolerance: float, reach: int
) -> tuple[CrowdedLaw | None, float]:
    """Build the tree for a remainder of about ``tolerance``, or the largest tree allowed.

    Returns it with its remainder; None where the table of lone patches is too large.
    """
    crowded = np.flatnonzero(law.plus + law.minus >= 2)
    crowded = crowded[np.argsort(-law.p[crowded], kind="stable")]
    log_keep = _log_not_crowded(law)
    tree = multisets(
        law.p[crowded], law.n[crowded], problem.L - 1, log_keep, 0.2 * tolerance, _MOST_NODES
    )
    offset = reach + int(np.abs(tree.total).max())
    numbers = (tree.number.max() + 1.0) * (2.0 * offset + 1.0) * _width(problem, law, log_keep)
    if numbers > _MOST_NUMBERS:
        return None, math.inf
    built = CrowdedLaw(
        parent=tree.parent,
        last=crowded[tree.last],
        number=tree.number,
        total=tree.total,
        weight=tree.weight,
        single=np.array([_index(law, 1, 0), _index(law, 0, 1)]),
        cumulative=_lone_law(problem, law, int(tree.number.max()), offset, log_keep),
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


def _lone_law(problem: Problem, law: SetLaw, most: int, offset: int, log_keep: float) -> np.ndarray:
    """Tabulate the cumulative law of lone +1 and lone -1 among the sets that are not crowded."""
    log_lone = _log_lone(law, log_keep)
    log_none = law.log_p_empty - log_keep
    width = _width(problem, law, log_keep)
    j = np.arange(width)[None, :]
    d = np.abs(np.arange(-offset, offset + 1))[:, None]
    table = np.zeros((most + 1, 2 * offset + 1, width + 1))
    factorial = _sums_of_logs(np.arange(1, 2 * width + offset + 2))
    lone = 2 * j + d
    for k in range(most + 1):
        sets = problem.L - 1 - k
        steps = np.arange(int(lone.max()))
        falling = _sums_of_logs(np.maximum(sets - steps, 1))
        logs = falling[lone] - factorial[j] - factorial[j + d]
        logs = logs + _times(lone, log_lone) + _times(np.maximum(sets - lone, 0), log_none)
        table[k, :, 1:] = np.cumsum(np.where(lone <= sets, np.exp(logs), 0.0), axis=1)
    return table


def _log_lone(law: SetLaw, log_keep: float) -> float:
    single = _index(law, 1, 0)
    return float(law.log_p[single]) - log_keep if single >= 0 else -math.inf


def _width(problem: Problem, law: SetLaw, log_keep: float) -> int:
    """Return how many pairs of lone patches are tabulated."""
    mean = (problem.L - 1) * math.exp(_log_lone(law, log_keep))
    return min((problem.L - 1) // 2 + 1, int(mean + 12 * math.sqrt(mean) + 30))


def _sums_of_logs(numbers: np.ndarray) -> np.ndarray:
    """Return the sums of no, one, two, ... logarithms, with more digits where there are."""
    logs = np.log(numbers).astype(np.longdouble)
    return np.concatenate([[0.0], np.cumsum(logs).astype(float)])


def _times(count: np.ndarray, log_p: float) -> np.ndarray:
    if log_p > -math.inf:
        return count * log_p
    return np.where(count > 0, -1e300, 0.0)


def sign_probabilities(
    law: SetLaw,
    signs: SignLaw,
    C: int,
    L: int,
    constants: tuple[float, ...],
    blur: tuple[float, ...],
    power: int,
    turned: bool,
) -> Signs:
    """Return P[F <= 0] and P[F = 0] with bounds of their errors.

    ``blur``: the errors of the attention weights among the constants; ``turned``: beta = rho.
    """
    if constants[0] == 0.0:
        return Signs(1.0, 1.0, 0.0, 0.0)
    totals, base, x, dbase, dx, wrong, missing = undecided(
        law, signs.reach, signs.tolerance, C, L, constants, blur, power, turned
    )
    (low, high, found), nodes = _counted(signs, totals, base, x, dbase, dx, L)
    here = law.total[law.center + totals]
    left = np.maximum(0.0, here - found)
    share = np.divide(high, found, out=np.full(len(found), 0.5), where=found > 0.0)
    tied = np.zeros(len(totals))
    balanced = totals == -C
    if dx[balanced].any():
        tied[balanced] = np.minimum(signs.symmetric, here[balanced])
    elif not x[balanced].any():  # gamma = rho: all of T = 0 ties, enumerated or not
        tied[balanced] = high[balanced] = here[balanced]
        low[balanced] = left[balanced] = 0.0
    else:
        tied[balanced] = (high - low)[balanced]
    open_ = np.maximum(0.0, high - low - tied)
    noise = len(law.log_tail) * law.noise + missing
    noise += (signs.accuracy + law.accuracy + (256 + nodes) * UNIT) * float(np.sum(here) + wrong)
    error = wrong + float(np.sum(low + tied + 0.5 * open_ + left * share))
    below = float(np.sum(0.5 * open_ + left * share))
    above = float(np.sum(0.5 * open_ + left * (1.0 - share)))
    return Signs(
        error,
        float(np.sum(tied)),
        MARGIN * (max(below, above) + noise),
        MARGIN * (float(np.sum(open_ + left)) + noise),
    )


def _counted(
    signs: SignLaw, totals: np.ndarray, base: np.ndarray, x: np.ndarray, dbase: np.ndarray,
    dx: np.ndarray, L: int,
) -> tuple[np.ndarray, int]:  # fmt: skip
    """Count along the chosen road; nothing where it is too long, and the bounds say so."""
    trees = signs.halves if signs.crowded is None else (signs.crowded,)
    nodes = sum(len(tree.weight) for tree in trees or ())
    if len(totals) * nodes > _MOST_VISITS:
        return np.zeros((3, len(totals))), nodes
    if signs.crowded is not None:
        return count_by_crowded(totals, base, x, dbase, dx, signs.crowded), nodes
    assert signs.halves is not None
    return count_by_halves(totals, base, x, dbase, dx, signs.halves.a, signs.halves.b, L), nodes


@kernel
def undecided(law, reach, tolerance, C, L, constants, blur, power, turned):
    """Decide the sign for every R that Chernoff bounds can decide.

    Returns the others with their tables ``base`` and ``x`` and the errors of these, P[F <= 0] over
    the decided ones, and the probability by which that may be wrong.
    """
    types = len(law.n)
    x, dx = np.empty((2 * reach + 1, types)), np.empty((2 * reach + 1, types))
    bases, totals = np.empty((2, 2 * reach + 1)), np.empty(2 * reach + 1, np.int64)
    rows, scratch = np.empty((2, 3, 2 * C + 1)), np.empty((2, 2 * C + 1))
    share = np.empty(types)
    wrong, missing, left = 0.0, 0.0, 0
    if reach + 1 < len(law.log_tail):
        missing = math.exp(law.log_tail[reach + 1])
    cut = math.log(0.1 * tolerance / (2 * reach + 1))
    for r in range(-reach, reach + 1):
        base, error = power_tables(
            r, law.plus, law.minus, law.level, L, C, constants, blur, power, turned, rows, x[left],
            dx[left],
        )  # fmt: skip
        largest = error
        for k in range(types):
            largest = max(largest, error + (L - 1.0) * dx[left, k])
        here = law.total[law.center + r]
        log_p = law.log_probability[len(law.log_tail) - 1 + r]
        positive = negative = 0.0
        for side in range(2):
            bound = _sure(
                0.25 - 0.5 * side, cut - 40.0, r, law.blur, law.log_p, law.log_p_empty, law.level,
                L - 1.0, C, base, largest, x[left], share, scratch[0], scratch[1],
            )  # fmt: skip
            if side == 0:
                positive = bound
            else:
                negative = bound
        if min(log_p, positive, negative) < cut:
            missing += math.exp(log_p if log_p < cut else positive if positive < cut else negative)
            wrong += here if min(log_p, positive) >= cut else 0.0
            continue
        totals[left], bases[0, left], bases[1, left] = r, base, error
        left += 1
    return totals[:left], bases[0, :left], x[:left], bases[1, :left], dx[:left], wrong, missing


@kernel
def count_by_crowded(totals, bases, x, dbases, dx, signs):
    """Return P[F < 0, R = r], P[F <= 0, R = r] and the probability enumerated, for each total.

    What may be on either side within the errors ``dbases, dx`` of the tables counts as the second.
    """
    counted, partial = np.empty((3, len(totals))), np.empty(len(signs.parent))
    for i in range(len(totals)):
        counted[0, i], counted[1, i], counted[2, i] = _count_signs(
            totals[i], signs, bases[i], x[i], dbases[i], dx[i], partial
        )
    return counted


@kernel(inner=True)
def _sure(
    lam, enough, r, blur, log_p, log_p_empty, of_type, sets, C, base, error, x, share, level, rise
):  # fmt: skip
    """Bound log P[F <= 0, R = r] by Chernoff with lam, 2 lam, ...; for lam < 0 log P[F >= 0].

    Stops at a bound below ``enough``. ``error``: how far the tables may be off for any multiset.
    """
    best = u = 0.0
    for _ in range(48):
        u, log_f, _, _ = tilt(
            lam, r, log_p, log_p_empty, of_type, sets, C, x, u, share, level, rise
        )
        bound = -lam * base + sets * log_f - r * u + abs(lam) * error
        bound += slack(blur, sets, log_f, log_p_empty, r * u)
        if not bound < best:
            break
        best = bound
        if best < enough:
            break
        lam *= 2.0
    return best


@kernel(inner=True)
def _count_signs(r, signs, base, x, dbase, dx, partial):
    """Return P[F < 0, R = r], P[F <= 0, R = r] and the probability enumerated.

    With j pairs of lone patches F is ``start + j slope`` within ``near + j wide``.
    """
    lone, of_lone = np.zeros(2), 0.0
    largest = error = 0.0
    for k in range(len(x)):
        largest, error = max(largest, abs(x[k])), max(error, dx[k])
    for side in range(2):
        if signs.single[side] >= 0:
            lone[side] = x[signs.single[side]]
            of_lone = max(of_lone, dx[signs.single[side]])
    slope = lone[0] + lone[1]
    wide = 2.0 * of_lone + 4.0 * UNIT * (abs(lone[0]) + abs(lone[1]))
    width = signs.cumulative.shape[2] - 1
    low = high = found = 0.0
    for node in range(len(partial)):
        if node == 0:
            partial[0] = base
        else:
            partial[node] = partial[signs.parent[node]] + x[signs.last[node]]
        d = r - signs.total[node]
        if abs(d) > signs.offset:
            continue
        table = signs.cumulative[signs.number[node], d + signs.offset]
        weight, number = signs.weight[node], signs.number[node]
        start = partial[node] + (d * lone[0] if d > 0 else -d * lone[1])
        size = abs(base) + number * largest + abs(d) * max(abs(lone[0]), abs(lone[1]))
        near = dbase + number * error + abs(d) * of_lone + UNIT * (number + 8.0) * size
        high += weight * _at_most(near - start, slope - wide, table, width)
        low += weight * _at_most(-near - start, slope + wide, table, width)
        found += weight * table[width]
    return low, high, found


@kernel(inner=True)
def _at_most(rest, slope, table, width):
    """Return the probability that ``j slope <= rest``."""
    if slope > 0:
        edge = rest / slope
        return 0.0 if edge < 0 else table[min(width, int(min(edge, 1e9)) + 1)]
    if slope < 0:
        edge = rest / slope
        return (
            table[width]
            if edge <= 0
            else table[width] - table[min(width, math.ceil(min(edge, 1e9)))]
        )
    return table[width] if rest >= 0 else 0.0
