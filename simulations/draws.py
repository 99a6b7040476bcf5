"""What every theory's Hypothesis strategies draw with: reals, flow settings, filters."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

if TYPE_CHECKING:
    from simulations.falsify import Filter

#: So many problems are drawn for one that satisfies a filter.
ATTEMPTS = 20


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


def satisfies(where: str, problem: Any, system: str) -> bool:
    """Return whether a problem of a theory satisfies a statement over its constants."""
    from simulations.system import Case

    settings = {"initial": problem.initial_state, "horizon": math.inf}
    return _filter(where, system).keeps(Case(system, {}, problem, "flow", settings))


@cache
def _filter(where: str, system: str) -> Filter:
    from simulations.falsify import Filter
    from simulations.theories import load

    return Filter(where, load(system))
