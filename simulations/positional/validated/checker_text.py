"""Statements that a certificate proves, and their text."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from simulations.outward import down, interval, up, within
from simulations.positional.validated.checker_model import Interval


class Box(NamedTuple):
    """(low, high) of each order parameter."""

    alpha: Interval
    gamma: Interval
    rho: Interval


class Checked(NamedTuple):
    """Statements that a certificate proves, all derived by the checker.

    Times of descent are learning rate x steps, except for ``horizon``.

    Attributes
    ----------
    problem, start, learning_rate
        Constants, initial state (None: Parametrization 3.1), learning rate (None: the flow).
    horizon, time, pieces
        Time of the flow or number of steps; final time; number of pieces.
    enclosure
        (low, high) of alpha, gamma, rho at the end.
    gap
        Start, low and high of gamma - rho for each part.
    gap_positive_from
        Time from which gamma > rho to the end; infinite if not at the end.
    gap_negative
        Maximal time intervals on which gamma < rho.
    loss, test_error
        (low, high) at the end; ties count as errors.
    floor
        Lower bound of the loss on gamma = rho.
    forever
        Whether gamma > rho at all later times.
    association, association_until
        Whether patch association holds at the end, and until when; 0 if not, infinite if forever.
    """

    problem: dict[str, Any]
    start: list[float] | None
    learning_rate: float | None
    horizon: float
    time: float
    pieces: int
    enclosure: Box
    gap: list[tuple[float, float, float]]
    gap_positive_from: float
    gap_negative: list[Interval]
    loss: Interval
    test_error: Interval
    floor: float
    forever: bool
    association: bool
    association_until: float


def checked_as_text(checked: Checked) -> str:
    """Return the consequences of a certificate as text."""
    problem = ", ".join(f"{name} = {value:g}" for name, value in checked.problem.items())
    rate, start = checked.learning_rate, checked.start
    solver = f"descent, learning rate {rate:g}, {checked.horizon:g} steps" if rate else "flow"
    shown = "Parametrization 3.1" if start is None else ", ".join(f"{x:g}" for x in start)
    since, until = checked.gap_positive_from, checked.association_until
    lines = [
        "checked: the tube and its consequences are proved",
        f"  problem      {problem}",
        f"  solver       {solver}",
        f"  start        {shown}",
        f"  to time      {checked.time:g} ({checked.pieces} pieces)",
    ]
    lines += [
        f"  {name:<12} in {interval(low, high, 12)}"
        for name, (low, high) in checked.enclosure._asdict().items()
    ]
    outcomes = {"loss": checked.loss, "test error": checked.test_error}
    lines += [f"  {name:<12} in {interval(*ends)}" for name, ends in outcomes.items()]
    gap = f"proved from time {up(since)} on" if math.isfinite(since) else "not proved at the end"
    lines.append(f"  gamma > rho  {gap}{', for ever' if checked.forever else ''}")
    lines += [f"  gamma < rho  {within(*times)}" for times in checked.gap_negative]
    association = "not proved at that time"
    if checked.association:
        later = f" and until {down(until, 4)}" if until > checked.time else ""
        association = f"proved at that time{later if math.isfinite(until) else ' and for ever'}"
    lines.append(f"  association  {association}")
    return "\n".join(lines)
