r"""Is gamma >= rho forward invariant? Proved, refuted or undecided on a box, in ball arithmetic.

The half plane gamma >= rho is forward invariant as long as d(gamma - rho)/dt >= 0 wherever the flow
meets its boundary gamma = rho = x (Nagumo). There (see
:mod:`simulations.positional.symmetric_line`; derived)

.. math::
   \frac{d(\gamma-\rho)}{dt} = c\,\alpha\,(1-D r)\,B, \quad c > 0, \qquad
   B = \mathbb E\Big[s(-F)\sum_{s\in\{0,-1\}} (1-s)\,N_s\,(N-1-R+s)\,
       \frac{y_1^{p-1}-y_s^{p-1}}{y_1-y_s}\Big],

with N = D - C patches outside the signal set, of which N_s have coefficient s; R the sum of these
coefficients, T = C + R; r = Gamma = 1/(e^{(beta-x)/tau} - 1 + D), and :math:`O_s=\kappa\alpha y_s`,

.. math::
   y_1 = 1-(D-T)r,\quad y_0 = T r,\quad y_{-1} = (D+T)r-1,\qquad
   F = (\kappa\alpha)^p\sum_s n_s y_s^p + \kappa\alpha\,\nu\,T

(n_s: the same counts with the signal set). This is proved in
:mod:`symbolic.positional.symmetric_line`. So the seven parameters enter through the four numbers
kappa alpha, (beta - x)/tau, nu and q, each made of parameters of its own: a box stays a box, and
its ends stay exact (:mod:`simulations.positional.invariance.box`). Given the number k of features,
the numbers of +1 and -1 are binomial, and B is the polynomial :math:`\sum_k \binom Nk
q^k(1-q)^{N-k} c_k` in Bernstein form, which lies between the least and the greatest of its
coefficients on any interval of q. The sum over states is complete (no tail is cut), and from the
exact ends on every operation is one of ball arithmetic (Arb, through python-flint): a sign found
here is proved.
"""

import heapq
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any

from dynamics import Population, ToleranceError
from simulations.positional.invariance.balls import coefficients, least_value
from simulations.positional.invariance.box import Box, Cell, Interval, Witness, read_box

__all__ = [
    "TOLERANCES",
    "Answer",
    "Box",
    "Cell",
    "Certificate",
    "Witness",
    "bounds",
    "certify",
    "drift_is_negative",
    "population_drift",
    "read_box",
]

#: Errors of the population gradients that check certificates, tried in this order.
TOLERANCES = (1e-11, 1e-9, 1e-7, 1e-5)


class Answer(StrEnum):
    """What ball arithmetic says about a box."""

    PROVED = "proved"
    REFUTED = "refuted"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Certificate:
    """What was found on a box, and at which cost.

    ``share`` is the part of the box (by volume in the four numbers that matter) that is proved.
    """

    box: Box
    answer: Answer
    witness: Witness | None
    share: float
    cells: int
    precision: int

    @property
    def sentence(self) -> str:
        """What it means."""
        where = f"on gamma = rho in the box {self.box.describe()}"
        match self.answer:
            case Answer.PROVED:
                return f"proved: d(gamma - rho)/dt >= 0 everywhere {where}"
            case Answer.REFUTED:
                assert self.witness is not None
                point = ", ".join(f"{k} = {v}" for k, v in self.witness.describe().items())
                return f"refuted: d(gamma - rho)/dt < 0 {where}, at {point}"
        return (
            f"undecided at precision {self.precision} bits after {self.cells} boxes {where}: "
            f"proved on {self.share:.3%} of it"
        )


def certify(
    box: Box,
    *,
    precision: int = 96,
    most: int = 5000,
    progress: Callable[[float], None] | None = None,
) -> Certificate:
    """Decide whether d(gamma - rho)/dt >= 0 on gamma = rho all over the box.

    The cell with the lowest bound is halved until all are proved, one holds a witness, or ``most``
    cells have been looked at.
    """
    waiting: list[tuple[float, int, Cell, float]] = []
    order = itertools.count()
    proved, cells, total = 0.0, 0, 0.0
    for cell in box.cells():
        total += (share := _volume(cell))
        waiting.append((-math.inf, next(order), cell, share))
    while waiting:
        if cells >= most:
            share = proved / total if total else 0.0
            return Certificate(box, Answer.UNDECIDED, None, share, cells, precision)
        _, _, cell, share = heapq.heappop(waiting)
        cells += 1
        low, _, worst = bounds(box, cell, precision)
        if low >= 0.0:
            proved += share
            if progress is not None:
                progress(proved / total if total else 1.0)
            continue
        if (witness := _witness(box, cell, worst, precision)) is not None:
            share = proved / total if total else 0.0
            return Certificate(box, Answer.REFUTED, witness, share, cells, precision)
        halves = _halves(box, cell, precision)
        for half in halves:
            heapq.heappush(waiting, (low, next(order), half, share / len(halves)))
        if not halves:  # a point whose sign the precision does not show
            return Certificate(box, Answer.UNDECIDED, None, proved / total, cells, precision)
    return Certificate(box, Answer.PROVED, None, 1.0, cells, precision)


def bounds(box: Box, cell: Cell, precision: int = 96) -> tuple[float, float, Fraction]:
    """Return bounds of sign(1 - D r) B on a cell, and a q at which the lower one is low.

    They are floats rounded outwards: no point of the cell has a value outside. The contrast of a
    cell does not change sign.
    """
    amplitude, contrast, nu, q = (_fractions(ends) for ends in cell)
    low, high = coefficients(box.D, box.C, box.p, amplitude, contrast, nu, precision)
    if contrast[0] < 0:
        low, high = tuple(-c for c in high), tuple(-c for c in low)
    from flint import ctx

    with ctx.workprec(precision):
        least, worst = least_value(low, *q)
        greatest, _ = least_value(tuple(-c for c in high), *q)
    return least, -greatest, worst


def drift_is_negative(witness: Witness, precision: int = 96) -> bool:
    """Return whether d(gamma - rho)/dt < 0 is proved at one point."""
    if witness.alpha <= 0 or witness.beta == witness.x:  # where the drift vanishes
        return False
    point = witness.alpha, witness.alpha
    box = Box(witness.D, witness.C, point, (witness.q, witness.q), p=witness.p)
    return bounds(box, witness.cell, precision)[1] < 0.0


def population_drift(witness: Witness) -> tuple[float, float]:
    """Return d(gamma - rho)/dt by the population gradient, and a bound of its error.

    It is taken at the floats next to the point. The first of `TOLERANCES` that the expectation can
    meet is taken; (nan, inf) if it meets none.
    """
    for tolerance in TOLERANCES:
        try:
            value = Population(witness.problem, tolerance=tolerance).evaluate(witness.state)
        except ToleranceError:
            continue
        return value.gradient.rho - value.gradient.gamma, 2.0 * value.bound
    return math.nan, math.inf


def _fractions(ends: tuple[Any, Any]) -> Interval:
    return Fraction(ends[0]), Fraction(ends[1])


def _volume(cell: Cell) -> float:
    """Return the volume, fixed numbers left out."""
    return math.prod(float(high - low) for low, high in cell if high > low)


def _halves(box: Box, cell: Cell, precision: int) -> list[Cell]:
    """Halve the cell across the number that, fixed at its middle, narrows the bounds most."""
    widths: dict[str, float] = {}
    for name in cell._fields:
        low, high = _fractions(getattr(cell, name))
        if low < high:
            middle = (low + high) / 2
            thin = cell._replace(**{name: (middle, middle)})
            least, greatest, _ = bounds(box, thin, precision)
            widths[name] = greatest - least
    if not widths:
        return []
    name = min(widths, key=lambda key: widths[key])
    low, high = _fractions(getattr(cell, name))
    middle = (low + high) / 2
    return [cell._replace(**{name: (low, middle)}), cell._replace(**{name: (middle, high)})]


def _witness(box: Box, cell: Cell, q: Fraction, precision: int) -> Witness | None:
    """Return a point of the box at which the drift is proved negative, if a corner is one."""
    beta, x, taus = box.ends("beta"), box.ends("x"), box.ends("tau")
    for amplitude in dict.fromkeys(cell.amplitude[::-1]):
        for contrast in dict.fromkeys((sum(cell.contrast) / 2, *cell.contrast)):
            nu = cell.nu[1] if amplitude == cell.amplitude[1] else cell.nu[0]
            if amplitude <= 0 or nu <= 0 or q <= 0:
                continue
            kappa, alpha = _on_path(
                float(amplitude), (box.ends("kappa"), box.ends("alpha")), lambda k, a: k * a
            )
            b, at, t = _on_path(
                float(contrast),
                (beta, x[::-1], taus if contrast < 0 else taus[::-1]),
                lambda b, at, t: (b - at) / t,
            )
            found = Witness(box.D, box.C, box.p, q, Fraction(nu), b, t, kappa, alpha, at)
            if drift_is_negative(found, precision):
                return found
    return None


def _on_path(target: float, ends: tuple[Interval, ...], value: Callable[..., float]) -> Any:
    """Return a point on the line from the first ends to the last, where a rising value is a target.

    The place is found in floats and then taken exactly, so that the point lies between the ends.
    """
    rough = [(float(first), float(last)) for first, last in ends]
    low, high = 0.0, 1.0
    for _ in range(53):
        middle = 0.5 * (low + high)
        there = value(*(first + middle * (last - first) for first, last in rough))
        low, high = (middle, high) if there < target else (low, middle)
    place = Fraction(high)
    return [first + place * (last - first) for first, last in ends]
