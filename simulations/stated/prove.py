"""Rigorous proofs about gradient flow and descent of a user-defined theory.

A tube around a piecewise polynomial encloses the trajectory of the order parameters
(`dynamics.core.tube`). Its velocity is the emitted source of the theory, read in ball arithmetic
(`dynamics.theory.jets`), with the exact probabilities of all data. The derivation of that source
from the statement of the theory is trusted; its agreement with the full model is checked by
``patchdyn theory``, which is no proof.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from flint import arb, ctx

from dynamics import ParameterError
from dynamics.core.balls.exact import above, below, exact
from dynamics.core.checks import finite, require
from dynamics.core.tube.clocks import Clock, Descent, Flow
from dynamics.core.tube.tube import Tube, enclose
from dynamics.theory.data import count_orbits, orbits
from dynamics.theory.jets import EmittedFunction, TheoryField
from dynamics.theory.risk import TheoryProblem
from simulations.case import Case
from simulations.stated import runs
from simulations.stated.digits import MOST_ORBITS
from simulations.stated.law import Balls, law
from simulations.stated.statements import Along, Decided, Statement
from simulations.stated.system import UserTheorySystem
from symbolic.core import grammar
from symbolic.theory import Theory
from symbolic.theory.formulas import names_along_runs

#: Default tolerances, tried in this order until the horizon is reached.
TOLERANCES = (1e-3, 1e-5, 1e-7)
_BITS = 128

Interval = tuple[float, float]


class TheorySystem:
    """The order parameters of a theory as a system for tubes (`dynamics.core.tube.tube.System`).

    Parameters
    ----------
    theory
        The theory.
    problem
        Sizes, constants and start.
    given
        Names of the order parameters whose initial values are the floats of ``problem``. The
        others start at the exact values of the theory.

    Raises
    ------
    ParameterError
        If there are too many data orbits, or an expression is not supported in ball arithmetic.
    """

    def __init__(self, theory: Theory, problem: TheoryProblem, given: Sequence[str]) -> None:
        known = law(theory, problem.values)
        if (number := count_orbits(known)) > MOST_ORBITS:
            raise ParameterError(
                f"{number:.3g} data orbits are too many for a proof (most {MOST_ORBITS}): choose "
                "smaller sizes"
            )
        risk = runs.risk_of(theory, problem)
        with ctx.workprec(_BITS):
            balls = Balls(problem.values)
            self.constants = {name: exact(x) for name, x in problem.values.items()}
            data = orbits(law(theory, problem.values, balls))
            self.function = EmittedFunction(
                runs.source_of(theory), theory.name, data, list(self.constants.values())
            )
            self.metric = np.array([float(balls.real(order.count)) for order in theory.orders])
            self.start = problem.initial_state
            self.start_balls = [
                exact(problem.start[order.name])
                if order.name in given or order.scale is not None
                else balls.real(order.start)
                for order in theory.orders
            ]
            self.start_radius = np.array(
                [
                    0.0 if ball == exact(x) else above(abs(ball - exact(x)))
                    for ball, x in zip(self.start_balls, self.start)
                ]
            )
        self._field = TheoryField(self.function, risk)

    def field(self, theta: np.ndarray, tolerance: float) -> TheoryField:
        """Return the velocity, which is the same for all states and tolerances."""
        return self._field


@dataclass(frozen=True, eq=False)
class TheoryProof:
    """Proved statements about one trajectory of a user-defined theory.

    Attributes
    ----------
    problem
        Sizes, constants and start.
    clock
        Gradient flow, or descent with a learning rate.
    horizon
        Requested final time.
    proved
        Whether the tube reaches the horizon.
    time, reason
        Time at which the tube ends, and why it ends before the horizon.
    enclosure
        Mapping from order parameter to (low, high) at the end of the tube.
    loss
        (low, high) of the loss at the end.
    claims
        What is proved about each claim.
    tube
        The tube with its polynomials.
    """

    problem: TheoryProblem
    clock: Clock
    horizon: float
    proved: bool
    time: float
    reason: str
    enclosure: Mapping[str, Interval]
    loss: Interval
    claims: tuple[Decided, ...]
    tube: Tube

    @property
    def sentence(self) -> str:
        """Summary in one sentence."""
        solver = "the flow" if isinstance(self.clock, Flow) else "gradient descent"
        if not self.proved:
            return f"not proved to time {self.horizon:g}: {self.reason}"
        return f"proved: {solver} is enclosed to time {self.horizon:g}"

    @property
    def all_proved(self) -> bool:
        """Whether the tube reaches the horizon and each claim is proved from some time on."""
        return self.proved and all(claim.at_end for claim in self.claims)


def statements_of(theory: Theory, texts: Sequence[str]) -> tuple[Statement, ...]:
    """Return the statements of some formulas; without formulas, those of the claims of the file.

    Raises
    ------
    ParameterError
        If a formula is not valid, or if a given one is no statement about single times.
    """
    names = [*names_along_runs(theory), *theory.observables, *theory.events]
    chosen = texts or [claim.condition for claim in theory.claims]
    results = []
    for text in chosen:
        try:
            results.append(Statement.of(text, grammar.parse(text, names), list(theory.events)))
        except grammar.FormulaError as error:
            raise ParameterError(f"claim = {text} is not allowed: {error.sentence}") from None
        except ParameterError:
            if texts:
                raise
    return tuple(results)


def prove_theory(
    system: UserTheorySystem,
    values: Mapping[str, Any],
    *,
    claims: Sequence[str] = (),
    tolerance: float | None = None,
    progress: Callable[[float], None] | None = None,
) -> TheoryProof:
    """Enclose a trajectory of a user-defined theory rigorously, and decide claims about it.

    Parameters
    ----------
    system
        The theory, as `simulations.theories.from_file` returns it.
    values
        Mapping from the parameters of `patchdyn run` (sizes, constants, initial values and options
        of the solver) to their values; floats are exact numbers.
    claims
        Statements about single times, such as ``"c_in >= c_out"`` or ``"loss <= 0.1"``; by default
        the claims of the file.
    tolerance
        Error of the polynomials relative to the length of the path, from 1e-11 to 0.1. By default
        the values of `TOLERANCES` are tried in turn.
    progress
        Called after each piece with the time reached.

    Returns
    -------
    TheoryProof
        If the tube does not reach the horizon, ``proved`` is False and ``reason`` states where and
        why. The claims are decided on the tube as far as it reaches.

    Raises
    ------
    ParameterError
        If an argument is not allowed, or if there are too many data for a proof.
    """
    theory = system.theory_of_index_sets
    statements = statements_of(theory, claims)
    if tolerance is not None:
        allowed = 1e-11 <= finite("tolerance", tolerance) <= 0.1
        require(allowed, "tolerance", tolerance, "in [1e-11, 0.1]")
    case = system.build(values)
    clock, end = _clock(case)
    given = [name for name, x in system.identifiers.items() if f"{x}0" in values]
    tubes = TheorySystem(theory, case.problem, given)
    longest = Tube.at_start(tubes)
    for chosen in TOLERANCES if tolerance is None else (tolerance,):
        tube = enclose(
            tubes,
            clock,
            end,
            tolerance=chosen,
            functional=np.zeros(tubes.start.size),
            progress=None if progress is None else (lambda t: progress(t.end * clock.unit)),
        )
        longest = tube if tube.end >= longest.end else longest
        if not tube.reason:
            break
    return _concluded(theory, case.problem, tubes, clock, end, longest, statements)


def _clock(case: Case) -> tuple[Clock, float]:
    """Return the clock of a case, and its final time or number of steps."""
    settings = case.settings
    if case.solver == "flow":
        return Flow(), float(settings["horizon"])
    if set(settings) & {"optimizer", "momentum", "weight_decay"}:
        raise ParameterError("optimizer is not allowed: only plain gradient descent is proved")
    return Descent(float(settings["learning_rate"])), float(settings["steps"])


def _concluded(
    theory: Theory,
    problem: TheoryProblem,
    system: TheorySystem,
    clock: Clock,
    end: float,
    tube: Tube,
    statements: Sequence[Statement],
) -> TheoryProof:
    """Return what follows from a tube."""
    initial = {
        f"{order.identifier}0": ball for order, ball in zip(theory.orders, system.start_balls)
    }
    along = Along(
        theory, {**system.constants, **initial}, system.start_balls, system.function, clock, tube
    )
    middles = system.start_balls
    if tube.pieces:
        columns = tube.pieces[-1].coefficients.T.tolist()
        middles = [sum(map(exact, column), arb(0)) for column in columns]
    ends = [(below(x - exact(r)), above(x + exact(r))) for x, r in zip(middles, tube.radius)]
    return TheoryProof(
        problem=problem,
        clock=clock,
        horizon=end * clock.unit,
        proved=not tube.reason and bool(tube.pieces),
        time=tube.end * clock.unit,
        reason=tube.reason,
        enclosure=dict(zip(along.names, ends)),
        loss=along.loss_at_end(),
        claims=tuple(along.decide(statement) for statement in statements) if tube.pieces else (),
        tube=tube,
    )
