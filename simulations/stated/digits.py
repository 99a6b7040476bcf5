"""How many digits of a derived risk and gradient are proved, at the start and late in training."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynamics import ParameterError, gradient_flow
from dynamics.theory import reference
from dynamics.theory.data import how_many, orbits
from simulations.stated import runs
from simulations.stated.law import Balls, law
from symbolic.theory import Theory

#: Data orbits at most: some seconds in balls.
MOST_ORBITS = 2000
_NAMED = 3
#: Final time of the flow whose end is late in training, where the file gives none.
HORIZON = 1e3


@dataclass(frozen=True)
class Digits:
    """What is proved at one state, ``state`` by order parameter, reached at a ``time``.

    ``proved`` holds the digits of the ``risk`` and of the slope of each order parameter, ``bound``
    those of their relative errors, infinite where nothing is. ``refused`` says why nothing is known
    of any, else "".
    """

    time: float
    state: dict[str, float]
    proved: dict[str, int]
    bound: dict[str, float]
    refused: str = ""

    @property
    def sentence(self) -> str:
        """What is proved, in words."""
        where = f"at time {self.time:g}"
        if self.refused:
            return f"digits proved {where}: none, {self.refused}"
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
    """Prove how many digits of the compiled risk and gradient of a theory are right at a state.

    The derived source is evaluated once more in ball arithmetic, the chances of the data too, and
    the floats are held against the balls: sizes, constants and state are taken as the floats that
    they are, all rounding after that is bounded.

    Parameters
    ----------
    theory
        What is stated.
    values
        Sizes and constants, as ``theory.checked`` returns them.
    state
        The order parameters, (n,), in the order of the theory.
    time
        When it was reached, for the words.

    Returns
    -------
    Digits
        Significant decimal digits of the risk and of each slope; ``refused`` where there are too
        many data orbits, or numbers that balls do not know.
    """
    names = [order.name for order in theory.orders]
    at = dict(zip(names, np.asarray(state, float).tolist()))
    try:
        if how_many(law(theory, values)) > MOST_ORBITS:
            raise ParameterError(f"more than {MOST_ORBITS} data orbits are too many in balls")
        risk = runs.risk_of(theory, runs.problem(theory, dict(values)))
        found = risk.evaluate(state).loss, risk.gradient(state)
        rows = reference.proved(
            runs.source_of(theory),
            theory.name,
            found,
            lambda: orbits(law(theory, values, Balls(values))),
            state,
            list(values.values()),
        )
    except (ParameterError, OverflowError) as error:
        return Digits(time, at, {}, {}, str(error))
    words = ["risk", *names]
    return Digits(
        time,
        at,
        {name: row.digits for name, row in zip(words, rows)},
        {name: row.bound for name, row in zip(words, rows)},
    )


def along_flow(theory: Theory, values: Mapping[str, float]) -> tuple[Digits, ...]:
    """Return what is proved at the start and at the end of the flow from it."""
    problem = runs.problem(theory, dict(values))
    start = digits(theory, values, problem.initial_state)
    if start.refused:
        return (start,)
    horizon = float(theory.defaults.get("horizon", HORIZON))
    run = gradient_flow(runs.risk_of(theory, problem), horizon=horizon)
    if not len(run.time):
        return (start,)
    return start, digits(theory, values, run.states[-1], float(run.time[-1]))
