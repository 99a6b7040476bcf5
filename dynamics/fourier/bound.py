r"""Where to integrate, and what that leaves out: window and nodes in t, angles in z.

All bounds are Chernoff bounds of tilted expectations, ``logs[j, k]`` for tilt ``j`` and component
``k`` (loss, three derivatives, mean sigmoid), as in ``plan``.
"""

from __future__ import annotations

import math

import numpy as np

from dynamics._jit import kernel


@kernel
def window(q, tilts, with_loss):
    """Choose eta and the alias period Omega: the fewest nodes that meet the goal (log-error 0).

    s(-F) <= e^{-lam F} for lam in [0, 1], softplus(-F) <= e^{-lam F} / lam for lam in (0, 1] and
    <= log 2 + |F|, which stands for it at lam = 0.
    """
    best, eta_best, omega_best, time_best = math.inf, 0.0, 1.0, 1.0
    for step in range(-7, 8):
        eta = step / 8.0
        j = min(3, int((eta + 1.0) * 2.0))
        height = q[j] + (eta - tilts[j]) * 2.0 * (q[j + 1] - q[j])
        time = max(0.5, height / math.pi)
        above = below = math.inf
        for k in range(5):
            gap = tilts[k] - eta
            if gap == 0.0:
                continue
            if gap > 0 and tilts[k] >= 0:
                above = min(above, q[k] / gap)
            elif gap < 0 and tilts[k] <= 0:
                below = min(below, -q[k] / gap)
        omega = max(above, below, 2.0)
        if omega * time < best:
            best, eta_best, omega_best, time_best = omega * time, eta, omega, time
    return eta_best, omega_best, time_best


@kernel
def account(end, omega, eta, logs, here, tilts, bounds):
    """Add the truncation at t = end and the aliases of the trapezoid rule to ``bounds``."""
    cut = -math.log(math.tanh(math.pi * end / 2)) / math.pi
    for k in range(5):
        bounds[k, 1] += cut * math.exp(here[k]) / (end if k == 0 else 1.0)
        above = below = math.inf
        for j in range(5):
            gap = abs(tilts[j] - eta)
            if gap == 0.0:
                continue
            size = math.exp(logs[j, k] - gap * omega) / -math.expm1(-gap * omega)
            if k == 0 and tilts[j] != 0.0:
                size /= abs(tilts[j])
            elif k == 0:  # softplus(m Omega - F) <= m Omega + |F| + log 2, summed over m
                size *= 1.0 - omega / (math.log(2.0) * math.expm1(-gap * omega))
            if tilts[j] > eta and tilts[j] >= 0:
                above = min(above, size)
            elif tilts[j] < eta and tilts[j] <= 0:
                below = min(below, size)
        bounds[k, 2] += above + below


@kernel
def circle(r, law, C, L, share, y, base, log_goal, level, excess, variance):
    """Choose the even number of angles; bound the wrap-around of R relative to exp(excess)."""
    span = 2 * (L - 1) * C + 2
    weight = np.zeros(2 * C + 1)
    rest = math.exp(-log_goal[0]) + math.exp(-log_goal[4])
    for k in range(3):
        rest += abs(base[1 + k]) * math.exp(-log_goal[1 + k])
    for j in range(len(share)):
        size = 0.0
        for k in range(3):
            size += abs(y[k, j]) * math.exp(-log_goal[1 + k])
        weight[law.level[j]] += (L - 1.0) * share[j] * size
    excess = max(excess, 1.0)
    delta = math.sqrt(2 * excess / max((L - 1.0) * variance, 1e-6))
    angles, alias = 0.0, 0.0
    for side in (-1, 1):
        best = math.inf
        for trial in range(5):
            shift = side * delta * (0.5 + 0.25 * trial)
            rise = _rise(shift, r, C, L, level, weight, rest)
            best = min(best, (rise + excess) / abs(shift))
        angles = max(angles, best)
    if not angles + 2.5 < span:
        return span, 0.0
    even = math.ceil((angles + 0.5) / 2) * 2
    for side in (-1, 1):
        best = math.inf
        for trial in range(5):
            shift = side * delta * (0.5 + 0.25 * trial)
            rise = _rise(shift, r, C, L, level, weight, rest)
            wrap = even * abs(shift)
            best = min(best, math.exp(rise - wrap) / -math.expm1(-wrap))
        alias += best
    return even, alias


@kernel
def _rise(shift, r, C, L, level, weight, rest):
    """Return how much the logarithm of the Chernoff bound grows when u moves by ``shift``."""
    f = g = start = 0.0
    factor, power = math.exp(shift), math.exp(-C * shift)
    for i in range(2 * C + 1):
        f += level[i] * power
        g += weight[i] * power
        start += weight[i]
        power *= factor
    return (L - 2.0) * math.log(f) + math.log((rest * f + g) / (rest + start)) - r * shift
