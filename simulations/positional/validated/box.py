r"""Proofs for all values of the constants nu and q in a box.

For :math:`c=c_0+r\delta,\ |\delta_k|\le1`, the solution is compared with the curve
:math:`P+\sum_kS_k\delta_k`. P follows the middle of the box, and S_k approximates the derivative
of the solution by :math:`\delta_k`. By the mean value theorem

.. math:: f(P+S\delta;c)-f(P;c_0)=\delta\,(\tilde J S+\tilde g), \qquad g_k=r_k\,\partial f/
   \partial c_k,

with the means of J and g between the two points. Both are enclosed for the whole box. Hence
:math:`\tilde JS+\tilde g-S'` is a defect of second order in r, and the comparison theorem holds for
each c with the same bounds. The initial alpha of Parametrization 3.1, the tail, the floor, the loss
and the test error are enclosed for the whole box in the same way. A box whose tube ends before the
horizon is divided in two.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynamics import ParameterError, Problem, State
from dynamics.core.balls.exact import above, exact
from dynamics.core.checks import finite, integer, require
from dynamics.core.tube.clocks import Flow
from dynamics.core.tube.tube import Tube, enclose
from dynamics.positional.validated.system import Box, ReducedSystem
from simulations.outward import up
from simulations.positional.validated.proof import (
    DEGREE,
    GAP,
    Interval,
    Proof,
    checked_tolerance,
    conclude,
)

#: Constants that may vary.
VARIED = ("nu", "q")
_TOLERANCE = 1e-3
_MOST_BOXES = 32


@dataclass(frozen=True)
class Part:
    """A part of a box with what is proved for all its constants.

    Attributes
    ----------
    low, high
        Problems at the two ends of the part.
    proof
        The proof of the problem in its middle, valid for the whole part.
    """

    low: Problem
    high: Problem
    proof: Proof

    def ends(self, name: str) -> Interval:
        """Return (low, high) of a constant."""
        return getattr(self.low, name), getattr(self.high, name)


@dataclass(frozen=True)
class BoxProof:
    """Statements that are proved for all constants of a box.

    Attributes
    ----------
    low, high
        Problems at the two ends of the box.
    parts
        Parts that cover the box, ordered by their constants. Those that are not proved to the
        horizon are included.
    """

    low: Problem
    high: Problem
    parts: tuple[Part, ...]

    @property
    def proofs(self) -> list[Proof]:
        """The proofs of all parts."""
        return [part.proof for part in self.parts]

    @property
    def varied(self) -> list[str]:
        """Names of the constants that vary."""
        return [name for name in VARIED if getattr(self.low, name) < getattr(self.high, name)]

    @property
    def proved(self) -> bool:
        """Whether the tubes of all parts reach the horizon."""
        return all(proof.proved for proof in self.proofs)

    @property
    def fraction(self) -> float:
        """Fraction of the box that is proved to the horizon, by area."""
        return sum(self.share(part) for part in self.parts if part.proof.proved)

    def share(self, part: Part) -> float:
        """Return the fraction of the box that a part covers, by area."""
        lengths = [
            np.subtract(*part.ends(name)) / (getattr(self.low, name) - getattr(self.high, name))
            for name in self.varied
        ]
        return float(np.prod(lengths))

    @property
    def horizon(self) -> float:
        """Requested final time."""
        return self.proofs[0].horizon

    @property
    def time(self) -> float:
        """The horizon, at which all statements hold if the box is proved."""
        return self.horizon

    @property
    def enclosure(self) -> State:
        """(low, high) of alpha, gamma, rho at the horizon for all constants."""
        columns = zip(*(proof.enclosure for proof in self.proofs))
        return State(*(_hull(column) for column in columns))  # type: ignore[arg-type]

    @property
    def loss(self) -> Interval:
        """(low, high) of the loss at the horizon for all constants."""
        return _hull(proof.loss for proof in self.proofs)

    @property
    def test_error(self) -> Interval:
        """(low, high) of the test error at the horizon for all constants."""
        return _hull(proof.test_error for proof in self.proofs)

    @property
    def gap_positive_from(self) -> float:
        """Time from which gamma > rho to the horizon for all constants; infinite if none."""
        return max(proof.gap_positive_from for proof in self.proofs)

    @property
    def forever(self) -> bool:
        """Whether gamma > rho at all later times for all constants."""
        return all(proof.forever for proof in self.proofs)

    @property
    def association(self) -> bool:
        """Whether patch association holds at the horizon for all constants."""
        return all(proof.association for proof in self.proofs)

    @property
    def association_until(self) -> float:
        """Time until which patch association is proved after the horizon, for all constants."""
        return min(proof.association_until for proof in self.proofs)

    @property
    def domain(self) -> str:
        """The constants that vary and their intervals."""
        return " and ".join(
            f"{name} in [{getattr(self.low, name):.12g}, {getattr(self.high, name):.12g}]"
            for name in self.varied
        )

    @property
    def sentence(self) -> str:
        """Summary in one sentence."""
        if not self.proved:
            first = next(proof for proof in self.proofs if not proof.proved)
            return (
                f"not proved to time {self.horizon:g} for all {self.domain}: the part around "
                + ", ".join(f"{name} = {getattr(first.problem, name):.8g}" for name in self.varied)
                + f" ends {first.reason}"
            )
        since = self.gap_positive_from
        gap = f"; gamma > rho from time {up(since)} on{' for ever' * self.forever}"
        return (
            f"proved for all {self.domain}: the flow is enclosed to time {self.horizon:g}"
            + gap * math.isfinite(since)
        )


def _hull(intervals: Iterable[Any]) -> Interval:
    """Return the smallest interval that contains all intervals."""
    lows, highs = zip(*intervals)
    return min(lows), max(highs)


def prove_box(
    low: Problem,
    high: Problem,
    *,
    horizon: float,
    initial: State | None = None,
    tolerance: float | None = None,
    most_boxes: int = _MOST_BOXES,
    progress: Callable[[float], None] | None = None,
) -> BoxProof:
    """Enclose the flows of all problems between two, and prove what follows for all of them.

    Parameters
    ----------
    low, high
        Two problems that differ in nu or q or both; those of ``low`` are not larger.
    horizon
        Final time, from 1e-6 to 1e12.
    initial
        Initial state; the default is Parametrization 3.1, which depends on nu.
    tolerance
        Error of the polynomials relative to the length of the path, from 1e-11 to 0.1; 1e-3 by
        default.
    most_boxes
        Largest number of parts that are tried.
    progress
        Called with the fraction of the box that is decided.

    Raises
    ------
    ParameterError
        If an argument is not allowed.
    """
    require(1e-6 <= finite("horizon", horizon) <= 1e12, "horizon", horizon, "from 1e-6 to 1e12")
    start = None if initial is None else State(*map(finite, State._fields, initial))
    require(start is None or start.alpha > 0.0, "initial", initial, "a state with alpha > 0")
    chosen = _TOLERANCE if tolerance is None else checked_tolerance(tolerance)
    left = integer("most_boxes", most_boxes, 1, 10**6)
    _require_box(low, high)
    whole, waiting, parts = BoxProof(low, high, ()), [(low, high)], list[Part]()
    while waiting:
        first, last = waiting.pop()
        part, tube = _part(first, last, horizon, start, chosen)
        left -= 1
        if not part.proof.proved and left > len(waiting) + 1:
            waiting += _halves(first, last, tube)
            continue
        parts.append(part)
        if progress is not None:
            progress(sum(map(whole.share, parts)))
    return BoxProof(low, high, tuple(sorted(parts, key=lambda part: (part.low.q, part.low.nu))))


def _require_box(low: Problem, high: Problem) -> None:
    """Raise ParameterError unless two problems are the ends of a box of nu and q."""
    varied = [name for name in VARIED if getattr(low, name) != getattr(high, name)]
    if not varied or low.replace(nu=high.nu, q=high.q) != high:
        raise ParameterError("low and high are not allowed: they must differ in nu or q, only")
    for name in varied:
        ends = getattr(low, name), getattr(high, name)
        require(ends[0] < ends[1], name, f"{ends[0]:g}..{ends[1]:g}", "in increasing order")


def _part(
    low: Problem, high: Problem, horizon: float, start: State | None, tolerance: float
) -> tuple[Part, Tube]:
    """Return a part of a box with its proof, and its tube."""
    middle, radii = {}, {}
    for name in VARIED:
        ends = getattr(low, name), getattr(high, name)
        middle[name] = 0.5 * (ends[0] + ends[1])
        radii[name] = max(above(abs(exact(end) - exact(middle[name]))) for end in ends)
        radii[name] *= ends[0] < ends[1]
    problem = low.replace(**middle)
    system = ReducedSystem(problem, start, box=Box(**radii))
    tube = enclose(
        system, Flow(), float(horizon), tolerance=tolerance, functional=GAP, degree=DEGREE
    )
    return Part(low, high, conclude(problem, Flow(), float(horizon), system, tube)), tube


def _halves(low: Problem, high: Problem, tube: Tube) -> list[tuple[Problem, Problem]]:
    """Return the halves of a box, divided along the constant with the largest effect on a tube."""
    varied = [name for name in VARIED if getattr(low, name) < getattr(high, name)]
    slopes = tube.pieces[-1].slopes if tube.pieces else tuple(np.eye(len(varied)))
    weights = np.sqrt(low.multiplicity)
    effects = [float(np.linalg.norm(weights * np.sum(slope, axis=0))) for slope in slopes]
    name = varied[int(np.argmax(effects))]
    middle = 0.5 * (getattr(low, name) + getattr(high, name))
    return [(low.replace(**{name: middle}), high), (low, high.replace(**{name: middle}))]
