"""A tube from the start to a horizon: pieces as long as the tolerance allows, each proved."""

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
_PACE, _HOPELESS = 500, 1e6  # pieces that tell the pace, twice; pieces to go that are too many
_ROUNDING = 1e-12  # of the state: below it a smaller piece is no better
_LEAST_LENGTH = 1e-9  # of the time reached, and of the first step


class System(Protocol):
    """A velocity that can be had as accurately as asked, and where it starts."""

    metric: np.ndarray  # (n,)
    start: np.ndarray  # (n,)
    start_radius: np.ndarray  # (n,)

    def field(self, theta: np.ndarray, tolerance: float) -> Field:
        """Return a field whose neglected part at a state is small against the velocity.

        Raises
        ------
        ToleranceError
            If there is none.
        """


@dataclass
class Tube:
    """What is proved so far: solutions from the start lie within the parts' reach of the pieces.

    ``reason`` is empty where the horizon was reached; else it says why the tube ends. ``length`` is
    what the next piece is to be tried with.
    """

    start: list[float] = field(default_factory=list)
    start_radius: list[float] = field(default_factory=list)
    pieces: list[Piece] = field(default_factory=list)
    fields: list[Field] = field(default_factory=list)
    parts: list[list[Part]] = field(default_factory=list)
    rooms: list[list[float]] = field(default_factory=list)
    frame: Frame | None = None
    reason: str = ""
    length: float | None = None

    @classmethod
    def at_start(cls, system: System) -> Tube:
        """Return the tube of no length at the start of a system."""
        start, radius = system.start.tolist(), system.start_radius.tolist()
        return cls(start, radius, frame=Frame(np.eye(system.start.size), radius))

    @property
    def end(self) -> float:
        """The time until which it is proved."""
        return self.pieces[-1].end if self.pieces else 0.0

    @property
    def radius(self) -> np.ndarray:
        """Bounds of the distance from the last polynomial at its end, (n,)."""
        assert self.frame is not None
        return np.array(self.frame.reach())

    def at(self, count: Fraction) -> list[tuple[float, float]]:
        """Return (low, high) of each coordinate at a time of the tube, steps of descent whole."""
        k = min(bisect_left([piece.end for piece in self.pieces], count), len(self.pieces) - 1)
        piece, parts = self.pieces[k], self.parts[k]
        begin, end = Fraction(piece.start), Fraction(piece.end)
        share = (count - begin) / (end - begin)
        reach = parts[min(int(share * len(parts)), len(parts) - 1)].reach
        with ctx.workprec(BITS):
            u = 2 * arb(fmpq(*share.as_integer_ratio())) - 1
            found = []
            for column, r in zip(piece.coefficients.T.tolist(), reach):
                value = sum((exact(c) * u**j for j, c in enumerate(column)), arb(0))
                found.append((below(value - exact(r)), above(value + exact(r))))
            return found


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
    """Return a tube around the solution from the start to the horizon, or to where it fails.

    Parameters
    ----------
    system, clock
        What moves, and how time passes.
    horizon
        Final count: a time for the flow, steps for descent.
    tolerance
        Distance, relative to the way made, that a piece may add to the radius; only the length of
        the pieces and the accuracy of the field follow it: what is proved does not.
    functional
        (n,) The linear functional whose value and rate are bounded from below on each part.
    degree
        Of the polynomials.
    begun
        A tube of the same arguments that came less far, and is continued.
    progress
        Called with the tube after each piece.
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
            tube.reason = f"at time {now * clock.unit:.6g}: too little kept: {failure}"
            return tube
        if length is None:
            curvature = clock.unit * float(np.max(np.abs(chosen.jacobian_at(theta))))
            length = max(0.1 / max(curvature, 1.0 / horizon), 2.0 * clock.least)
        reason = "the curve is not found"
        while True:
            wished = min(length, horizon - now)
            if wished <= _LEAST_LENGTH * now or wished < clock.least:
                tube.reason = f"at time {now * clock.unit:.6g}: too thin: {reason}"
                return tube
            fitted = clock.fitted(wished, horizon - now)
            end = now + fitted if fitted < horizon - now else horizon
            piece, found, share = _tried(
                system, chosen, clock, tube, theta, (now, end), degree, guess, tolerance, functional
            )
            if isinstance(found, Proved) and (share <= 1.0 or clock.parts(fitted) == 1):
                break
            if isinstance(found, Unproved):
                reason = found.reason
                length *= _SHRINK
            else:
                reason = "its defect stays above what the tolerance allows"
                length *= max(0.2, 0.8 * share ** (-1.0 / (degree + 1)))
        assert piece is not None
        tube.pieces.append(piece)
        tube.fields.append(chosen)
        tube.parts.append(found.parts)
        tube.rooms.append(found.room)
        tube.frame = found.frame
        theta = piece.at(1.0)
        guess, length = (
            piece,
            max(fitted, length) * min(_GROW, 0.8 * max(share, 1e-9) ** (-1.0 / (degree + 1))),
        )
        tube.length = length
        if progress is not None:
            progress(tube)
        if (needed := _pieces_to_go(tube, horizon)) > _HOPELESS:
            tube.reason = (
                f"at time {tube.end * clock.unit:.6g}: too slow: after {len(tube.pieces)} pieces, "
                f"{needed:.1e} more are needed at this pace"
            )
            return tube
    return tube


def _pieces_to_go(tube: Tube, horizon: float) -> float:
    """Return how many pieces are left at the pace of the last ones (0: it grows, or is unknown)."""
    count = len(tube.pieces)
    if count % _PACE or count < 2 * _PACE:
        return 0.0
    ends = [0.0, *(piece.end for piece in tube.pieces)]
    before, now = np.diff([ends[-1 - 2 * _PACE], ends[-1 - _PACE], ends[-1]]) / _PACE
    return float((horizon - tube.end) / now) if now <= 1.1 * before else 0.0


def _tried(
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
    """Return a piece, what is proved on it, and its share of what it may add to the radius."""
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
        return None, Unproved("the curve is not found"), math.inf
    piece = Piece(start, end, coefficients)
    assert tube.frame is not None
    joint = tube.pieces[-1].coefficients if tube.pieces else system.start[None, :]
    found = prove_piece(chosen, clock, piece, system.metric, tube.frame, joint, functional)
    if isinstance(found, Unproved):
        return piece, found, math.inf
    root = np.sqrt(system.metric)
    way = float(np.linalg.norm(root * (piece.at(1.0) - piece.at(-1.0))))
    size = float(np.linalg.norm(root * theta))
    allowed = tolerance * (way + 1e-3 * size * (end - start) / end) + _ROUNDING * size
    return piece, found, found.added / allowed


def _guesses(
    theta: np.ndarray, before: Piece | None, length: float, degree: int
) -> list[np.ndarray]:
    """Return values at the nodes to begin with: the piece before continued, and a constant."""
    constant = np.tile(theta, (degree, 1))
    if before is None:
        return [constant]
    stretch = length / (before.end - before.start)
    ahead = np.array([before.at(1.0 + (u + 1.0) * stretch) for u in radau_nodes(degree)])
    near = np.abs(ahead - theta) <= 0.5 * np.abs(theta) + 0.1
    return [ahead, constant] if near.all() else [constant]
