r"""Componentwise a-posteriori comparison theorem for tubes (Mueller, Kamke).

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
the bound is proved, the theorem may be applied again with *during* instead of *bar*.
"""

from typing import NamedTuple

from flint import arb

from dynamics.core.balls.exact import above, exact
from dynamics.core.tube.clocks import Clock

_TRIES = 30
_REFINED = 3
_SLACK = 2.0  # factor between the final bar and the bound reached with it
_LOOSER = 2  # factor of defect and coupling in the test of the final bar


class Compared(NamedTuple):
    """Bounds of the distance from a polynomial piece.

    Attributes
    ----------
    bar
        A-priori bounds; the bounds of the matrix must be valid up to these distances.
    during
        Bounds on the piece.
    after
        Bounds at its end.
    """

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
    """Apply the theorem: search for a-priori bounds ``bar`` and return the bounds of the distance.

    Parameters
    ----------
    clock
        Gradient flow or descent.
    matrix
        Balls that contain the entries of B^-1 J B on the whole piece. The caller must check that
        they are valid for |z| <= bar.
    start, defect
        Upper bounds of |z| at the beginning and of the defect, per coordinate.
    length
        Length of the piece.
    least
        Lower bounds for ``bar``, used if the theorem applies with them. They leave slack for an
        independent computation of the same bounds.

    Returns
    -------
    Compared or None
        None if no ``bar`` satisfies the theorem.
    """
    n = len(start)
    factors = [clock.growth(matrix[i][i], length) for i in range(n)]
    off_diagonal = [
        [exact(above(abs(entry))) if i != j else arb(0) for j, entry in enumerate(row)]
        for i, row in enumerate(matrix)
    ]
    v = [exact(x) for x in start]

    def outcome(bar: list[float], looser: int = 1) -> Compared:
        drive = [
            d + sum((m * exact(x) for m, x in zip(row, bar)), arb(0))
            for d, row in zip(defect, off_diagonal)
        ]
        after = [
            above(whole * x + part * looser * b) for (whole, part), x, b in zip(factors, v, drive)
        ]
        return Compared(bar, [max(x, y) for x, y in zip(start, after)], after)

    bar = [1.01 * x + 1e-250 for x in start]
    for _ in range(_TRIES):
        result = outcome(bar)
        if all(x < y < float("inf") for x, y in zip(result.during, bar)):
            break
        bar = [max(y, 1.05 * x) for x, y in zip(result.during, bar)]
        if not all(x < 1e10 for x in bar):
            return None
    else:
        return None
    loose_bar, loose = result.bar, result
    for _ in range(_REFINED):
        loose_bar = [max(_SLACK * x, y) for x, y in zip(loose.during, least or result.during)]
        loose = outcome(loose_bar, looser=_LOOSER)
    if all(x < y for x, y in zip(loose.during, loose_bar)):  # another computation may be looser
        bar, result = loose_bar, loose
    for _ in range(_REFINED):
        result = outcome(result.during)
    return result._replace(bar=bar)
