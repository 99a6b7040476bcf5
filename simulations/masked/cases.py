"""Hypothesis strategy of small problems of masked image modelling, for searches."""

from collections.abc import Mapping
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from dynamics import ParameterError
from dynamics.masked import MaskedProblem
from simulations.draws import reals

_SIZES = ("P", "kappa_c", "kappa_s")
_LEAST_EXPONENT, _MOST_EXPONENT = 4, 20  # of two, in P


@st.composite
def values(draw: st.DrawFn, fixed: Mapping[str, Any]) -> dict[str, Any]:
    """Draw what is not fixed; fixed values are taken as they are."""
    drawn: dict[str, Any] = {
        "P": 2 ** draw(st.integers(_LEAST_EXPONENT, _MOST_EXPONENT)),
        "kappa_c": round(draw(reals(0.5, 0.97)), 3),
        "kappa_s": round(draw(reals(0.1, 0.7)), 3),
        "mask_ratio": round(draw(st.just(0.5) | reals(0.1, 0.9)), 3),
        "query": draw(st.sampled_from(("local", "global"))),
    }
    if not {"z", "z_low", "z_high"} & set(fixed):
        drawn["z"] = round(draw(st.just(1.0) | reals(0.5, 2.0)), 3)
    drawn |= dict(fixed)
    if not set(_SIZES) <= set(fixed):
        assume(_room(drawn))
    return drawn


def _room(drawn: Mapping[str, Any]) -> bool:
    """Return whether areas of these sizes find room in so many patches."""
    try:
        MaskedProblem(**{name: drawn[name] for name in _SIZES})
    except ParameterError:
        return False
    return True
