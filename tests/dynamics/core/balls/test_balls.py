"""Every operation on balls contains the result of Arb."""

import math

import numpy as np
import pytest
from flint import arb, arb_series
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from dynamics import ParameterError
from dynamics.core.balls import scalars
from dynamics.core.balls.scalars import exp_ball, exp_point, inverse_ball, logistic_ball
from dynamics.core.balls.series import Series, logistic
from tests.dynamics.core.balls.reference import holds, inside, number, precise, series

EDGES = (0.0, -0.0, 5e-324, 2.0**-1022, 2.0**-53, 1.0, -1.0, math.log(2), 0.5 * math.log(2), 1e300)
POSITIONS = st.sampled_from([-1.0, 1.0, 0.0]) | st.floats(-1.0, 1.0)


def middles(most):
    edges = [x for x in EDGES if abs(x) <= most]
    return st.sampled_from(edges) | st.floats(-most, most) | st.floats(-1.0, 1.0)


RADII = st.sampled_from([0.0, 5e-324, 1e-300, 2.0**-53, 1e-12]) | st.floats(0.0, 2.0)


class TestScalars:
    @settings(max_examples=200)
    @given(x=middles(690.0) | st.floats(-800.0, 700.0))
    @example(x=700.0)
    @example(x=-690.0)
    def test_exponential_of_a_float(self, x):
        value, error = exp_point(x)
        with precise():
            exact = number(x).exp()
            assert holds(value, error, exact)
            if x >= -690.0:  # the bound of the analysis
                assert abs(exact - number(value)) <= 4 * scalars.UNIT * exact

    @settings(max_examples=150)
    @given(m=middles(600.0), r=RADII | st.floats(0.0, 60.0), position=POSITIONS)
    def test_exponential_and_inverse(self, m, r, position):
        with precise():
            x = number(inside(m, r, position))
            assert holds(*exp_ball(m, r), x.exp())
            value, error = inverse_ball(m, r)
            if math.isfinite(value):
                assert holds(value, error, 1 / x)

    @settings(max_examples=150)
    @given(m=middles(900.0), r=RADII | st.floats(0.0, 300.0), position=POSITIONS)
    @example(m=800.0, r=200.0, position=-1.0)
    @example(m=-800.0, r=200.0, position=1.0)
    def test_logistic(self, m, r, position):
        s, rs, w, rw = logistic_ball(m, r)
        with precise():
            x = number(inside(m, r, position))
            sigmoid = 1 / (1 + x.exp())
            assert holds(s, rs, sigmoid)
            assert holds(w, rw, sigmoid / (1 + (-x).exp()))

    def test_radii_are_of_the_size_of_the_rounding(self):
        assert exp_ball(1.0, 0.0)[1] < 2.0**-44
        assert inverse_ball(3.0, 0.0)[1] < 2.0**-52
        assert max(logistic_ball(2.0, 0.0)[1::2]) < 2.0**-45

    @pytest.mark.parametrize("m", [math.inf, math.nan, 701.0])
    def test_what_is_not_known_is_not_finite(self, m):
        assert not math.isfinite(exp_point(m)[1])
        assert not math.isfinite(inverse_ball(0.5, 0.5)[0])


def drawn_series(order, most=3.0, radius=0.3):
    return st.lists(
        st.tuples(middles(most), RADII.map(lambda r: min(r, radius)), POSITIONS),
        min_size=order + 1,
        max_size=order + 1,
    )


def ball_series(parts):
    mid, rad, _ = np.array(parts).T
    return Series(mid[:, None].copy(), rad[:, None].copy())


def assert_holds(result, exact):
    """Each coefficient of one lane holds that of an Arb series."""
    assert result.is_finite
    for k, (mid, rad) in enumerate(zip(result.mid[:, 0], result.rad[:, 0])):
        assert holds(mid, rad, exact[k]), f"coefficient {k}"


OPERATIONS = {
    "sum": lambda a, b: (a + b, lambda x, y: x + y),
    "difference": lambda a, b: (a - b, lambda x, y: x - y),
    "product": lambda a, b: (a * b, lambda x, y: x * y),
    "multiple": lambda a, b: (a.times(-3.7), lambda x, y: x * number(-3.7)),
    "shift": lambda a, b: (a.plus(0.1), lambda x, y: x + number(0.1)),
    "power": lambda a, b: (a.power(5), lambda x, y: x**5),
    "exponential": lambda a, b: (a.exp(), lambda x, y: x.exp()),
}
LONG = {"multiple", "power", "exponential"}


class TestSeries:
    @pytest.mark.parametrize(
        "name", [pytest.param(x, marks=pytest.mark.slow if x in LONG else ()) for x in OPERATIONS]
    )
    @settings(max_examples=30)
    @given(a=drawn_series(7), b=drawn_series(7))
    def test_operations(self, name, a, b):
        computed, exact = OPERATIONS[name](ball_series(a), ball_series(b))
        with precise():
            assert_holds(computed, exact(series(*zip(*a)), series(*zip(*b))))

    @settings(max_examples=40)
    @given(a=drawn_series(7), start=st.floats(0.31, 1e6), side=st.sampled_from([-1.0, 1.0]))
    def test_inverse(self, a, start, side):
        a[0] = (side * start, *a[0][1:])
        with precise():
            assert_holds(ball_series(a).inverse(), 1 / series(*zip(*a)))

    @pytest.mark.slow
    @settings(max_examples=60)
    @given(a=drawn_series(8, most=30.0))
    @example(a=[(40.0, 0.0, 0.0), *[(1.0, 0.0, 0.0)] * 8])
    @example(a=[(-40.0, 0.0, 0.0), *[(1.0, 0.0, 0.0)] * 8])
    def test_logistic(self, a):
        F = ball_series(a)
        s, rs, w, rw, slope, rslope = (np.empty_like(F.mid) for _ in range(6))
        logistic(F.mid, F.rad, s, rs, w, rw, slope, rslope)
        with precise():
            exact = 1 / (1 + series(*zip(*a)).exp())
            assert_holds(Series(s, rs), exact)
            assert_holds(Series(w, rw), exact - exact * exact)

    def test_small_slopes_keep_their_digits(self):
        """s (1 - s) where s is nearly 1, where s - s^2 would have no digit left."""
        F = Series.exact(np.array([[-60.0], [1.0], [0.5]]))
        s, rs, w, rw, slope, rslope = (np.empty_like(F.mid) for _ in range(6))
        logistic(F.mid, F.rad, s, rs, w, rw, slope, rslope)
        assert np.all(rw < 1e-10 * np.abs(w))

    @settings(max_examples=30)
    @given(
        u=st.floats(-1.0, 1.0),
        coefficients=st.lists(st.floats(-1.0, 1.0), min_size=3, max_size=3),
    )
    def test_wide_series_hold_every_taylor_coefficient(self, u, coefficients):
        """f(P(u)) for f = 1/(1 + e^P): its Taylor coefficients at any u of [-1, 1]."""
        a, b, c = coefficients
        wide = Series(
            np.array([[a], [b], [c], [0.0]]),
            np.array([[abs(b) + abs(c)], [2 * abs(c)], [0.0], [0.0]]) * (1 + 1e-12),
        )
        computed = (wide.exp().plus(1.0)).inverse()
        with precise():
            x = number(u)
            P = [number(a) + number(b) * x + number(c) * x * x, number(b) + 2 * number(c) * x]
            exact = 1 / (1 + arb_series([*P, number(c), arb(0)]).exp())
            assume(computed.is_finite)
            assert_holds(computed, exact)

    def test_lanes_are_independent(self):
        random = np.random.default_rng(0)
        mid, rad = random.normal(size=(6, 5)), random.uniform(0, 0.1, (6, 5))
        together = (Series(mid, rad) * Series(mid, rad)).exp()
        for lane in range(5):
            single = Series(mid[:, [lane]], rad[:, [lane]])
            alone = (single * single).exp()
            assert np.array_equal(together.mid[:, [lane]], alone.mid)
            assert np.array_equal(together.rad[:, [lane]], alone.rad)

    def test_series_of_too_high_an_order_is_rejected(self):
        with pytest.raises(ParameterError, match="order = 61"):
            Series.exact(np.zeros((62, 1)))
