"""Forward differentiation: the operations of emitted kernels on pairs (value, derivative).

A pair ``(x, t)`` is a number and its derivative along one direction of the state. Each rule returns
the result of the operation and its derivative. A factor of 0 is not multiplied by an infinite
slope: the derivative of an expression that does not depend on the state is 0.
"""

import math

from dynamics.core.jit import kernel
from dynamics.theory import functions
from dynamics.theory.functions import power as power_of


@kernel
def _times(slope: float, tangent: float) -> float:
    """Return slope * tangent, and 0 if the tangent is 0."""
    return slope * tangent if tangent != 0.0 else 0.0


@kernel
def add(x, y):
    """Return x + y."""
    return x[0] + y[0], x[1] + y[1]


@kernel
def subtract(x, y):
    """Return x - y."""
    return x[0] - y[0], x[1] - y[1]


@kernel
def negate(x):
    """Return -x."""
    return -x[0], -x[1]


@kernel
def multiply(x, y):
    """Return x y."""
    return x[0] * y[0], _times(x[0], y[1]) + _times(y[0], x[1])


@kernel
def divide(x, y):
    """Return x / y."""
    value = x[0] / y[0]
    return value, (x[1] - _times(value, y[1])) / y[0]


@kernel
def exp(x):
    """Return e^x."""
    value = math.exp(x[0])
    return value, _times(value, x[1])


@kernel
def log(x):
    """Return log x."""
    return math.log(x[0]), _times(1.0 / x[0], x[1])


@kernel
def sqrt(x):
    """Return the square root of x."""
    value = math.sqrt(x[0])
    return value, _times(0.5 / value, x[1])


@kernel
def tanh(x):
    """Return tanh x."""
    small = math.exp(-2.0 * abs(x[0]))
    slope = 4.0 * small / ((1.0 + small) * (1.0 + small))  # 1 - tanh^2 loses its digits far out
    return math.tanh(x[0]), _times(slope, x[1])


@kernel
def sigmoid(x):
    """Return 1 / (1 + e^-x)."""
    value = functions.sigmoid(x[0])
    return value, _times(value * functions.sigmoid(-x[0]), x[1])


@kernel
def softplus(x):
    """Return log(1 + e^x)."""
    return functions.softplus(x[0]), _times(functions.sigmoid(x[0]), x[1])


@kernel
def modulus(x):
    """Return |x|; the derivative at 0 is 0."""
    return abs(x[0]), _times(functions.sign(x[0]), x[1])


@kernel
def relu(x):
    """Return max(x, 0); the derivative at 0 is 0."""
    return functions.relu(x[0]), _times(functions.step(x[0]), x[1])


@kernel
def sign(x):
    """Return the sign of x; the derivative is 0."""
    return functions.sign(x[0]), 0.0


@kernel
def step(x):
    """Return 1 for x > 0, else 0; the derivative is 0."""
    return functions.step(x[0]), 0.0


@kernel
def shifted_log(norm, top):
    """Return top + log(norm)."""
    return top[0] + math.log(norm[0]), top[1] + _times(1.0 / norm[0], norm[1])


@kernel
def highest(number, score, others):
    """Return max(score, others) if ``number``, the elements with the score, is positive."""
    value = functions.highest(number[0], score[0], others[0])
    return value, score[1] if number[0] > 0.0 and score[0] > others[0] else others[1]


@kernel
def raised(score, top):
    """Return e^(score - top), clipped at 1, with ``top`` the result of `highest`."""
    value = functions.raised(score[0], top[0])
    return value, _times(value, score[1] - top[1])


@kernel
def power(x, exponent):
    """Return x^exponent."""
    value = power_of(x[0], exponent[0])
    tangent = _times(exponent[0] * power_of(x[0], exponent[0] - 1.0), x[1])
    if exponent[1] != 0.0:
        tangent += value * math.log(x[0]) * exponent[1]
    return value, tangent
