"""Enclose a solution from its start to a horizon by a tube of adaptively chosen pieces."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol

import numpy as np
from flint import arb, ctx, fmpq

from dynamics.core.balls.exact import above, below, exact
from dynamics.core.tube.candidate import collocated, radau_nodes
from dynamics.core.tube.clocks import Clock
from dynamics.core.tube.piece import (
    BITS,
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

    @property
    def end(self) -> float:
        """Count (time or steps) at the end."""
        return self.pieces[-1].end if self.pieces else 0.0

    @property
    def radius(self) -> np.ndarray:
        """Bounds of the distance from the last polynomial at its end, shape (n,)."""
        assert self.frame is not None
        return np.array(self.frame.reach())

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
    guess = tube.pieces[-1] if tube.pieces else None
    theta = system.start.copy() if guess is None else guess.at(1.0)
    length = tube.length
    while tube.end < horizon:
        now = tube.end
        try:
            chosen = system.field(theta, tolerance)
        except ArithmeticError as failure:
            tube.reason = f"at time {now * clock.unit:.6g}: no field is accurate enough: {failure}"
            return tube
        if length is None:
            curvature = clock.unit * float(np.max(np.abs(chosen.jacobian_at(theta))))
            length = max(0.1 / max(curvature, 1.0 / horizon), 2.0 * clock.least)
        reason = "collocation did not converge"
        while True:
            requested = min(length, horizon - now)
            if requested <= _LEAST_LENGTH * now or requested < clock.least:
                tube.reason = f"at time {now * clock.unit:.6g}: the pieces are too short: {reason}"
                return tube
            fitted = clock.fitted(requested, horizon - now)
            end = now + fitted if fitted < horizon - now else horizon
            piece, result, share = _try_piece(
                system, chosen, clock, tube, theta, (now, end), degree, guess, tolerance, functional
            )
            if isinstance(result, Proved) and (share <= 1.0 or clock.parts(fitted) == 1):
                break
            if isinstance(result, Unproved):
                reason = result.reason
                length *= _SHRINK
            else:
                reason = "its defect exceeds the tolerance"
                length *= max(0.2, 0.8 * share ** (-1.0 / (degree + 1)))
        assert piece is not None
        tube.pieces.append(piece)
        tube.fields.append(chosen)
        tube.parts.append(result.parts)
        tube.box_radii.append(result.box_radius)
        tube.frame = result.frame
        theta = piece.at(1.0)
        guess, length = (
            piece,
            max(fitted, length) * min(_GROW, 0.8 * max(share, 1e-9) ** (-1.0 / (degree + 1))),
        )
        tube.length = length
        if progress is not None:
            progress(tube)
        if (needed := _remaining_pieces(tube, horizon)) > _MOST_REMAINING:
            tube.reason = (
                f"at time {tube.end * clock.unit:.6g}: too slow: after {len(tube.pieces)} pieces, "
                f"{needed:.1e} more are needed at this pace"
            )
            return tube
    return tube


def _remaining_pieces(tube: Tube, horizon: float) -> float:
    """Predict the number of remaining pieces; 0 if their length grows or is unknown."""
    count = len(tube.pieces)
    if count % _WINDOW or count < 2 * _WINDOW:
        return 0.0
    ends = [0.0, *(piece.end for piece in tube.pieces)]
    before, now = np.diff([ends[-1 - 2 * _WINDOW], ends[-1 - _WINDOW], ends[-1]]) / _WINDOW
    return float((horizon - tube.end) / now) if now <= 1.1 * before else 0.0


def _try_piece(
    system: System,
    chosen: Field,
    clock: Clock,
    tube: Tube,
    theta: np.ndarray,
    ends: tuple[float, float],
    degree: int,
    before: Piece | None,
    tolerance: float,
    functional: np.ndarray,
) -> tuple[Piece | None, Proved | Unproved, float]:
    """Return a piece, its proved bounds, and its added radius relative to the allowed one."""
    start, end = ends
    coefficients = None
    if clock.parts(end - start) == 1:
        half = 0.5 * clock.unit * chosen.velocity_at(theta)
        coefficients = np.array([theta + half, half])
    for values in _guesses(theta, before, end - start, degree) if coefficients is None else ():
        coefficients = collocated(chosen, clock, theta, end - start, degree, values)
        if coefficients is not None:
            break
    if coefficients is None:
        return None, Unproved("collocation did not converge"), math.inf
    piece = Piece(start, end, coefficients)
    assert tube.frame is not None
    joint = tube.pieces[-1].coefficients if tube.pieces else system.start[None, :]
    result = prove_piece(chosen, clock, piece, system.metric, tube.frame, joint, functional)
    if isinstance(result, Unproved):
        return piece, result, math.inf
    root = np.sqrt(system.metric)
    travelled = float(np.linalg.norm(root * (piece.at(1.0) - piece.at(-1.0))))
    size = float(np.linalg.norm(root * theta))
    allowed = tolerance * (travelled + 1e-3 * size * (end - start) / end) + _ROUNDING * size
    return piece, result, result.added / allowed


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
