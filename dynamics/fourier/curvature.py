r"""Second derivatives of ell by the Fourier method, for Newton iterations in stiff solvers.

.. math:: \partial_j\partial_k\,\ell = E[s(F)s(-F)\,\partial_jF\,\partial_kF]
          - E[s(-F)\,\partial_j\partial_kF].

The second term is a gradient with other tables. In the first, the derivative of the logistic
sigmoid is the integral with w / sin(pi w), and the product of two sums over sets splits into one
set twice (L - 2 sets remain) and two sets (L - 3 remain). The lines and nodes are those chosen for
the gradient; the error is of the order of the gradient's but not certified.
"""

from __future__ import annotations

import math

import numpy as np

from dynamics._emitted import row_hessian
from dynamics._jit import REORDER, kernel
from dynamics.fourier.driver import (
    combine,
    design,
    goal_of_each,
    negligible,
    prepare,
)
from dynamics.fourier.kernel import (
    LANES,
    PLAIN_POWER,
    _power,
    _power_of_one_plus,
    coefficients,
    node_weights,
    type_phases,
)

#: The six second derivatives: (j, k) of alpha, gamma, rho.
PAIRS = np.array([[0, 0], [0, 1], [0, 2], [1, 1], [1, 2], [2, 2]])


@kernel
def curvature(law, C, L, constants, power, tilts, crude, tolerance, pairs):
    """Return the second derivatives (aa, ag, ar, gg, gr, rr) of ell."""
    reach, _, x, y, base, logs, sure, ready, _, goal = prepare(
        law, C, L, constants, power, tilts, crude, tolerance
    )
    goal[0] = goal[4] = math.inf
    log_goal = goal_of_each(sure, goal)
    types = len(law.n)
    result, here = np.zeros(6), np.empty(5)
    q, bend, bend_base = np.empty(5), np.empty((6, types)), np.empty(6)
    share, level, sums = np.empty(types), np.empty(2 * C + 1), np.empty((2, types + 1))
    pair = np.empty(6)
    for i in range(len(ready)):
        r = i - reach
        if not ready[i] or negligible(sure[i], goal, len(ready)):
            continue
        _bend_tables(r, law, C, L, constants, power, bend, bend_base)
        for j in range(5):
            q[j] = combine(logs[i, j], log_goal)
        sums[:, :] = 0.0
        pair[:] = 0.0
        constant = 1.0
        if min(q[0], q[1]) > 0.0:
            eta, omega, step, nodes, empty, angles, _, _ = design(
                r, law, C, L, tilts, x[i], y[i], base[i], q, log_goal, share, level, here
            )
            if nodes == 0:
                result[:] = math.nan
                return result
            _second_sums(
                r, base[i, 0], x[i], y[i], law.n, share, empty, C, L, eta, step, nodes, angles,
                pairs, sums, pair,
            )  # fmt: skip
            front = math.exp(here[0])
            sums *= front
            pair *= front
            constant = 1.0 / (1.0 + math.exp(eta * omega))
        _add_second(r, law, L, y[i], base[i], bend, bend_base, constant, sums, pair, pairs, result)
    return result


@kernel
def _bend_tables(r, law, C, L, constants, power, bend, bend_base):
    """Fill the second derivatives of a set's contribution to F, in excess of an empty set."""
    alpha, Lambda, Gamma, Xi, LG, GX, D, kappa, tau, nu = constants
    T = r + 1.0 * C
    e = row_hessian(0.0, 0.0, T, alpha, Lambda, Gamma, Xi, LG, GX, C, D, kappa, tau, power, nu)
    s = row_hessian(1.0, 1.0 * C, T, alpha, Lambda, Gamma, Xi, LG, GX, C, D, kappa, tau, power, nu)
    for j in range(6):
        bend_base[j] = C * s[j] + (L - 1.0) * C * e[j]
    for k in range(len(law.n)):
        a, b, n = law.plus[k], law.minus[k], law.n[k]
        P = row_hessian(1.0, n, T, alpha, Lambda, Gamma, Xi, LG, GX, C, D, kappa, tau, power, nu)
        M = row_hessian(-1.0, n, T, alpha, Lambda, Gamma, Xi, LG, GX, C, D, kappa, tau, power, nu)
        Z = row_hessian(0.0, n, T, alpha, Lambda, Gamma, Xi, LG, GX, C, D, kappa, tau, power, nu)
        for j in range(6):
            bend[j, k] = a * (P[j] - e[j]) + b * (M[j] - e[j]) + (C - a - b) * (Z[j] - e[j])


@kernel
def _add_second(r, law, L, y, base, bend, bend_base, constant, sums, pair, pairs, result):
    types = len(law.n)
    center = law.center + r
    total = sums[0, types] + constant * law.p_empty * law.total_less_one[center]
    slope = sums[1, types]
    for k in range(types):
        sums[0, k] += constant * law.p[k] * law.total_less_one[center - int(law.n[k])]
        total += sums[0, k]
        slope += sums[1, k]
    for m in range(6):
        i, j = pairs[m]
        g, h = base[1 + i], base[1 + j]
        value = g * h * slope - bend_base[m] * total + (L - 1.0) * (L - 2.0) * pair[m]
        for k in range(types):
            both = g * y[j, k] + h * y[i, k] + y[i, k] * y[j, k]
            value += (L - 1.0) * (both * sums[1, k] - bend[m, k] * sums[0, k])
        result[m] += value


@kernel
def _second_sums(
    r, base, x, y, n, share, empty, C, L, eta, step, nodes, angles, pairs, sums, pair
):  # fmt: skip
    """As ``node_sums``, with weight w / sin(pi w) in ``sums[1]`` and for pairs of sets."""
    types = len(x)
    phases = np.empty((types, 2 * LANES))
    even, odd = np.empty((C + 1, 2 * LANES)), np.empty((C + 1, 2 * LANES))
    coefficient = np.empty((2 * C + 1, 2 * LANES))
    node = np.empty((2, 2 * LANES))
    cosine = np.cos(np.pi / angles * np.arange(2 * angles))
    for first in range(0, nodes, LANES):
        lanes = min(LANES, (nodes - first + 3) // 4 * 4)
        t = (first + 0.5) * step
        type_phases(t, step, lanes, x, n, share, empty, C, phases, even, odd)
        node_weights(t, step, lanes, eta, base, node)
        coefficients(r, C, L - 2, lanes, angles, empty, even, odd, cosine, coefficient)
        for i in range(lanes):
            a, b = node[0, i], node[0, lanes + i]
            time = t + i * step
            node[1, i], node[1, lanes + i] = a * eta - b * time, a * time + b * eta
        for kind in range(2):
            _contract_types(lanes, C, n, phases, coefficient, node[kind], empty, sums[kind])
        if L > 2:
            _pair_sums(
                r, C, L - 3, lanes, angles, empty, even, odd, cosine, phases, n, y,
                pairs, node[1], pair,
            )  # fmt: skip


@kernel(fastmath=REORDER)
def _contract_types(lanes, C, n, phases, coefficient, weight, empty, sums):
    for k in range(len(n) + 1):
        row = coefficient[C + int(n[k])] if k < len(n) else coefficient[C]
        total = 0.0
        for i in range(lanes):
            a = row[i] * weight[i] - row[lanes + i] * weight[lanes + i]
            b = row[i] * weight[lanes + i] + row[lanes + i] * weight[i]
            if k < len(n):
                total += a * phases[k, i] - b * phases[k, lanes + i]
            else:
                total += empty * a
        sums[k] += total


@kernel(fastmath=REORDER)
def _pair_sums(
    r, C, N, lanes, angles, empty, even, odd, cosine, phases, n, y, pairs, weight, pair
):  # fmt: skip
    """Add Re[weight [z^r] f(z)^N Y_j(z) Y_k(z)], Y_j = sum_type share y_j e^{-itx} z^n."""
    width = 2 * lanes
    turn, quarter = 2 * angles, angles // 2
    series = np.zeros((2, 3, C + 1, width))
    for k in range(len(n)):
        m = int(n[k])
        sign = 1.0 if m >= 0 else -1.0
        for j in range(3):
            for i in range(width):
                series[0, j, abs(m), i] += y[j, k] * phases[k, i]
                series[1, j, abs(m), i] += sign * y[j, k] * phases[k, i]
    value, scratch = np.empty((2, lanes)), np.empty((2, lanes))
    f, rows = np.empty(width), np.empty((3, width))
    total = np.zeros((6, width))
    shift = empty - 1.0 if N > PLAIN_POWER else empty
    for j in range(angles):
        phase = 2 * j + 1
        _on_circle(phase, turn, quarter, C, lanes, even, odd, cosine, f)
        for i in range(lanes):
            value[0, i], value[1, i] = f[i] + shift, f[lanes + i]
        if N > PLAIN_POWER:
            _power_of_one_plus(value, N, lanes, scratch)
        else:
            _power(value, N, lanes, scratch)
        for k in range(3):
            _on_circle(phase, turn, quarter, C, lanes, series[0, k], series[1, k], cosine, rows[k])
        c = cosine[(r * phase) % turn] / angles
        s = cosine[(r * phase - quarter) % turn] / angles
        for i in range(lanes):
            a, b = value[0, i], value[1, i]
            value[0, i], value[1, i] = a * c + b * s, b * c - a * s
        for m in range(6):
            first, second, target = rows[pairs[m, 0]], rows[pairs[m, 1]], total[m]
            for i in range(lanes):
                a = first[i] * second[i] - first[lanes + i] * second[lanes + i]
                b = first[i] * second[lanes + i] + first[lanes + i] * second[i]
                target[i] += a * value[0, i] - b * value[1, i]
                target[lanes + i] += a * value[1, i] + b * value[0, i]
    for m in range(6):
        for i in range(lanes):
            pair[m] += total[m, i] * weight[i] - total[m, lanes + i] * weight[lanes + i]


@kernel(fastmath=REORDER)
def _on_circle(phase, turn, quarter, C, lanes, even, odd, cosine, result):
    """Evaluate ``even_0 + sum_m even_m cos(m theta) + i odd_m sin(m theta)`` in every lane."""
    for i in range(2 * lanes):
        result[i] = even[0, i]
    for m in range(1, C + 1):
        c = cosine[(m * phase) % turn]
        s = cosine[(m * phase - quarter) % turn]
        for i in range(lanes):
            result[i] += c * even[m, i] - s * odd[m, lanes + i]
            result[lanes + i] += c * even[m, lanes + i] + s * odd[m, i]
