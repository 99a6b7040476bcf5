r"""Numerical evaluation of the limit of many patches: quasi-steady alpha, its branches, and T1.

The formulas are derived in ``symbolic/positional/large_D.py``. At a fixed expected number qD of
features, with kappa = D and tau = 1, the sum of all coefficients is T = C + R with R a Skellam
variable (the difference of two Poisson variables of mean qD/2), and on gamma = rho = 0

.. math:: F \to A T^p + B T, \qquad A = D\alpha^p, \quad B = D\nu\alpha.

alpha settles where :math:`\mathbb E[s(-F)(pAT^p+BT)]=0`: one equation for :math:`a=\alpha D^{1/p}`
and :math:`\hat\nu=\nu D^{(p-1)/p}`. It has exactly one solution (A, B) for each ratio B/A, which
therefore parametrizes all of them (`branch`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, special

from dynamics.core.checks import finite, require
from dynamics.core.continuation import folds, follow_curve
from dynamics.positional.problem import Problem

Array = NDArray[np.float64]

_TAIL = 12.0  # R is truncated at this many standard deviations plus 40
_RATIOS = (-80.0, 80.0)  # range of log B/A that is searched


@dataclass(frozen=True)
class Limit:
    """Constants that remain as D -> infinity.

    Parameters
    ----------
    C
        Size of a set, at least 2.
    features
        Expected number qD of features outside the signal set, in (0, 1e6].
    p
        Degree of the activation, odd and at least 3.

    Raises
    ------
    ParameterError
        If a constant is outside its range.
    """

    C: int
    features: float
    p: int = 3

    def __post_init__(self) -> None:
        require(self.C >= 2, "C", self.C, "at least 2")
        require(
            0.0 < finite("features", self.features) <= 1e6, "features", self.features, "in (0, 1e6]"
        )
        require(self.p >= 3 and self.p % 2 == 1, "p", self.p, "an odd integer, at least 3")

    @classmethod
    def of(cls, problem: Problem) -> Limit:
        """Return the limit for the set size, number of features and degree of a problem.

        The expected number of features is q (D - C), not qD. The remaining error is O(1/D).

        Raises
        ------
        ParameterError
            If the output scale is not D or the temperature is not 1.
        """
        require(problem.kappa == problem.D, "output_scale", problem.output_scale, "D in the limit")
        require(problem.tau == 1.0, "temperature", problem.tau, "1 in the limit")
        return cls(problem.C, problem.q * (problem.D - problem.C), problem.p)

    @cached_property
    def R(self) -> Array:
        """Values of the sum of the coefficients outside the signal set, shape (r,)."""
        most = math.ceil(_TAIL * math.sqrt(self.features) + 40.0)
        return np.arange(-most, most + 1.0)

    @cached_property
    def T(self) -> Array:
        """Values of the sum T = C + R of all coefficients, shape (r,)."""
        return self.C + self.R

    @cached_property
    def probability(self) -> Array:
        """Probabilities of R, e^(-qD) I_R(qD) (Skellam), shape (r,)."""
        return np.asarray(special.ive(np.abs(self.R), self.features))

    def mean(self, F: Array, values: Array) -> float:
        """Return E[s(-F) values] for arrays (r,) over the values of R; s is the sigmoid."""
        return float(self.probability @ (special.expit(-F) * values))


class Branch(NamedTuple):
    """Solutions of the equation for alpha*, arrays of one shape.

    Attributes
    ----------
    nu_hat, a
        The scaled constants ``nu D^((p-1)/p)`` and ``alpha D^(1/p)``.
    A, B
        Coefficients of T^p and T in F.
    """

    nu_hat: Array
    a: Array
    A: Array
    B: Array


def power_constant(limit: Limit) -> float:
    """Return a_0 of alpha* = a_0 D^(-1/p), the branch with negligible nu."""
    return _ray(limit, 1.0, 0.0) ** (1.0 / limit.p)


def linear_constant(limit: Limit) -> float:
    """Return b_0 of alpha* = b_0/(nu D), the branch with a negligible power in F."""
    return _ray(limit, 0.0, 1.0)


def branch(limit: Limit, log_ratios: ArrayLike) -> Branch:
    """Return the solutions with given logarithms of B/A, shape (k,)."""
    logs = np.atleast_1d(np.asarray(log_ratios, float))
    A, B = np.empty(logs.size), np.empty(logs.size)
    for k, log_ratio in enumerate(logs.tolist()):
        share = float(special.expit(log_ratio))
        size = _ray(limit, float(special.expit(-log_ratio)), share)
        A[k], B[k] = size * float(special.expit(-log_ratio)), size * share
    a = A ** (1.0 / limit.p)
    return Branch(B / a, a, A, B)


def quasi_steady(limit: Limit, D: float, nu: float) -> float:
    """Return alpha* at gamma = rho = 0 for D patches, from the limit.

    Parameters
    ----------
    limit
        Constants of the limit.
    D
        Number of patches.
    nu
        Linear part of the activation.

    Raises
    ------
    ArithmeticError
        If nu D^((p-1)/p) is out of range.
    """
    log_nu_hat = math.log(nu) + (1.0 - 1.0 / limit.p) * math.log(D)

    def excess(log_ratio: float) -> float:
        return math.log(float(branch(limit, log_ratio).nu_hat[0])) - log_nu_hat

    try:
        ratio = float(optimize.brentq(excess, *_RATIOS, xtol=1e-12))
    except ValueError as failure:
        raise ArithmeticError(f"nu = {nu:g} is out of range at D = {D:g}") from failure
    return float(branch(limit, ratio).a[0]) * D ** (-1.0 / limit.p)


def drift(limit: Limit, D: float, nu: float, beta: float, alpha: float) -> float:
    r"""Return d(gamma - rho)/dt at gamma = rho = 0, from the limit.

    .. math::
       \frac{pC\alpha^p}{D}\,\mathbb E\big[s(-F)\,((T+h)^{p-1}-T^{p-1})\big], \quad h=e^\beta-1.
    """
    T, p, h = limit.T, limit.p, math.expm1(beta)
    F = D * alpha**p * T**p + D * nu * alpha * T
    bracket = limit.mean(F, (T + h) ** (p - 1) - T ** (p - 1))
    return p * limit.C * alpha**p / D * bracket


def time_to_lead(problem: Problem, largest_rho: float) -> float:
    """Return the limit of T1: max |rho| over d(gamma - rho)/dt at gamma = rho = 0 and alpha*.

    gamma is of the order of max |rho| ~ 1/D at T1, so that its initial velocity determines T1.

    Parameters
    ----------
    problem
        Constants with output scale D and temperature 1.
    largest_rho
        Largest |rho| of the trajectory.
    """
    limit = Limit.of(problem)
    alpha = quasi_steady(limit, problem.D, problem.nu)
    return largest_rho / drift(limit, problem.D, problem.nu, problem.beta, alpha)


def attended_slope(limit: Limit, D: float, nu: float, alpha: ArrayLike, G: ArrayLike) -> Array:
    r"""Return -alpha d ell/d alpha for sets that attend to themselves, normalized to (-1, 1).

    With 1 << G << D and features in different sets,

    .. math:: F \to A T^p + B T + (\alpha G)^p\,(C + R\,(C-1)^{1-p}).

    The slope E[s(-F) w] is divided by E|w|, w = alpha dF/d alpha. It is positive where alpha grows.

    Parameters
    ----------
    limit
        Constants of the limit.
    D, nu
        Number of patches and linear part of the activation.
    alpha, G
        Order parameter and attention to the own set; they broadcast.
    """
    p, T, R = limit.p, limit.T, limit.R
    alpha, G = np.broadcast_arrays(np.asarray(alpha, float)[..., None], np.asarray(G)[..., None])
    attended = limit.C + R * (limit.C - 1.0) ** (1 - p)
    linear = D * nu * alpha * T
    F = D * alpha**p * T**p + (alpha * G) ** p * attended
    weight = p * F + linear
    mean = (special.expit(-(F + linear)) * weight) @ limit.probability
    return np.asarray(mean / (np.abs(weight) @ limit.probability))


class Fold(NamedTuple):
    """Fold of the branch of alpha* that starts at gamma = rho = 0.

    Attributes
    ----------
    G, alpha
        Position of the fold; nan if the branch has none.
    curve
        G and alpha along the branch, up to a point after the fold, shape (m, 2).
    """

    G: float
    alpha: float
    curve: Array


def first_fold(limit: Limit, D: float, nu: float, lowest: float = 5.0) -> Fold:
    """Follow alpha* from gamma = rho = 0 while G grows, up to D/2 or to the first fold.

    At a fold the flow leaves the branch, and alpha jumps to another one.

    Parameters
    ----------
    limit
        Constants of the limit.
    D, nu
        Number of patches and linear part of the activation.
    lowest
        G at the start of the curve; :func:`attended_slope` assumes G >> 1.
    """
    start, top = quasi_steady(limit, D, nu), math.log(lowest)
    end = math.log(D / 2.0)

    def condition(x: Array) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):  # such Newton steps are rejected
            value = attended_slope(limit, D, nu, start * np.exp(x[0]), np.exp(x[1]))
        return np.atleast_1d(value)

    def is_increasing(x: Array) -> bool:
        nonlocal top
        top = max(top, float(x[1]))
        return bool(top - 0.02 <= x[1] <= end)

    logs = follow_curve(condition, (0.0, top), (0.0, 1.0), is_increasing, step=0.02)
    curve = np.stack([np.exp(logs[:, 1]), start * np.exp(logs[:, 0])], axis=1)
    turns = folds(curve, 0)
    if not turns.size:
        return Fold(math.nan, math.nan, curve)
    G, alpha = curve[turns[0]]
    return Fold(float(G), float(alpha), curve)


def _ray(limit: Limit, A: float, B: float) -> float:
    """Return the u at which E[s(-u f) g] = 0, f = A T^p + B T, g = p A T^p + B T.

    The expectation decreases strictly in u, from E[g]/2 > 0 to a negative limit.
    """
    f = A * limit.T**limit.p + B * limit.T
    g = f + (limit.p - 1) * A * limit.T**limit.p

    def slope(log_u: float) -> float:
        return limit.mean(math.exp(log_u) * f, g)

    low = high = 0.0
    while slope(low) <= 0.0:
        low -= 2.0
    while slope(high) > 0.0:
        high += 2.0
    return math.exp(optimize.brentq(slope, low, high, xtol=1e-14))
