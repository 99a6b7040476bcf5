"""Hypothesis strategy for problems of the shallow transformer."""

from collections.abc import Mapping
from typing import Any

from hypothesis import reject
from hypothesis import strategies as st

from dynamics import ParameterError
from dynamics.shallow import ShallowProblem
from simulations.parameter_strategies import ATTEMPTS, fields, satisfies

_DATA = ("M", "L", "alpha_relevant", "alpha_confusion", "queried", "neurons")


def sizes(draw: st.DrawFn, fixed: Mapping[str, Any]) -> dict[str, Any]:
    """Draw numbers of patterns, tokens and neurons that fit, and few steps."""
    M, L = fixed.get("M", draw(st.integers(3, 5))), fixed.get("L", draw(st.sampled_from((10, 20))))
    relevant = draw(st.integers(1, int(L)))
    confusion = draw(st.integers(0, min(relevant - 1, int(L) - relevant)))
    drawn: dict[str, Any] = {
        "M": M,
        "L": L,
        "alpha_relevant": relevant / L,
        "alpha_confusion": confusion / L,
        "neurons": 2 * int(M) * draw(st.integers(1, 4)),
    }
    if not {"solver", "horizon"} & set(fixed):
        drawn["steps"] = 60
    return _fit(drawn, fixed) if any(name in fixed for name in _DATA) else drawn


def _fit(drawn: dict[str, Any], fixed: Mapping[str, Any]) -> dict[str, Any]:
    """Drop the fractions that do not fit the fixed parameters; their defaults apply."""
    try:
        ShallowProblem(**{n: x for n, x in (drawn | dict(fixed)).items() if n in _DATA})
    except ParameterError:
        left_out = {"alpha_relevant", "alpha_confusion"} - set(fixed)
        return {name: value for name, value in drawn.items() if name not in left_out}
    return drawn


@st.composite
def shallow_problems(draw: st.DrawFn, where: str | None = None, **fixed: Any) -> ShallowProblem:
    """Draw a problem of the shallow transformer; ``fixed`` fields are not drawn.

    ``where`` keeps the problems that satisfy a statement over the constants of the system
    ``shallow``, such as ``"alpha_confusion > 0"``.
    """
    for _ in range(1 if where is None else ATTEMPTS):
        drawn = sizes(draw, {"solver": "gd", **fixed})
        drawn |= draw(fields(ShallowProblem, readable=True))
        problem = ShallowProblem(**(drawn | fixed))
        if where is None or satisfies(where, problem, "shallow"):
            return problem
    reject()
