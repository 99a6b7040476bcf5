r"""The plan for many totals R at once: tables of the sets and saddle points, with R along vectors.

Tilting is the same as ``plan.tilt`` for one total; the last axis counts the totals.
"""

from __future__ import annotations

import math

import numpy as np

from dynamics.core.jit import REORDER, kernel
from dynamics.positional._emitted import row_gradient

#: Most totals that are tilted together, and the length of a row of ``work``.
MANY = 80

#: Distance to the saddle point at which the search stops, as in ``plan``.
_NEAR = 0.1

#: Rows of ``work``, at constant distances so that loops over several of them are vectorised.
TOP, U, MOVE, F, MEAN, SQUARE, Z, POWER, LOW, HIGH, BITS, R = range(12)
WORK = 12 * MANY

#: Rows of ``work`` that hold other results at the end of :func:`tilt_totals`.
EMPTY, VARIANCE = MEAN, SQUARE

#: ln 2 = _LN2_HIGH + _LN2_LOW; multiples of the first by integers up to 2^20 are exact.
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10


@kernel(inner=True, fastmath=frozenset({"contract"}))
def exponentials(values, scales):
    """Replace values by their exponentials, good to 2 u; below -708 they stay at about 1e-308."""
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


@kernel(inner=True)
def tables(first, plus, minus, level, L, C, constants, power_p, x, y, base):
    """Fill ``x[type]`` and ``y[3, type]``, the contributions of a set to F and dF given R.

    Contributions are in excess of an empty set. ``base[5]``: F and its three derivatives of the
    signal set with L - 1 empty sets, and 1.
    """
    count = x.shape[1]
    rows, empty = np.empty((4, count)), np.empty((4, count))
    _patch(0, 0, first, C, constants, power_p, empty)
    for j in range(4):
        for i in range(count):
            base[j, i] = (L - 1.0) * C * empty[j, i]
    for i in range(count):
        base[4, i] = 1.0
        empty[2, i] = empty[3, i] = 0.0  # no attention derivatives in excess
    x[:] = 0.0
    y[:] = 0.0
    for s in range(-1, 2):
        for n in range(max(s + 1 - C, -C), min(s + C - 1, C) + 1):
            _patch(s, n, first, C, constants, power_p, rows)
            if s == 1 and n == C:
                for j in range(4):
                    _add(float(C), rows[j], base[j])
            for j in range(4):
                _add(-1.0, empty[j], rows[j])
            for k in range(len(level)):
                if level[k] != n + C:
                    continue
                many = plus[k] if s == 1 else minus[k] if s == -1 else C - plus[k] - minus[k]
                if many > 0.0:
                    _add(many, rows[0], x[k])
                    for j in range(3):
                        _add(many, rows[1 + j], y[j, k])


@kernel(inner=True, fastmath=REORDER)
def _add(factor, row, target):
    for i in range(len(row)):
        target[i] += factor * row[i]


@kernel(inner=True)
def _patch(s, n, first, C, constants, power_p, rows):
    """Fill the activation of a patch and its derivatives for T = C + first, C + first + 1, ..."""
    alpha, Lambda, Gamma, Xi, LG, GX, D, kappa, tau, nu = constants
    F, F_alpha, F_gamma, F_rho = rows[0], rows[1], rows[2], rows[3]
    if power_p == 3:  # vectorised once the power is known to the compiler
        for i in range(len(F)):
            F[i], F_alpha[i], F_gamma[i], F_rho[i] = row_gradient(
                1.0 * s, 1.0 * n, first + i + 1.0 * C, alpha, Lambda, Gamma, Xi, LG, GX, C, D,
                kappa, tau, 3, nu,
            )  # fmt: skip
    else:
        for i in range(len(F)):
            F[i], F_alpha[i], F_gamma[i], F_rho[i] = row_gradient(
                1.0 * s, 1.0 * n, first + i + 1.0 * C, alpha, Lambda, Gamma, Xi, LG, GX, C, D,
                kappa, tau, power_p, nu,
            )  # fmt: skip


@kernel(inner=True, fastmath=REORDER)
def weighted(share, shift, size, at, base, sets, total):
    """Fill ``|base| + sets sum_type share |size|``: what |dF| multiplies a bound by.

    ``share`` is flat with rows of ``len(share) / len(size)`` entries, read from ``shift`` on;
    ``size`` and ``base`` from ``at`` on.
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


@kernel(inner=True, fastmath=REORDER)
def tilt_totals(lam, at, lanes, log_p, log_p_empty, of_type, sets, C, x, work, level, share, log_f):
    """Tilt the totals ``at, at + 1, ...`` of ``x`` by lam[i] as ``plan.tilt`` does.

    The rows of ``work`` for u and R are filled on entry, u is refined. Fills ``share`` and
    ``level``, flat with rows of ``MANY``, ``log_f``, and in ``work`` (row MEAN) the share of the
    empty type and (row SQUARE) the variance.
    """
    W = MANY
    for _ in range(40):
        _shares(lam, at, lanes, log_p, log_p_empty, of_type, C, x, work, level, share)
        _to_saddle(lanes, sets, C, work, level)
        far = 0.0
        for i in range(lanes):
            work[U * W + i] += work[MOVE * W + i]
            far = max(far, abs(work[MOVE * W + i]))
        if far < 100.0 / C:
            break
    for i in range(lanes):
        mean = work[MEAN * W + i] / work[F * W + i]
        work[VARIANCE * W + i] = work[SQUARE * W + i] / work[F * W + i] - mean * mean
        work[LOW * W + i] = 0.0
        work[POWER * W + i] = 1.0 / work[F * W + i]
        for _ in range(C):
            work[POWER * W + i] /= work[Z * W + i]
    for j in range(2 * C + 1):
        row = level[j * W :]
        for i in range(lanes):
            row[i] *= work[POWER * W + i]
        for k in range(len(of_type)):
            if of_type[k] == j:
                row = share[k * W :]
                for i in range(lanes):
                    row[i] *= work[POWER * W + i]
                    work[LOW * W + i] += row[i]
        for i in range(lanes):
            work[POWER * W + i] *= work[Z * W + i]
    for i in range(lanes):
        filled, f, top = work[LOW * W + i], work[F * W + i], work[TOP * W + i]
        # f is raised to powers up to D: its small distance to the empty type must keep its digits
        log_f[i] = log_p_empty - math.log1p(-filled) if filled < 0.5 else top + math.log(f)
        work[EMPTY * W + i] = math.exp(log_p_empty - top) / f


@kernel(inner=True, fastmath=REORDER)
def _shares(lam, at, lanes, log_p, log_p_empty, of_type, C, x, work, level, share):
    """Fill ``share`` and ``level`` up to a factor, whose logarithm goes to the row TOP."""
    W = MANY
    for i in range(lanes):
        work[TOP * W + i] = log_p_empty
    for k in range(len(of_type)):
        row, here = share[k * W :], x[k, at:]
        start, n = log_p[k], of_type[k] - 1.0 * C
        for i in range(lanes):
            row[i] = start - lam[i] * here[i] + work[U * W + i] * n
        for i in range(lanes):
            work[TOP * W + i] = max(work[TOP * W + i], row[i])
    bits = work[BITS * W : BITS * W + lanes]
    for i in range(len(level)):
        level[i] = 0.0
    for i in range(lanes):
        level[C * W + i] = log_p_empty - work[TOP * W + i]
    exponentials(level[C * W : C * W + lanes], bits)
    for k in range(len(of_type)):
        row = share[k * W : k * W + lanes]
        for i in range(lanes):
            row[i] -= work[TOP * W + i]
        exponentials(row, bits)
        total = level[of_type[k] * W :]
        for i in range(lanes):
            total[i] += row[i]


@kernel(inner=True, fastmath=REORDER)
def _to_saddle(lanes, sets, C, work, level):
    """Fill the changes of u, at most 200 / C, to near the saddle points, and the moments there."""
    W = MANY
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
            lacking = work[R * W + i] - sets * mean
            variance = work[SQUARE * W + i] / f - mean * mean
            change = lacking / max(sets * variance, 1e-3)
            low = move if lacking > 0.0 else work[LOW * W + i]
            high = work[HIGH * W + i] if lacking > 0.0 else move
            new = move + change
            new = new if new > low else 0.5 * (low + high)
            new = new if new < high else 0.5 * (low + high)
            near = abs(change) < _NEAR
            work[MOVE * W + i] = move if near else new
            work[LOW * W + i] = low
            work[HIGH * W + i] = high
            unfinished += 0.0 if near else 1.0
        if unfinished == 0.0:
            break


@kernel(inner=True, fastmath=REORDER)
def _moments(lanes, C, work, level):
    """Fill the sums of ``level e^(n move)``, of n and of n^2 times it, and e^move."""
    W = MANY
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
