r"""Is gamma >= rho forward invariant? Proved, refuted or undecided on a box, in ball arithmetic.

The half plane gamma >= rho is forward invariant as long as d(gamma - rho)/dt >= 0 wherever the flow
meets its boundary gamma = rho = x (Nagumo). There (see :mod:`simulations.symmetric_line`; derived)

.. math::
   \frac{d(\gamma-\rho)}{dt} = c\,\alpha\,(1-D r)\,B, \quad c > 0, \qquad
   B = \mathbb E\Big[s(-F)\sum_{s\in\{0,-1\}} (1-s)\,N_s\,(N-1-R+s)\,
       \frac{y_1^{p-1}-y_s^{p-1}}{y_1-y_s}\Big],

with N = D - C patches outside the signal set, of which N_s have coefficient s; R the sum of these
coefficients, T = C + R; r = Gamma = 1/(e^{(beta-x)/tau} - 1 + D), and :math:`O_s=\kappa\alpha y_s`,

.. math::
   y_1 = 1-(D-T)r,\quad y_0 = T r,\quad y_{-1} = (D+T)r-1,\qquad
   F = (\kappa\alpha)^p\sum_s n_s y_s^p + \kappa\alpha\,\nu\,T

(n_s: the same counts with the signal set). So the seven parameters enter through the four numbers
kappa alpha, (beta - x)/tau, nu and q, each made of parameters of its own: a box stays a box. Given
the number k of features, the numbers of +1 and -1 are binomial, and B is the polynomial
:math:`\sum_k \binom Nk q^k(1-q)^{N-k} c_k` in Bernstein form, which lies between the least and the
greatest of its coefficients on any interval of q. The sum over states is complete, and every
operation is one of ball arithmetic (Arb, through python-flint): a sign found here is proved, up to
the formula above, which `tests` compare with the population gradient.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from dynamics import ParameterError, Population, Problem, State, ToleranceError
from dynamics.problem import require
from simulations.balls import coefficients, float_above, float_below, least_value

Interval = tuple[float, float]

#: Errors of the population gradients that check certificates, tried in this order.
TOLERANCES = (1e-11, 1e-9, 1e-7, 1e-5)
_MOST_PATCHES = 300  # outside the signal set: beyond it a sum over all states takes seconds


class Answer(StrEnum):
    """What ball arithmetic says about a box."""

    PROVED = "proved"
    REFUTED = "refuted"
    UNDECIDED = "undecided"


class Witness(NamedTuple):
    """A point of the boundary gamma = rho = x at which d(gamma - rho)/dt < 0, proved."""

    problem: Problem
    alpha: float
    x: float


@dataclass(frozen=True)
class Box:
    """Parameters and states: D, C, p fixed, the others between two bounds (equal ones: fixed).

    ``x`` is the common value of gamma and rho. ``kappa`` is D unless given.
    """

    D: int
    C: int
    alpha: Interval
    q: Interval
    x: Interval = (0.0, 0.0)
    nu: Interval = (0.01, 0.01)
    beta: Interval = (1.0, 1.0)
    tau: Interval = (1.0, 1.0)
    kappa: Interval | None = None
    p: int = 3

    def __post_init__(self) -> None:
        for name in ("alpha", "q", "x", "nu", "beta", "tau", "scale"):
            low, high = getattr(self, name)
            require(low <= high, name, f"{low:g}..{high:g}", "an interval from low to high")
        require(self.alpha[0] >= 0.0, "alpha", self.alpha[0], "at least 0")
        require(self.q[0] >= 0.0 and self.q[1] <= 1.0, "q", "{:g}..{:g}".format(*self.q),
                "within [0, 1]")  # fmt: skip
        require(self.nu[0] >= 0.0, "nu", self.nu[0], "at least 0")
        self.problem()  # validates the rest
        require(self.D - self.C <= _MOST_PATCHES, "D", self.D, f"at most C + {_MOST_PATCHES}")

    @property
    def scale(self) -> Interval:
        """The interval of kappa."""
        return (float(self.D),) * 2 if self.kappa is None else self.kappa

    def problem(self, **at: float) -> Problem:
        """Return the problem at the upper bounds, or at the given values of the parameters."""
        fields: dict[str, Any] = {"q": self.q[1], "nu": self.nu[1], "beta": self.beta[1],
                  "temperature": self.tau[0], "output_scale": self.scale[0]}  # fmt: skip
        fields |= at
        if fields["output_scale"] == self.D:
            del fields["output_scale"]
        return Problem(D=self.D, C=self.C, p=self.p, **fields)

    def describe(self) -> str:
        """Return the box as it is written on the command line."""
        names = ("alpha", "q", "x", "nu", "beta", "tau") + (("kappa",) if self.kappa else ())
        parts = [f"D={self.D}", f"C={self.C}", f"p={self.p}"]
        for name in names:
            low, high = getattr(self, name)
            parts.append(f"{name}={low:g}" if low == high else f"{name}={low:g}..{high:g}")
        return ", ".join(parts)


class Cell(NamedTuple):
    """A box in the four numbers that matter."""

    amplitude: Interval  # kappa alpha
    contrast: Interval  # (beta - x)/tau
    nu: Interval
    q: Interval


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
                point = self.witness
                return (
                    f"refuted: d(gamma - rho)/dt < 0 {where}, at q = {point.problem.q:.9g}, "
                    f"nu = {point.problem.nu:.9g}, alpha = {point.alpha:.9g}, x = {point.x:.9g}"
                )
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
    for cell in _cells(box):
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


def bounds(box: Box, cell: Cell, precision: int = 96) -> tuple[float, float, float]:
    """Return bounds of sign(1 - D r) B on a cell, and a q at which the lower one is low.

    They are floats rounded outwards. The contrast of a cell does not change sign.
    """
    sizes = box.D, box.C, box.p
    low, high = coefficients(*sizes, cell.amplitude, cell.contrast, cell.nu, precision)
    if cell.contrast[0] < 0.0:
        low, high = tuple(-c for c in high), tuple(-c for c in low)
    from flint import ctx

    with ctx.workprec(precision):
        least, worst = least_value(low, *cell.q)
        greatest, _ = least_value(tuple(-c for c in high), *cell.q)
    return least, -greatest, worst


def drift_is_negative(witness: Witness, precision: int = 96) -> bool:
    """Return whether d(gamma - rho)/dt < 0 is proved at one point."""
    problem, alpha, x = witness
    box = Box(
        problem.D, problem.C, (alpha, alpha), (problem.q, problem.q), (x, x),
        (problem.nu, problem.nu), (problem.beta, problem.beta), (problem.tau, problem.tau),
        (problem.kappa, problem.kappa), problem.p,
    )  # fmt: skip
    cell = next(_cells(box))  # a point: beta = x, where the drift vanishes, is no witness
    apart = cell.contrast[0] > 0.0 or cell.contrast[1] < 0.0
    return alpha > 0.0 and apart and bounds(box, cell, precision)[1] < 0.0


def population_drift(witness: Witness) -> tuple[float, float]:
    """Return d(gamma - rho)/dt by the population gradient, and a bound of its error.

    The first of `TOLERANCES` that the expectation can meet is taken; (nan, inf) if it meets none.
    """
    state = State(witness.alpha, witness.x, witness.x)
    for tolerance in TOLERANCES:
        try:
            value = Population(witness.problem, tolerance=tolerance).evaluate(state)
        except ToleranceError:
            continue
        return value.gradient.rho - value.gradient.gamma, 2.0 * value.bound
    return math.nan, math.inf


def _cells(box: Box) -> Iterator[Cell]:
    """Yield the box in the four numbers, split where beta = x so that 1 - D r has one sign."""
    low = min((box.beta[0] - box.x[1]) / tau for tau in box.tau)
    high = max((box.beta[1] - box.x[0]) / tau for tau in box.tau)
    low, high = (float_below(low) if low else 0.0), (float_above(high) if high else 0.0)
    amplitude = (float_below(box.scale[0] * box.alpha[0]), float_above(box.scale[1] * box.alpha[1]))
    parts = [(low, 0.0), (0.0, high)] if low < 0.0 < high else [(low, high)]
    for part in parts:
        yield Cell((max(amplitude[0], 0.0), amplitude[1]), part, box.nu, box.q)


def _volume(cell: Cell) -> float:
    """Return the volume, fixed numbers left out."""
    return math.prod(high - low for low, high in cell if high > low)


def _halves(box: Box, cell: Cell, precision: int) -> list[Cell]:
    """Halve the cell across the number that, fixed at its middle, narrows the bounds most."""
    widths: dict[str, float] = {}
    for name in cell._fields:
        low, high = getattr(cell, name)
        middle = 0.5 * (low + high)
        if low < middle < high:
            thin = cell._replace(**{name: (middle, middle)})
            least, greatest, _ = bounds(box, thin, precision)
            widths[name] = greatest - least
    if not widths:
        return []
    name = min(widths, key=lambda key: widths[key])
    low, high = getattr(cell, name)
    middle = 0.5 * (low + high)
    return [cell._replace(**{name: (low, middle)}), cell._replace(**{name: (middle, high)})]


def _witness(box: Box, cell: Cell, q: float, precision: int) -> Witness | None:
    """Return a point of the cell at which the drift is proved negative, if a corner is one."""
    for amplitude in dict.fromkeys(cell.amplitude[::-1]):
        for contrast in dict.fromkeys((0.5 * sum(cell.contrast), *cell.contrast)):
            nu = cell.nu[1] if amplitude == cell.amplitude[1] else cell.nu[0]
            if amplitude <= 0.0 or nu <= 0.0 or q <= 0.0:
                continue
            kappa, alpha = _on_path(
                amplitude, lambda t: (_mix(box.scale, t), _mix(box.alpha, t)), _product
            )
            taus = box.tau if contrast < 0.0 else box.tau[::-1]
            beta, x, tau = _on_path(
                contrast,
                lambda t, taus=taus: (
                    _mix(box.beta, t), _mix(box.x[::-1], t), _mix(taus, t)
                ),
                lambda beta, x, tau: (beta - x) / tau,
            )  # fmt: skip
            problem = box.problem(q=q, nu=nu, beta=beta, temperature=tau, output_scale=kappa)
            found = Witness(problem, alpha, x)
            if drift_is_negative(found, precision):
                return found
    return None


def _on_path(target: float, path: Callable[..., Any], value: Callable[..., float]) -> Any:
    """Return the point of a path from lowest to highest value at which it takes a value."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if value(*path(middle)) < target else (low, middle)
    return path(high)


def _product(x: float, y: float) -> float:
    return x * y


def _mix(interval: Interval, t: float) -> float:
    low, high = interval
    return min(max((1.0 - t) * low + t * high, min(interval)), max(interval))


def read_box(text: str) -> Box:
    """Return the box written as ``D=64, C=4, qD=0..2, alpha=0..0.3``; two dots mark an interval.

    Raises
    ------
    ParameterError
        One sentence naming what cannot be read or is not allowed.
    """
    from simulations.commands.arguments import number

    given: dict[str, Any] = {}
    known = ("D", "C", "p", "alpha", "x", "q", "qD", "nu", "beta", "tau", "kappa")
    for part in filter(None, (piece.strip() for piece in text.replace(";", ",").split(","))):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        require(bool(equals) and name in known and name not in given, "box", repr(part),
                f"NAME=VALUE or NAME=LOW..HIGH, each of {', '.join(known)} once")  # fmt: skip
        try:
            ends = [number(end) for end in value.split("..")]
        except Exception as failure:
            raise ParameterError(f"box = {part!r} is not allowed: {failure}") from None
        require(len(ends) <= 2, "box", repr(part), "NAME=LOW..HIGH")
        if name in ("D", "C", "p"):
            require(len(ends) == 1, name, repr(value), "one number")
            given[name] = ends[0]
        else:
            require(all(map(math.isfinite, ends)), name, repr(value), "finite")
            given[name] = (float(ends[0]), float(ends[-1]))
    for name in ("D", "C", "alpha"):
        require(name in given, "box", repr(text), f"complete: it does not say {name}")
    require(("q" in given) != ("qD" in given), "box", repr(text), "given either q or qD")
    checked = Problem(D=given["D"], C=given["C"], q=1.0, p=given.get("p", 3))
    if "qD" in given:
        low, high = (end / checked.D for end in given.pop("qD"))
        given["q"] = (low, high)
    given |= {name: getattr(checked, name) for name in ("D", "C", "p")}
    return Box(**given)
