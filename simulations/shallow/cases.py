"""Hypothesis strategy of small problems of the shallow transformer, for searches."""

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from dynamics import ParameterError
from dynamics.shallow import ShallowProblem
from simulations.draws import reals

_DATA = ("M", "L", "alpha_relevant", "alpha_confusion", "queried", "neurons")


@st.composite
def values(draw: st.DrawFn, fixed: Mapping[str, Any]) -> dict[str, Any]:
    """Draw what is not fixed; fixed values are taken as they are."""
    M, L = fixed.get("M", draw(st.integers(3, 5))), fixed.get("L", draw(st.sampled_from((10, 20))))
    relevant = draw(st.integers(1, int(L)))
    confusion = draw(st.integers(0, min(relevant - 1, int(L) - relevant)))
    drawn: dict[str, Any] = {
        "M": M,
        "L": L,
        "alpha_relevant": relevant / L,
        "alpha_confusion": confusion / L,
        "background": draw(st.sampled_from(("single", "tokens"))),
        "neurons": 2 * int(M) * draw(st.integers(1, 4)),
        "attention_rate": round(10.0 ** draw(reals(-1.0, 2.0)), 3),
        "overlap": draw(st.sampled_from((1.0, 0.5, 0.0))),
        "xi": round(10.0 ** draw(reals(-3.0, -0.5)), 4),
        "spread": draw(st.sampled_from((0.1, 0.5, -0.1))),
    }
    if not {"solver", "horizon"} & set(fixed):
        drawn["steps"] = 60
    drawn |= dict(fixed)
    if any(name in fixed for name in _DATA):
        _fit(drawn, fixed)
    return drawn


def _fit(drawn: dict[str, Any], fixed: Mapping[str, Any]) -> None:
    """Give up drawn numbers of tokens that what is fixed leaves no room for."""
    try:
        ShallowProblem(**{name: drawn[name] for name in _DATA if name in drawn})
    except ParameterError:
        for name in ("alpha_relevant", "alpha_confusion"):
            if name not in fixed:
                del drawn[name]
