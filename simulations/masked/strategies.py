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
    """Draw a number of patches and exponents with areas that fit, unless they are fixed."""
    parameters = declared(MaskedProblem)
    values = {}
    for name in _SIZES:
        sampled = name not in fixed
        values[name] = draw(allowed(parameters[name], readable=True)) if sampled else fixed[name]
    if "z_high" in fixed:  # a sampled z_low might exceed it
        values["z_low"] = fixed.get("z_low", parameters["z_low"].default)
    if not set(_SIZES) <= set(fixed):
        assume(_areas_fit(values))
    return values


def _areas_fit(values: Mapping[str, Any]) -> bool:
    """Return whether the areas fit into the number of patches."""
    try:
        MaskedProblem(**{name: values[name] for name in _SIZES})
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
    """Draw a problem of masked image modelling.

    Parameters
    ----------
    draw
        Supplied by Hypothesis.
    max_P, max_K
        Largest numbers of patches and clusters with explicit partitions.
    partitions
        True: explicit partitions of at least 4 patches, so that all masks can be enumerated.
        False: exponents and one cluster of up to 2^20 patches. The default is either.
    where
        A condition on the constants of the system ``masked``, such as ``"Delta > 0"``.
    **fixed
        Fields of :class:`dynamics.masked.MaskedProblem` that are not sampled.
    """
    explicit = draw(st.booleans()) if partitions is None else partitions
    for _ in range(1 if where is None else ATTEMPTS):
        try:
            problem = _masked_problem(draw, (max_P, max_K), explicit, fixed)
        except ParameterError:  # too few patches for a mask or for the areas
            continue
        if where is None or satisfies(where, problem, "masked"):
            return problem
    reject()


def _masked_problem(
    draw: st.DrawFn, largest: tuple[int, int], explicit: bool, fixed: dict[str, Any]
) -> MaskedProblem:
    values: dict[str, Any] = {"mask_ratio": draw(st.sampled_from((0.5, 0.3, 0.7)))}
    values["z_low"] = draw(allowed(declared(MaskedProblem)["z"], readable=True))
    if explicit:
        return _explicit(draw, *largest, values | fixed)
    values |= draw(fields(MaskedProblem, without=("mask_ratio",), readable=True))
    return MaskedProblem(**(values | fixed))


def _explicit(draw: st.DrawFn, max_P: int, max_K: int, fields: dict[str, Any]) -> MaskedProblem:
    """Draw a problem with explicit areas, shuffled in all clusters but the first."""
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
