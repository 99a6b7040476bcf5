r"""Running error bounds: every operation of an emitted kernel on pairs (value, bound of its error).

A pair ``(x, e)`` states that the exact number is within ``e`` of the float ``x``. Each rule returns
the float that the plain operation returns, and a bound of how far the exact result may be from it
(Higham, *Accuracy and Stability of Numerical Algorithms*, chapter 3), with u = 2^-53: e.g.
:math:`|xy-\hat x\hat y|\le|\hat x|e_y+e_x(|\hat y|+e_y)`, and u times the result for the operation
itself. `TINY` covers underflow. An overflow or nan ends in an infinite or undefined bound, never in
a finite one; `final` makes both infinite.

Trusted: IEEE arithmetic to nearest; exp, log, log1p and tanh within 2 units in the last place (4 u)
and pow within 4 (8 u). The bounds are computed in floats themselves: each rule loses some u of its
bound, a sum of n terms n u. `OUTWARD` exceeds what is lost in a billion operations; rules that are
not linear in a bound take it times `OUTWARD` first, so that the loss does not grow.
"""

import math

import numpy as np

from dynamics.core.jit import kernel
from dynamics.theory import functions
from dynamics.theory.functions import power as power_of
from dynamics.theory.rows import total as sums

UNIT = 2.0**-53
#: Exceeds what a few operations lose by underflow. Not subnormal: those are slow.
TINY = 1e-300
OUTWARD = 1.0 + 1e-6
#: Own relative errors of functions and of powers by the C library.
FUNCTION, POWER = 4.0 * UNIT, 8.0 * UNIT


@kernel
def final(error: float) -> float:
    """Return a bound that includes the rounding of all bounds; infinite where it is undefined."""
    outward = OUTWARD * error
    return outward if outward < math.inf else math.inf


@kernel
def given(x, relative):
    """Return data that are within a relative error, or exact."""
    return x, abs(x) * relative + (TINY if relative > 0.0 else 0.0)


@kernel
def add(x, y):
    """Return x + y."""
    found = x[0] + y[0]
    return found, x[1] + y[1] + UNIT * abs(found)


@kernel
def subtract(x, y):
    """Return x - y."""
    found = x[0] - y[0]
    return found, x[1] + y[1] + UNIT * abs(found)


@kernel
def negate(x):
    """Return -x."""
    return -x[0], x[1]


@kernel
def multiply(x, y):
    """Return x y."""
    found = x[0] * y[0]
    carried = abs(x[0]) * y[1] + x[1] * (abs(y[0]) + y[1])
    return found, carried + UNIT * abs(found) + TINY


@kernel
def divide(x, y):
    """Return x / y; nothing is known of it where y is within four times its error of 0."""
    found = x[0] / y[0]
    if not 4.0 * y[1] <= abs(y[0]):
        return found, math.inf
    carried = (x[1] + abs(found) * y[1]) / (abs(y[0]) - OUTWARD * y[1])
    return found, carried + UNIT * abs(found) + TINY


@kernel
def if_whole(found, x, y):
    """Return the result of adding or multiplying x and y, exact where they are whole numbers."""
    whole = x[0] == math.floor(x[0]) and y[0] == math.floor(y[0])
    if whole and x[1] == 0.0 and y[1] == 0.0 and abs(found[0]) < 2.0**53:
        return found[0], 0.0
    return found


@kernel
def _growth(t: float) -> float:
    """Return a bound of e^t - 1 for t in [0, 1]."""
    t *= OUTWARD
    return t * (1.0 + t)


@kernel
def exp(x):
    """Return e^x; beyond an error of 1 its bound is the largest value that it may have."""
    found = math.exp(x[0])
    if not x[1] <= 1.0:
        return found, math.exp(x[0] + OUTWARD * x[1]) * OUTWARD + TINY
    return found, (found + TINY) * (_growth(x[1]) + FUNCTION) + TINY


@kernel
def log(x):
    """Return log x; nothing is known of it where x is within twice its error of 0."""
    found, t = math.log(x[0]), OUTWARD * x[1] / x[0]
    if not (x[0] > 0.0 and t <= 0.5):
        return found, math.inf
    return found, t * (1.0 + t) + FUNCTION * abs(found) + TINY


@kernel
def sqrt(x):
    """Return the square root of x; nothing is known of it where x may be negative."""
    found = math.sqrt(x[0])
    if x[0] == 0.0 and x[1] == 0.0:
        return found, 0.0
    if not OUTWARD * x[1] <= x[0]:
        return found, math.inf
    return found, x[1] / found + UNIT * found + TINY


@kernel
def tanh(x):
    """Return tanh x; its slope is at most 1, and at most e^(2 e) (1 - tanh^2) within e of x."""
    found, carried = math.tanh(x[0]), x[1]
    if x[1] <= 0.5:
        slope = (1.0 - found * found + 4.0 * FUNCTION) * (1.0 + _growth(2.0 * x[1]))
        carried *= min(1.0, slope)
    return found, carried + FUNCTION * abs(found) + TINY


@kernel
def sigmoid(x):
    """Return 1 / (1 + e^-x); its logarithm and that of 1 less it have slopes of at most 1."""
    found = functions.sigmoid(x[0])
    if not x[1] <= 1.0:
        return found, functions.sigmoid(x[0] + OUTWARD * x[1]) * OUTWARD + TINY
    own = 2.0 * FUNCTION + 2.0 * UNIT
    carried = min(found + TINY, 1.0 - found + own) * _growth(x[1])
    return found, carried + own * found + TINY


@kernel
def softplus(x):
    """Return log(1 + e^x); it has a slope of at most 1, and so has its logarithm."""
    found = functions.softplus(x[0])
    own = (2.0 * FUNCTION + UNIT) * found + TINY
    if not x[1] <= 1.0:
        largest = functions.softplus(x[0] + OUTWARD * x[1]) * OUTWARD + TINY
        return found, x[1] + own if x[1] < largest else largest
    return found, min(x[1], (found + TINY) * _growth(x[1])) + own


@kernel
def highest(number, score, others):
    """Return the larger of a score, if there are elements that have it, and of others.

    Of all scores any number may be subtracted in a softmax. The bound is therefore none of the
    error of the result, but of how far the exact score of an element may be above it.
    """
    found = functions.highest(number[0], score[0], others[0])
    error = others[1]
    if number[0] > 0.0 and not score[1] <= error:
        error = score[1]
    return found, error if number[1] < 0.5 else math.inf


@kernel
def raised(score, top):
    """Return e^(score - top), ``top`` a float that `highest` returned.

    A score above it is 1: that of no element, or of one that exceeds it by rounding alone.
    """
    excess = score[0] - top[0]
    error = score[1] + UNIT * abs(excess)
    if excess > 0.0:
        error += top[1]
    found = functions.raised(score[0], top[0])
    if not error <= 1.0:
        below = 0.0 if excess > 0.0 else excess
        return found, math.exp(below + OUTWARD * error) * OUTWARD + TINY
    return found, (found + TINY) * (_growth(error) + FUNCTION) + TINY


@kernel
def power(x, exponent):
    """Return x^exponent: by the relative error of x, around 0 by the slope of a whole power."""
    found, size, degree = power_of(x[0], exponent[0]), abs(x[0]), abs(exponent[0])
    own = (degree if exponent[0] >= 0.0 else 5.0 * degree) * UNIT + POWER
    whole = exponent[1] == 0.0 and exponent[0] == math.floor(exponent[0])
    if 4.0 * x[1] <= size and size > 0.0 and (whole or x[0] > 0.0):
        t = degree * x[1] / (size - OUTWARD * x[1])
        if exponent[1] > 0.0:
            t += exponent[1] * (abs(math.log(size)) + 1.0)
        if t <= 1.0:
            return found, (abs(found) + TINY) * (_growth(t) + own) + TINY
    if whole and exponent[0] >= 1.0:
        largest = power_of(size + OUTWARD * x[1], exponent[0] - 1.0) * OUTWARD
        return found, degree * largest * x[1] * OUTWARD + own * abs(found) + TINY
    exact = whole and exponent[0] == 0.0
    if x[0] == 0.0 and x[1] == 0.0 and exponent[0] > OUTWARD * exponent[1]:
        exact = True
    return found, 0.0 if exact else math.inf


def total(x, first, of):
    """Return sums over families (`dynamics.theory.rows.total`) of arrays, in plain Python."""
    longest = int(np.diff(first).max(initial=0))
    added = longest * UNIT * sums(np.abs(x[0]), first, of)
    return sums(x[0], first, of), sums(x[1], first, of) + added
