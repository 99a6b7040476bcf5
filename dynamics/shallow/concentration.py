r"""Two-equation model of the concentration of attention, without confusion tokens.

.. math:: h'=c_hp,\quad l'=c_lp(1-p)h,\quad p=\frac1{1+(1/\alpha-1)e^{-l}},\quad
   \rho=c_l/c_h.

Here p is the attention of an irrelevant query on relevant keys, h the gap of the output and l the
logit, from h = l = 0 until the hinge stops training at p h = 1. The odds x = p/(1-p) solve
x + log x = log(alpha/(1-alpha)) + alpha/(1-alpha) + rho h^2/2 (``patchdyn derive
shallow-concentration``).

All functions depend on the fraction alpha of relevant tokens and on rho. They raise ParameterError
unless 0 < alpha < 1, rho >= 0 and c_h > 0.
"""

import math
from itertools import pairwise

import numpy as np
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import wrightomega

from dynamics.core.checks import finite, require


def odds_along(gap: float | np.ndarray, alpha: float, rho: float) -> np.ndarray:
    """Return the odds p/(1-p) at gaps h, by Wright's omega function."""
    alpha, rho = _validated(alpha, rho)
    start = math.log(alpha) - math.log1p(-alpha) + alpha / (1.0 - alpha)
    return np.real(wrightomega(start + 0.5 * rho * np.square(gap)))


def attention_along(gap: float | np.ndarray, alpha: float, rho: float) -> np.ndarray:
    """Return the attention p at gaps h."""
    odds = odds_along(gap, alpha, rho)
    return np.asarray(odds / (1.0 + odds))


def final_gap(alpha: float, rho: float) -> float:
    """Return the gap h = 1/p at which the hinge stops training."""
    alpha, rho = _validated(alpha, rho)

    def excess(gap: float) -> float:
        return gap - 1.0 - 1.0 / float(odds_along(gap, alpha, rho))

    if rho == 0.0:
        return 1.0 / alpha
    return float(brentq(excess, 1.0, 1.0 / alpha * (1.0 + 1e-12), xtol=1e-15, rtol=1e-14))


def final_attention(alpha: float, rho: float) -> float:
    r"""Return the final attention p, the root of :math:`g(p)-g(\alpha)=\rho/(2p^2)`.

    Here :math:`g(p)=\log\frac p{1-p}+\frac1{1-p}`. For large rho, 1 - p is about 2/rho.
    """
    return float(attention_along(final_gap(alpha, rho), alpha, rho))


def stopping_time(alpha: float, rho: float, c_h: float = 1.0) -> float:
    r"""Return the flow time at which training stops, :math:`\int_0^{1/p}(1+1/x)\,dh/c_h`.

    Without attention, and for rho = 0, it is 1/(c_h alpha^2).
    """
    alpha, rho = _validated(alpha, rho)
    c_h = _positive("c_h", finite("c_h", c_h))
    end = final_gap(alpha, rho)
    # 1/x decreases from 1/alpha within a gap of about sqrt(2 log(1/alpha) / rho)
    width = math.sqrt(2.0 * max(1.0, -math.log(alpha)) / rho) if rho > 0.0 else end
    ends = [0.0, *(x for x in (0.5 * width, width, 2.0 * width, 8.0 * width) if x < end), end]
    pieces = (
        quad(
            lambda gap: 1.0 / float(odds_along(gap, alpha, rho)),
            a,
            b,
            epsabs=0.0,
            epsrel=1e-12,
            limit=200,
        )[0]
        for a, b in pairwise(ends)
    )
    return (end + math.fsum(pieces)) / c_h


def stopping_time_for_small_alpha(alpha: float, rho: float, c_h: float = 1.0) -> float:
    r"""Return the asymptote of `stopping_time`, :math:`\sqrt{\pi/(2\rho)}/(c_h\alpha)`.

    While p is small its odds are :math:`\alpha e^{\rho h^2/2}`. The time is of order 1/alpha,
    without a logarithm. ``rho`` must be greater than 0.
    """
    alpha, rho = _validated(alpha, rho)
    _positive("rho", rho)
    c_h = _positive("c_h", finite("c_h", c_h))
    return math.sqrt(math.pi / (2.0 * rho)) / (c_h * alpha)


def _positive(name: str, value: float) -> float:
    require(value > 0.0, name, value, "greater than 0")
    return value


def _validated(alpha: float, rho: float) -> tuple[float, float]:
    """Return both parameters as floats, or raise ParameterError."""
    alpha, rho = finite("alpha", alpha), finite("rho", rho)
    require(0.0 < alpha < 1.0, "alpha", alpha, "between 0 and 1")
    require(rho >= 0.0, "rho", rho, "0 or more")
    return alpha, rho
