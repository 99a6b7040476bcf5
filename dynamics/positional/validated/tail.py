r"""Bounds, valid on a box, of the velocity from images with more than K features.

The velocity is :math:`f = f_K + g`, g the sum over all images with more than K features. As
:math:`0<s(-F)<1`, :math:`|g_i|\le\sum_{k>K}P[N=k]\,E[|F_i|\mid N=k]/w_i`. The binomial
probabilities are upper bounds from Arb balls. The conditional expectations are bounded by
:mod:`dynamics.positional.population.truncation` at the largest weights and the largest alpha of the
box. The Jacobian of g is not needed.
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


@lru_cache(maxsize=8)
def groups(problem: Problem, q_radius: float = 0.0) -> Neglected:
    """Return all images grouped by N = 0 .. k_max and N > k_max, with certified probabilities.

    They are valid for all q within ``q_radius`` of that of the problem. The probability of
    N > k_max increases with q.
    """
    rough = binomial_tail(problem)
    N, k_max = problem.D - problem.C, rough.mass.size - 2
    with ctx.workprec(_BITS):
        middle, radius = exact(problem.q), exact(q_radius)

        def masses(q: arb) -> list[arb]:
            return [arb(math.comb(N, k)) * q**k * (1 - q) ** (N - k) for k in range(k_max + 1)]

        largest = sum(masses(middle + radius), arb(0))
        beyond = max(0.0, above(1 - largest)) if k_max < N else 0.0
        mass = masses(middle + arb(0, 1) * radius)
        exact_mass = np.array([*map(above, mass), beyond])
    return rough._replace(mass=exact_mass)


class Tail:
    """Bounds of the contribution of images with more than K features, for all K.

    Parameters
    ----------
    problem
        Constants.
    q_radius, nu_radius
        The bounds are valid for all q and nu up to this distance from those of the problem.
    """

    def __init__(self, problem: Problem, q_radius: float = 0.0, nu_radius: float = 0.0) -> None:
        self.problem = problem
        self.groups = groups(problem, q_radius)
        largest = above(exact(problem.nu) + exact(nu_radius)) if nu_radius else problem.nu
        self.constants = Constants.of(problem)._replace(nu=largest)

    def bounds(self, box: Series) -> np.ndarray:
        """Return bounds for all states of a box.

        Parameters
        ----------
        box
            Box of states: a series of order 0 with three lanes.

        Returns
        -------
        ndarray, shape (k_max + 2, 4)
            Row K contains the bounds for all images with more than K features; the last row is 0.
            Columns: the loss, and the velocities of alpha, gamma and rho. The bounds are not finite
            if the box is not.
        """
        weights = Attention.along(self.problem, box)
        parts = (
            weights.Lambda,
            weights.Gamma,
            weights.Xi,
            weights.Lambda_minus_Gamma,
            weights.Gamma_minus_Xi,
        )
        alpha, *bounds = (
            float(abs(part.mid[0, 0]) + part.rad[0, 0]) * (1.0 + 1e-15)
            for part in (box.lane(slice(0, 1)), *parts)
        )
        contributions = weighted_bounds(self.groups, self.constants, alpha, tuple(bounds))
        beyond = np.cumsum(contributions[:0:-1], axis=0)[::-1] * OUTWARD
        return np.vstack([beyond, np.zeros((1, contributions.shape[1]))])
