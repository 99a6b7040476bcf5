"""Hypothesis strategies for problems and states, for tests of one's own conjectures.

.. code-block:: python

    @given(problems(), states())
    def test_attention_is_a_distribution(problem, state):
        Lambda, Gamma, Xi, _ = attention(problem, state)
        assert Lambda + (problem.C - 1) * Gamma + (problem.D - problem.C) * Xi == approx(1)

Everything drawn is valid and small: one evaluation of the population risk takes about a
millisecond. Examples shrink towards few patches, p = 3, the default temperature and output scale,
and zero logits.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any

from hypothesis import reject
from hypothesis import strategies as st

from dynamics import ParameterError, Problem, State
from dynamics.masked import MaskedProblem

if TYPE_CHECKING:
    from simulations.falsify import Filter

#: So many problems are drawn for one that satisfies a filter.
_ATTEMPTS = 20

#: Values no numerical field accepts.
_NOT_NUMBERS = (float("nan"), float("inf"), float("-inf"), "1", None, True, 1j)


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

    Keyword arguments fix fields of :class:`dynamics.Problem`, as in ``problems(p=3, beta=1.0)``;
    ``D`` and ``C`` are fixed together. ``where`` is a statement over the constants, in the language
    of ``patchdyn falsify``, that the problem satisfies: ``problems(where="q*D <= C")``.
    """
    for _ in range(1 if where is None else _ATTEMPTS):
        problem = _problem(draw, max_D, max_C, degrees, fixed)
        if where is None or _satisfies(where, problem, "positional"):
            return problem
    reject()


def _problem(
    draw: st.DrawFn, max_D: int, max_C: int, degrees: tuple[int, ...], fixed: dict[str, Any]
) -> Problem:
    C = draw(st.integers(2, max(2, min(max_C, max_D // 2))))
    drawn: dict[str, Any] = {
        "D": C * draw(st.integers(2, max(2, max_D // C))),
        "C": C,
        "q": draw(reals(0.01, 1.0)),
        "p": draw(st.sampled_from(degrees)),
        "nu": draw(reals(1e-4, 1.0)),
        "beta": draw(reals(-2.0, 3.0)),
        "temperature": draw(st.just(1.0) | reals(0.5, 3.0)),
        "output_scale": draw(st.none() | reals(0.5, 20.0)),
        "d": draw(st.none() | st.integers(1, 30)),
        "sigma": draw(st.none() | reals(0.0, 1.0)),
    }
    return Problem(**(drawn | fixed))


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
    for _ in range(1 if where is None else _ATTEMPTS):
        try:
            problem = _masked_problem(draw, (max_P, max_K), explicit, fixed)
        except ParameterError:  # so few patches: none masked, or no room for the areas
            continue
        if where is None or _satisfies(where, problem, "masked"):
            return problem
    reject()


def _masked_problem(
    draw: st.DrawFn, largest: tuple[int, int], explicit: bool, fixed: dict[str, Any]
) -> MaskedProblem:
    z_low = round(draw(st.just(1.0) | reals(0.5, 2.0)), 3)
    drawn: dict[str, Any] = {"mask_ratio": draw(st.sampled_from((0.5, 0.3, 0.7))), "z_low": z_low}
    if explicit:
        return _explicit(draw, *largest, drawn | fixed)
    drawn |= {
        "P": 2 ** draw(st.integers(6, 20)),
        "kappa_c": round(draw(reals(0.5, 0.95)), 3),
        "kappa_s": round(draw(reals(0.1, 0.6)), 3),
        "query": draw(st.sampled_from(("local", "global"))),
    }
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


@st.composite
def flow_settings(draw: st.DrawFn, max_horizon: float = 1e4) -> dict[str, Any]:
    """Draw keyword arguments of :func:`dynamics.gradient_flow`: horizon, method, tolerance."""
    return {
        "horizon": 10.0 ** draw(reals(0.0, math.log10(max_horizon))),
        "method": draw(st.sampled_from(("LSODA", "BDF", "Radau"))),
        "rtol": draw(st.sampled_from((1e-8, 1e-7, 1e-6))),
    }


@st.composite
def states(
    draw: st.DrawFn, max_alpha: float = 1.0, max_logit: float = 3.0, positive: bool = False
) -> State:
    """Draw (alpha, gamma, rho) with ``|alpha| <= max_alpha`` and logits up to ``max_logit``.

    ``positive`` asks for ``alpha >= 1e-3``, as along the flow.
    """
    alpha = draw(reals(1e-3 if positive else -max_alpha, max_alpha))
    logits = [draw(reals(-max_logit, max_logit)) for _ in range(2)]
    return State(alpha, *logits)


@st.composite
def invalid_problem_arguments(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """Draw arguments of :class:`dynamics.Problem` of which exactly one is wrong, and its name."""
    valid = {"D": 8, "C": 2, "q": 0.3, "p": 3, "nu": 0.01, "beta": 1.0, "temperature": 1.0}
    wrong: dict[str, st.SearchStrategy[Any]] = {
        "D": st.integers(max_value=3) | st.just(8.5) | st.just(2 * 10**9),
        "C": st.integers(max_value=1) | st.integers(min_value=8) | st.sampled_from((3, 5, 6, 2.5)),
        "q": st.floats(max_value=0.0) | st.floats(min_value=1.0, exclude_min=True),
        "p": st.integers(max_value=2) | st.sampled_from((4, 6, 3.5, 101)),
        "nu": st.floats(max_value=0.0),
        "beta": st.nothing(),
        "temperature": st.floats(max_value=0.0),
        "output_scale": st.floats(max_value=0.0),
        "d": st.integers(max_value=0) | st.just(7.5),
        "sigma": st.floats(max_value=0.0, exclude_max=True),
    }
    name = draw(st.sampled_from(sorted(wrong)))
    optional = name in ("output_scale", "d", "sigma")
    junk = st.sampled_from([value for value in _NOT_NUMBERS if value is not None or not optional])
    return name, valid | {name: draw(wrong[name] | junk)}


def reals(low: float, high: float) -> st.SearchStrategy[float]:
    """Draw finite floats between two bounds, without subnormal numbers."""
    return st.floats(low, high, allow_nan=False, allow_subnormal=False)


def _satisfies(where: str, problem: Any, system: str) -> bool:
    from simulations.theories import Case

    settings = {"initial": problem.initial_state, "horizon": math.inf}
    return _filter(where, system).keeps(Case(system, {}, problem, "flow", settings))


@cache
def _filter(where: str, system: str) -> Filter:
    from simulations.falsify import Filter
    from simulations.theories import load

    return Filter(where, load(system))
