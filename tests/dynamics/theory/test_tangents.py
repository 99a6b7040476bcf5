"""Rules of forward differentiation, compared with derivatives by mpmath."""

import mpmath
import numpy as np
import pytest

from dynamics.theory import tangents
from tests.closeness import close

UNARY = {
    "negate": lambda x: -x,
    "exp": mpmath.exp,
    "log": mpmath.log,
    "sqrt": mpmath.sqrt,
    "tanh": mpmath.tanh,
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "softplus": lambda x: mpmath.log1p(mpmath.exp(x)),
    "modulus": abs,
    "relu": lambda x: max(x, 0),
    "sign": mpmath.sign,
    "step": lambda x: mpmath.mpf(x > 0),
}
BINARY = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x / y,
    "raised": lambda x, y: mpmath.exp(x - y),
    "shifted_log": lambda x, y: mpmath.log(x) + y,
    "power": mpmath.power,
}


@pytest.mark.parametrize("x", [0.3, 1.7, 30.0])
@pytest.mark.parametrize("name", UNARY)
def test_rule_of_one_argument(name, x):
    value, tangent = getattr(tangents, name)((x, 0.7))
    with mpmath.workdps(40):
        close(value, float(UNARY[name](mpmath.mpf(x))), rel=1e-14)
        close(tangent, float(0.7 * mpmath.diff(UNARY[name], x)), rel=1e-13)


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("directions", [(0.7, 0.0), (0.0, -1.3), (0.7, -1.3)])
def test_rule_of_two_arguments(name, directions):
    x, y = 0.8, 2.5
    value, tangent = getattr(tangents, name)(*zip((x, y), directions))
    with mpmath.workdps(40):
        along = mpmath.diff(
            lambda t: BINARY[name](x + t * directions[0], y + t * directions[1]), mpmath.mpf(0)
        )
        close(value, float(BINARY[name](mpmath.mpf(x), mpmath.mpf(y))), rel=1e-14)
        close(tangent, float(along), rel=1e-13)


@pytest.mark.parametrize(
    ("number", "score", "others", "expected"),
    [(1.0, 2.0, 1.0, 0.3), (1.0, 1.0, 2.0, 0.5), (0.0, 2.0, 1.0, 0.5)],
)
def test_highest_follows_the_largest_score_of_an_element(number, score, others, expected):
    assert tangents.highest((number, 0.0), (score, 0.3), (others, 0.5))[1] == expected


def test_a_number_that_does_not_depend_on_the_state_has_derivative_0():
    constant = (0.0, 0.0)
    assert tangents.power(constant, (0.5, 0.0))[1] == 0.0
    assert tangents.sqrt(constant)[1] == 0.0
    assert tangents.multiply((np.inf, 0.0), (1.0, 0.0))[1] == 0.0


@pytest.mark.parametrize("name", ["modulus", "relu", "sign", "step"])
def test_the_derivative_at_a_kink_is_0(name):
    assert getattr(tangents, name)((0.0, 0.7)) == (0.0, 0.0)
    negative = {"modulus": (2.0, -0.7), "relu": (0.0, 0.0), "sign": (-1.0, 0.0), "step": (0.0, 0.0)}
    assert getattr(tangents, name)((-2.0, 0.7)) == negative[name]
