"""Enclose a solution from its start to a horizon by a tube of adaptively chosen pieces."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol, cast

import numpy as np
from flint import arb, ctx, fmpq

from dynamics.core.balls.exact import above, below, exact
from dynamics.core.tube.candidate import collocated, nodes_on, radau_nodes, varied
from dynamics.core.tube.clocks import Clock
from dynamics.core.tube.piece import (
    BITS,
    Family,
    Field,
    Frame,
    Part,
    Piece,
    Proved,
    Unproved,
    prove_piece,
)

_SHRINK, _GROW = 0.5, 2.5
_WINDOW, _MOST_REMAINING = 500, 1e6  # window of the stall test; limit of the remaining pieces
_ROUNDING = 1e-12  # relative to the state: errors below it do not shorten a piece
_LEAST_LENGTH = 1e-9  # smallest length of a piece relative to the time reached
_LEAST_OF_FAMILY = 1e-4  # the same for families, whose tubes end because they are too wide


class System(Protocol):
    """A velocity of selectable accuracy, its metric and its initial state."""

    metric: np.ndarray  # (n,)
    start: np.ndarray  # (n,)
    start_radius: np.ndarray  # (n,)

    def field(self, theta: np.ndarray, tolerance: float) -> Field:
        """Return a field with a neglected part that is small relative to the velocity at a state.

        Raises
        ------
        ToleranceError
            If no field reaches the tolerance.
        """


class FamilySystem(System, Protocol):
    """A system that depends on m constants; its fields are families."""

    start_slopes: tuple[np.ndarray, ...]  # derivatives (n,) of the start by the constants


@dataclass
class Tube:
    """A proved enclosure: the solutions lie within the reach of the parts around the pieces.

    Attributes
    ----------
    start, start_radius
        Initial state and its uncertainty, shape (n,).
    pieces, fields, parts, box_radii
        For each piece: the polynomial, the velocity, the bounds on its parts, and the distance up
        to which the Jacobian is enclosed.
    frame
        Bounds at the end.
    reason
        Why the tube ends before the horizon; empty if it does not.
    length
        Initial length of the next piece.
    """

    start: list[float] = field(default_factory=list)
    start_radius: list[float] = field(default_factory=list)
    pieces: list[Piece] = field(default_factory=list)
    fields: list[Field] = field(default_factory=list)
    parts: list[list[Part]] = field(default_factory=list)
    box_radii: list[list[float]] = field(default_factory=list)
    frame: Frame | None = None
    reason: str = ""
    length: float | None = None

    @classmethod
    def at_start(cls, system: System) -> Tube:
        """Return the tube of length zero at the start of a system."""
        start, radius = system.start.tolist(), system.start_radius.tolist()
        return cls(start, radius, frame=Frame(np.eye(system.start.size), radius))

    def append(self, piece: Piece, chosen: Field, proved: Proved) -> None:
        """Append a proved piece and its field."""
        self.pieces.append(piece)
        self.fields.append(chosen)
        self.parts.append(proved.parts)
        self.box_radii.append(proved.box_radius)
        self.frame = proved.frame

    @property
    def end(self) -> float:
        """Count (time or steps) at the end."""
        return self.pieces[-1].end if self.pieces else 0.0

    @property
    def radius(self) -> np.ndarray:
        """Bounds of the distance from the last polynomial at its end, shape (n,)."""
        assert self.frame is not None
        reach = [exact(x) for x in self.frame.reach()]
        for slope in self.pieces[-1].slopes if self.pieces else ():
            ends = [abs(sum((exact(x) for x in column), arb(0))) for column in slope.T]
            reach = [x + y for x, y in zip(reach, ends)]
        return np.array([*map(above, reach)])

    def at(self, count: Fraction) -> list[tuple[float, float]]:
        """Return (low, high) of each coordinate at a time, or at a whole number of steps."""
        k = min(bisect_left([piece.end for piece in self.pieces], count), len(self.pieces) - 1)
        piece, parts = self.pieces[k], self.parts[k]
        begin, end = Fraction(piece.start), Fraction(piece.end)
        share = (count - begin) / (end - begin)
        reach = parts[min(int(share * len(parts)), len(parts) - 1)].reach
        with ctx.workprec(BITS):
            u = 2 * arb(fmpq(*share.as_integer_ratio())) - 1
            intervals = []
            for column, r in zip(piece.coefficients.T.tolist(), reach):
                value = sum((exact(c) * u**j for j, c in enumerate(column)), arb(0))
                intervals.append((below(value - exact(r)), above(value + exact(r))))
            return intervals


def enclose(
    system: System,
    clock: Clock,
    horizon: float,
    *,
    tolerance: float,
    functional: np.ndarray,
    degree: int = 6,
    begun: Tube | None = None,
    progress: Callable[[Tube], None] | None = None,
) -> Tube:
    """Enclose the solution of a system from its start to a horizon.

    Parameters
    ----------
    system, clock
        Velocity and initial state; gradient flow or descent.
    horizon
        Final count: a time for the flow, steps for descent.
    tolerance
        Distance that a piece may add to the radius, relative to the distance travelled. It controls
        the length of the pieces and the accuracy of the field, and does not affect the validity of
        the proof.
    functional
        Weights (n,) of a linear functional whose value and rate are bounded on each part.
    degree
        Degree of the polynomials.
    begun
        A shorter tube of the same arguments, which is extended.
    progress
        Called with the tube after each piece.

    Returns
    -------
    Tube
        It ends at the horizon, or earlier with a ``reason``.
    """
    tube = Tube.at_start(system) if begun is None else begun
    task = _Task(system, clock, horizon, tolerance, functional, degree)
    while tube.end < horizon:
        try:
            task.extend(tube)
        except _Stopped as stop:
            tube.reason = f"at time {tube.end * clock.unit:.6g}: {stop}"
            return tube
        if progress is not None:
            progress(tube)
        if (needed := _remaining_pieces(tube, horizon)) > _MOST_REMAINING:
            tube.reason = (
                f"at time {tube.end * clock.unit:.6g}: too slow: after {len(tube.pieces)} pieces, "
                f"{needed:.1e} more are needed at this pace"
            )
            return tube
    return tube


class _Stopped(Exception):
    """No further piece was proved; the message states why."""


@dataclass
class _Task:
    """The arguments of `enclose`, with which each piece is made."""

    system: System
    clock: Clock
    horizon: float
    tolerance: float
    functional: np.ndarray
    degree: int

    def extend(self, tube: Tube) -> None:
        """Append the next piece to a tube; raise _Stopped if none is proved."""
        theta = tube.pieces[-1].at(1.0) if tube.pieces else self.system.start.copy()
        try:
            chosen = self.system.field(theta, self.tolerance)
        except ArithmeticError as failure:
            raise _Stopped(f"no field is accurate enough: {failure}") from failure
        now, left = tube.end, self.horizon - tube.end
        length = self._first_length(chosen, theta) if tube.length is None else tube.length
        reason = "collocation did not converge"
        while True:
            requested = min(length, left)
            least = _LEAST_OF_FAMILY if self.start_slopes else _LEAST_LENGTH
            if requested <= least * now or requested < self.clock.least:
                raise _Stopped(f"the pieces are too short: {reason}")
            fitted = self.clock.fitted(requested, left)
            end = now + fitted if fitted < left else self.horizon
            piece, result, share = self._attempt(tube, chosen, theta, end)
            if isinstance(result, Proved) and (share <= 1.0 or self.clock.parts(fitted) == 1):
                break
            if isinstance(result, Unproved):
                reason = result.reason
                length *= _SHRINK
            else:
                reason = "its defect exceeds the tolerance"
                length *= max(0.2, 0.8 * share ** (-1.0 / (self.degree + 1)))
        assert piece is not None
        tube.append(piece, chosen, result)
        growth = 0.8 * max(share, 1e-9) ** (-1.0 / (self.degree + 1))
        tube.length = max(fitted, length) * min(_GROW, growth)

    @property
    def start_slopes(self) -> tuple[np.ndarray, ...]:
        """Derivatives of the start by the constants of a family; empty for fixed constants."""
        return getattr(self.system, "start_slopes", ())

    def _slopes(
        self, field: Field, curve: np.ndarray, length: float, starts: tuple[np.ndarray, ...]
    ) -> tuple[np.ndarray, ...]:
        """Return the derivatives of a curve by the constants of a family."""
        if not starts:
            return ()
        drives = [cast(Family, field).sensitivity_at(theta) for theta in nodes_on(curve)]
        return tuple(
            varied(field, self.clock, start, length, curve, [drive[k] for drive in drives])
            for k, start in enumerate(starts)
        )

    def _first_length(self, chosen: Field, theta: np.ndarray) -> float:
        """Return the length to try at the start of a tube."""
        curvature = self.clock.unit * float(np.max(np.abs(chosen.jacobian_at(theta))))
        return max(0.1 / max(curvature, 1.0 / self.horizon), 2.0 * self.clock.least)

    def _attempt(
        self, tube: Tube, chosen: Field, theta: np.ndarray, end: float
    ) -> tuple[Piece | None, Proved | Unproved, float]:
        """Return a piece, its proved bounds, and its added radius relative to the allowed one."""
        clock, start = self.clock, tube.end
        coefficients = None
        if clock.parts(end - start) == 1:
            half = 0.5 * clock.unit * chosen.velocity_at(theta)
            coefficients = np.array([theta + half, half])
        else:
            before = tube.pieces[-1] if tube.pieces else None
            for values in _guesses(theta, before, end - start, self.degree):
                coefficients = collocated(chosen, clock, theta, end - start, self.degree, values)
                if coefficients is not None:
                    break
        if coefficients is None:
            return None, Unproved("collocation did not converge"), math.inf
        assert tube.frame is not None
        joint, joined = self.system.start[None, :], tuple(x[None, :] for x in self.start_slopes)
        if tube.pieces:
            joint, joined = tube.pieces[-1].coefficients, tube.pieces[-1].slopes
        begun = tuple(slope.sum(axis=0) for slope in joined)
        slopes = self._slopes(chosen, coefficients, end - start, begun)
        piece = Piece(start, end, coefficients, slopes)
        metric, functional = self.system.metric, self.functional
        result = prove_piece(chosen, clock, piece, metric, tube.frame, joint, functional, joined)
        if isinstance(result, Unproved):
            return piece, result, math.inf
        root = np.sqrt(metric)
        travelled = float(np.linalg.norm(root * (piece.at(1.0) - piece.at(-1.0))))
        size = float(np.linalg.norm(root * theta))
        allowed = self.tolerance * (travelled + 1e-3 * size * (end - start) / end)
        return piece, result, result.added / (allowed + _ROUNDING * size)


def _remaining_pieces(tube: Tube, horizon: float) -> float:
    """Predict the number of remaining pieces; 0 if their length grows or is unknown."""
    count = len(tube.pieces)
    if count % _WINDOW or count < 2 * _WINDOW:
        return 0.0
    ends = [0.0, *(piece.end for piece in tube.pieces)]
    before, now = np.diff([ends[-1 - 2 * _WINDOW], ends[-1 - _WINDOW], ends[-1]]) / _WINDOW
    return float((horizon - tube.end) / now) if now <= 1.1 * before else 0.0


def _guesses(
    theta: np.ndarray, before: Piece | None, length: float, degree: int
) -> list[np.ndarray]:
    """Return initial values at the nodes: the previous piece extrapolated, and a constant."""
    constant = np.tile(theta, (degree, 1))
    if before is None:
        return [constant]
    stretch = length / (before.end - before.start)
    ahead = np.array([before.at(1.0 + (u + 1.0) * stretch) for u in radau_nodes(degree)])
    near = np.abs(ahead - theta) <= 0.5 * np.abs(theta) + 0.1
    return [ahead, constant] if near.all() else [constant]
