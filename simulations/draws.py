"""Hypothesis strategies that follow from the declarations of parameters, and their filters."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from dynamics.core.annotations import Bound, Condition
from dynamics.core.parameters import Parameter, Parameters, declared

if TYPE_CHECKING:
    from simulations.falsify import Filter
    from simulations.system import System

#: So many problems are drawn for one that satisfies a filter.
ATTEMPTS = 20
#: Values no numerical field accepts.
_NOT_NUMBERS = (float("nan"), float("inf"), float("-inf"), "1", None, True, 1j)


def reals(low: float, high: float) -> st.SearchStrategy[float]:
    """Draw finite floats between two bounds, without subnormal numbers."""
    return st.floats(low, high, allow_nan=False, allow_subnormal=False)


@st.composite
def flow_settings(draw: st.DrawFn, max_horizon: float = 1e4) -> dict[str, Any]:
    """Draw keyword arguments of :func:`dynamics.gradient_flow`: horizon, method, tolerance."""
    return {
        "horizon": 10.0 ** draw(reals(0.0, math.log10(max_horizon))),
        "method": draw(st.sampled_from(("LSODA", "BDF", "Radau"))),
        "rtol": draw(st.sampled_from((1e-8, 1e-7, 1e-6))),
    }


@cache
def allowed(parameter: Parameter, readable: bool = False) -> st.SearchStrategy[Any]:
    """Draw values of a parameter from its declared range; ``readable``: of few digits."""
    one = parameter.draw
    if one is None:
        raise ValueError(f"{parameter.name} declares no range of random values")
    if one.among:
        return st.sampled_from(one.among)
    if parameter.dtype is int:
        drawn: st.SearchStrategy[Any] = st.integers(int(one.low), int(one.high))
    elif one.log:
        powers = reals(math.log10(one.low), math.log10(one.high)).map(lambda x: 10.0**x)
        drawn = powers.map(lambda x: float(f"{min(max(x, one.low), one.high):.3g}")
                           if readable else min(max(x, one.low), one.high))  # fmt: skip
    else:
        drawn = reals(one.low, one.high).map(lambda x: round(x, 3) if readable else x)
    if one.default:
        drawn = st.just(parameter.default) | drawn
    return st.none() | drawn if parameter.optional else drawn


def fields(
    cls: type[Parameters], without: Collection[str] = (), readable: bool = False
) -> st.SearchStrategy[dict[str, Any]]:
    """Draw the fields of a class that declare a range, but for those named."""
    return st.fixed_dictionaries({
        name: allowed(parameter, readable)
        for name, parameter in declared(cls).items()
        if name == parameter.field and parameter.draw is not None and name not in without
    })  # fmt: skip


@st.composite
def invalid(draw: st.DrawFn, cls: type[Parameters]) -> tuple[str, Any]:
    """Draw a numerical field and a value that it does not allow, whatever the others are."""
    numbers = [one for name, one in declared(cls).items()
               if name == one.field and one.dtype is not str]  # fmt: skip
    parameter = draw(st.sampled_from(sorted(numbers, key=lambda one: one.name)))
    junk = [x for x in _NOT_NUMBERS if x is not None or not parameter.optional]
    strategies: list[st.SearchStrategy[Any]] = [st.sampled_from(junk)]
    strategies += [_beyond(bound, parameter.dtype) for bound in parameter.bounds]
    if parameter.dtype is int:
        strategies.append(st.integers(-99, 99).map(lambda n: n + 0.5))
    return parameter.name, draw(st.one_of(strategies))


def _beyond(bound: Bound | Condition, kind: type) -> st.SearchStrategy[Any]:
    """Draw values that a bound excludes."""
    if isinstance(bound, Condition):
        return st.integers(0, 99).filter(lambda n: not bound.holds(n))
    if kind is int:
        limit = int(bound.limit)
        return (st.integers(max_value=limit - (bound.sign == ">=")) if bound.sign in (">", ">=")
                else st.integers(min_value=limit + (bound.sign == "<=")))  # fmt: skip
    if bound.sign in (">", ">="):
        return st.floats(max_value=bound.limit, exclude_max=bound.sign == ">=", allow_nan=False)
    return st.floats(min_value=bound.limit, exclude_min=bound.sign == "<=", allow_nan=False)


def cases(system: System, fixed: Mapping[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Draw values that a system builds a case from, but for those that are fixed."""
    known = {parameter.name: parameter for parameter in system.parameters}
    for name, value in fixed.items():
        if name in known and known[name].field == name and known[name].text is None:
            known[name].validate(value)
    return _cases(system, fixed)


@st.composite
def _cases(draw: st.DrawFn, system: System, fixed: Mapping[str, Any]) -> dict[str, Any]:
    known = declared(system.problem)
    drawn = {**system.joint(draw, fixed), **fixed}
    given = {known[name].field for name in drawn if name in known}
    for name, parameter in known.items():
        if parameter.draw and parameter.draw.search and parameter.field not in given:
            drawn[name] = draw(allowed(parameter, readable=True))
    return drawn


def satisfies(where: str, problem: Any, system: str) -> bool:
    """Return whether a problem of a theory satisfies a statement over its constants."""
    from simulations.system import Case

    settings = {"initial": problem.initial_state, "horizon": math.inf}
    return _filter(where, system).accepts(Case(system, {}, problem, "flow", settings))


@cache
def _filter(where: str, system: str) -> Filter:
    from simulations.falsify import Filter
    from simulations.theories import load

    return Filter(where, load(system))
