r"""A theorem about one problem: where its trajectory is, proved by the machine.

What is proved by what. That the solution lies in the tube: :mod:`dynamics.core.tube.comparison`,
with velocities and Jacobians in balls (:mod:`dynamics.positional.validated.field`), images whose
completeness an integer identity shows (:mod:`~dynamics.positional.validated.images`) and exact
tails (:mod:`~dynamics.positional.validated.tail`). That gamma > rho from some time on: bounds of
gamma - rho and of its velocity all along the tube. For ever: the corollary below. The reduction to
(alpha, gamma, rho) itself is proved in :mod:`symbolic.positional`.

Corollary (for all times, the flow), of the lemma of ``symbolic.positional.floor``: on gamma = rho
the loss is at least :func:`~dynamics.positional.validated.outcomes.floor`, and it does not increase
along the flow. Hence if at one time gamma > rho and the loss is below the floor, then gamma > rho
for ever after, and the test error is at most loss/log 2 for ever after, as each error costs log 2.
For C = 2 the floor holds on rho = beta too: with rho < beta at that time, patch association,
min(beta, gamma) > rho, lasts for ever. For C > 2 it lasts while rho < beta is sure: the loss falls
at the rate :math:`|\theta'|_W^2`, W = diag(1, D(C-1), D(D-C)), so that
:math:`D(D-C)|\rho(t)-\rho(T)|^2\le(t-T)\,\ell(T)` (Schwarz).

Trusted: IEEE arithmetic, NumPy's and LLVM's sums and products of floats, Arb. The parameters are
the floats that they are.
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
from simulations.files.stamp import code_fingerprint
from simulations.positional.validated.unfinished import Unfinished

if TYPE_CHECKING:
    import xarray

#: gamma - rho as a functional of (alpha, gamma, rho).
GAP = np.array([0.0, 1.0, -1.0])
#: Tried one after the other until the horizon is reached: fast passages ask for small ones.
TOLERANCES = (1e-3, 1e-5, 1e-7)
_DEGREE = 6

Interval = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Proof:
    """What is proved about one trajectory.

    Parameters
    ----------
    problem, clock, horizon
        Of what: the flow, or descent with a learning rate, until a time (learning rate x steps);
        ``count`` is that time of the flow, or the number of steps.
    proved
        Whether the tube reaches the horizon; ``time`` is where it ends, ``reason`` why.
    enclosure
        (low, high) of alpha, gamma, rho at the end of the tube.
    gap_positive_from
        gamma > rho at all times from this one (0: right after it) to the end of the tube; infinite
        if not at the end.
    gap_negative
        Maximal intervals of time on all of which gamma < rho is proved.
    forever
        Whether gamma > rho, and the test error <= loss/log 2, at all times after the end too.
    loss, test_error
        (low, high) at the end; ties count as errors.
    tube
        The tube itself, with its polynomials.
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
        """Until when patch association is proved, from the end on; 0 if not at the end."""
        problem, rho = self.problem, self.enclosure.rho[1]  # type: ignore[index]
        if not self.association:
            return 0.0
        if not self.forever or problem.C == 2:
            return math.inf if self.forever else self.time
        way = exact(problem.beta) - exact(rho)
        longer = problem.D * (problem.D - problem.C) * way * way / exact(self.loss[1])
        return below(exact(self.time) + longer)

    def at(self, time: float) -> State:
        """Return (low, high) of alpha, gamma, rho at a time of the tube (descent: next to a step).

        Raises
        ------
        ParameterError
            If the tube does not hold the time.
        """
        require(0.0 <= finite("time", time) <= self.time, "time", time, f"from 0 to {self.time:g}")
        flow = isinstance(self.clock, Flow)
        count = Fraction(time) if flow else Fraction(round(time / self.clock.unit))
        return State(*self.tube.at(count))  # type: ignore[arg-type]

    def to_dataset(self) -> xarray.Dataset:
        """Return the tube over time: its radius, and the ends of gamma - rho, part by part."""
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
        """What it means, for a person."""
        what = "the flow" if isinstance(self.clock, Flow) else "gradient descent"
        if not self.proved:
            return f"not proved to time {self.horizon:g}: {self.reason}"
        says = [f"proved: {what} is enclosed to time {self.horizon:g}"]
        if math.isfinite(self.gap_positive_from):
            since = self.gap_positive_from
            says.append(f"gamma > rho from time {since:.6g} on{' for ever' * self.forever}")
        says += [f"gamma < rho from {a:.6g} to {b:.6g}" for a, b in self.gap_negative]
        return "; ".join(says)


def prove(
    problem: Problem,
    *,
    horizon: float | None = None,
    learning_rate: float | None = None,
    steps: int | None = None,
    initial: State | None = None,
    tolerance: float | None = None,
    progress: Callable[[float, float], None] | None = None,
    unfinished: Path | None = None,
) -> Proof:
    r"""Prove where the trajectory of a problem is, with all errors enclosed.

    The flow :math:`\theta'=f(\theta)` up to ``horizon``, or descent :math:`\theta_{n+1}=\theta_n+
    \eta f(\theta_n)` with ``learning_rate`` and ``steps``; f is minus the entrywise gradient of the
    population risk (Lemmas 4.1 and 4.2).

    Parameters
    ----------
    problem
        Constants; its floats are taken as the numbers they are.
    horizon
        Final time of the flow, from 1e-6 to 1e12.
    learning_rate, steps
        Of descent, instead of a horizon.
    initial
        Start, floats as they are; ``None``: Parametrization 3.1, its root enclosed.
    tolerance
        Error of the curve relative to the way it makes, in [1e-11, 0.1]; it decides lengths and
        truncation, never what is claimed. ``None``: 1e-3, and finer where that does not carry.
    progress
        Called with the time reached and the radius there.
    unfinished
        File to which each piece is written when it is proved. A proof that was interrupted or
        killed goes on from there, and ends as if it had not been. The file stays.

    Returns
    -------
    Proof
        Also where the tube does not reach the horizon: then ``proved`` is False and ``reason`` says
        where and why; nothing is loosened.

    Raises
    ------
    ParameterError
        One sentence for an argument that is not allowed.
    FileError
        If ``unfinished`` cannot be used, or holds the pieces of another proof.
    """
    clock, end = _clock(horizon, learning_rate, steps)
    if tolerance is not None:
        require(1e-11 <= finite("tolerance", tolerance) <= 0.1, "tolerance", tolerance,
                "in [1e-11, 0.1]")  # fmt: skip
    start = None if initial is None else State(*map(finite, State._fields, initial))
    require(start is None or start.alpha > 0.0, "initial", initial, "a state with alpha > 0")
    system = ReducedSystem(problem, start)
    kept = None
    if unfinished is not None:
        kept = Unfinished(unfinished, _question(problem, clock, end, start))
    tube = Tube()
    for chosen in TOLERANCES if tolerance is None else (tolerance,):

        def finished(tube: Tube, tolerance: float = chosen) -> None:
            if kept is not None:
                kept.add(tolerance, tube)
            if progress is not None:
                progress(tube.end * clock.unit, float(np.max(tube.radius)))

        found = enclose(
            system, clock, end, tolerance=chosen, functional=GAP, degree=_DEGREE,
            begun=None if kept is None else kept.tube(system, chosen), progress=finished,
        )  # fmt: skip
        tube = found if found.end >= tube.end else tube
        if not found.reason or "no field is accurate enough" in found.reason:
            break
    return concluded(problem, clock, end, system, tube)


def _question(problem: Problem, clock: Clock, end: float, start: State | None) -> dict[str, Any]:
    """Return what the pieces of a proof depend on, the program included; tolerances apart."""
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
    if horizon is not None:
        if learning_rate is not None or steps is not None:
            raise ParameterError("horizon is not allowed with learning_rate and steps: choose one")
        require(1e-6 <= finite("horizon", horizon) <= 1e12, "horizon", horizon,
                "from 1e-6 to 1e12")  # fmt: skip
        return Flow(), float(horizon)
    if learning_rate is None or steps is None:
        raise ParameterError("a horizon is missing, or a learning_rate with steps")
    rate = finite("learning_rate", learning_rate)
    require(1e-12 <= rate <= 1e6, "learning_rate", learning_rate, "from 1e-12 to 1e6")
    return Descent(rate), float(integer("steps", steps, 1, 10**12))


def concluded(
    problem: Problem, clock: Clock, horizon: float, system: ReducedSystem, tube: Tube
) -> Proof:
    """Return what follows from a tube."""
    parts = [part for piece in tube.parts for part in piece]
    if not parts:
        middle, radius = system.start, system.start_radius
        field = system.field(system.start, math.inf)
    else:
        middle, radius = tube.pieces[-1].at(1.0), tube.radius
        last = tube.fields[-1]
        assert isinstance(last, TruncatedField)
        field = last
        with_rounding = [
            sum((exact(c) for c in column), exact(0.0)) for column in tube.pieces[-1].coefficients.T
        ]
        radius = np.array([
            above(abs(x - exact(m)) + exact(r)) for x, m, r in zip(with_rounding, middle, radius)
        ])  # fmt: skip
    ends = [
        (below(exact(m) - exact(r)), above(exact(m) + exact(r))) for m, r in zip(middle, radius)
    ]
    found = outcomes(field.field, system.tail, box_around(middle, radius))
    leads = bool(ends[1][0] > ends[2][1])
    below_floor = found.loss[1] < floor(problem)
    return Proof(
        problem=problem, clock=clock, horizon=horizon * clock.unit, count=horizon,
        proved=not tube.reason and bool(parts),
        time=tube.end * clock.unit, reason=tube.reason, enclosure=State(*ends),  # type: ignore[arg-type]
        gap_positive_from=_positive_from(tube, float(system.start @ GAP)) * clock.unit,
        gap_negative=_negative(tube, clock.unit),
        forever=leads and below_floor and isinstance(clock, Flow),
        loss=found.loss, test_error=found.test_error, tube=tube,
    )  # fmt: skip


def _positive_from(tube: Tube, start: float) -> float:
    """Return the time from which the gap is positive to the end; inf if it is not at the end.

    At the start it may be exactly 0: while its velocity is positive it grows from there.
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
    """Return the maximal intervals on which the gap is negative part by part."""
    found: list[Interval] = []
    parts = [part for piece in tube.parts for part in piece]
    ends = [part.start for part in parts[1:]] + [tube.end]
    for part, end in zip(parts, ends):
        if part.value[1] < 0.0:
            if found and found[-1][1] == part.start:
                found[-1] = (found[-1][0], end)
            else:
                found.append((part.start, end))
    return tuple(
        (first * unit * (1.0 + 1e-15), last * unit * (1.0 - 1e-15)) for first, last in found
    )
