r"""Enclosures of the loss and of the test error on a box of states, and the floor of the loss.

The images with at most K features are summed. For all other images the loss is bounded by
:mod:`dynamics.positional.validated.tail`, and the test error by their probability.
"""

import math
from typing import NamedTuple

import numpy as np
from flint import arb, ctx

from dynamics.core.balls.exact import above, below, exact, from_ball
from dynamics.core.balls.series import Series
from dynamics.positional.problem import Problem
from dynamics.positional.validated.field import Field
from dynamics.positional.validated.tail import Tail

_BITS = 96
_MOST_FEATURES = 300  # terms of the sum in the floor, for which a lower bound is enough


class Outcomes(NamedTuple):
    """Enclosures (low, high) of the population loss and of the test error.

    Attributes
    ----------
    loss
        Population loss.
    test_error
        ``P[F <= 0]``, ties included.
    """

    loss: tuple[float, float]
    test_error: tuple[float, float]


def outcomes(field: Field, tail: Tail, box: Series) -> Outcomes:
    """Return enclosures of loss and test error for all states of a box.

    An image counts as undecided if the sign of F is not constant on the box, unless F vanishes at
    every state (:func:`is_tie`); then it counts as an error.

    Parameters
    ----------
    field
        Velocity field with its images.
    tail
        Bounds of the contribution of all other images.
    box
        Box of states: a series of order 0 with three lanes.
    """
    images, problem = field.images, field.problem
    F = field.outputs(box)
    loss = error = undecided = arb(0)
    with ctx.workprec(_BITS):
        for i, (mid, rad) in enumerate(zip(F.mid[0].tolist(), F.rad[0].tolist())):
            weight, value = from_ball(images.weight[i], images.error[i]), from_ball(mid, rad)
            loss += weight * _loss(value)
            if value <= 0:
                error += weight
            elif not value > 0:
                if images.total[i] == 0 and is_tie(problem, *images.sets(i)):
                    error += weight
                else:
                    undecided += weight
        beyond = sum(map(exact, tail.groups.mass[field.K + 1 :].tolist()), arb(0))
        lost = (
            exact(float(tail.bounds(box)[field.K, 0]))
            if math.isfinite(tail.bounds(box)[field.K, 0])
            else arb(0, math.inf)
        )
        most = (error + undecided + beyond).upper()
        return Outcomes(
            (max(0.0, below(loss)), above(loss + lost)),
            (max(0.0, below(error)), min(1.0, above(most))),
        )


def _loss(F: arb) -> arb:
    """Return a ball that contains log(1 + e^-F), without overflow."""
    low, high = F.lower(), F.upper()
    ends = [(-x).exp().log1p() if x > 0 else x.exp().log1p() - x for x in (low, high)]
    return ends[0].union(ends[1])


def is_tie(problem: Problem, types: list[tuple[int, int]], copies: list[int]) -> bool:
    r"""Return whether F = 0 at every state, for an image with T = 0.

    At T = 0, :math:`F=(\kappa\alpha)^p\sum_k\binom pkM_kX^kY^{p-k}` with X = Lambda - Gamma,
    Y = Gamma - Xi and :math:`M_k=\sum_is_i^kn_i^{p-k}`, the sum over all rows including those of
    the signal set. F vanishes at every state if all M_k do.

    Parameters
    ----------
    problem
        Constants.
    types, copies
        Types (a, b) of the nonempty random sets, and the number of sets of each type.
    """
    C, p = problem.C, problem.p
    for k in range(p):
        total = 0
        for (a, b), m in [((C, 0), 1), *zip(types, copies)]:
            rows = a + (-1) ** k * b + (C - a - b if k == 0 else 0)
            total += m * rows * (a - b) ** (p - k)
        if total:
            return False
    return True


def floor(problem: Problem, q_radius: float = 0.0) -> float:
    r"""Return a lower bound of the loss on the whole plane gamma = rho, :math:`\log2\,P[C+R\le0]`.

    R is the sum of the coefficients outside the signal set. The bound is proved for all sizes and
    odd increasing activations in ``symbolic.positional.floor`` (``patchdyn derive floor``). For
    alpha >= 0 the output F has the sign of T = C + R there, so that the loss is at least log 2 for
    T <= 0. For alpha < 0 this holds for T >= 0, which has no smaller probability. For C = 2 it is
    also a lower bound on rho = beta. The bound is valid for all q within ``q_radius`` of that of
    the problem.
    """
    N, C = problem.D - problem.C, problem.C
    with ctx.workprec(_BITS):
        q, total = exact(problem.q) + arb(0, 1) * exact(q_radius), arb(0)
        for k in range(C, min(N, _MOST_FEATURES) + 1):
            signs = sum(math.comb(k, plus) for plus in range((k - C) // 2 + 1))
            total += arb(math.comb(N, k) * signs) * (q / 2) ** k * (1 - q) ** (N - k)
        return max(0.0, below(total * arb.const_log2()))


def box_around(middle: np.ndarray, radius: np.ndarray) -> Series:
    """Return the box of states within ``radius`` (3,) of a state (3,)."""
    return Series(middle[None, :].astype(float), radius[None, :].astype(float))
