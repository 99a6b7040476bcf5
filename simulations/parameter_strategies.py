"""Hypothesis strategies derived from the declarations of parameters, and filters of problems."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any

from hypothesis import reject
from hypothesis import strategies as st

from dynamics import ParameterError
from dynamics.core.annotations import Bound, Condition, as_text, bounds_text
from dynamics.core.checks import require
from dynamics.core.parameters import Parameter, Parameters, check_names, declared

if TYPE_CHECKING:
    from simulations.falsify import Filter
    from simulations.system import System

#: Largest number of sampled problems for each one that satisfies a filter or is within ranges.
ATTEMPTS = 20
#: Ranges whose ends have a larger ratio are sampled on a logarithmic scale.
_WIDE = 100.0
#: Values that no numerical field accepts.
_NOT_NUMBERS = (float("nan"), float("inf"), float("-inf"), "1", None, True, 1j)


def reals(low: float, high: float) -> st.SearchStrategy[float]:
    """Return a strategy of finite floats between two bounds, without subnormal numbers."""
    return st.floats(low, high, allow_nan=False, allow_subnormal=False)


@st.composite
def flow_settings(draw: st.DrawFn, max_horizon: float = 1e4) -> dict[str, Any]:
    """Return a strategy of keyword arguments of :func:`dynamics.gradient_flow`.

    They are the horizon, at most ``max_horizon``, the method and the relative tolerance.
    """
    return {
        "horizon": 10.0 ** draw(reals(0.0, math.log10(max_horizon))),
        "method": draw(st.sampled_from(("LSODA", "BDF", "Radau"))),
        "rtol": draw(st.sampled_from((1e-8, 1e-7, 1e-6))),
    }


@cache
def allowed(parameter: Parameter, readable: bool = False) -> st.SearchStrategy[Any]:
    """Return a strategy of values of a parameter in its declared range.

    Parameters
    ----------
    parameter
        Parameter with a range of random values.
    readable
        Round values to three digits.

    Raises
    ------
    ValueError
        If the parameter declares no range.
    """
    declaration = parameter.draw
    if declaration is None:
        raise ValueError(f"{parameter.name} declares no range of random values")
    if declaration.among:
        return st.sampled_from(declaration.among)
    low, high = declaration.low, declaration.high
    if parameter.dtype is int:
        values: st.SearchStrategy[Any] = st.integers(int(low), int(high))
    elif declaration.log:
        values = reals(math.log10(low), math.log10(high)).map(
            lambda x: min(max(10.0**x, low), high)
        )
        if readable:
            values = values.map(lambda x: float(f"{x:.3g}"))
    else:
        values = reals(low, high).map(lambda x: round(x, 3) if readable else x)
    if declaration.default:
        values = st.just(parameter.default) | values
    return st.none() | values if parameter.optional else values


def between(parameter: Parameter, low: float, high: float) -> st.SearchStrategy[Any]:
    """Return a strategy of values of a parameter in a range, with three digits if possible."""
    if parameter.dtype is int:
        return st.integers(int(low), int(high))
    if low > 0.0 and high > _WIDE * low:
        values = reals(math.log10(low), math.log10(high)).map(lambda x: 10.0**x)
    else:
        values = reals(low, high)
    return values.map(lambda x: min(max(float(f"{x:.3g}"), low), high))


def check_ranges(
    ranges: Mapping[str, tuple[float, float]],
    fixed: Mapping[str, Any],
    parameters: Iterable[Parameter],
) -> None:
    """Raise ParameterError unless parameters can be sampled in these ranges.

    Parameters
    ----------
    ranges
        Mapping from name of a parameter to the ends of its range.
    fixed
        Mapping from name to value of the parameters that are not sampled.
    parameters
        The parameters of the system.
    """
    known = {parameter.name: parameter for parameter in parameters}
    for name, (low, high) in ranges.items():
        check_names({name: low}, known.values())
        check_names({name: high}, known.values())
        parameter = known[name]
        text = f"{as_text(low)}..{as_text(high)}"
        require(low <= high, name, text, "a range LOW..HIGH with LOW at most HIGH")
        bounds = [bound for bound in parameter.bounds if isinstance(bound, Bound)]
        inside = all(bound.holds(end) for bound in bounds for end in (low, high))
        allowed = parameter.to_field is not None or inside
        require(allowed, name, text, bounds_text(bounds, parameter.dtype))
        for other in (*fixed, *ranges):
            same = parameter.field and other in known and known[other].field == parameter.field
            if other != name and same:
                raise ParameterError(f"{name} and {other} are not allowed together")
        if name in fixed:
            raise ParameterError(f"{name} = {text} is not allowed: {name} = {fixed[name]} is fixed")


def fields(
    cls: type[Parameters], without: Collection[str] = (), readable: bool = False
) -> st.SearchStrategy[dict[str, Any]]:
    """Return a strategy of the fields of a class that declare a range, except ``without``."""
    return st.fixed_dictionaries(
        {
            name: allowed(parameter, readable)
            for name, parameter in declared(cls).items()
            if name == parameter.field and parameter.draw is not None and name not in without
        }
    )


@st.composite
def invalid(draw: st.DrawFn, cls: type[Parameters]) -> tuple[str, Any]:
    """Return a strategy of pairs: a numerical field and a value that it never allows."""
    numerical = [
        parameter
        for name, parameter in declared(cls).items()
        if name == parameter.field and parameter.dtype is not str
    ]
    parameter = draw(st.sampled_from(sorted(numerical, key=lambda parameter: parameter.name)))
    not_numbers = [x for x in _NOT_NUMBERS if x is not None or not parameter.optional]
    strategies: list[st.SearchStrategy[Any]] = [st.sampled_from(not_numbers)]
    strategies += [_beyond(bound, parameter.dtype) for bound in parameter.bounds]
    if parameter.dtype is int:
        strategies.append(st.integers(-99, 99).map(lambda n: n + 0.5))
    return parameter.name, draw(st.one_of(strategies))


def _beyond(bound: Bound | Condition, dtype: type) -> st.SearchStrategy[Any]:
    """Return a strategy of values that a bound excludes."""
    if isinstance(bound, Condition):
        return st.integers(0, 99).filter(lambda n: not bound.holds(n))
    if dtype is int:
        limit = int(bound.limit)
        if bound.sign in (">", ">="):
            return st.integers(max_value=limit - (bound.sign == ">="))
        return st.integers(min_value=limit + (bound.sign == "<="))
    if bound.sign in (">", ">="):
        return st.floats(max_value=bound.limit, exclude_max=bound.sign == ">=", allow_nan=False)
    return st.floats(min_value=bound.limit, exclude_min=bound.sign == "<=", allow_nan=False)


def cases(
    system: System, fixed: Mapping[str, Any], ranges: Mapping[str, tuple[float, float]]
) -> st.SearchStrategy[dict[str, Any]]:
    """Return a strategy of values for `System.build`.

    Parameters
    ----------
    system
        The theory.
    fixed
        Mapping from name to value of the parameters that are not sampled.
    ranges
        Mapping from name to range of further parameters, which are sampled in these ranges.

    Raises
    ------
    ParameterError
        If a fixed value or a range is not allowed.
    """
    known = {parameter.name: parameter for parameter in system.parameters}
    for name, value in fixed.items():
        if name in known and known[name].field == name and known[name].text is None:
            known[name].validate(value)
    check_ranges(ranges, fixed, known.values())
    if not ranges:
        return _cases(system, fixed)
    return within(system, {name: (known[name], *ends) for name, ends in ranges.items()}, fixed)


@st.composite
def within(
    draw: st.DrawFn,
    system: System,
    ranges: Mapping[str, tuple[Parameter, float, float]],
    fixed: Mapping[str, Any],
    sample: Callable[..., st.SearchStrategy[dict[str, Any]]] | None = None,
) -> dict[str, Any]:
    """Return a strategy of values that `System.build` accepts, with parameters in ranges.

    Parameters
    ----------
    draw
        Supplied by Hypothesis.
    system
        The theory.
    ranges
        Mapping from name to parameter and range.
    fixed
        Fixed values.
    sample
        Strategy of the other parameters, a function of the system and of all given values.
    """
    for _ in range(ATTEMPTS):
        given = {name: draw(between(*each)) for name, each in ranges.items()}
        with suppress(ParameterError):
            values = draw((sample or _cases)(system, {**fixed, **given}))
            system.build(values)
            return values
    reject()


@st.composite
def _cases(draw: st.DrawFn, system: System, fixed: Mapping[str, Any]) -> dict[str, Any]:
    known = declared(system.problem)
    values = {**system.joint(draw, fixed), **fixed}
    given = {known[name].field for name in values if name in known}
    for name, parameter in known.items():
        if parameter.draw and parameter.draw.search and parameter.field not in given:
            values[name] = draw(allowed(parameter, readable=True))
    return values


def satisfies(where: str, problem: Any, system: str) -> bool:
    """Return whether a problem of a theory satisfies a statement over its constants."""
    from simulations.case import Case

    settings = {"initial": problem.initial_state, "horizon": math.inf}
    return _filter(where, system).accepts(Case(system, {}, problem, "flow", settings))


@cache
def _filter(where: str, system: str) -> Filter:
    from simulations.falsify import Filter
    from simulations.theories import load

    return Filter(where, load(system))
