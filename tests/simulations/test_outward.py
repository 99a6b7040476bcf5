"""Proved bounds as text: the printed numbers are exact fractions, compared with the floats."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulations.outward import ball, down, interval, up, within
from simulations.positional.validated.checker_text import Box, Checked, checked_as_text

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
        (within(1.0, 1.0), "from 1 to 1"),
        (within(0.12345649, 0.1234569), "from 0.1234565 to 0.1234568"),
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


def test_text_of_a_certificate_is_true():
    """Each printed interval contains the proved one, and each time is on the safe side."""
    ends = (0.123456789012449, 0.123456789012551)
    third = (0.33333349, 0.33333351)
    checked = Checked(
        problem={"D": 6, "C": 2}, start=None, learning_rate=None, horizon=2.0, time=2.0, pieces=3,
        enclosure=Box(ends, ends, ends), gap=[], gap_positive_from=0.12345649, gap_negative=[third],
        loss=third, test_error=third, floor=0.1, forever=False, association=True,
        association_until=7.65489,
    )  # fmt: skip
    text = checked_as_text(checked)
    lines = [line for line in text.splitlines() if " in [" in line]
    for line, (low, high) in zip(lines, [ends] * 3 + [third] * 2, strict=True):
        shown = [Fraction(x) for x in line.split("[")[1].strip("]").split(", ")]
        assert shown[0] <= Fraction(low)
        assert Fraction(high) <= shown[1]
    assert "from time 0.123457 on" in text
    assert "from 0.333333491 to 0.333333509" in text
    assert "until 7.654" in text
