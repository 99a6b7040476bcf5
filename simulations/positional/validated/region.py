r"""Patch association for all nu and q of a box, from a region that no flow of the box leaves.

For :math:`0\le t\le T` the flow from Parametrization 3.1 stays in

.. math:: 0\le\alpha\le A(\gamma),\qquad \rho\le0,\qquad \gamma\ge\rho,

if its velocity points strictly inwards on each face. A is piecewise linear, chosen between the
alpha where alpha' = 0 and the one where rho' = 0; no proof depends on the choice:

* gamma = rho: d(gamma - rho)/dt > 0 (:mod:`simulations.positional.invariance.certified`);
* rho = 0 <= gamma: rho' < 0; and alpha = A(gamma): alpha' < A' gamma'
  (:mod:`dynamics.positional.validated.faces`);
* alpha = 0: alpha' = kappa nu C/2 > 0, because p > 1 and E T = C.

gamma and rho are bounded, because the flow decreases the loss L at the rate
:math:`\alpha'^2+D(C-1)\gamma'^2+D(D-C)\rho'^2`: with the Cauchy-Schwarz inequality,
:math:`\gamma(t)^2\le TL(0)/(D(C-1))`, and :math:`\rho(t)^2\le TL(0)/(D(D-C))`. The start is on the
faces gamma = rho and rho = 0, so that gamma > rho and rho < 0 < beta for 0 < t <= T. The proof
fails where the statement is true but the margin is too small; a box is then divided.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy import optimize

from dynamics import ParameterError, Problem
from dynamics.core.balls.exact import above, exact
from dynamics.core.checks import finite, require
from dynamics.positional.population.states import count_states
from dynamics.positional.validated.all_images import AllImages, all_images
from dynamics.positional.validated.faces import (
    Constants,
    alpha_bound,
    boxes_of_face,
    loss_bound,
    rho_bound,
)
from simulations.positional.invariance.box import Box
from simulations.positional.invariance.certified import Answer, certify

#: Largest number of multisets of an image.
MOST_STATES = 20_000
_STEP, _STEP_BEYOND = 0.25, 0.5  # between bends of A, up to gamma = 2 and beyond
_WIDTH, _MOST_BOXES = 2.0**-9, 30_000
_MOST_EXPONENT = 300.0


class Ends(NamedTuple):
    """The ends of a constant."""

    low: float
    high: float

    def halves(self) -> tuple[Ends, Ends]:
        """Return both halves."""
        middle = 0.5 * (self.low + self.high)
        return Ends(self.low, middle), Ends(middle, self.high)


@dataclass(frozen=True)
class Region:
    """A region of states that no flow leaves until the horizon.

    Attributes
    ----------
    gamma, height
        Bends of the upper bound A(gamma) of alpha, and its values there.
    rho
        The smallest rho.
    """

    gamma: tuple[float, ...]
    height: tuple[float, ...]
    rho: float

    def segments(self) -> Iterator[tuple[tuple[float, float], tuple[float, float]]]:
        """Yield the ends of each linear segment of A: gamma, and A."""
        ends = zip(self.gamma, self.gamma[1:]), zip(self.height, self.height[1:])
        return zip(*ends)


@dataclass(frozen=True)
class AssociationProof:
    """Result for all nu and q of a box.

    Attributes
    ----------
    nu, q
        Ends of the constants.
    horizon
        Final time T.
    region
        The region; None if there is none whose heights are in order.
    failure
        The first face whose velocity is not proved to point inwards; empty if all are.
    boxes
        Number of boxes of states.
    """

    nu: Ends
    q: Ends
    horizon: float
    region: Region | None
    failure: str
    boxes: int

    @property
    def proved(self) -> bool:
        """Whether gamma > rho and patch association are proved for 0 < t <= T."""
        return not self.failure


def prove_association(
    problem: Problem, nu: tuple[float, float], q: tuple[float, float], horizon: float
) -> AssociationProof:
    """Try to prove gamma > rho and patch association at all times, for all nu and q of a box.

    Parameters
    ----------
    problem
        The other constants; its nu and q are not used.
    nu, q
        (low, high) of both constants; equal ends are allowed.
    horizon
        Final time; see `require_provable`.

    Raises
    ------
    ParameterError
        If an argument is not allowed.
    """
    require_provable(problem, horizon)
    for name, (low, high) in {"nu": nu, "q": q}.items():
        require(low <= high, name, f"{low:g}..{high:g}", "in increasing order")
        problem.replace(**{name: low})
        problem.replace(**{name: high})
    search = _Search(problem, Ends(*nu), Ends(*q), horizon)
    region, failure = search.region(), ""
    if region is None:
        failure = "no region: at a corner of the box, rho' > 0 or alpha(0) is too large"
    else:
        failure = search.failure(region)
    return AssociationProof(search.nu, search.q, horizon, region, failure, search.boxes)


def corners_have_regions(problem: Problem, nu: Ends, q: Ends, horizon: float) -> bool:
    """Return whether there is a region at each corner of a box; else its parts there all fail."""
    points = [(Ends(n, n), Ends(x, x)) for n in nu for x in q]
    return all(_Search(problem, *point, horizon).region() is not None for point in points)


def require_provable(problem: Problem, horizon: float) -> None:
    """Raise ParameterError unless a proof can be tried.

    beta must be positive, the images few, and the horizon so short that e^(gamma/tau) does not
    overflow: gamma may reach (T/(D(C-1)))^(1/2) at a loss of 1.
    """
    longest = _MOST_EXPONENT**2 * problem.tau**2 * problem.D * (problem.C - 1)
    allowed = f"from 1e-6 to {longest:.4g} here"
    require(1e-6 <= finite("horizon", horizon) <= longest, "horizon", horizon, allowed)
    require(problem.beta > 0.0, "beta", problem.beta, "greater than 0: the proof needs rho < beta")
    states = count_states(problem, problem.D - problem.C)[-1]
    if states > MOST_STATES:
        raise ParameterError(
            f"D = {problem.D}, C = {problem.C} is not allowed: {states:.3g} multisets of images, "
            f"at most {MOST_STATES} are summed for each box"
        )


@lru_cache(maxsize=2)
def _images(problem: Problem) -> AllImages:
    return all_images(problem)


class _Search:
    """The steps of one proof."""

    def __init__(self, problem: Problem, nu: Ends, q: Ends, horizon: float) -> None:
        self.problem, self.nu, self.q, self.boxes = problem, nu, q, 0
        self.images = _images(problem.replace(nu=1.0, q=0.5))
        self.constants = self._constants(nu, q)
        powers = [(exact(end).log() / (problem.p - 1)).exp() for end in nu]  # Parametrization 3.1
        self.start = -above(-powers[0]), above(powers[1])
        energy = exact(horizon) * exact(loss_bound(self.start, self.constants, self.images))
        D, C = problem.D, problem.C
        self.gamma = above((energy / (D * (C - 1))).sqrt())
        self.rho = -above((energy / (D * (D - C))).sqrt())

    def _constants(self, nu: Ends, q: Ends) -> Constants:
        problem, ends = self.problem, ((nu.low, nu.high), (q.low, q.high))
        sizes = problem.D, problem.C, problem.p
        return Constants(*sizes, problem.kappa, problem.tau, problem.beta, *ends)

    def region(self) -> Region | None:
        """Return a region that is likely to be invariant; None if the heights are not in order."""
        first = min(2.0, self.gamma)
        bends = np.unique(
            [
                *np.linspace(0.0, first, math.ceil(first / _STEP) + 1),
                *np.linspace(first, self.gamma, math.ceil((self.gamma - first) / _STEP_BEYOND) + 1),
            ]
        ).tolist()
        corners = [
            self._constants(Ends(n, n), Ends(x, x)) for n in set(self.nu) for x in set(self.q)
        ]
        heights = list[float]()
        for gamma in bends:
            pairs = [self._levels(gamma, corner) for corner in corners]
            least, most = max(x for x, _ in pairs), min(y for _, y in pairs)
            if not heights:
                least = max(least, self.start[1])
            height = min(math.sqrt(least * most), *heights[-1:], math.inf)
            if not least < height < most:
                return None
            heights.append(height)
        return Region((self.rho, *bends), (heights[0], *heights), self.rho)

    def _levels(self, gamma: float, corner: Constants) -> tuple[float, float]:
        """Return the alpha where alpha' = 0, and the first beyond where rho' = 0, at rho = 0."""
        point, rho = (gamma, gamma), (0.0, 0.0)

        def growth(x: float) -> float:
            return alpha_bound(point, rho, (x, x), (0.0, 0.0), corner, self.images)

        def rise(x: float) -> float:
            return rho_bound(point, rho, (x, x), corner, self.images)

        low, top = 0.0, 1.0
        while growth(top) > 0.0:
            low, top = top, 2.0 * top
            if top > 1e3:
                return top, top
        least = optimize.brentq(growth, low, top, rtol=1e-4)
        most = 1.15 * least
        if rise(least) >= 0.0 or rise(most) <= 0.0:
            return least, most if rise(least) < 0.0 else least
        return least, optimize.brentq(rise, least, most, rtol=1e-4)

    def failure(self, region: Region) -> str:
        """Return the first face on which the velocity is not proved to point inwards, or ""."""
        if not self.start[1] < region.height[0]:
            return "alpha(0) is not below A(0)"
        if not self._gap_grows(region):
            return "gamma = rho"
        for ends, heights in region.segments():
            for is_rho in (True, False):
                if is_rho and ends[1] <= 0.0:
                    continue
                boxes = boxes_of_face(
                    is_rho, ends, heights, region.rho, _WIDTH, _MOST_BOXES, self.constants,
                    self.images,
                )  # fmt: skip
                self.boxes += boxes
                if not boxes:
                    face = "rho = 0" if is_rho else "alpha = A(gamma)"
                    return f"{face} for gamma from {ends[0]:.3g} to {ends[1]:.3g}"
        return ""

    def _gap_grows(self, region: Region) -> bool:
        """Return whether d(gamma - rho)/dt > 0 on gamma = rho for 0 < alpha <= A."""
        problem = self.problem
        box = Box(
            problem.D,
            problem.C,
            (0.0, 1.0000001 * region.height[0]),
            self.q,
            (region.rho, 0.0),
            self.nu,
            (problem.beta, problem.beta),
            (problem.tau, problem.tau),
            (problem.kappa, problem.kappa),
            problem.p,
        )
        certificate = certify(box, most=_MOST_BOXES // 10, strict=True)
        self.boxes += certificate.cells
        return certificate.answer is Answer.PROVED
