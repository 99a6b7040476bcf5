r"""The sign of F where all coefficients add up to T = 0, decided exactly.

For T = 0 the linear part of F vanishes, and with ``X = Lambda - Gamma``, ``Y = Gamma - Xi``

.. math:: F = (\kappa\alpha)^p P, \quad P = \sum_i (X s_i + Y n_i)^p
          = \sum_{k<p} \binom pk M_k X^k Y^{p-k}, \quad M_k = \sum_i s_i^k n_i^{p-k},

with integers :math:`M_k` (and :math:`M_p = \sum_i s_i = T = 0`), exact in floats below 2^53. The
same holds with ``U = Lambda - Xi`` for ``U s + Y (n - s)``; the smaller of X and U is used, so that
few monomials determine the sign. F = 0 if gamma = rho, or if all M_k vanish (sets that mirror each
other). For beta = gamma (X = 0) or beta = rho (U = 0) one integer determines the sign. Otherwise
the monomials may be out of the range of floats. They are represented by their logarithms and scaled
by the largest one of each image: nothing overflows, and terms that underflow are negligible.
"""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from dynamics.core.jit import kernel
from dynamics.positional.population.rounding import UNIT
from dynamics.positional.problem import Problem, State

#: Returned instead of a sign that is not determined.
UNKNOWN = 2.0
_EXACT = 2.0**53
_UNDERFLOW = 1e-300  # upper bound of a scaled factor that underflows
# Below this gap 1 - e^-gap = gap is used, because gap, a difference over tau, may underflow.
_SMALL_GAP = 1e-290
_LARGEST_LOG = 1e100  # logarithms of weights are truncated here


class TieLaw(NamedTuple):
    """Polynomial whose sign is that of F / alpha^p at T = 0.

    The polynomial is the sum of ``moments @ (sign * exp(log))`` over the sets of an image.

    Attributes
    ----------
    moments
        Integers of the signal set, row 0, and of type k of the table, row 1 + k, shape
        (1 + types, monomials).
    sign, log
        Sign and logarithm of each monomial, (monomials,).
    error
        Bounds of the absolute errors of the logarithms, (monomials,).
    """

    moments: np.ndarray
    sign: np.ndarray
    log: np.ndarray
    error: np.ndarray


def tie_law(problem: Problem, state: State, plus: np.ndarray, minus: np.ndarray) -> TieLaw:
    """Return the polynomial for a state.

    Parameters
    ----------
    problem
        Constants of the model.
    state
        Order parameters; alpha is not used.
    plus, minus
        Numbers of +1 and -1 in each type of a set, (types,).
    """
    C, p, beta = problem.C, problem.p, problem.beta
    _, gamma, rho = map(float, state)
    a = np.concatenate([[float(C)], plus])
    b = np.concatenate([[0.0], minus])
    n = (a - b).astype(int)
    side = 1.0 if gamma > rho else -1.0
    if gamma == rho:
        return TieLaw(np.zeros((a.size, 0)), np.zeros(0), np.zeros(0), np.zeros(0))
    powers = _powers(C, p)  # indexed by exponent and base; negative bases count from the end
    shifted = a * powers[p][n - 1] + b * powers[p][n + 1] + (C - a - b) * powers[p][n]
    if beta in (gamma, rho):
        single = C * powers[p][n] if beta == gamma else shifted
        return TieLaw(single[:, None], np.array([side]), np.zeros(1), np.zeros(1))
    log_X, error_X = _log_difference(beta, gamma, rho, problem.tau)
    log_U, error_U = _log_difference(beta, rho, gamma, problem.tau)
    log_Y, error_Y = _log_difference(gamma, rho, beta, problem.tau)
    if log_U < log_X:  # X is close to -Y: use the powers of s and n - s
        difference, columns = beta - rho, [shifted]
        for k in range(1, p):
            columns.append(a * powers[p - k][n - 1] + (-1) ** k * b * powers[p - k][n + 1])
        ratio, ratio_error = log_U - log_Y, error_U + error_Y
    else:
        difference, columns = beta - gamma, [C * powers[p][n]]
        for k in range(1, p):
            columns.append(powers[p - k + 1][n] if k % 2 else (a + b) * powers[p - k][n])
        ratio, ratio_error = log_X - log_Y, error_X + error_Y
    # Beyond this ratio the first or the last nonzero integer determines the sign.
    dominant = 2.0 + p * math.log(2.0 * C) + math.log(problem.D)
    if abs(ratio) - ratio_error >= dominant:
        ratio, ratio_error = math.copysign(dominant, ratio), 0.0
    power = np.arange(p)
    binomials = np.array([math.log(math.comb(p, k)) for k in power.tolist()])
    logs = binomials + power * ratio
    error = power * ratio_error + 4.0 * UNIT * (binomials + power * abs(ratio))
    signs = (1.0 if difference > 0.0 else -1.0) ** power * side ** (p - power)
    return TieLaw(np.array(columns).T, signs, logs, error)


def unknown_ties(types: int) -> TieLaw:
    """Return a polynomial whose sign is never determined."""
    return TieLaw(np.ones((1 + types, 1)), np.ones(1), np.zeros(1), np.full(1, math.inf))


@lru_cache(maxsize=8)
def _powers(C: int, p: int) -> np.ndarray:
    """Return the floats nearest to v^m, row m = 0 .. p, |v| <= C + 1 at index v."""
    values = [*range(C + 2), *range(-C - 1, 0)]
    return np.array([[float(v**m) for v in values] for m in range(p + 1)])


def _log_difference(x: float, y: float, z: float, tau: float) -> tuple[float, float]:
    """Return log |e^(x/tau) - e^(y/tau)| - max(x, y, z)/tau and its absolute error.

    x and y differ, but possibly by only the smallest float. The relative errors are u for a
    difference and for a quotient, and 2u for expm1 and for log.
    """
    top = max(x, y, z)
    shift, difference = max((max(x, y) - top) / tau, -_LARGEST_LOG), abs(x - y)
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
            term = states.copies[j] * tie.moments[1 + states.type_index[j], k]
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
            error += factor * (relative * size + spread) + _UNDERFLOW * size
    if abs(total) > error * (1.0 + 1e-6):
        return np.sign(total)
    return 0.0 if error == 0.0 else UNKNOWN
