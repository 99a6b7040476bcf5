"""Hypothesis strategy of small problems of the positional system, for searches."""

import math
from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from dynamics.core.checks import integer
from dynamics.core.errors import ParameterError
from simulations.draws import reals

#: Names of which one is given: fixing one keeps the others from being drawn.
_SAME = (("q", "qD", "qD/C^2"), ("beta", "beta/tau"), ("temperature", "tau"))
_LARGEST_D = 32


def values(fixed: Mapping[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Return the strategy that draws what is not fixed; fixed values are taken as they are."""
    for name, least in (("D", 4), ("C", 2)):
        if name in fixed:
            integer(name, fixed[name], least, 10**9)
    return _values(fixed)


@st.composite
def _values(draw: st.DrawFn, fixed: Mapping[str, Any]) -> dict[str, Any]:
    C = int(fixed["C"]) if "C" in fixed else draw(_size(fixed.get("D")))
    if "D" in fixed:
        D = int(fixed["D"])
    else:
        D = C * draw(st.integers(2, max(2, _LARGEST_D // C)))
    drawn: dict[str, Any] = {
        "D": D,
        "C": C,
        "q": _readable(draw(reals(-2.0, 0.0))),
        "p": draw(st.sampled_from((3, 5, 7))),
        "nu": _readable(draw(reals(-4.0, 0.0))),
        "beta": round(draw(reals(-1.0, 3.0)), 3),
        "temperature": draw(st.just(1.0) | reals(0.5, 3.0).map(lambda tau: round(tau, 3))),
    }
    for names in _SAME:
        if any(name in fixed for name in names):
            drawn.pop(names[0])
    return drawn | dict(fixed)


def _size(D: int | None) -> st.SearchStrategy[int]:
    """Sizes of a set that divide ``D``, small ones first."""
    if D is None:
        return st.sampled_from(range(2, 5))
    small = [C for C in range(2, math.isqrt(int(D)) + 1) if D % C == 0]
    divisors = sorted({*small, *(int(D) // C for C in small)})
    if not divisors:
        raise ParameterError(f"D = {D} is not allowed: D must have a divisor, the size C of a set")
    return st.sampled_from(divisors)


def _readable(exponent: float) -> float:
    """Return a power of ten with three digits."""
    return float(f"{10.0**exponent:.3g}")
