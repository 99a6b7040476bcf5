"""Intervals of floats against exact arithmetic at their ends and inside.

Trusts: fractions, and mpmath for the functions.
"""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from dynamics.core.balls.intervals import EVERYTHING, Interval
from tests.closeness import close

RNG = np.random.default_rng(0)
OPERATIONS = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
    "/": lambda x, y: x / y,
}


def random_interval(scale):
    ends = np.sort(RNG.normal(size=2)) * 10.0**scale
    return Interval(float(ends[0]), float(ends[1]))


@pytest.mark.parametrize("name", OPERATIONS)
def test_arithmetic_contains_the_exact_result(name):
    operation = OPERATIONS[name]
    for _ in range(300):
        left, right = (random_interval(RNG.choice((-170, -5, 0, 5, 140))) for _ in range(2))
        with np.errstate(all="ignore"):
            result = operation(left, right)
        for x in (left.low, left.high):
            for y in (right.low, right.high):
                exact = operation(Fraction(x), Fraction(y))
                assert result.low == -math.inf or Fraction(float(result.low)) < exact
                assert result.high == math.inf or exact < Fraction(float(result.high))
    assert (Interval(1.0, 2.0) / Interval(-1.0, 1.0)) == EVERYTHING


def test_exact_zeros_stay_exact():
    zero = Interval(0.0, 0.0)
    with np.errstate(invalid="ignore"):
        assert zero * EVERYTHING == zero
    assert zero + zero == zero
    assert Interval(-1.0, 1.0).abs().low == 0.0


@pytest.mark.parametrize("name", ["exp", "log", "sqrt", "tanh"])
def test_functions_contain_the_exact_result(name):
    for x in [*np.geomspace(1e-300, 700.0, 50), 745.0, 800.0]:
        given = Interval(x, x)
        with mpmath.workdps(40), np.errstate(all="ignore"):
            apply = {"log": given.log, "sqrt": given.sqrt}.get(name)
            result = apply() if apply else given.map(getattr(np, name))
            assert result.low < getattr(mpmath, name)(mpmath.mpf(x)) < result.high


def test_powers():
    with np.errstate(all="ignore"):
        square = Interval(-2.0, 1.0) ** Interval(2.0, 2.0)
        assert square.low <= 0.0
        close(square.high, 4.0, rel=1e-14)
        cube = Interval(-2.0, 1.0) ** Interval(3.0, 3.0)
        close([cube.low, cube.high], [-8.0, 1.0], rel=1e-14)
        assert Interval(-1.0, 1.0) ** Interval(0.5, 0.5) == EVERYTHING
        assert Interval(0.0, 1.0) ** Interval(-1.0, -1.0) == EVERYTHING
        root = Interval(4.0, 9.0) ** Interval(0.5, 0.5)
        close([root.low, root.high], [2.0, 3.0], rel=1e-14)
        assert (Interval(1e-200, 1e-200) ** Interval(2.0, 2.0)).high > 0.0
