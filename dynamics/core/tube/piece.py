r"""A piece of a tube: bounds of the defect of a polynomial and of its distance from the solution.

The velocity along P is expanded at the middle of the piece in thin balls. The remainder is bounded
by the next Taylor coefficient for all u in [-1, 1] (Lagrange, Moore). The Jacobian is enclosed in
the same way along P + e for all |e| <= R: a polynomial in u with ball coefficients, much tighter
than over the box that contains the piece. Each of the 8 parts of a piece has its own coordinates:
the eigenvectors B of the Jacobian in the metric of the flow, with B^-1 enclosed. In these
coordinates the matrix is nearly diagonal, up to pairs that turn. From part to part the radii grow
by the norms of the blocks of B'^-1 B, which is nearly a rotation by a small angle.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol, cast

import numpy as np
from flint import arb, arb_mat, ctx

from dynamics.core.balls.exact import above, below, exact, from_ball
from dynamics.core.balls.series import Series
from dynamics.core.tube.candidate import Velocity
from dynamics.core.tube.clocks import Clock
from dynamics.core.tube.comparison import compare
from dynamics.core.tube.coordinates import (
    Frame,
    block,
    coordinates,
    coupled,
    lengths,
    norm,
)
from dynamics.core.tube.family import Deviation, FamilyPart, deviation_bounds
from dynamics.core.tube.polynomials import around, hull, span

BITS = 96
_JACOBIAN_ORDER = 4
_ROUNDING = 1e-13  # relative to the state
_ENLARGED = 6  # maximal number of enlargements of the box of the Jacobian


class Field(Velocity, Protocol):
    """A velocity in ball arithmetic, up to a perturbation that is bounded on boxes."""

    def velocity(self, theta: Series) -> Series:
        """Return the Taylor series of the velocity along a curve (n lanes)."""

    def jacobian(self, theta: Series) -> Series:
        """Return the Taylor series of the Jacobian, by rows (n^2 lanes)."""

    def neglected(self, box: Series) -> np.ndarray:
        """Return bounds (n,) of the neglected part of the velocity on a box (order 0)."""


class Family(Field, Protocol):
    """A field that depends on m constants c = c_0 + r delta, delta in [-1, 1]^m.

    ``velocity`` is that of delta = 0. ``jacobian`` and ``neglected`` are valid for all delta.
    """

    def sensitivity(self, theta: Series) -> Series:
        """Return the derivatives by delta along a curve, for all delta (m blocks of n lanes)."""

    def sensitivity_at(self, theta: np.ndarray) -> np.ndarray:
        """Return the derivatives by delta at a state in floats, without bounds, (m, n)."""


@dataclass(frozen=True, eq=False)
class Piece:
    """A polynomial on a piece of time: powers of u = 2 (t - start)/(end - start) - 1."""

    start: float
    end: float
    coefficients: np.ndarray  # (degree + 1, n)
    slopes: tuple[np.ndarray, ...] = ()  # derivatives by constants, each (degree + 1, n)

    def at(self, u: float) -> np.ndarray:
        """Return P at u, in floats."""
        return np.asarray(np.polynomial.polynomial.polyval(u, self.coefficients))

    @property
    def length(self) -> arb:
        """The difference end - start as an Arb ball."""
        return exact(self.end) - exact(self.start)

    def spread(self) -> np.ndarray:
        """Return bounds (n,) of the distance of the curves of a family from P on the piece."""
        total = np.zeros(self.coefficients.shape[1])
        for slope in self.slopes:
            span_of_slope = hull(slope, 0)
            total += np.abs(span_of_slope.mid[0]) + span_of_slope.rad[0]
        return total * (1.0 + 1e-14)


class Part(NamedTuple):
    """Bounds proved on a part (an eighth) of a piece.

    Attributes
    ----------
    start
        Count at the beginning of the part.
    basis, bar
        Coordinates (n, n) and a-priori bounds of the comparison, from which it can be verified
        without a search.
    reach
        Bounds of |theta - P|, shape (n,).
    value, rate
        (low, high) of the functional w theta and of its velocity (divided difference for descent).
    """

    start: float
    basis: np.ndarray
    bar: list[float]
    reach: list[float]
    value: tuple[float, float]
    rate: tuple[float, float]


class Proved(NamedTuple):
    """Bounds proved on a piece.

    Attributes
    ----------
    parts
        Bounds on its parts.
    frame
        Bounds at its end, around P(1).
    box_radius
        Distance from P up to which the Jacobian is enclosed, shape (n,).
    added
        Distance added by the defect of this piece alone, in the metric.
    """

    parts: list[Part]
    frame: Frame
    box_radius: list[float]
    added: float


class Unproved(NamedTuple):
    """The reason why a piece was not proved."""

    reason: str


def prove_piece(
    field: Field,
    clock: Clock,
    piece: Piece,
    metric: np.ndarray,
    entering: Frame,
    joint: np.ndarray,
    functional: np.ndarray,
    joint_slopes: tuple[np.ndarray, ...] = (),
) -> Proved | Unproved:
    """Enclose all solutions that enter a piece.

    Parameters
    ----------
    field, clock
        Velocity in ball arithmetic; gradient flow or descent.
    piece
        The polynomial.
    metric
        Diagonal metric (n,) in which the Jacobian is self-adjoint.
    entering
        Distance from the end of the previous piece at which the solutions enter.
    joint
        Coefficients (degree + 1, n) of the previous piece, or of the constant start. The jump
        between the two polynomials is added to the distance.
    functional
        Weights w (n,) of the functional that is bounded on each part.
    joint_slopes
        Slopes of the previous piece, or of the constant start.
    """
    with ctx.workprec(BITS):
        curve = _Curve(field, clock, piece)
        if not curve.is_known:
            return Unproved("the velocity cannot be enclosed on it: the piece is too long")
        jump = _jump(piece.coefficients, joint)
        for slope, before in zip(piece.slopes, joint_slopes, strict=True):
            jump = [above(exact(x) + exact(y)) for x, y in zip(jump, _jump(slope, before))]
        box_radius = [
            2.3 * x + 4.0 * _ROUNDING * abs(m) + y
            for x, m, y in zip(entering.reach(), piece.coefficients[0], jump)
        ]
        for _ in range(_ENLARGED):
            result = _propagate(curve, clock, metric, entering, jump, box_radius, functional)
            if isinstance(result, Unproved):
                return result
            needed = np.max([Frame(p.basis, p.bar).reach() for p in result.parts], axis=0)
            if np.all(needed <= box_radius):
                return result
            box_radius = [float(max(x, 1.2 * y)) for x, y in zip(box_radius, needed)]
        return Unproved("the radius outgrows the box of the Jacobian")


class _Curve:
    """Velocity, rate and Jacobian along a polynomial."""

    def __init__(self, field: Field, clock: Clock, piece: Piece) -> None:
        self.field, self.piece, self.length = field, piece, piece.length
        self.n = piece.coefficients.shape[1]
        self.slopes = [[_matrix(row[:, None]) for row in slope] for slope in piece.slopes]
        self.parts = clock.parts(piece.end - piece.start)
        # a single step of descent evaluates the velocity at its beginning only
        self.shape, self.slack = piece.coefficients, [0.0] * self.n
        if self.parts == 1:
            self.shape = piece.at(-1.0)[None, :]
            self.slack = _jump(piece.coefficients, self.shape)
        order = len(self.shape)
        velocity = field.velocity(_widened(_padded(self.shape, order), self.slack))
        rest = field.velocity(_widened(hull(self.shape, order + 1), self.slack))
        self.is_known = velocity.is_finite and bool(np.isfinite(rest.rad[-1] + rest.mid[-1]).all())
        if not self.is_known:
            return
        self.position = [[exact(x) for x in column] for column in piece.coefficients.T]
        self.rate = [clock.rate(column, self.length) for column in self.position]
        if self.parts == 1:
            self.rate = [[around(rate, arb(-1))[0]] for rate in self.rate]
        self.defect = []
        for i in range(self.n):
            terms = _balls(velocity, i)
            for k, rate in enumerate(self.rate[i]):
                terms[k] -= rate
            self.defect.append((terms, abs(from_ball(rest.mid[-1, i], rest.rad[-1, i]))))

    def jacobian(self, box_radius: list[float]) -> tuple[list[arb_mat], arb_mat] | None:
        """Return matrix coefficients along P + e, |e| <= box_radius, and the remainder."""
        radius = self.around_curve(box_radius)
        series = self.field.jacobian(_widened(_padded(self.shape, _JACOBIAN_ORDER), radius))
        rest = self.field.jacobian(_widened(hull(self.shape, _JACOBIAN_ORDER + 1), radius))
        if not (series.is_finite and np.isfinite(rest.rad[-1] + rest.mid[-1]).all()):
            return None
        balls = [_balls(series, lane) for lane in range(self.n**2)]
        matrices = [
            arb_mat(self.n, self.n, [entry[k] for entry in balls])
            for k in range(_JACOBIAN_ORDER + 1)
        ]
        last = [
            arb(0, 1) * abs(from_ball(*pair)).upper() for pair in zip(rest.mid[-1], rest.rad[-1])
        ]
        return matrices, arb_mat(self.n, self.n, last)

    def around_curve(self, box_radius: list[float]) -> list[float]:
        """Return bounds of |theta - P| for all curves of the family and |e| <= box_radius."""
        own = np.array(box_radius) + np.array(self.slack) + self.piece.spread()
        return [float(x) for x in own * (1.0 + 1e-14)]

    def deviations(
        self, box_radius: list[float], matrices: list[arb_mat], rest: arb_mat
    ) -> list[Deviation] | None:
        """Return J S + g - S' for each slope S, as vector coefficients and a remainder.

        J and the derivative g of the velocity by the constant are enclosed for all curves of the
        family and |e| <= box_radius, so that the mean value theorem applies.
        """
        if not self.slopes:
            return []
        radius, n = self.around_curve(box_radius), self.n
        field = cast(Family, self.field)
        drive = field.sensitivity(_widened(_padded(self.shape, _JACOBIAN_ORDER), radius))
        ahead = field.sensitivity(_widened(hull(self.shape, _JACOBIAN_ORDER + 1), radius))
        if not (drive.is_finite and np.isfinite(ahead.rad[-1] + ahead.mid[-1]).all()):
            return None
        results = []
        for k, slope in enumerate(self.slopes):
            lanes = range(n * k, n * (k + 1))
            terms = [arb_mat(n, 1) for _ in range(len(slope) + _JACOBIAN_ORDER)]
            for i, matrix in enumerate(matrices):
                for j, vector in enumerate(slope):
                    terms[i + j] += matrix * vector
            for i in range(_JACOBIAN_ORDER + 1):
                given = [from_ball(drive.mid[i, lane], drive.rad[i, lane]) for lane in lanes]
                terms[i] += arb_mat(n, 1, given)
            for j, vector in enumerate(slope[1:]):
                terms[j] -= vector * (2 * (j + 1) / self.length)
            size = hull(self.piece.slopes[k], 0)
            last = [
                arb(0, 1) * abs(from_ball(ahead.mid[-1, lane], ahead.rad[-1, lane])).upper()
                for lane in lanes
            ]
            results.append((terms, rest * _column(size) + arb_mat(n, 1, last)))
        return results

    def neglected(self, box_radius: list[float]) -> list[float]:
        """Return bounds of the neglected part of the velocity around the whole piece."""
        radius = self.around_curve(box_radius)
        return [float(x) for x in self.field.neglected(_widened(hull(self.shape, 0), radius))]


class _Enclosed(NamedTuple):
    """What is enclosed on the box around a curve.

    Attributes
    ----------
    matrices, rest
        Taylor series of the Jacobian in the time of the piece, and its remainder.
    deviations
        For each constant, the terms and the remainder of the change of the velocity with it.
    neglected
        Bounds of the neglected part of the velocity, (n,).
    """

    matrices: list[arb_mat]
    rest: arb_mat
    deviations: list[Deviation]
    neglected: list[float]


def _enclosed(curve: _Curve, box_radius: list[float]) -> _Enclosed | Unproved:
    """Enclose the Jacobian, the dependence on the constants and the neglected part on a box."""
    jacobian = curve.jacobian(box_radius)
    if jacobian is None:
        return Unproved("the Jacobian cannot be enclosed on it: it is too wide")
    deviations = curve.deviations(box_radius, *jacobian)
    if deviations is None:
        return Unproved("the dependence on the constants cannot be enclosed on it: it is too wide")
    neglected = curve.neglected(box_radius)
    if not np.isfinite(neglected).all():
        return Unproved("the neglected part of the velocity cannot be bounded on it")
    return _Enclosed(*jacobian, deviations, neglected)


def _propagate(
    curve: _Curve,
    clock: Clock,
    metric: np.ndarray,
    frame: Frame,
    jump: list[float],
    box_radius: list[float],
    functional: np.ndarray,
) -> Proved | Unproved:
    """Propagate a frame through the parts of a piece, with the Jacobian for |e| <= box_radius."""
    enclosed = _enclosed(curve, box_radius)
    if isinstance(enclosed, Unproved):
        return enclosed
    matrices, rest, deviations, lost = enclosed
    length, width = curve.length / curve.parts, arb(1) / curve.parts
    parts, added, none = [], 0.0, [0.0] * curve.n
    for k in range(curve.parts):
        centre = (2 * arb(k) + 1) / curve.parts - 1
        local = around(matrices, centre)
        basis, blocks = coordinates(local[0], metric, clock.turns)
        inverse = _matrix(basis).inv()
        frame = _changed_basis(frame, Frame(basis, [], blocks), inverse, jump if k == 0 else none)
        matrix = _in_coordinates(inverse, _matrix(basis), local, rest, width)
        errors = [span(around(terms, centre), width) for terms, _ in curve.defect]
        tails = [bound for _, bound in curve.defect]
        rests = [bound + exact(x) for bound, x in zip(tails, lost)]
        if not all(x.is_finite() for row in matrix for x in row):
            return Unproved("the Jacobian cannot be enclosed on it: it is too wide")
        coupling = coupled(matrix, frame.all_blocks)
        own_deviations = [(around(terms, centre), last) for terms, last in deviations]
        apart = deviation_bounds(inverse, own_deviations, width)
        defect, own, least = (
            lengths(vector, frame.all_blocks)
            for vector in (
                [x + y for x, y in zip(_bounds(inverse, errors, rests), apart)],
                _bounds(inverse, errors, tails),
                _least(inverse, curve),
            )
        )
        compared = compare(clock, coupling, frame.radius, defect, length, [*map(above, least)])
        if compared is None:
            return Unproved("no tube contains the solution: the Jacobian is too wide")
        added += _added(clock, coupling, own, length)
        during = Frame(basis, compared.during, blocks)
        value, rate = _functional(curve, centre, during, local, rest, errors, rests, functional)
        family = FamilyPart(curve.n, curve.slopes, curve.length, width, centre, own_deviations)
        value, rate = family.enlarged(functional, value, rate)
        start = above(exact(curve.piece.start) + curve.length * k / curve.parts)
        bar = frame.by_coordinate(compared.bar)
        begin = start if k else curve.piece.start
        reach = [above(exact(x) + y) for x, y in zip(during.reach(), family.spread())]
        parts.append(Part(begin, basis, bar, reach, value, rate))
        frame = Frame(basis, compared.after, blocks)
    return Proved(parts, frame, box_radius, added)


def _in_coordinates(
    inverse: arb_mat, basis: arb_mat, local: list[arb_mat], rest: arb_mat, width: arb
) -> list[list[arb]]:
    """Return balls that contain the entries of the Jacobian in the coordinates, on a part."""
    turned = [inverse * (m * basis) for m in local]
    remainder = inverse * (rest * basis)
    n = basis.ncols()
    return [
        [span([m[i, j] for m in turned], width) + remainder[i, j] for j in range(n)]
        for i in range(n)
    ]


def _bounds(inverse: arb_mat, errors: list[arb], rests: list[arb]) -> list[arb]:
    """Return bounds of the defect in the coordinates: of known errors and of bounded rests."""
    n = len(errors)
    return [
        abs(sum((inverse[i, j] * e for j, e in enumerate(errors)), arb(0)))
        + sum((abs(inverse[i, j]) * r for j, r in enumerate(rests)), arb(0))
        for i in range(n)
    ]


def _least(inverse: arb_mat, curve: _Curve) -> list[arb]:
    """Return a-priori bounds above the rounding of a check in double precision."""
    sizes = [exact(x) for x in _ROUNDING * np.abs(curve.piece.coefficients[0])]
    return _bounds(inverse, [arb(0)] * curve.n, sizes)


def _functional(
    curve: _Curve,
    centre: arb,
    during: Frame,
    local: list[arb_mat],
    rest: arb_mat,
    errors: list[arb],
    rests: list[arb],
    functional: np.ndarray,
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return (low, high) of the functional w theta and of w f(theta) on a part.

    With theta = P + B z these are w P + w B z and w (rate + r + J B z).
    """
    n, width = curve.n, arb(1) / curve.parts
    weights = [exact(w) for w in functional]
    row, basis = arb_mat(1, n, weights), _matrix(during.basis)
    z = [arb(0, 1) * exact(x) for x in during.by_coordinate(during.radius)]
    along = [row * (m * basis) for m in local]
    shift, last = row * basis, row * (rest * basis)
    value, rate = arb(0), arb(0)
    for i, w in enumerate(weights):
        value += w * span(around(curve.position[i], centre), width) + shift[0, i] * z[i]
        turned = span([m[0, i] for m in along], width) + last[0, i]
        rate += w * (span(around(curve.rate[i], centre), width) + errors[i]) + turned * z[i]
        rate += arb(0, 1) * (abs(w) * rests[i]).upper()
    return (below(value), above(value)), (below(rate), above(rate))


def _column(series: Series) -> arb_mat:
    """Return the constant coefficients of a series as a column of balls."""
    return arb_mat(
        series.mid.shape[1], 1, [from_ball(*x) for x in zip(series.mid[0], series.rad[0])]
    )


def _added(clock: Clock, matrix: list[list[arb]], defect: list[arb], length: arb) -> float:
    """Return the distance added by the defect alone, in the metric."""
    distances = [clock.growth(matrix[i][i], length)[1] * d for i, d in enumerate(defect)]
    return math.hypot(*map(above, distances))


def _changed_basis(frame: Frame, new: Frame, inverse: arb_mat, jump: list[float]) -> Frame:
    """Return a frame in the basis of another, enlarged by a jump of the curve."""
    product = inverse * _matrix(frame.basis)
    n = len(jump)
    turn = [[product[i, j] for j in range(n)] for i in range(n)]
    moved = _bounds(inverse, [arb(0)] * n, [exact(x) for x in jump])
    radius = []
    for rows in new.all_blocks:
        total = norm([[moved[i]] for i in rows])
        for columns, x in zip(frame.all_blocks, frame.radius):
            total += norm(block(turn, rows, columns)) * exact(x)
        radius.append(above(total))
    return new._replace(radius=radius)


def _jump(coefficients: np.ndarray, joint: np.ndarray) -> list[float]:
    """Return |P(-1) - P_before(1)|."""
    here = [sum((exact(x) * (-1) ** k for k, x in enumerate(c)), arb(0)) for c in coefficients.T]
    before = [sum((exact(x) for x in c), arb(0)) for c in joint.T]
    return [above(abs(x - y)) for x, y in zip(here, before)]


def _matrix(values: np.ndarray) -> arb_mat:
    rows, columns = values.shape
    return arb_mat(rows, columns, [exact(x) for x in values.ravel()])


def _balls(series: Series, lane: int) -> list[arb]:
    return [from_ball(*pair) for pair in zip(series.mid[:, lane], series.rad[:, lane])]


def _padded(coefficients: np.ndarray, order: int) -> Series:
    """Return the polynomial as a series, truncated or padded with zeros to an order."""
    mid = np.zeros((order + 1, coefficients.shape[1]))
    count = min(len(coefficients), order + 1)
    mid[:count] = coefficients[:count]
    return Series.exact(mid)


def _widened(series: Series, radius: list[float]) -> Series:
    """Return the series with the radius of its constant coefficients enlarged, lane by lane."""
    rad = series.rad.copy()
    rad[0] = (rad[0] + np.array(radius)) * (1.0 + 1e-14)
    return Series(series.mid, rad)
