"""Rules of power series and jets, compared with Taylor coefficients by mpmath."""

import mpmath
import pytest
from flint import arb, arb_series, ctx

from dynamics.theory import jets
from tests.closeness import close

ORDER = 4
FUNCTIONS = {
    "exp": mpmath.exp,
    "log": mpmath.log,
    "sqrt": mpmath.sqrt,
    "tanh": mpmath.tanh,
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "softplus": lambda x: mpmath.log1p(mpmath.exp(x)),
    "modulus": abs,
    "relu": lambda x: (x + abs(x)) / 2,
    "sign": mpmath.sign,
    "step": lambda x: (mpmath.sign(x) + 1) / 2,
}
POSITIVE = ("log", "sqrt")


def taylor(function, x):
    with mpmath.workdps(60):
        return [float(c) for c in mpmath.taylor(function, x, ORDER)]


def curve(x):
    """Return the series x + u as a variable."""
    return jets.variables([arb_series([arb(x), arb(1)], prec=ctx.cap)])[0]


def numbers(x, order):
    """Return the middles of all coefficients."""
    values = [float(c) for c in jets.coefficients(x)]
    return values + [0.0] * (order + 1 - len(values))


@pytest.mark.parametrize("x", [-1.7, 0.3, 2.0])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_function_and_its_derivative(name, x):
    if x < 0 and name in POSITIVE:
        return
    with ctx.workprec(120), jets.truncated(ORDER):
        result = getattr(jets, name)(curve(x))
        wanted = taylor(FUNCTIONS[name], x)
        close(numbers(result, ORDER), wanted, rel=1e-14)
        slope = result.slopes.get(0, arb(0)) if isinstance(result, jets.Jet) else arb(0)
        derivative = [k * c for k, c in enumerate(wanted)][1:]
        close(numbers(slope, ORDER)[:ORDER], derivative, rel=1e-14)


@pytest.mark.parametrize("exponent", [0, 3, -2, 0.5, -1.25])
def test_power(exponent):
    with ctx.workprec(120), jets.truncated(ORDER):
        result = jets.power(curve(1.3), exponent)
        close(numbers(result, ORDER), taylor(lambda x: x**exponent, 1.3), rel=1e-14)


def test_arithmetic_of_two_variables():
    with ctx.workprec(120), jets.truncated(0):
        x, y = jets.variables([arb_series([arb(1.5)]), arb_series([arb(-0.75)])])
        result = (2 - x * y) / (x - 3) + 1 / y - (y / x + x) * 4 - -y
        partial = [result.slopes[k][0] for k in range(2)]
    a, b = 1.5, -0.75
    close(float(result.value[0]), (2 - a * b) / (a - 3) + 1 / b - (b / a + a) * 4 + b, rel=1e-14)
    first = (-b * (a - 3) - (2 - a * b)) / (a - 3) ** 2 + 4 * b / a**2 - 4
    close([float(x) for x in partial], [first, -a / (a - 3) - 1 / b**2 - 4 / a + 1], rel=1e-14)


@pytest.mark.parametrize("name", ["modulus", "relu", "sign", "step"])
def test_kink_is_an_error(name):
    wide = arb_series([arb(0.1, 0.2)])
    with pytest.raises(jets.KinkError), jets.truncated(0):
        getattr(jets, name)(wide)


def test_truncation_is_restored():
    before = ctx.cap
    with pytest.raises(ZeroDivisionError), jets.truncated(7):
        raise ZeroDivisionError
    assert ctx.cap == before
