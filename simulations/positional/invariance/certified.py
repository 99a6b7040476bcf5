r"""Forward invariance of gamma >= rho on boxes: proved, refuted or undecided in ball arithmetic.

The half plane gamma >= rho is forward invariant as long as d(gamma - rho)/dt >= 0 wherever the flow
meets its boundary gamma = rho = x (Nagumo). On the boundary (see
:mod:`simulations.positional.symmetric_line`)

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
:mod:`symbolic.positional.symmetric_line`. The seven parameters enter only through the four numbers
kappa alpha, (beta - x)/tau, nu and q, which have no parameter in common: a box of parameters is a
box in these numbers, with exact ends (:mod:`simulations.positional.invariance.box`). Given the
number k of features, the numbers of +1 and -1 are binomial, and B is the polynomial
:math:`\sum_k \binom Nk q^k(1-q)^{N-k} c_k` in Bernstein form. On any interval of q it lies between
its smallest and its largest coefficient. The sum is over all images, without truncation, and all
operations on the exact ends are in ball arithmetic (Arb, through python-flint). The resulting signs
are therefore proved.
"""

import heapq
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any

from dynamics import ParameterError, Population, ToleranceError
from simulations.falsify import parse
from simulations.positional.invariance.balls import coefficients, least_value
from simulations.positional.invariance.box import VARIED, Box, Cell, Interval, Witness, read_box

__all__ = [
    "TOLERANCES",
    "Answer",
    "Box",
    "Cell",
    "Certificate",
    "Witness",
    "bounds",
    "certify",
    "certify_conjecture",
    "drift_is_negative",
    "population_drift",
    "read_box",
]

#: Tolerances of the population gradients that check certificates, tried in this order.
TOLERANCES = (1e-11, 1e-9, 1e-7, 1e-5)
#: The only conjecture that can be certified.
CONJECTURE = "gamma >= rho"


class Answer(StrEnum):
    """Result of ball arithmetic on a box."""

    PROVED = "proved"
    REFUTED = "refuted"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Certificate:
    """Result on a box.

    Attributes
    ----------
    box, answer
        The box and the result.
    witness
        A point with a negative drift; None unless refuted.
    share
        Proved share of the box, by volume in the numbers of `Cell`.
    cells
        Number of cells examined.
    precision
        Bits of ball arithmetic.
    """

    box: Box
    answer: Answer
    witness: Witness | None
    share: float
    cells: int
    precision: int

    @property
    def sentence(self) -> str:
        """Result in one sentence."""
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
    strict: bool = False,
    progress: Callable[[float], None] | None = None,
) -> Certificate:
    """Decide whether d(gamma - rho)/dt >= 0 on gamma = rho everywhere in a box.

    The cell with the lowest bound is bisected until all cells are proved, one contains a witness,
    or ``most`` cells have been examined.

    Parameters
    ----------
    box
        Parameters and states.
    precision
        Bits of ball arithmetic.
    most
        Largest number of cells.
    strict
        Decide whether it is positive for alpha > 0.
    progress
        Called with the proved share of the box.
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
        if low > 0.0 or (low == 0.0 and not strict):
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
        if not halves:  # a point whose sign needs a higher precision
            return Certificate(box, Answer.UNDECIDED, None, proved / total, cells, precision)
    return Certificate(box, Answer.PROVED, None, 1.0, cells, precision)


def certify_conjecture(
    conjecture: str, box: str, precision: int, progress: Callable[[float], None] | None
) -> tuple[dict[str, Any], str]:
    """Prove or refute gamma >= rho on a box, for ``patchdyn falsify --certify``.

    Parameters
    ----------
    conjecture
        Must be gamma >= rho.
    box
        Box in the notation of `read_box`.
    precision
        Bits of ball arithmetic.
    progress
        Called with the proved share of the box.

    Returns
    -------
    dict, str
        The certificate as data and as text.

    Raises
    ------
    ParameterError
        If the conjecture is another one, or the box is not allowed.
    """
    parse(conjecture, {"gamma", "rho"})
    if "".join(conjecture.split()) not in ("gamma>=rho", "rho<=gamma"):
        raise ParameterError(
            f"CONJECTURE = {conjecture!r} is not allowed with --certify: only {CONJECTURE!r} is"
        )
    if not box:
        raise ParameterError(
            "--certify needs a --box, such as --box 'D=16, C=4, qD=0..2, alpha=0..0.2'"
        )
    certificate = certify(read_box(box), precision=precision, progress=progress)
    drift = population_drift(certificate.witness) if certificate.witness else None
    return _record(certificate, drift), _text(certificate, drift)


def _text(certificate: Certificate, drift: tuple[float, float] | None) -> str:
    """Return a certificate as text, with the drift at its witness and the bound of its error."""
    lines = [certificate.sentence]
    if drift is not None:
        lines.append(
            f"  population gradient there: d(gamma - rho)/dt = {drift[0]:.6g} +- {drift[1]:.1g}"
        )
    lines.append(f"  boxes examined: {certificate.cells}, precision {certificate.precision} bits")
    return "\n".join(lines)


def _record(certificate: Certificate, drift: tuple[float, float] | None) -> dict[str, Any]:
    """Return a certificate as data."""
    witness = certificate.witness
    return {
        "answer": certificate.answer,
        "sentence": certificate.sentence,
        "box": {name: list(map(float, certificate.box.ends(name))) for name in VARIED}
        | {name: getattr(certificate.box, name) for name in ("D", "C", "p")},
        "box, exactly": certificate.box.describe(),
        "proved share": certificate.share,
        "boxes examined": certificate.cells,
        "precision": certificate.precision,
        "witness": witness
        and {
            "problem": witness.problem,
            "alpha": float(witness.alpha),
            "x": float(witness.x),
            "exactly": witness.describe(),
        },
        "population drift": drift and {"value": drift[0], "bound": drift[1]},
    }


def bounds(box: Box, cell: Cell, precision: int = 96) -> tuple[float, float, Fraction]:
    """Return bounds of sign(1 - D r) B on a cell, and a q at which B is near the lower one.

    The bounds are floats, rounded outwards. The contrast of the cell must have one sign.
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
    """Return whether d(gamma - rho)/dt < 0 is proved at a point."""
    if witness.alpha <= 0 or witness.beta == witness.x:  # where the drift vanishes
        return False
    point = witness.alpha, witness.alpha
    box = Box(witness.D, witness.C, point, (witness.q, witness.q), p=witness.p)
    return bounds(box, witness.cell, precision)[1] < 0.0


def population_drift(witness: Witness) -> tuple[float, float]:
    """Return d(gamma - rho)/dt from the population gradient at a point, and a bound of its error.

    The point is rounded to floats. The expectation uses the first of `TOLERANCES` that it can
    meet; the result is (nan, inf) if there is none.
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
    """Return the volume of a cell in its numbers that are not fixed."""
    return math.prod(float(high - low) for low, high in cell if high > low)


def _halves(box: Box, cell: Cell, precision: int) -> list[Cell]:
    """Bisect a cell along the number that reduces the bounds most if fixed at its middle."""
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
    """Return a corner of a cell at which the drift is proved negative; None if there is none."""
    beta, x, taus = box.ends("beta"), box.ends("x"), box.ends("tau")
    for amplitude in dict.fromkeys(cell.amplitude[::-1]):
        for contrast in dict.fromkeys((sum(cell.contrast) / 2, *cell.contrast)):
            nu = cell.nu[1] if amplitude == cell.amplitude[1] else cell.nu[0]
            if amplitude <= 0 or nu <= 0 or q <= 0:
                continue
            kappa, alpha = _on_path(
                float(amplitude), (box.ends("kappa"), box.ends("alpha")), lambda k, a: k * a
            )
            b, x_value, t = _on_path(
                float(contrast),
                (beta, x[::-1], taus if contrast < 0 else taus[::-1]),
                lambda b, x_value, t: (b - x_value) / t,
            )
            witness = Witness(box.D, box.C, box.p, q, Fraction(nu), b, t, kappa, alpha, x_value)
            if drift_is_negative(witness, precision):
                return witness
    return None


def _on_path(target: float, ends: tuple[Interval, ...], value: Callable[..., float]) -> Any:
    """Return the point at which an increasing function reaches a target on a line between ends.

    Its position on the line from the first ends to the last is computed in floats, and the point
    from this position exactly, so that it lies between the ends.
    """
    floats = [(float(first), float(last)) for first, last in ends]
    low, high = 0.0, 1.0
    for _ in range(53):
        middle = 0.5 * (low + high)
        at_middle = value(*(first + middle * (last - first) for first, last in floats))
        low, high = (middle, high) if at_middle < target else (low, middle)
    position = Fraction(high)
    return [first + position * (last - first) for first, last in ends]
