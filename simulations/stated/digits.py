"""Proved digits of a derived risk and gradient, at the start and late in training."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynamics import ParameterError, gradient_flow
from dynamics.theory import reference
from dynamics.theory.data import count_orbits, orbits
from simulations.stated import runs
from simulations.stated.law import Balls, law
from symbolic.theory import Theory

#: Largest number of data orbits; they take a few seconds in ball arithmetic.
MOST_ORBITS = 2000
#: Largest number of names in a summary.
_NAMED = 3
#: Default final time of the flow.
HORIZON = 1e3


@dataclass(frozen=True)
class Digits:
    """Digits proved at one state.

    Attributes
    ----------
    time, state
        Time, and mapping from order parameter to value.
    proved
        Number of proved digits of ``risk`` and of the slope of each order parameter.
    bound
        Bounds of their relative errors; inf if none is proved.
    failure
        Reason if nothing is proved; else empty.
    """

    time: float
    state: dict[str, float]
    proved: dict[str, int]
    bound: dict[str, float]
    failure: str = ""

    @property
    def sentence(self) -> str:
        """Summary in one sentence."""
        where = f"at time {self.time:g}"
        if self.failure:
            return f"digits proved {where}: none, {self.failure}"
        least = min(self.proved.values())
        lost = [name for name, digits in self.proved.items() if digits == 0]
        if lost:
            lost = lost if len(lost) <= _NAMED else [*lost[:_NAMED], f"{len(lost) - _NAMED} more"]
            rest = min((x for x in self.proved.values() if x), default=0)
            others = f"; of the others at least {rest}" if rest else ""
            return f"digits proved {where}: none of {', '.join(lost)}{others}"
        fewest = [name for name, digits in self.proved.items() if digits == least]
        few = f" (fewest: {', '.join(fewest)})" if len(fewest) <= _NAMED else ""
        which = "" if least == max(self.proved.values()) else few
        return f"digits proved {where}: at least {least} of the risk and of every slope{which}"


def digits(theory: Theory, values: Mapping[str, float], state: Any, time: float = 0.0) -> Digits:
    """Prove the number of correct digits of the compiled risk and gradient at a state.

    The derived source and the probabilities of the data are evaluated in ball arithmetic, and the
    floats are compared with the balls. Sizes, constants and state are exact floats.

    Parameters
    ----------
    theory
        The theory.
    values
        Sizes and constants, as returned by ``theory.checked``.
    state
        Order parameters (n,) in the order of the theory.
    time
        Time of the state, for the summary.

    Returns
    -------
    Digits
        It has a ``failure`` if there are too many data orbits, or if an expression is not supported
        in ball arithmetic.
    """
    names = [order.name for order in theory.orders]
    at = dict(zip(names, np.asarray(state, float).tolist()))
    try:
        if count_orbits(law(theory, values)) > MOST_ORBITS:
            raise ParameterError(f"more than {MOST_ORBITS} data orbits are too many in balls")
        risk = runs.risk_of(theory, runs.problem(theory, dict(values)))
        computed = risk.evaluate(state).loss, risk.gradient(state)
        rows = reference.proved(
            runs.source_of(theory),
            theory.name,
            computed,
            lambda: orbits(law(theory, values, Balls(values))),
            state,
            list(values.values()),
        )
    except (ParameterError, OverflowError) as error:
        return Digits(time, at, {}, {}, str(error))
    labels = ["risk", *names]
    return Digits(
        time,
        at,
        {name: row.digits for name, row in zip(labels, rows)},
        {name: row.bound for name, row in zip(labels, rows)},
    )


def along_flow(theory: Theory, values: Mapping[str, float]) -> tuple[Digits, ...]:
    """Return the digits proved at the start and at the end of gradient flow."""
    problem = runs.problem(theory, dict(values))
    start = digits(theory, values, problem.initial_state)
    if start.failure:
        return (start,)
    horizon = float(theory.defaults.get("horizon", HORIZON))
    run = gradient_flow(runs.risk_of(theory, problem), horizon=horizon)
    if not len(run.time):
        return (start,)
    return start, digits(theory, values, run.states[-1], float(run.time[-1]))
