"""Hypothesis strategies for small problems and states of positional attention."""

import math
from collections.abc import Mapping
from typing import Any

from hypothesis import reject
from hypothesis import strategies as st

from dynamics import ParameterError, Problem, State
from simulations.parameter_strategies import ATTEMPTS, fields, invalid, reals, satisfies

_LARGEST_D = 32


def sizes(draw: st.DrawFn, fixed: Mapping[str, Any]) -> dict[str, int]:
    """Draw D and C such that C divides D, unless they are fixed."""
    C = int(fixed["C"]) if "C" in fixed else draw(_size(fixed.get("D")))
    if "D" in fixed:
        return {"D": int(fixed["D"]), "C": C}
    return {"D": C * draw(st.integers(2, max(2, _LARGEST_D // C))), "C": C}


def _size(D: int | None) -> st.SearchStrategy[int]:
    """Return a strategy for sizes of a set that divide ``D``, small ones first."""
    if D is None:
        return st.sampled_from(range(2, 5))
    small = [C for C in range(2, math.isqrt(int(D)) + 1) if D % C == 0]
    divisors = sorted({*small, *(int(D) // C for C in small)})
    if not divisors:
        raise ParameterError(f"D = {D} is not allowed: D must have a divisor, the size C of a set")
    return st.sampled_from(divisors)


@st.composite
def problems(
    draw: st.DrawFn,
    max_D: int = 16,
    max_C: int = 4,
    degrees: tuple[int, ...] = (3, 5, 7),
    where: str | None = None,
    **fixed: Any,
) -> Problem:
    """Draw a valid problem with at most ``max_D`` patches in sets of at most ``max_C``.

    Parameters
    ----------
    draw
        Supplied by Hypothesis.
    max_D, max_C
        Largest number of patches and size of a set.
    degrees
        Degrees p of the activation.
    where
        A condition on the constants in the language of ``patchdyn falsify``, such as
        ``"q*D <= C"``.
    **fixed
        Fields of :class:`dynamics.Problem`, as in ``problems(p=3, beta=1.0)``; ``D`` and ``C`` are
        fixed together.
    """
    for _ in range(1 if where is None else ATTEMPTS):
        C = draw(st.integers(2, max(2, min(max_C, max_D // 2))))
        arguments = {"D": C * draw(st.integers(2, max(2, max_D // C))), "C": C}
        arguments |= draw(fields(Problem, without=("p",))) | {"p": draw(st.sampled_from(degrees))}
        problem = Problem(**(arguments | fixed))
        if where is None or satisfies(where, problem, "positional"):
            return problem
    reject()


@st.composite
def states(
    draw: st.DrawFn, max_alpha: float = 1.0, max_logit: float = 3.0, positive: bool = False
) -> State:
    """Draw (alpha, gamma, rho) with ``|alpha| <= max_alpha`` and logits up to ``max_logit``.

    With ``positive``, ``alpha >= 1e-3`` as along the flow.
    """
    alpha = draw(reals(1e-3 if positive else -max_alpha, max_alpha))
    logits = [draw(reals(-max_logit, max_logit)) for _ in range(2)]
    return State(alpha, *logits)


@st.composite
def invalid_problem_arguments(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """Draw the name of an invalid argument of :class:`dynamics.Problem`, and all arguments."""
    valid = {"D": 8, "C": 2, "q": 0.3, "p": 3, "nu": 0.01, "beta": 1.0, "temperature": 1.0}
    sizes = st.sampled_from((3, 5, 6, 8, 64)).map(lambda C: ("C", C))  # no divisors of D = 8
    name, value = draw(invalid(Problem) | sizes)
    return name, valid | {name: value}
