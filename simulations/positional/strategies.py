"""Hypothesis strategies for problems and states of positional attention; everything is small."""

from typing import Any

from hypothesis import reject
from hypothesis import strategies as st

from dynamics import Problem, State
from simulations.draws import ATTEMPTS, reals, satisfies

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
    for _ in range(1 if where is None else ATTEMPTS):
        problem = _problem(draw, max_D, max_C, degrees, fixed)
        if where is None or satisfies(where, problem, "positional"):
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
