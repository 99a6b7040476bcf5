"""Hypothesis strategy for problems of masked image modelling."""

from collections.abc import Mapping
from typing import Any

from hypothesis import assume, reject
from hypothesis import strategies as st

from dynamics import ParameterError
from dynamics.core.parameters import declared
from dynamics.masked import MaskedProblem
from simulations.parameter_strategies import ATTEMPTS, allowed, fields, satisfies

_SIZES = ("P", "kappa_c", "kappa_s")


def sizes(draw: st.DrawFn, fixed: Mapping[str, Any]) -> dict[str, Any]:
    """Draw numbers of patches and exponents such that the areas fit, but for the fixed ones."""
    known = declared(MaskedProblem)
    drawn = {name: fixed[name] if name in fixed else draw(allowed(known[name], readable=True))
             for name in _SIZES}  # fmt: skip
    if "z_high" in fixed:  # else it may be less than the least scale
        drawn["z_low"] = fixed.get("z_low", known["z_low"].usual)
    if not set(_SIZES) <= set(fixed):
        assume(_fit(drawn))
    return drawn


def _fit(drawn: Mapping[str, Any]) -> bool:
    """Return whether areas of these sizes fit into so many patches."""
    try:
        MaskedProblem(**{name: drawn[name] for name in _SIZES})
    except ParameterError:
        return False
    return True


@st.composite
def masked_problems(
    draw: st.DrawFn,
    max_P: int = 8,
    max_K: int = 2,
    partitions: bool | None = None,
    where: str | None = None,
    **fixed: Any,
) -> MaskedProblem:
    """Draw a problem of masked image modelling; ``fixed`` fields are not drawn.

    With explicit ``partitions`` there are 4 to ``max_P`` patches in ``max_K`` clusters at most, few
    enough to write out all masks; without, exponents and one cluster of up to 2^20 patches;
    ``None`` draws either. ``where`` keeps the problems that satisfy a statement over the constants
    of the system ``masked``, such as ``"Delta > 0"``.
    """
    explicit = draw(st.booleans()) if partitions is None else partitions
    for _ in range(1 if where is None else ATTEMPTS):
        try:
            problem = _masked_problem(draw, (max_P, max_K), explicit, fixed)
        except ParameterError:  # so few patches: none masked, or no room for the areas
            continue
        if where is None or satisfies(where, problem, "masked"):
            return problem
    reject()


def _masked_problem(
    draw: st.DrawFn, largest: tuple[int, int], explicit: bool, fixed: dict[str, Any]
) -> MaskedProblem:
    drawn: dict[str, Any] = {"mask_ratio": draw(st.sampled_from((0.5, 0.3, 0.7)))}
    drawn["z_low"] = draw(allowed(declared(MaskedProblem)["z"], readable=True))
    if explicit:
        return _explicit(draw, *largest, drawn | fixed)
    drawn |= draw(fields(MaskedProblem, without=("mask_ratio",), readable=True))
    return MaskedProblem(**(drawn | fixed))


def _explicit(draw: st.DrawFn, max_P: int, max_K: int, fields: dict[str, Any]) -> MaskedProblem:
    """Draw areas patch by patch: sizes in each cluster, shuffled after the first."""
    P = fields.pop("P", None) or draw(st.integers(4, max_P))
    query = fields.pop("query", None)
    sizes = []
    for _ in range(fields.pop("K", None) or draw(st.integers(1, max_K))):
        first = draw(st.integers(1, P - 1))
        second = draw(st.integers(1, P - first))
        areas = sorted((first, second, P - first - second), reverse=True)
        sizes.append([size for size in areas if size > 0])
    query = draw(st.integers(0, P - 1)) if query is None else query
    return MaskedProblem.from_sizes(*sizes, seed=draw(st.integers(0, 9)), query=query, **fields)
