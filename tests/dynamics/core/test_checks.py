"""Validation of integers: accepted types, and messages with name, value and reason."""

from fractions import Fraction

import numpy as np
import pytest

from dynamics import ParameterError
from dynamics.core.checks import integer

HUGE = 10**400


@pytest.mark.parametrize(
    "value", [3, 3.0, np.int8(3), np.float32(3.0), Fraction(3), Fraction(6, 2)]
)
def test_integers_of_any_type_are_accepted(value):
    assert type(integer("n", value)) is int
    assert integer("n", value, 3) == integer("n", value, 0, 3) == 3


def test_large_integers_are_exact():
    assert integer("n", HUGE) == integer("n", Fraction(HUGE)) == HUGE
    assert integer("n", 2**53 + 1, 0, 2**53 + 1) == 2**53 + 1


@pytest.mark.parametrize(
    ("value", "bounds", "message"),
    [
        (2.5, (), "n = 2.5 is not allowed: n must be an integer"),
        (np.float64(2.5), (1,), "n = 2.5 is not allowed: n must be an integer, at least 1"),
        (0, (1,), "n = 0 is not allowed: n must be an integer, at least 1"),
        (9, (1, 8), "n = 9 is not allowed: n must be an integer from 1 to 8"),
        (-1, (0, 10**7), "n = -1 is not allowed: n must be an integer from 0 to 1e+07"),
        (Fraction(1, 2), (), "n = 1/2 is not allowed: n must be an integer"),
        (True, (), "n = True is not allowed: n must be an integer"),
        ("3", (), "n = '3' is not allowed: n must be an integer"),
        (None, (), "n = None is not allowed: n must be an integer"),
        (1j, (), "n = 1j is not allowed: n must be an integer"),
        (float("nan"), (), "n = nan is not allowed: n must be an integer"),
        (float("inf"), (1,), "n = inf is not allowed: n must be an integer, at least 1"),
        (HUGE, (0, 5), "n = (an integer of 401 digits) is not allowed: n must be an integer from"),
    ],
)
def test_message_for_other_values(value, bounds, message):
    with pytest.raises(ParameterError) as error:
        integer("n", value, *bounds)
    assert str(error.value).startswith(message)
