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
    """Draw compatible numbers of patterns, tokens and neurons, and a small number of steps."""
    M, L = fixed.get("M", draw(st.integers(3, 5))), fixed.get("L", draw(st.sampled_from((10, 20))))
    relevant = draw(st.integers(1, int(L)))
    confusion = draw(st.integers(0, min(relevant - 1, int(L) - relevant)))
    arguments: dict[str, Any] = {
        "M": M,
        "L": L,
        "alpha_relevant": relevant / L,
        "alpha_confusion": confusion / L,
        "neurons": 2 * int(M) * draw(st.integers(1, 4)),
    }
    if not {"solver", "horizon"} & set(fixed):
        arguments["steps"] = 60
    return _compatible(arguments, fixed) if any(name in fixed for name in _DATA) else arguments


def _compatible(arguments: dict[str, Any], fixed: Mapping[str, Any]) -> dict[str, Any]:
    """Remove the fractions if they are not compatible with the fixed parameters."""
    try:
        ShallowProblem(**{n: x for n, x in (arguments | dict(fixed)).items() if n in _DATA})
    except ParameterError:
        removed = {"alpha_relevant", "alpha_confusion"} - set(fixed)
        return {name: value for name, value in arguments.items() if name not in removed}
    return arguments


@st.composite
def shallow_problems(draw: st.DrawFn, where: str | None = None, **fixed: Any) -> ShallowProblem:
    """Draw a problem of the shallow transformer.

    Parameters
    ----------
    draw
        Supplied by Hypothesis.
    where
        A condition on the constants of the system ``shallow``, such as ``"alpha_confusion > 0"``.
    **fixed
        Fields of :class:`dynamics.shallow.ShallowProblem` that are not sampled.
    """
    for _ in range(1 if where is None else ATTEMPTS):
        arguments = sizes(draw, {"solver": "gd", **fixed})
        arguments |= draw(fields(ShallowProblem, readable=True))
        problem = ShallowProblem(**(arguments | fixed))
        if where is None or satisfies(where, problem, "shallow"):
            return problem
    reject()
