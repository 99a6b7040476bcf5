r"""The sign of F where all coefficients add up to T = 0, decided exactly.

With T = 0 the linear part of F vanishes, and with ``X = Lambda - Gamma``, ``Y = Gamma - Xi``

.. math:: F = (\kappa\alpha)^p P, \quad P = \sum_i (X s_i + Y n_i)^p
          = \sum_{k<p} \binom pk M_k X^k Y^{p-k}, \quad M_k = \sum_i s_i^k n_i^{p-k},

with integers :math:`M_k` (and :math:`M_p = \sum_i s_i = T = 0`), exact in floats below 2^53. With
``U = Lambda - Xi`` the same holds for ``U s + Y (n - s)``; of X and U the smaller is used, so that
few monomials decide. F = 0 if gamma = rho, or if all M_k vanish (sets that mirror each other);
where beta = gamma (X = 0) or beta = rho (U = 0) a single integer decides. Elsewhere the ratios may
be as far from 1 as floats reach and beyond: the monomials are weighed by their logarithms.
"""

import math
from typing import NamedTuple

import numpy as np

from dynamics.core.jit import kernel
from dynamics.positional.population.rounding import UNIT
from dynamics.positional.problem import Problem, State

UNKNOWN = 2.0
_EXACT = 2.0**53
_RANGE = 1240.0  # of logarithms of factors that a float can hold beside the moments


class TieLaw(NamedTuple):
    """What decides the sign of alpha^-p F at T = 0 from the types of the sets.

    ``moments[0]`` belongs to the signal set, ``moments[1 + k]`` to type k of the table; the sign is
    that of ``moments @ factor`` summed over the sets, each factor known up to ``error``.
    """

    moments: np.ndarray  # (1 + types, monomials), integers
    factor: np.ndarray  # (monomials,)
    error: np.ndarray  # (monomials,)


def tie_law(problem: Problem, state: State, plus: np.ndarray, minus: np.ndarray) -> TieLaw:
    """Return the law for a problem, a state and the types of a table."""
    C, p, beta = problem.C, problem.p, problem.beta
    _, gamma, rho = map(float, state)
    a = np.concatenate([[float(C)], plus])
    b = np.concatenate([[0.0], minus])
    n = a - b
    side = 1.0 if gamma > rho else -1.0
    if gamma == rho:
        return TieLaw(np.zeros((a.size, 0)), np.zeros(0), np.zeros(0))
    if beta == gamma:
        return TieLaw((C * n**p)[:, None], np.array([side]), np.zeros(1))
    if beta == rho:
        single = a * (n - 1) ** p + b * (n + 1) ** p + (C - a - b) * n**p
        return TieLaw(single[:, None], np.array([side]), np.zeros(1))
    columns: list[np.ndarray]
    log_X, unsure_X = _log_difference(beta, gamma, rho, problem.tau)
    log_U, unsure_U = _log_difference(beta, rho, gamma, problem.tau)
    log_Y, unsure_Y = _log_difference(gamma, rho, beta, problem.tau)
    if log_U < log_X:  # X is close to -Y: by the powers of s and n - s
        other, columns = beta - rho, [a * (n - 1) ** p + b * (n + 1) ** p + (C - a - b) * n**p]
        for k in range(1, p):
            columns.append(a * (n - 1) ** (p - k) + (-1) ** k * b * (n + 1) ** (p - k))
        ratio, unsure = log_U - log_Y, unsure_U + unsure_Y
    else:
        other, columns = beta - gamma, [C * n**p]
        for k in range(1, p):
            columns.append(n ** (p - k + 1) if k % 2 else (a + b) * n ** (p - k))
        ratio, unsure = log_X - log_Y, unsure_X + unsure_Y
    # Beyond this the monomial of largest size decides, whichever integers the moments are
    enough = 2.0 + p * math.log(2.0 * C) + math.log(problem.D)
    if p * enough <= _RANGE:
        ratio = min(max(ratio, -enough), enough)
    power = np.arange(p)
    logs = np.array([math.log(math.comb(p, k)) for k in power.tolist()]) + power * ratio
    logs -= 0.5 * (logs.max() + logs.min())
    factor = np.exp(np.clip(logs, -0.5 * _RANGE, 0.5 * _RANGE))
    with np.errstate(over="ignore"):  # an infinite error decides nothing
        error = factor * (2.0 * p * unsure + 8.0 * UNIT * (np.abs(logs) + p * abs(ratio) + 8.0))
    if p * abs(ratio) > _RANGE - 200.0:  # the smallest are lost, and might decide
        error[logs < -0.5 * _RANGE] = factor[logs < -0.5 * _RANGE]
    signs = (1.0 if other > 0.0 else -1.0) ** power * side ** (p - power)
    return TieLaw(np.array(columns).T, signs * factor, error)


def unknown_ties(types: int) -> TieLaw:
    """Return a law that decides nothing."""
    return TieLaw(np.ones((1 + types, 1)), np.zeros(1), np.ones(1))


def _log_difference(one: float, other: float, third: float, tau: float) -> tuple[float, float]:
    """Return log |e^(one/tau) - e^(other/tau)| up to a common constant, and its absolute error."""
    top = max(one, other, third)
    shift, gap = (max(one, other) - top) / tau, abs(one - other) / tau
    rest = math.log(-math.expm1(-gap)) if gap > 0.0 else -math.inf
    return shift + rest, 8.0 * UNIT * (abs(shift) + abs(rest) + 4.0)


@kernel
def tie_sign(states, i, tie):
    """Return the sign of F / alpha^p of state i, which has T = 0, or `UNKNOWN`."""
    total, error, sure = 0.0, 0.0, True
    for k in range(tie.factor.size):
        moment = tie.moments[0, k]
        size = abs(moment)
        for j in range(states.start[i], states.start[i + 1]):
            term = states.copies[j] * tie.moments[1 + states.kind[j], k]
            moment += term
            size += abs(term)
        total += tie.factor[k] * moment
        error += tie.error[k] * abs(moment)
        if tie.error[k] > 0.0:
            error += (tie.factor.size + 4.0) * UNIT * abs(tie.factor[k] * moment)
        if size >= _EXACT:
            spread = (states.start[i + 1] - states.start[i] + 80.0) * UNIT * size
            error += (abs(tie.factor[k]) + tie.error[k]) * spread
            sure = False
    if abs(total) > error * (1.0 + 1e-6):
        return np.sign(total)
    return 0.0 if sure and error == 0.0 else UNKNOWN
