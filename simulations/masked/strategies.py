"""Hypothesis strategy for problems of masked image modelling."""

from typing import Any

from hypothesis import reject
from hypothesis import strategies as st

from dynamics import ParameterError
from dynamics.masked import MaskedProblem
from simulations.draws import ATTEMPTS, reals, satisfies


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
