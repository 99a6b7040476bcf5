r"""Boundary of gamma >= rho in the plane (qD/C^2, beta): the curve critical alpha = alpha*.

From alpha at or below its quasi-steady value, the flow leaves gamma = rho = 0 upwards if
d(gamma - rho)/dt > 0 there. On gamma = rho = 0 the output F depends on the image only through the
numbers of features, so that both conditions are sums over two counts (derived in
``symbolic/positional/large_D.py``; kappa = D, tau = 1, h = e^beta - 1, N = D - C):

.. math::
   \mathbb E[s(-F)\,\alpha\,\partial_\alpha F] = 0, \qquad
   \mathbb E\Big[s(-F)\sum_{s\in\{0,-1\}} N_s\Big(1-\frac{R-s}{N-1}\Big)
   \big(O_1^{p-1}-O_s^{p-1}\big)\Big] = 0, \qquad O_s=\frac{\alpha(T+hs)}{1+h/D}.

The curve of solutions in alpha, qD/C^2 and beta is computed by continuation. For D = infinity at a
fixed qD the counts are Poisson variables, and both conditions depend on T alone.
"""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special, stats

from dynamics import Problem
from dynamics.core.continuation import follow_curve
from dynamics.positional.many_patch_limit import Limit, linear_constant, power_constant

Array = NDArray[np.float64]


class Family(NamedTuple):
    """Constants of problems that differ only in qD and beta."""

    D: int
    C: int
    p: int
    nu: float

    def problem(self, density: float, beta: float) -> Problem:
        """Return the problem with qD/C^2 = ``density``."""
        q = density * self.C**2 / self.D
        return Problem(self.D, self.C, min(q, 1.0), self.p, nu=self.nu, beta=beta)


class Conditions(NamedTuple):
    """Normalized signs of d alpha/dt and d(gamma - rho)/dt on gamma = rho = 0.

    Attributes
    ----------
    slope
        E[s(-F) alpha dF/d alpha] over E|alpha dF/d alpha|; positive where alpha grows.
    drift
        E[s(-F) B] over E|B|, B the bracket of the drift; positive where gamma - rho grows.
    """

    slope: float
    drift: float


def conditions(family: Family, alpha: float, density: float, beta: float) -> Conditions:
    """Return both conditions on gamma = rho = 0.

    Parameters
    ----------
    family
        Constants.
    alpha
        State on the line.
    density
        qD/C^2.
    beta
        Diagonal of A.
    """
    D, C, p, nu = family
    N, h = D - C, math.expm1(beta)
    plus, minus, law = _counts(N, min(density * C * C / D, 1.0))
    zero, R = N - plus - minus, plus - minus
    T = C + R
    O = {k: alpha * (T + h * k) / (1.0 + h / D) for k in (1, 0, -1)}  # noqa: E741
    slope = {k: output ** (p - 1) for k, output in O.items()}
    power = (plus + C) * O[1] * slope[1] + zero * O[0] * slope[0] + minus * O[-1] * slope[-1]
    linear = D * nu * alpha * T
    weight = special.expit(-power - linear) * law
    bracket = np.zeros_like(T)
    for k, count in ((0, zero), (-1, minus)):
        bracket += count * (1.0 - (R - k) / (N - 1.0)) * (slope[1] - slope[k])
    return Conditions(_ratio(weight, p * power + linear, law), _ratio(weight, bracket, law))


def quasi_steady(family: Family, density: float, beta: float) -> float:
    """Return alpha* on gamma = rho = 0, the root of d alpha/dt.

    Raises
    ------
    ValueError
        If there is no root from 1e-4 to 30 times the scales of both branches.
    """
    power = family.D ** (-1.0 / family.p)
    low, high = 1e-4 * min(power, 1.0 / (family.nu * family.D)), 30.0 * power

    def slope(log_alpha: float) -> float:
        return conditions(family, math.exp(log_alpha), density, beta).slope

    return math.exp(optimize.brentq(slope, math.log(low), math.log(high), xtol=1e-11))


def leaves_upwards(family: Family, density: float, beta: float) -> bool:
    """Return whether d(gamma - rho)/dt > 0 on gamma = rho = 0 at alpha*."""
    alpha = quasi_steady(family, density, beta)
    return conditions(family, alpha, density, beta).drift > 0.0


def boundary(
    family: Family, betas: tuple[float, float], densities: tuple[float, float], step: float = 0.05
) -> Array:
    """Return points of the curve critical alpha = alpha*.

    The curve starts at the smallest beta, at the smallest density with a sign change, and ends
    where it leaves the ranges.

    Parameters
    ----------
    family
        Constants.
    betas, densities
        Ranges of beta and of qD/C^2.
    step
        Step of the continuation.

    Returns
    -------
    ndarray
        Points (alpha, qD/C^2, beta), (m, 3); (0, 3) without a sign change.
    """
    top = min(densities[1], family.D / family.C**2)
    beta = betas[0]

    def drift(log_density: float) -> float:
        density = math.exp(log_density)
        return conditions(family, quasi_steady(family, density, beta), density, beta).drift

    grid = np.linspace(math.log(densities[0]), math.log(top), 24)
    first = next((k for k, density in enumerate(grid.tolist()) if drift(density) <= 0.0), 0)
    if first == 0:
        return np.zeros((0, 3))
    start = optimize.brentq(drift, grid[first - 1], grid[first], xtol=1e-8)
    alpha = quasi_steady(family, math.exp(start), beta)

    def equations(x: Array) -> Array:
        return np.array(conditions(family, math.exp(x[0]), math.exp(x[1]), x[2]))

    low, high = math.log(densities[0]), math.log(top)

    def inside(x: Array) -> bool:
        return bool(low <= x[1] <= high - 1e-3 and 0.99 * betas[0] <= x[2] <= betas[1])

    points = follow_curve(
        equations, (math.log(alpha), start, beta), (0.0, 0.0, 1.0), inside, step=step, accuracy=1e-8
    )
    points[:, :2] = np.exp(points[:, :2])
    return points


def limit_boundary(
    C: int, p: int, densities: Array, linear: bool = True, betas: tuple[float, float] = (1e-3, 20.0)
) -> Array:
    """Return the beta of the boundary for D -> infinity at each qD/C^2; NaN if there is none.

    Parameters
    ----------
    C, p
        Size of a set and degree of the activation.
    densities
        Values of qD/C^2, (n,).
    linear
        True: nu is fixed and alpha* = b_0/(nu D). False: nu << D^(-(p-1)/p) and
        alpha* = a_0 D^(-1/p).
    betas
        Range in which beta is searched.
    """
    boundary = np.full(len(densities), math.nan)
    for index, density in enumerate(np.asarray(densities).tolist()):

        def drift(beta: float, density: float = density) -> float:
            return limit_drift(C, p, density, beta, linear)

        if drift(betas[0]) < 0.0 < drift(betas[1]):
            boundary[index] = optimize.brentq(drift, *betas, xtol=1e-10)
    return boundary


def limit_drift(C: int, p: int, density: float, beta: float, linear: bool) -> float:
    """Return E[s(-F) B] at alpha* over E|B| for D -> infinity, B = (T+h)^(p-1) - T^(p-1)."""
    limit = Limit(C, density * C * C, p)
    T, h = limit.T, math.expm1(beta)
    F = linear_constant(limit) * T if linear else power_constant(limit) ** p * T**p
    bracket = (T + h) ** (p - 1) - T ** (p - 1)
    return limit.mean(F, bracket) / float(limit.probability @ np.abs(bracket))


def _ratio(weight: Array, values: Array, law: Array) -> float:
    return float((weight * values).sum() / (law * np.abs(values)).sum())


@lru_cache(maxsize=4)
def _counts(N: int, q: float) -> tuple[Array, Array, Array]:
    """Return numbers of patches with +1 and with -1 out of N, and their probabilities.

    The number of features is binomial, and so is the number of +1 among them. Both are truncated
    at a distance of 7 standard deviations plus 12 from the mean.
    """
    mean, spread = N * q, math.sqrt(N * q * (1.0 - q))
    low, high = max(0.0, mean - 7 * spread - 12), min(float(N), mean + 7 * spread + 12)
    total = np.arange(math.floor(low), math.ceil(high) + 1.0)
    largest = math.ceil(min(high, 7 * math.sqrt(high) + 12))  # |plus - minus|
    difference = np.arange(-largest, largest + 1.0)
    k, d = np.meshgrid(total, difference, indexing="ij")
    possible = ((k + d) % 2 == 0) & (np.abs(d) <= k)
    row, k, d = np.nonzero(possible)[0], k[possible], d[possible]
    plus, minus = (k + d) / 2, (k - d) / 2
    # log of k!/(plus! minus! 2^k)
    log_share = special.gammaln(k + 1.0) - k * math.log(2.0)
    log_share -= special.gammaln(plus + 1.0) + special.gammaln(minus + 1.0)
    columns = plus, minus, stats.binom.pmf(total, N, q)[row] * np.exp(log_share)
    for column in columns:
        column.flags.writeable = False
    return columns
