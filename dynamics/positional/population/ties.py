r"""The sign of F where all coefficients add up to T = 0, decided exactly.

With T = 0 the linear part of F vanishes, and with ``X = Lambda - Gamma``, ``Y = Gamma - Xi``

.. math:: F = (\kappa\alpha)^p P, \quad P = \sum_i (X s_i + Y n_i)^p
          = \sum_{k<p} \binom pk M_k X^k Y^{p-k}, \quad M_k = \sum_i s_i^k n_i^{p-k},

with integers :math:`M_k` (and :math:`M_p = \sum_i s_i = T = 0`), exact in floats below 2^53. With
``U = Lambda - Xi`` the same holds for ``U s + Y (n - s)``; of X and U the smaller is used, so that
few monomials decide. F = 0 if gamma = rho, or if all M_k vanish (sets that mirror each other);
where beta = gamma (X = 0) or beta = rho (U = 0) a single integer decides. Elsewhere the ratios may
be as far from 1 as floats reach and beyond: monomials are stored by their logarithms and scaled by
the largest one of each image, so that nothing overflows and what underflows is negligible.
"""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from dynamics.core.jit import kernel
from dynamics.positional.population.rounding import UNIT
from dynamics.positional.problem import Problem, State

UNKNOWN = 2.0
_EXACT = 2.0**53
_LOST = 1e-300  # exceeds a scaled factor that underflows
_SMALL_GAP = (
    1e-290  # below it 1 - e^-gap = gap, and gap is a difference over tau that may underflow
)
_FAR = 1e100  # logarithms of weights beyond it are cut


class TieLaw(NamedTuple):
    """What decides the sign of alpha^-p F at T = 0 from the types of the sets.

    ``moments[0]`` belongs to the signal set, ``moments[1 + k]`` to type k of the table. The sign is
    that of ``moments @ (sign * exp(log))`` summed over the sets; the logarithms have absolute
    errors of at most ``error``.
    """

    moments: np.ndarray  # (1 + types, monomials), integers
    sign: np.ndarray  # (monomials,), 1 or -1
    log: np.ndarray  # (monomials,)
    error: np.ndarray  # (monomials,)


def tie_law(problem: Problem, state: State, plus: np.ndarray, minus: np.ndarray) -> TieLaw:
    """Return the law for a problem, a state and the types of a table."""
    C, p, beta = problem.C, problem.p, problem.beta
    _, gamma, rho = map(float, state)
    a = np.concatenate([[float(C)], plus])
    b = np.concatenate([[0.0], minus])
    n = (a - b).astype(int)
    side = 1.0 if gamma > rho else -1.0
    if gamma == rho:
        return TieLaw(np.zeros((a.size, 0)), np.zeros(0), np.zeros(0), np.zeros(0))
    raised = _powers(C, p)  # by exponent and base; negative bases from the end
    turned = a * raised[p][n - 1] + b * raised[p][n + 1] + (C - a - b) * raised[p][n]
    if beta in (gamma, rho):
        single = C * raised[p][n] if beta == gamma else turned
        return TieLaw(single[:, None], np.array([side]), np.zeros(1), np.zeros(1))
    log_X, unsure_X = _log_difference(beta, gamma, rho, problem.tau)
    log_U, unsure_U = _log_difference(beta, rho, gamma, problem.tau)
    log_Y, unsure_Y = _log_difference(gamma, rho, beta, problem.tau)
    if log_U < log_X:  # X is close to -Y: by the powers of s and n - s
        other, columns = beta - rho, [turned]
        for k in range(1, p):
            columns.append(a * raised[p - k][n - 1] + (-1) ** k * b * raised[p - k][n + 1])
        ratio, unsure = log_U - log_Y, unsure_U + unsure_Y
    else:
        other, columns = beta - gamma, [C * raised[p][n]]
        for k in range(1, p):
            columns.append(raised[p - k + 1][n] if k % 2 else (a + b) * raised[p - k][n])
        ratio, unsure = log_X - log_Y, unsure_X + unsure_Y
    # Beyond this the first or the last integer that is not 0 decides, whatever the others are
    enough = 2.0 + p * math.log(2.0 * C) + math.log(problem.D)
    if abs(ratio) - unsure >= enough:
        ratio, unsure = math.copysign(enough, ratio), 0.0
    power = np.arange(p)
    ways = np.array([math.log(math.comb(p, k)) for k in power.tolist()])
    logs = ways + power * ratio
    error = power * unsure + 4.0 * UNIT * (ways + power * abs(ratio))
    signs = (1.0 if other > 0.0 else -1.0) ** power * side ** (p - power)
    return TieLaw(np.array(columns).T, signs, logs, error)


def unknown_ties(types: int) -> TieLaw:
    """Return a law that decides nothing."""
    return TieLaw(np.ones((1 + types, 1)), np.ones(1), np.zeros(1), np.full(1, math.inf))


@lru_cache(maxsize=8)
def _powers(C: int, p: int) -> np.ndarray:
    """Return v^m as floats nearest to the integers, row m = 0 .. p, |v| <= C + 1 at index v."""
    values = [*range(C + 2), *range(-C - 1, 0)]
    return np.array([[float(v**m) for v in values] for m in range(p + 1)])


def _log_difference(one: float, other: float, third: float, tau: float) -> tuple[float, float]:
    """Return log |e^(one/tau) - e^(other/tau)| up to a common constant, and its absolute error.

    The two logits differ, by as little as the smallest float, over any temperature. With the
    relative errors of a difference and a quotient, u each, and of expm1 and log, 2u.
    """
    top = max(one, other, third)
    shift, difference = max((max(one, other) - top) / tau, -_FAR), abs(one - other)
    gap = difference / tau
    if gap > _SMALL_GAP:
        rest = size = math.log(-math.expm1(-gap))
    else:
        rest = math.log(difference) - math.log(tau)
        size = abs(math.log(difference)) + abs(math.log(tau))
    return shift + rest, UNIT * (3.0 * abs(shift) + 3.0 * abs(size) + 5.0)


@kernel
def tie_sign(states, i, tie):
    """Return the sign of F / alpha^p of state i, which has T = 0, or `UNKNOWN`."""
    count = tie.log.size
    moments, spreads, largest = np.empty(count), np.zeros(count), -math.inf
    for k in range(count):
        moment = tie.moments[0, k]
        size = abs(moment)
        for j in range(states.start[i], states.start[i + 1]):
            term = states.copies[j] * tie.moments[1 + states.kind[j], k]
            moment += term
            size += abs(term)
        if size >= _EXACT:
            spreads[k] = (states.start[i + 1] - states.start[i] + 80.0) * UNIT * size
        moments[k] = moment
        if moment != 0.0 or spreads[k] > 0.0:
            largest = max(largest, tie.log[k] + math.log(abs(moment) + spreads[k]))
    total, error = 0.0, 0.0
    for k in range(count):
        moment, spread = moments[k], spreads[k]
        size = abs(moment) + spread
        if size > 0.0:
            factor = math.exp(tie.log[k] - largest)
            total += tie.sign[k] * factor * moment
            relative = tie.error[k] + (count + 4.0 + abs(tie.log[k] - largest)) * UNIT
            error += factor * (relative * size + spread) + _LOST * size
    if abs(total) > error * (1.0 + 1e-6):
        return np.sign(total)
    return 0.0 if error == 0.0 else UNKNOWN
