r"""Exponential tilting: Chernoff bounds and saddle points of many totals R at once.

Given ``R = r`` the ``L - 1`` random sets contribute independently to ``F``: a set of type
``(a, b)`` adds ``n = a - b`` to ``R`` and ``x(type; r)`` to ``F - base(r)``, where ``base`` is
``F`` of the signal set with all other sets empty. For real ``lam`` and ``u``

.. math:: E[e^{-\lambda F} 1\{R = r\}]
          \le e^{-\lambda\,base - u r} f^{L-1}, \qquad
          f = \sum_{type} P(type)\, e^{-\lambda x + u n},

because all coefficients are positive (Chernoff). The bound is smallest at the saddle point in
``u``, where the tilted mean of R is r. The same holds with a factor ``|dF|`` under the expectation.
Both bounds are log-convex in ``lam``, so the chord between two values of ``lam`` is also a bound
(notebook ``fourier_method``, Section 6). Totals are the lanes of vector instructions.
"""

import math
from typing import NamedTuple

import numpy as np

from dynamics.core.jit import REORDER, kernel

#: The tilts lam at which R is bounded; |F| beyond the window is controlled by their extremes.
TILTS = np.array([-1.0, -0.5, -0.25, -0.125, 0.0, 0.125, 0.25, 0.5, 1.0])

#: Index of the tilt 0. Tilts between -1/2 and 1/2 are used only if F has a large range.
UNTILTED = 4

#: Largest number of totals that are tilted together, and the length of a row of ``Tilting.rows``.
MAX_LANES = 80

#: Distance to the saddle point at which the search stops. At a tenth of a unit the logarithms of
#: the bounds are larger by the variance of R over 200 only.
_NEAR = 0.1

#: After this number of Newton steps every other step is a bisection.
_BISECTION_START = 8

#: The rows, at constant distances so that loops over several of them are vectorized.
TOP, U, MOVE, F, MEAN, SQUARE, Z, POWER, LOW, HIGH, BITS, R, STRIDE = range(13)

#: Rows that hold other results at the end of :func:`tilt_totals`.
EMPTY, VARIANCE = MEAN, SQUARE

#: ln 2 = _LN2_HIGH + _LN2_LOW; multiples of the first by integers up to 2^20 are exact.
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10


class Tilting(NamedTuple):
    """Work arrays of totals that are tilted together, one per lane.

    Attributes
    ----------
    lam
        Tilt of each lane (input).
    rows
        Rows of ``MAX_LANES`` entries. Input: R and a first guess of U. Output: U, TOP (the largest
        logarithm among the types), EMPTY (the tilted probability of an empty set) and VARIANCE (of
        n).
    level
        Sums of the tilted probabilities by ``n + C``, with the empty type.
    share
        Tilted probabilities by type.
    log_f
        Logarithm of f.
    factor
        Factor of the bound for each derivative, see :func:`weighted`.
    """

    lam: np.ndarray
    rows: np.ndarray
    level: np.ndarray
    share: np.ndarray
    log_f: np.ndarray
    factor: np.ndarray


@kernel(inner=True)
def allocate_tilting(law):
    """Return the work arrays for up to ``MAX_LANES`` totals."""
    return Tilting(
        np.zeros(MAX_LANES),
        np.zeros(13 * MAX_LANES),
        np.empty((2 * law.C + 1) * MAX_LANES),
        np.empty(len(law.n) * MAX_LANES),
        np.empty(MAX_LANES),
        np.empty((3, MAX_LANES)),
    )


@kernel(borrows=True, fastmath=frozenset({"contract"}))
def exponentials(values, scales):
    """Replace values by their exponentials, with errors of 2 u; about 1e-308 below -708."""
    for i in range(len(values)):
        v = min(max(values[i], -708.0), 709.0)
        k = math.floor(v * 1.4426950408889634 + 0.5)
        v = (v - k * _LN2_HIGH) - k * _LN2_LOW
        e = 1 / 479001600 + v * (1 / 6227020800)
        e = 1 / 39916800 + v * e
        e = 1 / 3628800 + v * e
        e = 1 / 362880 + v * e
        e = 1 / 40320 + v * e
        e = 1 / 5040 + v * e
        e = 1 / 720 + v * e
        e = 1 / 120 + v * e
        e = 1 / 24 + v * e
        e = 1 / 6 + v * e
        e = 0.5 + v * e
        e = 1 + v * e
        values[i] = 1 + v * e
        scales[i] = k + (2.0**52 + 1023.0)
    bits = scales.view(np.int64)  # k + 1023 in the lowest bits, moved to the exponent: 2^k
    for i in range(len(values)):
        bits[i] = bits[i] << 52
    for i in range(len(values)):
        values[i] *= scales[i]


@kernel(borrows=True)
def slack(law, log_f, shift):
    """Return a bound of the rounding error of ``sets log_f - shift``, the log of a Chernoff bound.

    Errors of the tilted probabilities change f by ``law.roundings`` times the probability of
    non-empty types, which is at most ``|log f| + |log P(empty)|``. Errors of ``lam x`` are part of
    the errors of the tables.
    """
    sets = law.L - 1.0
    return law.roundings * (1.0 + sets * (abs(log_f) - max(law.log_p_empty, -745.0)) + abs(shift))


@kernel(borrows=True, fastmath=REORDER)
def weighted(share, shift, size, at, base, sets, total):
    """Fill ``|base| + sets sum_type share |size|``, the factor of a bound due to |dF|.

    ``share`` is flat with rows of ``len(share) / len(size)`` entries, read from ``shift`` on;
    ``size`` and ``base`` are read from ``at`` on.
    """
    width = len(share) // len(size)
    for i in range(len(total)):
        total[i] = 0.0
    for k in range(len(size)):
        row, other = share[k * width + shift :], size[k, at:]
        for i in range(len(total)):
            total[i] += row[i] * abs(other[i])
    other = base[at:]
    for i in range(len(total)):
        total[i] = abs(other[i]) + sets * total[i]


@kernel(borrows=True, fastmath=REORDER)
def tilt_totals(at, lanes, law, x, tilting):
    """Tilt the totals ``at, at + 1, ...`` of ``x[type, total]`` by ``exp(-lam x + u n)``.

    ``u`` approaches the saddle point of R = r; see :class:`Tilting`. Lanes are padded to whole
    vectors of 8 with totals 0 that are not tilted, because single lanes take as long as a vector.
    """
    C, work, level, share, log_f = law.C, tilting.rows, tilting.level, tilting.share, tilting.log_f
    W, width = MAX_LANES, (lanes + 7) // 8 * 8
    for i in range(lanes, width):
        tilting.lam[i] = work[U * W + i] = work[R * W + i] = 0.0
    for i in range(width):
        work[STRIDE * W + i] = 0.0
    for attempt in range(40):
        _shares(at, lanes, width, law, x, tilting)
        _to_saddle(width, law.L - 1.0, C, work, level)
        far = 0.0
        for i in range(width):
            work[U * W + i] += work[MOVE * W + i]
            far = max(far, abs(work[MOVE * W + i]))
        if far < 100.0 / C or attempt == 39:
            break
        for i in range(width):  # strides double, since u is of the size of lam x
            move, before = work[MOVE * W + i], work[STRIDE * W + i]
            stride = 2.0 * before if before * move > 0.0 else move
            stride = stride if abs(move) >= 100.0 / C else 0.0
            work[STRIDE * W + i] = stride
            work[U * W + i] += stride - move if stride != 0.0 else 0.0
    for i in range(width):
        mean = work[MEAN * W + i] / work[F * W + i]
        work[VARIANCE * W + i] = work[SQUARE * W + i] / work[F * W + i] - mean * mean
        work[LOW * W + i] = 0.0
        work[POWER * W + i] = 1.0 / work[F * W + i]
        for _ in range(C):
            work[POWER * W + i] /= work[Z * W + i]
    for j in range(2 * C + 1):
        row = level[j * W :]
        for i in range(width):
            row[i] *= work[POWER * W + i]
        for k in range(len(law.level_index)):
            if law.level_index[k] == j:
                row = share[k * W :]
                for i in range(width):
                    row[i] *= work[POWER * W + i]
                    work[LOW * W + i] += row[i]
        for i in range(width):
            work[POWER * W + i] *= work[Z * W + i]
    for i in range(lanes):
        filled, f, top = work[LOW * W + i], work[F * W + i], work[TOP * W + i]
        # f is raised to powers up to D, so that its difference to the empty type must be accurate
        log_f[i] = law.log_p_empty - math.log1p(-filled) if filled < 0.5 else top + math.log(f)
        work[EMPTY * W + i] = math.exp(law.log_p_empty - top) / f


@kernel(borrows=True, fastmath=REORDER)
def _shares(at, lanes, width, law, x, tilting):
    """Fill ``share`` and ``level`` up to a factor, whose logarithm is stored in the row TOP.

    Lanes from ``lanes`` to ``width``, the padding, are not tilted.
    """
    C, W, log_p_empty, level_index = law.C, MAX_LANES, law.log_p_empty, law.level_index
    lam, work, level, share = tilting.lam, tilting.rows, tilting.level, tilting.share
    for i in range(width):
        work[TOP * W + i] = log_p_empty
    for k in range(len(level_index)):
        row, here = share[k * W :], x[k, at:]
        start, n = law.log_p[k], level_index[k] - 1.0 * C
        for i in range(lanes):
            row[i] = start - lam[i] * here[i] + work[U * W + i] * n
        for i in range(lanes, width):
            row[i] = start
        for i in range(width):
            work[TOP * W + i] = max(work[TOP * W + i], row[i])
    bits = work[BITS * W : BITS * W + width]
    for i in range(len(level)):
        level[i] = 0.0
    for i in range(width):
        level[C * W + i] = log_p_empty - work[TOP * W + i]
    exponentials(level[C * W : C * W + width], bits)
    for k in range(len(level_index)):
        row = share[k * W : k * W + width]
        for i in range(width):
            row[i] -= work[TOP * W + i]
        exponentials(row, bits)
        total = level[level_index[k] * W :]
        for i in range(width):
            total[i] += row[i]


@kernel(borrows=True, fastmath=REORDER)
def _to_saddle(lanes, sets, C, work, level):
    """Fill the changes of u, at most 200 / C, to near the saddle points, and the moments there.

    Newton steps within a bracket alternate with bisection if they oscillate.
    """
    W = MAX_LANES
    for i in range(lanes):
        work[MOVE * W + i] = 0.0
        work[LOW * W + i] = -200.0 / C
        work[HIGH * W + i] = 200.0 / C
    for step in range(31):
        _moments(lanes, C, work, level)
        if step == 30:
            break
        unfinished = 0.0
        for i in range(lanes):
            f, move = work[F * W + i], work[MOVE * W + i]
            mean = work[MEAN * W + i] / f
            deficit = work[R * W + i] - sets * mean
            variance = work[SQUARE * W + i] / f - mean * mean
            change = deficit / max(sets * variance, 1e-3)
            low = move if deficit > 0.0 else work[LOW * W + i]
            high = work[HIGH * W + i] if deficit > 0.0 else move
            new = move + change
            new = new if new > low else 0.5 * (low + high)
            new = new if new < high else 0.5 * (low + high)
            new = 0.5 * (low + high) if step >= _BISECTION_START and step % 2 == 0 else new
            near = abs(change) < _NEAR
            work[MOVE * W + i] = move if near else new
            work[LOW * W + i] = low
            work[HIGH * W + i] = high
            unfinished += 0.0 if near else 1.0
        if unfinished == 0.0:
            break


@kernel(borrows=True, fastmath=REORDER)
def _moments(lanes, C, work, level):
    """Fill e^move, and the sums over n of ``level e^(n move)`` times 1, n and n^2."""
    W = MAX_LANES
    for i in range(lanes):
        work[Z * W + i] = work[MOVE * W + i]
    exponentials(work[Z * W : Z * W + lanes], work[BITS * W : BITS * W + lanes])
    for i in range(lanes):
        work[POWER * W + i] = 1.0
        work[F * W + i] = work[MEAN * W + i] = work[SQUARE * W + i] = 0.0
        work[BITS * W + i] = 1.0 / work[Z * W + i]
    for _ in range(C):
        for i in range(lanes):
            work[POWER * W + i] *= work[BITS * W + i]
    for j in range(2 * C + 1):
        row, n = level[j * W :], j - 1.0 * C
        for i in range(lanes):
            term = row[i] * work[POWER * W + i]
            work[F * W + i] += term
            work[MEAN * W + i] += n * term
            work[SQUARE * W + i] += n * n * term
            work[POWER * W + i] *= work[Z * W + i]
