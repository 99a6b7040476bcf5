r"""The theorem behind a tube: componentwise a-posteriori comparison (Mueller, Kamke).

Let P be a curve and :math:`z = B^{-1} (\theta - P)` the distance of a solution from it in
coordinates B. On a piece of length h let the matrix of z, :math:`B^{-1} J B`, have entries at most
:math:`M_{ii}` on the diagonal and at most :math:`M_{ij}` in modulus off it, as long as
:math:`|z_i| \le bar_i`; let :math:`|z_i| \le v_i` at the beginning and the defect be at most
:math:`d_i`, in these coordinates. With :math:`b_i = d_i + \sum_{j\ne i} M_{ij}\,bar_j` and the
clock's factors :math:`e_i, \varphi_i`, put

.. math:: during_i = \max(v_i,\ e_i v_i + \varphi_i b_i).

If :math:`v < bar` and :math:`during < bar`, the solution exists on the piece and
:math:`|z| \le during` there, and :math:`|z_i| \le e_i v_i + \varphi_i b_i` at its end.

Proof. :math:`z_i' = \sum_j \tilde J_{ij} z_j + r_i` with :math:`\tilde J` the mean of J between
curve and solution, :math:`|r_i| \le d_i`. Before the first time at which some
:math:`|z_i| = bar_i`, :math:`D^+|z_i| \le M_{ii} |z_i| + b_i`, hence :math:`|z_i|` is at most a
function that is monotone in time and at most :math:`during_i < bar_i`: there is no such time. A
bounded solution continues to exist. For descent the same holds by induction over the steps. Once
it is proved, during may take the place of bar, as often as needed.
"""

from typing import NamedTuple

from flint import arb

from dynamics.core.balls.exact import above, exact
from dynamics.core.tube.clocks import Clock

_TRIES = 30
_REFINED = 3
_ROOMY = 2.0  # times what is reached with it: the bar, where that holds too
_LOOSER = 2  # times the defect and the coupling, in what is reached then


class Compared(NamedTuple):
    """Bounds of the distance on a piece and at its end, floats; the matrix must hold up to bar."""

    bar: list[float]
    during: list[float]
    after: list[float]


def compare(
    clock: Clock,
    matrix: list[list[arb]],
    start: list[float],
    defect: list[arb],
    length: arb,
    least: list[float] | None = None,
) -> Compared | None:
    """Return bounds of the distance, or None if no ``bar`` is found.

    ``matrix`` holds balls around the entries of B^-1 J B all over the piece; whether they hold for
    |z| <= bar is left to the caller. ``start`` and ``defect`` are upper bounds. Where that holds
    too, ``bar`` is at least ``least``, with slack for another computation of the same bounds.
    """
    n = len(start)
    factors = [clock.growth(matrix[i][i], length) for i in range(n)]
    beside = [
        [exact(above(abs(entry))) if i != j else arb(0) for j, entry in enumerate(row)]
        for i, row in enumerate(matrix)
    ]
    v = [exact(x) for x in start]

    def outcome(bar: list[float], looser: int = 1) -> Compared:
        drive = [
            d + sum((m * exact(x) for m, x in zip(row, bar)), arb(0))
            for d, row in zip(defect, beside)
        ]
        after = [
            above(whole * x + part * looser * b) for (whole, part), x, b in zip(factors, v, drive)
        ]
        return Compared(bar, [max(x, y) for x, y in zip(start, after)], after)

    bar = [1.01 * x + 1e-250 for x in start]
    for _ in range(_TRIES):
        found = outcome(bar)
        if all(x < y < float("inf") for x, y in zip(found.during, bar)):
            break
        bar = [max(y, 1.05 * x) for x, y in zip(found.during, bar)]
        if not all(x < 1e10 for x in bar):
            return None
    else:
        return None
    roomy, wider = found.bar, found
    for _ in range(_REFINED):
        roomy = [max(_ROOMY * x, y) for x, y in zip(wider.during, least or found.during)]
        wider = outcome(roomy, looser=_LOOSER)
    if all(x < y for x, y in zip(wider.during, roomy)):  # another computation may be less tight
        bar, found = roomy, wider
    for _ in range(_REFINED):
        found = outcome(found.during)
    return found._replace(bar=bar)
