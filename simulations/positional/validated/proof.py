r"""Rigorous proofs about the trajectory of one problem.

A tube around a piecewise polynomial encloses the solution. The enclosure is proved by
:mod:`dynamics.core.tube.comparison`, with velocities and Jacobians in ball arithmetic
(:mod:`dynamics.positional.validated.field`), images whose completeness is checked by an integer
identity (:mod:`~dynamics.positional.validated.images`) and exact tails
(:mod:`~dynamics.positional.validated.tail`). The sign of gamma - rho follows from bounds of
gamma - rho and of its velocity along the tube. The reduction to (alpha, gamma, rho) itself is
proved in :mod:`symbolic.positional`.

Corollary for all later times of the flow. By the lemma of ``symbolic.positional.floor`` the loss on
gamma = rho is at least :func:`~dynamics.positional.validated.outcomes.floor`, and the loss does not
increase along the flow. Hence if gamma > rho and the loss is below the floor at one time, then
gamma > rho at all later times, and the test error is at most loss/log 2, as each error contributes
at least log 2 to the loss. For C = 2 the floor holds on rho = beta too: if rho < beta at that
time, patch association, min(beta, gamma) > rho, persists forever. For C > 2 it persists as long as
rho < beta is guaranteed: the loss decreases at the rate :math:`|\theta'|_W^2`,
W = diag(1, D(C-1), D(D-C)), so that :math:`D(D-C)|\rho(t)-\rho(T)|^2\le(t-T)\,\ell(T)` (Schwarz).

The proofs trust IEEE arithmetic, sums and products of floats in NumPy and LLVM, and Arb. Floating
point parameters are exact numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dynamics import ParameterError, Problem, State
from dynamics.core.balls.exact import above, below, exact
from dynamics.core.checks import finite, integer, require
from dynamics.core.provenance import provenance
from dynamics.core.tube.clocks import Clock, Descent, Flow
from dynamics.core.tube.tube import Tube, enclose
from dynamics.positional.validated.outcomes import box_around, floor, outcomes
from dynamics.positional.validated.system import ReducedSystem, TruncatedField
from simulations.files import code_fingerprint
from simulations.outward import up, within
from simulations.positional.validated.checkpoint import ProofCheckpoint

if TYPE_CHECKING:
    import xarray

#: gamma - rho as a functional of (alpha, gamma, rho).
GAP = np.array([0.0, 1.0, -1.0])
#: Default tolerances, tried in this order until the horizon is reached.
TOLERANCES = (1e-3, 1e-5, 1e-7)
#: Degree of the polynomials.
DEGREE = 6

Interval = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Proof:
    """Proved statements about one trajectory.

    Attributes
    ----------
    problem
        Constants.
    clock
        Flow, or descent with a learning rate.
    horizon
        Requested final time (descent: learning rate x steps).
    count
        The horizon as a time of the flow or a number of steps.
    proved
        Whether the tube reaches the horizon.
    time
        Time at which the tube ends.
    reason
        Reason why it ends before the horizon; empty if it does not.
    enclosure
        (low, high) of alpha, gamma, rho at the end of the tube.
    gap_positive_from
        Time from which gamma > rho until the end of the tube. 0 means right after the start;
        infinite if gamma > rho is not proved at the end.
    gap_negative
        Maximal time intervals on which gamma < rho is proved.
    forever
        Whether gamma > rho and test error <= loss/log 2 are proved for all later times.
    loss, test_error
        (low, high) at the end; ties count as errors.
    tube
        The tube with its polynomials.
    """

    problem: Problem
    clock: Clock
    horizon: float
    count: float
    proved: bool
    time: float
    reason: str
    enclosure: State
    gap_positive_from: float
    gap_negative: tuple[Interval, ...]
    forever: bool
    loss: Interval
    test_error: Interval
    tube: Tube

    @property
    def association(self) -> bool:
        """Whether patch association, min(beta, gamma) > rho, is proved at the end."""
        low, high = self.enclosure.gamma[0], self.enclosure.rho[1]  # type: ignore[index]
        return bool(min(self.problem.beta, low) > high)

    @property
    def association_until(self) -> float:
        """Time until which patch association is proved after the end; 0 if not at the end."""
        problem, rho = self.problem, self.enclosure.rho[1]  # type: ignore[index]
        if not self.association:
            return 0.0
        if not self.forever or problem.C == 2:
            return math.inf if self.forever else self.time
        distance = exact(problem.beta) - exact(rho)
        duration = problem.D * (problem.D - problem.C) * distance * distance / exact(self.loss[1])
        return below(exact(self.time) + duration)

    def at(self, time: float) -> State:
        """Return (low, high) of alpha, gamma, rho at a time of the tube.

        For descent the time is rounded to the nearest step.

        Raises
        ------
        ParameterError
            If the time is outside the tube.
        """
        require(0.0 <= finite("time", time) <= self.time, "time", time, f"from 0 to {self.time:g}")
        flow = isinstance(self.clock, Flow)
        count = Fraction(time) if flow else Fraction(round(time / self.clock.unit))
        return State(*self.tube.at(count))  # type: ignore[arg-type]

    def to_dataset(self) -> xarray.Dataset:
        """Return the radius of the tube and the bounds of gamma - rho, for each part of a piece."""
        import xarray

        parts = [part for piece in self.tube.parts for part in piece]
        return xarray.Dataset(
            {
                "radius": (("parameter", "time"), np.array([part.reach for part in parts]).T),
                "gap": (("end", "time"), np.array([part.value for part in parts]).T),
            },
            coords={
                "parameter": list(State._fields),
                "end": ["low", "high"],
                "time": np.array([part.start for part in parts]) * self.clock.unit,
            },
        )

    @property
    def sentence(self) -> str:
        """Summary in one sentence."""
        solver = "the flow" if isinstance(self.clock, Flow) else "gradient descent"
        if not self.proved:
            return f"not proved to time {self.horizon:g}: {self.reason}"
        statements = [f"proved: {solver} is enclosed to time {self.horizon:g}"]
        if math.isfinite(self.gap_positive_from):
            since = self.gap_positive_from
            statements.append(f"gamma > rho from time {up(since)} on{' for ever' * self.forever}")
        statements += [f"gamma < rho {within(*times)}" for times in self.gap_negative]
        return "; ".join(statements)


def prove(
    problem: Problem,
    *,
    horizon: float | None = None,
    learning_rate: float | None = None,
    steps: int | None = None,
    initial: State | None = None,
    tolerance: float | None = None,
    progress: Callable[[float, float], None] | None = None,
    checkpoint: Path | None = None,
) -> Proof:
    r"""Enclose the trajectory of a problem rigorously and prove what follows.

    The trajectory is the flow :math:`\theta'=f(\theta)` up to ``horizon``, or descent
    :math:`\theta_{n+1}=\theta_n+\eta f(\theta_n)` with ``learning_rate`` and ``steps``. Here f is
    minus the entrywise gradient of the population risk (Lemmas 4.1 and 4.2 of Jelassi et al. 2022).

    Parameters
    ----------
    problem
        Constants; its floats are exact numbers.
    horizon
        Final time of the flow, from 1e-6 to 1e12.
    learning_rate, steps
        Learning rate and number of steps of descent, instead of a horizon.
    initial
        Initial state, with floats as exact numbers. The default is Parametrization 3.1, whose
        alpha is a root and enclosed.
    tolerance
        Error of the polynomials relative to the length of the path, from 1e-11 to 0.1. It affects
        the length of pieces and the truncation, but not the validity of the result. By default
        the values of `TOLERANCES` are tried in turn.
    progress
        Called after each piece with the time reached and the radius of the tube.
    checkpoint
        File to which each proved piece is appended. A later call with the same arguments resumes
        from it, with the same result as an uninterrupted proof. The file is not removed.

    Returns
    -------
    Proof
        If the tube does not reach the horizon, ``proved`` is False and ``reason`` states where and
        why.

    Raises
    ------
    ParameterError
        If an argument is not allowed.
    FileError
        If ``checkpoint`` cannot be used, or contains pieces of another proof.

    Examples
    --------
    >>> from dynamics import Problem
    >>> from simulations.validated import prove
    >>> prove(Problem(D=6, C=2, q=1 / 3), horizon=0.1).sentence
    'proved: the flow is enclosed to time 0.1; gamma > rho from time 0 on'
    """
    clock, end = _clock(horizon, learning_rate, steps)
    if tolerance is not None:
        checked_tolerance(tolerance)
    start = None if initial is None else State(*map(finite, State._fields, initial))
    require(start is None or start.alpha > 0.0, "initial", initial, "a state with alpha > 0")
    system = ReducedSystem(problem, start)
    stored = None
    if checkpoint is not None:
        stored = ProofCheckpoint(checkpoint, _identity(problem, clock, end, start))
    longest = Tube()
    for chosen in TOLERANCES if tolerance is None else (tolerance,):

        def finished(tube: Tube, tolerance: float = chosen) -> None:
            if stored is not None:
                stored.add(tolerance, tube)
            if progress is not None:
                progress(tube.end * clock.unit, float(np.max(tube.radius)))

        tube = enclose(
            system,
            clock,
            end,
            tolerance=chosen,
            functional=GAP,
            degree=DEGREE,
            begun=None if stored is None else stored.tube(system, chosen),
            progress=finished,
        )
        longest = tube if tube.end >= longest.end else longest
        if not tube.reason or "no field is accurate enough" in tube.reason:
            break
    return conclude(problem, clock, end, system, longest)


def checked_tolerance(tolerance: float) -> float:
    """Return a tolerance; raises ParameterError if it is not allowed."""
    allowed = 1e-11 <= finite("tolerance", tolerance) <= 0.1
    require(allowed, "tolerance", tolerance, "in [1e-11, 0.1]")
    return tolerance


def _identity(problem: Problem, clock: Clock, end: float, start: State | None) -> dict[str, Any]:
    """Return everything but the tolerance that the pieces of a proof depend on."""
    return {
        "problem": asdict(problem),
        "clock": [type(clock).__name__, clock.unit],
        "end": end,
        "start": start,
        "code": code_fingerprint(),
        **provenance(),
    }


def _clock(
    horizon: float | None, learning_rate: float | None, steps: int | None
) -> tuple[Clock, float]:
    """Return the clock and the final time or number of steps, after checking the arguments."""
    if horizon is not None:
        if learning_rate is not None or steps is not None:
            raise ParameterError("horizon is not allowed with learning_rate and steps: choose one")
        allowed = 1e-6 <= finite("horizon", horizon) <= 1e12
        require(allowed, "horizon", horizon, "from 1e-6 to 1e12")
        return Flow(), float(horizon)
    if learning_rate is None or steps is None:
        raise ParameterError("a horizon is missing, or a learning_rate with steps")
    rate = finite("learning_rate", learning_rate)
    require(1e-12 <= rate <= 1e6, "learning_rate", learning_rate, "from 1e-12 to 1e6")
    return Descent(rate), float(integer("steps", steps, 1, 10**12))


def conclude(
    problem: Problem, clock: Clock, horizon: float, system: ReducedSystem, tube: Tube
) -> Proof:
    """Return the statements that follow from a tube.

    ``horizon`` is the requested time of the flow or number of steps.
    """
    parts = [part for piece in tube.parts for part in piece]
    if not parts:
        middle = system.start
        radius = system.start_radius + sum(map(np.abs, system.start_slopes), np.zeros(3))
        field = system.field(system.start, math.inf)
    else:
        middle, radius = tube.pieces[-1].at(1.0), tube.radius
        last = tube.fields[-1]
        assert isinstance(last, TruncatedField)
        field = last
        with_rounding = [
            sum((exact(c) for c in column), exact(0.0)) for column in tube.pieces[-1].coefficients.T
        ]
        bounds = zip(with_rounding, middle, radius)
        radius = np.array([above(abs(x - exact(m)) + exact(r)) for x, m, r in bounds])
    ends = [
        (below(exact(m) - exact(r)), above(exact(m) + exact(r))) for m, r in zip(middle, radius)
    ]
    final = outcomes(field.whole, system.tail, box_around(middle, radius))
    gap_positive = bool(ends[1][0] > ends[2][1])
    below_floor = final.loss[1] < floor(problem, system.box.q)
    return Proof(
        problem=problem,
        clock=clock,
        horizon=horizon * clock.unit,
        count=horizon,
        proved=not tube.reason and bool(parts),
        time=tube.end * clock.unit,
        reason=tube.reason,
        enclosure=State(*ends),  # type: ignore[arg-type]
        gap_positive_from=_positive_from(tube, float(system.start @ GAP)) * clock.unit,
        gap_negative=_negative(tube, clock.unit),
        forever=gap_positive and below_floor and isinstance(clock, Flow),
        loss=final.loss,
        test_error=final.test_error,
        tube=tube,
    )


def _positive_from(tube: Tube, start: float) -> float:
    """Return the time from which the gap is positive to the end; infinite if not at the end.

    The gap may be exactly 0 at the start: it grows as long as its velocity is positive.
    """
    parts = [part for piece in tube.parts for part in piece]
    positive = [part.value[0] > 0.0 for part in parts]
    if not parts or not positive[-1]:
        return math.inf
    first = len(parts) - positive[::-1].index(False) if False in positive else 0
    if start >= 0.0 and all(part.rate[0] > 0.0 for part in parts[:first]):
        return 0.0
    return parts[first].start * (1.0 + 1e-15)


def _negative(tube: Tube, unit: float) -> tuple[Interval, ...]:
    """Return the maximal intervals in which the gap is negative on each part."""
    intervals: list[Interval] = []
    parts = [part for piece in tube.parts for part in piece]
    ends = [part.start for part in parts[1:]] + [tube.end]
    for part, end in zip(parts, ends):
        if part.value[1] < 0.0:
            if intervals and intervals[-1][1] == part.start:
                intervals[-1] = (intervals[-1][0], end)
            else:
                intervals.append((part.start, end))
    return tuple(
        (first * unit * (1.0 + 1e-15), last * unit * (1.0 - 1e-15)) for first, last in intervals
    )
