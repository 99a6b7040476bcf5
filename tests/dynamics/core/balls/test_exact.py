"""Floats that come back from Arb are bounds of what they stand for."""

import math

from flint import arb
from hypothesis import given
from hypothesis import strategies as st

from dynamics.core.balls.exact import above, ball, below, exact, from_ball
from tests.dynamics.core.balls.reference import precise

FLOATS = st.floats(-1e300, 1e300) | st.sampled_from([0.0, 5e-324, 2.0**-1022, -1e-320])


@given(x=FLOATS, radius=st.floats(0.0, 1e10) | st.just(0.0), divisor=st.sampled_from([1, 3, 7]))
def test_bounds(x, radius, divisor):
    with precise():
        number = exact(x) / divisor + arb(0, 1) * exact(radius)
        assert exact(below(number)) <= number.lower()
        assert exact(above(number)) >= number.upper()
        middle, wide = ball(number)
        for end in (number.lower(), number.upper()):
            assert abs(end - exact(middle)) <= exact(wide)
        assert from_ball(middle, wide).contains(number)


def test_what_is_not_known():
    assert above(arb(0, math.inf)) == math.inf
    assert below(arb(0, math.inf)) == -math.inf
    assert not from_ball(1.0, math.nan).is_finite()
    assert not from_ball(math.inf, 0.0).is_finite()
