"""Proved bounds as text: the printed numbers are exact fractions, compared with the floats."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulations.outward import ball, down, interval, up, within

finite = st.floats(-1e12, 1e12, allow_subnormal=False)


@given(finite, st.integers(2, 12))
def test_up_and_down_enclose_a_number(x, digits):
    low, high = Fraction(down(x, digits)), Fraction(up(x, digits))
    assert low <= Fraction(x) <= high
    assert high - low <= Fraction(10) ** (1 - digits) * max(abs(low), abs(high))


@given(finite, finite)
def test_text_contains_the_interval(x, y):
    low, high = sorted((x, y))
    shown = [Fraction(part) for part in interval(low, high).strip("[]").split(", ")]
    assert shown[0] <= Fraction(low)
    assert Fraction(high) <= shown[1]
    middle, radius = map(Fraction, ball(low, high).split(" +- "))
    assert middle - radius <= Fraction(low)
    assert Fraction(high) <= middle + radius


@given(st.floats(0.0, 1e12, allow_subnormal=False), st.floats(0.0, 1e12, allow_subnormal=False))
def test_times_are_inside(x, y):
    low, high = sorted((x, y))
    words = within(low, high).split()
    assert Fraction(words[1]) >= Fraction(low)
    assert Fraction(words[3]) <= Fraction(high)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (up(0.1234561), "0.123457"),
        (down(0.1234569), "0.123456"),
        (down(-0.1234561), "-0.123457"),
        (interval(0.0142932, 0.0142932, 3), "[0.0142, 0.0143]"),
        (ball(0.5, 0.5), "0.5 +- 0.0e+00"),
        (ball(1.0, 1.0 + 2.11e-9), "1.000000001 +- 1.2e-09"),
    ],
)
def test_digits(text, expected):
    assert text == expected
