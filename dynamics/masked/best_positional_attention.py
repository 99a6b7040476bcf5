r"""Best purely positional attention in masked image modelling, by convex optimisation.

With Phi = 0 the softmax of a masked patch p is a row ``s`` of weights, the same for every image
and mask, as masked patches remain keys. M of P patches are masked. Given that p is masked, let
:math:`r_1` and :math:`r_2` be the probabilities that one and that two given patches are unmasked,
and :math:`S_{k,m}` the weight on area m of cluster k without p. The loss is convex and quadratic:

.. math:: L(s) = \frac{M}{P}\frac{E[z^2]}{2}\Big[1 + (r_1-r_2)\sum_{q\neq p}s_q^2
   + \frac1K\sum_k\Big(r_2\sum_m S_{k,m}^2 - 2r_1S_{k,n}\Big)\Big].

The weight on p itself does not enter, so the other weights sum to at most 1. By convexity the best
row is constant on the cells of the common refinement.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from dynamics.core.errors import ParameterError
from dynamics.masked.problem import MaskedProblem


@dataclass(frozen=True)
class Best:
    """Best row of weights.

    Attributes
    ----------
    mass
        Weight of each cell, p itself last, (cells + 1,).
    loss
        Loss of this row.
    lower
        Lower bound of the loss of all rows: ``loss`` minus the duality gap.
    """

    mass: np.ndarray
    loss: float
    lower: float


@dataclass(frozen=True)
class Quadratic:
    """The loss ``scale (1 + w H w - 2 b w)`` in the weight w of each cell other than p.

    Attributes
    ----------
    scale, H, b
        Coefficients; H (cells, cells) and b (cells,).
    uniform
        Weight of each cell if all patches have the same weight, (cells,).
    """

    scale: float
    H: np.ndarray
    b: np.ndarray
    uniform: np.ndarray

    def loss(self, mass: np.ndarray) -> float:
        """Return the loss of a row."""
        return float(self.scale * (1.0 + mass @ self.H @ mass - 2.0 * self.b @ mass))

    @property
    def at_start(self) -> float:
        """Loss at Q = 0, with the same weight of all patches."""
        return self.loss(self.uniform)

    def slope(self, mass: np.ndarray) -> np.ndarray:
        """Return the gradient of the loss, (cells,)."""
        return np.asarray(2.0 * self.scale * (self.H @ mass - self.b))


def quadratic(problem: MaskedProblem) -> Quadratic:
    """Return the loss of positional attention on a problem with explicit partitions."""
    layout, P, M = problem.layout, problem.P, problem.masked
    r_1 = (P - M) / (P - 1.0)
    r_2 = r_1 * (P - M - 1.0) / (P - 2.0)
    size = layout.size[:-1]
    H = np.diag((r_1 - r_2) / size)
    b = np.zeros(size.size)
    for areas, member in zip(layout.clusters, layout.area[:, :-1]):
        for m in range(areas.slot.size):
            inside = (member == m).astype(float)
            H += r_2 / problem.K * np.outer(inside, inside)
        b += r_1 / problem.K * (member == areas.own)
    return Quadratic(0.5 * M / P * problem.mean_square_z, H, b, size / P)


def best(problem: MaskedProblem) -> Best:
    """Return the best positional attention of the query patch, with a bound from duality.

    Raises
    ------
    ParameterError
        If the partitions are not explicit; a cell with a patch on average may be empty.
    """
    if problem.partitions is None:
        raise ParameterError("problem is not allowed: its partitions must be given explicitly")
    form = quadratic(problem)
    cells = form.b.size
    ones = np.ones(cells)
    result = minimize(
        lambda w: form.loss(w) / form.scale,
        np.full(cells, 1.0 / (cells + 1)),
        jac=lambda w: form.slope(w) / form.scale,
        bounds=[(0.0, 1.0)] * cells,
        method="SLSQP",
        constraints={"type": "ineq", "fun": lambda w: 1.0 - w.sum(), "jac": lambda _: -ones},
        options={"maxiter": 500, "ftol": 1e-15},
    )
    mass = np.maximum(result.x, 0.0)
    mass /= max(1.0, float(mass.sum()))
    slope = form.slope(mass)
    gap = float(
        slope @ mass - min(0.0, float(slope.min()))
    )  # minimum over the corners of the simplex
    loss = form.loss(mass)
    return Best(np.append(mass, 1.0 - mass.sum()), loss, loss - gap)
