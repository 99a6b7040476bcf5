r"""Running error bounds: the operations of emitted kernels on pairs (value, bound of its error).

A pair ``(x, e)`` states that the exact number is within ``e`` of the float ``x``. Each rule returns
the float result of the operation and a bound of its distance from the exact result (Higham,
*Accuracy and Stability of Numerical Algorithms*, chapter 3), with u = 2^-53. For a product this is
:math:`|xy-\hat x\hat y|\le|\hat x|e_y+e_x(|\hat y|+e_y)` plus u times the result. `TINY` covers
underflow. Overflow and nan give an infinite or undefined bound; `final` makes both infinite.

Assumptions: IEEE arithmetic rounds to nearest; exp, log, log1p and tanh are accurate to 2 units in
the last place (4 u) and pow to 4 (8 u). The bounds are computed in floats: each rule loses a few u
of its bound, a sum of n terms n u. `OUTWARD` exceeds the loss of a billion operations. Rules that
are not linear in a bound multiply it by `OUTWARD` first, so that the loss does not grow.
"""

import math

import numpy as np

from dynamics.core.jit import kernel
from dynamics.theory import functions
from dynamics.theory.functions import power as power_of
from dynamics.theory.rows import total as sums

UNIT = 2.0**-53
#: Exceeds the underflow error of a few operations; not subnormal, because those are slow.
TINY = 1e-300
OUTWARD = 1.0 + 1e-6
#: Relative errors of functions and of powers of the C library.
FUNCTION, POWER = 4.0 * UNIT, 8.0 * UNIT


@kernel
def final(error: float) -> float:
    """Return a bound that includes the rounding of all bounds; infinite where it is undefined."""
    outward = OUTWARD * error
    return outward if outward < math.inf else math.inf


@kernel
def given(x, relative):
    """Return a number of the data with the error bound that follows from its relative error."""
    return x, abs(x) * relative + (TINY if relative > 0.0 else 0.0)


@kernel
def add(x, y):
    """Return x + y."""
    value = x[0] + y[0]
    return value, x[1] + y[1] + UNIT * abs(value)


@kernel
def subtract(x, y):
    """Return x - y."""
    value = x[0] - y[0]
    return value, x[1] + y[1] + UNIT * abs(value)


@kernel
def negate(x):
    """Return -x."""
    return -x[0], x[1]


@kernel
def multiply(x, y):
    """Return x y."""
    value = x[0] * y[0]
    carried = abs(x[0]) * y[1] + x[1] * (abs(y[0]) + y[1])
    return value, carried + UNIT * abs(value) + TINY


@kernel
def divide(x, y):
    """Return x / y; the bound is infinite if |y| is less than four times its error."""
    value = x[0] / y[0]
    if not 4.0 * y[1] <= abs(y[0]):
        return value, math.inf
    carried = (x[1] + abs(value) * y[1]) / (abs(y[0]) - OUTWARD * y[1])
    return value, carried + UNIT * abs(value) + TINY


@kernel
def if_whole(value, x, y):
    """Return the sum or product ``value`` of x and y; exact if they are exact integers."""
    whole = x[0] == math.floor(x[0]) and y[0] == math.floor(y[0])
    if whole and x[1] == 0.0 and y[1] == 0.0 and abs(value[0]) < 2.0**53:
        return value[0], 0.0
    return value


@kernel
def _growth(t: float) -> float:
    """Return a bound of e^t - 1 for t in [0, 1]."""
    t *= OUTWARD
    return t * (1.0 + t)


@kernel
def exp(x):
    """Return e^x; for an error above 1, the bound is the largest possible value."""
    value = math.exp(x[0])
    if not x[1] <= 1.0:
        return value, math.exp(x[0] + OUTWARD * x[1]) * OUTWARD + TINY
    return value, (value + TINY) * (_growth(x[1]) + FUNCTION) + TINY


@kernel
def log(x):
    """Return log x; the bound is infinite if x is less than twice its error."""
    value, t = math.log(x[0]), OUTWARD * x[1] / x[0]
    if not (x[0] > 0.0 and t <= 0.5):
        return value, math.inf
    return value, t * (1.0 + t) + FUNCTION * abs(value) + TINY


@kernel
def sqrt(x):
    """Return the square root of x; the bound is infinite if x may be negative."""
    value = math.sqrt(x[0])
    if x[0] == 0.0 and x[1] == 0.0:
        return value, 0.0
    if not OUTWARD * x[1] <= x[0]:
        return value, math.inf
    return value, x[1] / value + UNIT * value + TINY


@kernel
def tanh(x):
    """Return tanh x; its slope within e of x is at most 1 and at most e^(2 e) (1 - tanh^2)."""
    value, carried = math.tanh(x[0]), x[1]
    if x[1] <= 0.5:
        slope = (1.0 - value * value + 4.0 * FUNCTION) * (1.0 + _growth(2.0 * x[1]))
        carried *= min(1.0, slope)
    return value, carried + FUNCTION * abs(value) + TINY


@kernel
def sigmoid(x):
    """Return s = 1 / (1 + e^-x); the slopes of log s and of log(1 - s) are at most 1."""
    value = functions.sigmoid(x[0])
    if not x[1] <= 1.0:
        return value, functions.sigmoid(x[0] + OUTWARD * x[1]) * OUTWARD + TINY
    own = 2.0 * FUNCTION + 2.0 * UNIT
    carried = min(value + TINY, 1.0 - value + own) * _growth(x[1])
    return value, carried + own * value + TINY


@kernel
def softplus(x):
    """Return log(1 + e^x); its slope and that of its logarithm are at most 1."""
    value = functions.softplus(x[0])
    own = (2.0 * FUNCTION + UNIT) * value + TINY
    if not x[1] <= 1.0:
        largest = functions.softplus(x[0] + OUTWARD * x[1]) * OUTWARD + TINY
        return value, x[1] + own if x[1] < largest else largest
    return value, min(x[1], (value + TINY) * _growth(x[1])) + own


@kernel
def modulus(x):
    """Return |x|, whose slope is at most 1."""
    return abs(x[0]), x[1]


@kernel
def relu(x):
    """Return max(x, 0), whose slope is at most 1, and 0 where x is certainly negative."""
    return functions.relu(x[0]), 0.0 if x[0] + OUTWARD * x[1] < 0.0 else x[1]


@kernel
def _of_sign(value, x):
    """Return a value that depends on the sign of x; the bound is infinite if that is unknown."""
    known = OUTWARD * x[1] < abs(x[0]) or (x[0] == 0.0 and x[1] == 0.0)
    return value, 0.0 if known else math.inf


@kernel
def sign(x):
    """Return the derivative of |x|, 0 at 0; the bound is infinite if the sign of x is unknown."""
    return _of_sign(functions.sign(x[0]), x)


@kernel
def step(x):
    """Return the derivative of max(x, 0), 0 at 0; the bound is infinite if the sign is unknown."""
    return _of_sign(functions.step(x[0]), x)


@kernel
def shifted_log(norm, top):
    """Return top + log(norm), with ``top`` the result of `highest`, an exact number.

    The logarithm of a sum of exponentials does not depend on the number that is subtracted.
    """
    logarithm = log(norm)
    value = top[0] + logarithm[0]
    return value, logarithm[1] + UNIT * abs(value)


@kernel
def highest(number, score, others):
    """Return max(score, others) if ``number``, the elements with the score, is positive.

    A softmax does not depend on the number that is subtracted from all scores. The bound is
    therefore how far the exact score of an element may exceed the result.
    """
    value = functions.highest(number[0], score[0], others[0])
    error = others[1]
    if number[0] > 0.0 and not score[1] <= error:
        error = score[1]
    return value, error if number[1] < 0.5 else math.inf


@kernel
def raised(score, top):
    """Return e^(score - top), with ``top`` the result of `highest`.

    The result is clipped at 1: a larger score belongs to no element, or exceeds it by rounding.
    """
    excess = score[0] - top[0]
    error = score[1] + UNIT * abs(excess)
    if excess > 0.0:
        error += top[1]
    value = functions.raised(score[0], top[0])
    if not error <= 1.0:
        below = 0.0 if excess > 0.0 else excess
        return value, math.exp(below + OUTWARD * error) * OUTWARD + TINY
    return value, (value + TINY) * (_growth(error) + FUNCTION) + TINY


@kernel
def power(x, exponent):
    """Return x^exponent; the bound uses the relative error of x, or near 0 the slope."""
    value, size, degree = power_of(x[0], exponent[0]), abs(x[0]), abs(exponent[0])
    own = (degree if exponent[0] >= 0.0 else 5.0 * degree) * UNIT + POWER
    whole = exponent[1] == 0.0 and exponent[0] == math.floor(exponent[0])
    if 4.0 * x[1] <= size and size > 0.0 and (whole or x[0] > 0.0):
        t = degree * x[1] / (size - OUTWARD * x[1])
        if exponent[1] > 0.0:
            t += exponent[1] * (abs(math.log(size)) + 1.0)
        if t <= 1.0:
            return value, (abs(value) + TINY) * (_growth(t) + own) + TINY
    if whole and exponent[0] >= 1.0:
        largest = power_of(size + OUTWARD * x[1], exponent[0] - 1.0) * OUTWARD
        return value, degree * largest * x[1] * OUTWARD + own * abs(value) + TINY
    exact = whole and exponent[0] == 0.0
    if x[0] == 0.0 and x[1] == 0.0 and exponent[0] > OUTWARD * exponent[1]:
        exact = True
    return value, 0.0 if exact else math.inf


def total(x, first, of):
    """Return sums over families (`dynamics.theory.rows.total`) for pairs of arrays."""
    longest = int(np.diff(first).max(initial=0))
    added = longest * UNIT * sums(np.abs(x[0]), first, of)
    return sums(x[0], first, of), sums(x[1], first, of) + added
