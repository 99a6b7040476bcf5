r"""The Fourier formula in plain NumPy: the real line, every R, every node, no bounds.

With half-shifted nodes :math:`t_k = (k + 1/2) h`, :math:`h = 2\pi/\Omega`, and ``Omega`` beyond the
range of ``F``

.. math:: s(-F) = \tfrac12 - h\sum_k \frac{\sin t_k F}{\sinh \pi t_k}, \qquad
          \log(1 + e^{-F}) = \tfrac{\Omega}{4} - \tfrac F2 - h\sum_k
          \frac{\cos t_k F}{t_k \sinh \pi t_k}.

Shares no code with ``dynamics.positional.population.fourier``; only the constants of the problem
are common.
"""

import math
from typing import NamedTuple

import numpy as np


class Result(NamedTuple):
    loss: float
    mean_sigmoid: float
    derivatives: np.ndarray  # of ell in alpha, gamma, rho


def naive_fourier(problem, state, tolerance=1e-8):
    """Evaluate loss, E[s(-F)] and the three derivatives of ell to about ``tolerance``."""
    plus, minus, weight = set_types(problem)
    n = plus - minus
    depth = math.log(1.0 / tolerance) + 10.0
    reach = reach_of_total(problem, depth)
    angles = 2 * math.pi * np.arange(2 * (reach + problem.C) + 2) / (2 * (reach + problem.C) + 2)
    turn = np.exp(1j * np.outer(n, angles))  # z^n on the circle
    loss = mean = 0.0
    derivatives = np.zeros(3)
    for r in range(-reach, reach + 1):
        base, excess = contributions(problem, state, r, plus, minus)
        omega = window(problem, base[0], excess[0], weight, depth)
        step = 2 * math.pi / omega
        t = step * (np.arange(math.ceil(depth / math.pi / step)) + 0.5)
        t = np.concatenate([[0.0], t])
        # E[e^{-itF}; R = r, one chosen set has this type]: a coefficient of the (L-2)th power
        phase = weight * np.exp(-1j * np.outer(t, excess[0]))
        power = (phase @ turn) ** (problem.L - 2)
        unwind = np.exp(-1j * np.outer(angles, r - n)) / angles.size
        joint = phase * np.exp(-1j * t * base[0])[:, None] * (power @ unwind)
        probability = joint[0].real
        kernel = step / np.sinh(math.pi * t[1:])
        sigmoid = 0.5 * probability + kernel @ joint[1:].imag
        total_F = base[0] * probability.sum() + (problem.L - 1) * (excess[0] @ probability)
        loss += 0.25 * omega * probability.sum() - 0.5 * total_F
        loss -= (kernel / t[1:]) @ joint[1:].real.sum(axis=1)
        mean += sigmoid.sum()
        derivatives -= base[1:] * sigmoid.sum() + (problem.L - 1) * (excess[1:] @ sigmoid)
    return Result(float(loss), float(mean), derivatives)


def set_types(problem):
    """Return how many +1 and -1 a set of each type holds, and its probability."""
    C, q = problem.C, problem.q
    pairs = [(a, b) for a in range(C + 1) for b in range(C + 1 - a)]
    weight = [
        math.comb(C, a) * math.comb(C - a, b) * (q / 2) ** (a + b) * (1 - q) ** (C - a - b)
        for a, b in pairs
    ]
    return *np.array(pairs, dtype=float).T, np.array(weight)


def reach_of_total(problem, depth):
    """Return r with P[|R| > r] below e^-depth, by Chernoff."""
    patches = problem.D - problem.C
    tilt = np.geomspace(1e-3, 30.0, 300)
    cumulant = patches * np.log1p(problem.q * (np.cosh(tilt) - 1.0))
    return min(patches, math.ceil(np.min((cumulant + depth) / tilt)))


def contributions(problem, state, r, plus, minus):
    """Return (F, dF/d alpha, dF/d gamma, dF/d rho) of all sets empty, and each type's excess.

    The signal set is always there. ``sum_i O_i`` depends on neither gamma nor rho, so act' is
    taken in excess of that of a zero patch in an empty set: without it D = 10^6 loses its digits.
    """
    C, D, tau, p, nu = problem.C, problem.D, problem.tau, problem.p, problem.nu
    alpha, gamma, rho = state
    logits = np.array([problem.beta, gamma, rho]) / tau
    e = np.exp(logits - logits.max())
    Lambda, Gamma, Xi = e / (e @ [1, C - 1, D - C])
    T = C + r
    silent = problem.kappa * alpha * Xi * T

    def patch(s, n):
        own = (Lambda - Gamma) * s + (Gamma - Xi) * n
        c = own + Xi * T
        c_gamma = Gamma / tau * (n - s - (C - 1) * c)
        c_rho = Xi / tau * (T * (Lambda + (C - 1) * Gamma) - n - (D - C) * own)
        output = problem.kappa * alpha * c
        slope = p * output ** (p - 1) + nu
        pull = problem.kappa * alpha * p * (output ** (p - 1) - silent ** (p - 1))
        return np.array(
            [output**p + nu * output, problem.kappa * c * slope, pull * c_gamma, pull * c_rho]
        )

    empty = C * patch(0.0, 0.0)
    n = plus - minus
    sets = plus * patch(1.0, n) + minus * patch(-1.0, n) + (C - plus - minus) * patch(0.0, n)
    return C * patch(1.0, C) + (problem.L - 1) * empty, sets - empty[:, None]


def window(problem, base, excess, weight, depth):
    """Return Omega with P[|F| > Omega - depth, R = r] below e^-depth, by Chernoff."""
    tilt = np.geomspace(1e-3, 10.0, 60)
    widest = 0.0
    with np.errstate(over="ignore"):
        for side in (-1, 1):
            moment = np.log(np.exp(side * np.outer(tilt, excess)) @ weight)
            quantile = side * base + ((problem.L - 1) * moment + depth) / tilt
            widest = max(widest, quantile.min())
    return widest + depth
