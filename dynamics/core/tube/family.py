"""A family of curves P + S delta, |delta| <= 1, around the curve P of a piece.

delta has one coordinate for each constant that may vary, and S is the derivative of the solution by
the constants, scaled to their intervals. The functions bound the family on a part of a piece.
"""

from typing import TypeAlias

import numpy as np
from flint import arb, arb_mat

from dynamics.core.balls.exact import above, below, exact
from dynamics.core.tube.polynomials import around, span

#: J S + g - S' for one constant: vector coefficients in the time, and a remainder.
Deviation: TypeAlias = tuple[list[arb_mat], arb_mat]
Interval: TypeAlias = tuple[float, float]


def deviation_bounds(inverse: arb_mat, deviations: list[Deviation], width: arb) -> list[arb]:
    """Return bounds of the deviations of all constants on a part, in the coordinates.

    Parameters
    ----------
    inverse
        Inverse of the basis of the coordinates, (n, n).
    deviations
        Deviations around the middle of the part.
    width
        Half of the length of the part, in units of half of the piece.
    """
    n = inverse.nrows()
    total = [arb(0)] * n
    for local, remainder in deviations:
        turned, last = [inverse * term for term in local], inverse * remainder
        for i in range(n):
            total[i] += abs(span([term[i, 0] for term in turned], width) + last[i, 0]).upper()
    return total


class FamilyPart:
    """The curves of a family on a part of a piece.

    Parameters
    ----------
    n
        Number of coordinates.
    slopes
        Columns S of each constant, as vector coefficients in the time of the piece.
    length
        Length of the piece.
    width, centre
        Half of the length of the part and its middle, in units of half of the piece.
    deviations
        Deviations around the middle of the part.
    """

    def __init__(
        self,
        n: int,
        slopes: list[list[arb_mat]],
        length: arb,
        width: arb,
        centre: arb,
        deviations: list[Deviation],
    ) -> None:
        self.n, self.width, self.deviations = n, width, deviations
        self.slopes = [around(slope, centre) for slope in slopes]
        self.rates = [
            around([v * (2 * (j + 1) / length) for j, v in enumerate(slope[1:])], centre)
            for slope in slopes
        ]

    def spread(self) -> list[arb]:
        """Return bounds of |S delta|, one for each coordinate."""
        return [
            sum((self._span(slope, i).upper() for slope in self.slopes), arb(0))
            for i in range(self.n)
        ]

    def _span(self, terms: list[arb_mat], i: int) -> arb:
        return abs(span([term[i, 0] for term in terms], self.width))

    def enlarged(
        self, functional: np.ndarray, value: Interval, rate: Interval
    ) -> tuple[Interval, Interval]:
        """Return (low, high) of a functional and of its rate for all curves of the family.

        ``value`` and ``rate`` are (low, high) for the curve P alone.
        """
        row = arb_mat(1, self.n, [exact(w) for w in functional])
        more, faster = arb(0), arb(0)
        for slope, velocity, (local, remainder) in zip(self.slopes, self.rates, self.deviations):
            more += self._span([row * term for term in slope], 0).upper()
            faster += self._span([row * term for term in velocity], 0).upper()
            faster += self._span([row * term for term in local], 0).upper()
            faster += abs((row * remainder)[0, 0]).upper()
        return _enlarged(value, more), _enlarged(rate, faster)


def _enlarged(interval: Interval, by: arb) -> Interval:
    """Return an interval, enlarged at both ends."""
    low, high = interval
    return (below(exact(low) - by), above(exact(high) + by)) if by > 0 else interval
