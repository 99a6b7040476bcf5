"""Reference for the velocity along a curve, as Arb series computed from the model alone.

It shares no code with the tested balls. All rows of all multisets are summed, with the derivatives
of the softmax and without formulas that avoid cancellation.
"""

import math
from itertools import combinations_with_replacement

from flint import arb, arb_series

from tests.dynamics.core.balls.reference import number


def velocity(problem, curve):
    """Return the series of alpha', gamma', rho' along a curve of three arb_series."""
    C, D, p = problem.C, problem.D, problem.p
    kappa, nu, q, tau = map(number, (problem.kappa, problem.nu, problem.q, problem.tau))
    alpha, gamma, rho = curve
    e_beta = (number(problem.beta) / tau).exp()
    e_gamma, e_rho = (gamma / tau).exp(), (rho / tau).exp()
    Z = e_beta + (C - 1) * e_gamma + (D - C) * e_rho
    Lambda, Gamma, Xi = e_beta / Z, e_gamma / Z, e_rho / Z
    same, apart = (C - 1) * Gamma, (D - C) * Xi
    by_gamma = [-Lambda * same, Gamma * (Lambda + apart), -same * Xi]
    by_rho = [-Lambda * apart, -apart * Gamma, Xi * (Lambda + same)]
    types = [(a, b) for a in range(C + 1) for b in range(C + 1 - a)]
    probability = {
        (a, b): arb(math.comb(C, a + b) * math.comb(a + b, a))
        * (q / 2) ** (a + b)
        * (1 - q) ** (C - a - b)
        for a, b in types
    }
    total = [arb_series([0])] * 3
    for chosen in combinations_with_replacement(types, problem.L - 1):
        counts = {set_type: chosen.count(set_type) for set_type in chosen}
        T = C + sum(a - b for a, b in chosen)
        F, slopes = arb_series([0]), [arb_series([0])] * 3
        weight = arb(math.factorial(problem.L - 1))
        for set_type, m in counts.items():
            weight = weight * probability[set_type] ** m / math.factorial(m)
        for a, b in ((C, 0), *chosen):
            n = a - b
            for s, rows in ((1, a), (-1, b), (0, C - a - b)):
                c = Lambda * s + Gamma * (n - s) + Xi * (T - n)
                turns = [
                    (d[0] * s + d[1] * (n - s) + d[2] * (T - n)) / tau for d in (by_gamma, by_rho)
                ]
                output = kappa * alpha * c
                steep = power(output, p - 1)
                slope = p * steep + nu
                F = F + rows * (steep + nu) * output
                parts = [kappa * c * slope, *(kappa * alpha * slope * turn for turn in turns)]
                slopes = [x + rows * y for x, y in zip(slopes, parts)]
        sigmoid = 1 / (1 + F.exp())
        total = [x + weight * sigmoid * y for x, y in zip(total, slopes)]
    return [x / count for x, count in zip(total, (1, D * (C - 1), D * (D - C)))]


def power(x, n):
    """Return x^n by multiplication, which is valid for series that contain 0."""
    result = x
    for _ in range(n - 1):
        result = result * x
    return result


def curve(coefficients):
    """Return three series from a table (order + 1, 3) of numbers."""
    return [arb_series([number(x) for x in column]) for column in zip(*coefficients)]
