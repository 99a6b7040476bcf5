r"""Drift of gamma - rho on the line gamma = rho, and the critical alpha at which its sign changes.

According to the paper, Lemma 4.3 implies gamma >= rho at all times. The half plane gamma >= rho is
invariant as long as d(gamma - rho)/dt >= 0 wherever the flow meets the line gamma = rho = x. There
all attention weights outside the diagonal are equal, F depends on the image only through the
numbers of features, and given these the features of the random sets are exchangeable. Hence
(derived here, proved in :mod:`symbolic.positional.symmetric_line`)

.. math::
   \frac{d(\gamma-\rho)}{dt}
   = \frac{\kappa\alpha\,C\,\Gamma}{\tau D (D-C)}\;\mathbb E\Big[s(-F)\sum_{s\in\{0,-1\}} N_s
     \Big(1-\frac{R-s}{D-C-1}\Big)\big(\mathrm{act}'(O_{1})-\mathrm{act}'(O_s)\big)\Big],
   \qquad O_s = \kappa\alpha\,((\Lambda-\Gamma)s + \Gamma T),

where :math:`N_s` counts the patches outside the signal set with coefficient s, R is the sum of
their coefficients and T = C + R. The bracket is non-negative, and for Lambda > Gamma the
difference of slopes is non-negative wherever T >= 0. Only images whose random features outvote
the signal set (T < 0) push gamma below rho. Their weight s(-F) grows with alpha, while the weight
of the other images decreases. Consequences:

* With two sets (D = 2C) T >= 0 always, and gamma >= rho for every alpha, if beta >= x.
* Otherwise gamma - rho grows for alpha below a critical value (:func:`critical_alpha`), which
  depends on x: at D = 9, C = 3, q = .4565, nu = 1, beta = 1.631 there is none at x = 0, and it is
  below .5 at x = 1e-3, so that a flow from alpha = 1 crosses the line by 5.6e-6.

The formula is exact, its evaluation here is an estimate: it uses floating-point numbers and omits
numbers of features of total probability 1e-26 (Bernstein's inequality, :func:`most_features`).
If the two parts nearly cancel, the sign depends on rounding;
:mod:`simulations.positional.invariance.certified` proves signs.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy import optimize, special

from dynamics import Problem, State, attention

_RANGE = (1e-4, 10.0)  # range of kappa alpha / D in which a sign change is searched
_POINTS = 101


class LineDrift(NamedTuple):
    """d(gamma - rho)/dt on gamma = rho, and its two parts.

    Attributes
    ----------
    total
        Sum of both parts.
    signal_wins, outvoted
        Parts of the images with T >= 0 and with T < 0.
    """

    total: float
    signal_wins: float
    outvoted: float


def line_drift(problem: Problem, alpha: float, x: float = 0.0) -> LineDrift:
    """Return d(gamma - rho)/dt of the flow at (alpha, x, x).

    Parameters
    ----------
    problem
        Constants.
    alpha, x
        State: alpha, and the common value of gamma and rho.

    Notes
    -----
    The sum is over numbers of features, not over sets.
    """
    D, C, p, nu = problem.D, problem.C, problem.p, problem.nu
    N = D - C
    Lambda, Gamma, _, _ = attention(problem, State(alpha, x, x))
    plus, minus, zero, probability = _feature_counts(N, problem.q)
    R = plus - minus
    T = C + R
    scale = problem.kappa * alpha
    O = {s: scale * ((Lambda - Gamma) * s + Gamma * T) for s in (1, 0, -1)}  # noqa: E741
    F = sum(count * (O[s] ** p + nu * O[s]) for s, count in ((1, plus + C), (0, zero), (-1, minus)))
    steeper = sum(
        count * (1 - (R - s) / (N - 1)) * p * (O[1] ** (p - 1) - O[s] ** (p - 1))
        for s, count in ((0, zero), (-1, minus))
    )
    terms = probability * special.expit(-F) * steeper * scale * C * Gamma / (problem.tau * D * N)
    wins, outvoted = float(terms[T >= 0].sum()), float(terms[T < 0].sum())
    return LineDrift(wins + outvoted, wins, outvoted)


def critical_alpha(problem: Problem, x: float = 0.0) -> float:
    """Return the smallest alpha at which d(gamma - rho)/dt changes its sign on gamma = rho = x.

    Above it the flow leaves the line downwards. The result is 0 if the drift is negative for all
    small alpha, and infinite if there is no sign change up to kappa alpha = 10 D, far beyond all
    quasi-steady values.
    """
    grid = np.geomspace(*_RANGE, _POINTS) * problem.D / problem.kappa
    before = grid[0]
    for alpha in grid:
        if line_drift(problem, alpha, x).total < 0.0:
            if alpha == grid[0]:
                return 0.0
            return float(optimize.brentq(lambda a: line_drift(problem, a, x).total, before, alpha))
        before = alpha
    return math.inf


def most_features(N: int, q: float) -> int:
    r"""Return a number of features among N patches that is exceeded with probability below 1e-26.

    Bernstein: :math:`P[K\geq m+t]\leq\exp(-t^2/(2(m+t/3)))` with m = Nq; for t = 12 sqrt(m) + 40
    the exponent is -60 or less for every m.
    """
    return min(N, math.ceil(N * q + 12.0 * math.sqrt(N * q) + 40.0))


def _feature_counts(N: int, q: float) -> tuple[np.ndarray, ...]:
    """Return numbers of patches with +1, -1, 0 out of N, up to `most_features`, and their law."""
    most = most_features(N, q)
    grid = np.meshgrid(np.arange(most + 1), np.arange(most + 1), indexing="ij")
    plus, minus = (counts[grid[0] + grid[1] <= most].astype(float) for counts in grid)
    zero = N - plus - minus
    log_ways = special.gammaln(N + 1.0) - sum(
        special.gammaln(count + 1.0) for count in (plus, minus, zero)
    )
    log_law = special.xlogy(plus + minus, q / 2) + special.xlog1py(zero, -q)
    return plus, minus, zero, np.exp(log_ways + log_law)
