"""Hypothesis strategy for problems of the shallow transformer."""

from typing import Any

from hypothesis import reject
from hypothesis import strategies as st

from dynamics.shallow import ShallowProblem
from simulations.draws import ATTEMPTS, satisfies
from simulations.shallow.cases import values

_TRAIN = ("steps", "learning_rate", "horizon", "solver")


@st.composite
def shallow_problems(draw: st.DrawFn, where: str | None = None, **fixed: Any) -> ShallowProblem:
    """Draw a problem of the shallow transformer; ``fixed`` fields are not drawn.

    ``where`` keeps the problems that satisfy a statement over the constants of the system
    ``shallow``, such as ``"alpha_confusion > 0"``.
    """
    for _ in range(1 if where is None else ATTEMPTS):
        drawn = draw(values(fixed))
        problem = ShallowProblem(**{name: x for name, x in drawn.items() if name not in _TRAIN})
        if where is None or satisfies(where, problem, "shallow"):
            return problem
    reject()
