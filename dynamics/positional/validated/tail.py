r"""What is neglected beyond K features, bounded on a box: a perturbation of the velocity.

The velocity is :math:`f = f_K + g`, g the sum over all images with more than K features. As
:math:`0<s(-F)<1`, :math:`|g_i|\le\sum_{k>K}P[N=k]\,E[|F_i|\mid N=k]/w_i`. The binomial
probabilities are exact (Arb, rounded up); given N = k the moments of
:mod:`dynamics.positional.population.truncation` bound the rest, with the largest weights and the
largest alpha of the box. No Jacobian of g is needed.
"""

import math
from functools import lru_cache

import numpy as np
from flint import arb, ctx

from dynamics.core.balls.exact import above, exact
from dynamics.core.balls.series import Series
from dynamics.positional.population.expectation import Constants
from dynamics.positional.population.rounding import OUTWARD
from dynamics.positional.population.truncation import Neglected, binomial_tail, weighted_bounds
from dynamics.positional.problem import Problem
from dynamics.positional.validated.field import Attention

_BITS = 128


@lru_cache(maxsize=4)
def groups(problem: Problem) -> Neglected:
    """Return all images grouped by N = 0 .. k_max and beyond, with exact probabilities."""
    rough = binomial_tail(problem)
    N, k_max = problem.D - problem.C, rough.mass.size - 2
    with ctx.workprec(_BITS):
        q = exact(problem.q)
        mass = [arb(math.comb(N, k)) * q**k * (1 - q) ** (N - k) for k in range(k_max + 1)]
        beyond = max(0.0, above(1 - sum(mass, arb(0)))) if k_max < N else 0.0
        exact_mass = np.array([*map(above, mass), beyond])
    return rough._replace(mass=exact_mass)


class Tail:
    """Bounds of what lies beyond K, for every K at once."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.groups = groups(problem)
        self.constants = Constants.of(problem)

    def bounds(self, box: Series) -> np.ndarray:
        """Return bounds (k_max + 2, 4) on a box: row K is of all images with more than K features.

        ``box`` has order 0 and three lanes. Columns: the loss, and the velocity of alpha, gamma,
        rho; the last row is the neglected nothing. Not finite where the box is not.
        """
        weights = Attention.along(self.problem, box)
        parts = (
            weights.Lambda,
            weights.Gamma,
            weights.Xi,
            weights.Lambda_minus_Gamma,
            weights.Gamma_minus_Xi,
        )
        alpha, *most = (
            float(abs(part.mid[0, 0]) + part.rad[0, 0]) * (1.0 + 1e-15)
            for part in (box.lane(slice(0, 1)), *parts)
        )
        each = weighted_bounds(self.groups, self.constants, alpha, tuple(most))
        beyond = np.cumsum(each[:0:-1], axis=0)[::-1] * OUTWARD
        return np.vstack([beyond, np.zeros((1, each.shape[1]))])
