r"""Ball arithmetic on floats: middles and radii that include all rounding errors.

The ball (m, r) is the set of real x with :math:`|x-m|\le r`. With the unit roundoff u = 2^-53, a
rounded result c differs from the exact one by at most u |c|, or by less than `TINY` if it
underflows. Radii are sums and products of non-negative floats, rounded to nearest and then
multiplied by `INFLATE`, which exceeds the rounding of 500 such operations. The proofs rely on IEEE
additions, products and quotients only; the exponential is therefore computed here.

A ball whose middle or radius is not finite bounds nothing. Callers must check for it before they
compare balls.
"""

import math

from dynamics.core.jit import kernel

UNIT = 2.0**-53
TINY = 1e-280
INFLATE = 1.0 + 2.0**-44

#: Bound of the relative error of :func:`exp_point`; the analysis gives less than 16 u.
EXP_ERROR = 2.0**-47

_LEAST, _MOST = -690.0, 700.0  # range in which e^x is computed
_BELOW = 1e-299  # an upper bound of e^-690
_PER_LN2 = 1.4426950408889634
_LN2_HIGH = 0.693147180369123816490  # leading bits of log 2, so that k _LN2_HIGH is exact
_LN2_LOW = 1.90821492927058770002e-10
_TAYLOR = tuple(1.0 / math.factorial(k) for k in range(17))


@kernel
def exp_point(x):
    r"""Return a ball around e^x for a float x.

    Let ``k = round(x / log 2)`` and ``r = x - k log 2``, computed in two parts, with
    :math:`|r|\le 0.35`. The error of the Taylor polynomial of degree 16 is less than 0.35^17/17! <
    1e-22, and Horner's rule errs by a few u. The result for x < -690 is a ball around 0 that
    contains e^x; for x > 700 it is infinite.
    """
    if not x <= _MOST:
        return math.inf, math.inf
    if x < _LEAST:
        return 0.0, _BELOW
    k = math.floor(x * _PER_LN2 + 0.5)
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    total = _TAYLOR[16]
    for j in range(15, -1, -1):
        total = total * r + _TAYLOR[j]
    value = math.ldexp(total, int(k))
    return value, value * EXP_ERROR


@kernel
def exp_ball(m, r):
    r"""Return a ball around e^x for x in the ball (m, r): radius :math:`e^m r e^r`."""
    value, error = exp_point(m)
    growth, growth_error = exp_point(r)
    return value, (error + (value + error) * (r * (growth + growth_error))) * INFLATE + TINY


@kernel
def inverse_ball(m, r):
    """Return a ball around 1/x for x in the ball (m, r); infinite if it contains 0."""
    if not abs(m) > r * INFLATE:
        return math.inf, math.inf
    value = 1.0 / m
    least = (abs(m) - r) * (1.0 - 4.0 * UNIT)
    return value, (abs(value) * (r / least) + 2.0 * UNIT * abs(value)) * INFLATE + TINY


@kernel
def logistic_ball(m, r):
    r"""Return balls around s(-F) = 1/(1 + e^F) and s(F) s(-F), for F in the ball (m, r).

    Both are rational functions of z = e^-|m| with a relative error of a few u. Within the ball they
    change by at most :math:`s(m)s(-m)(e^r-1)`, because :math:`|(\log s(F)s(-F))'|\le 1`, and by at
    most 1 and 1/4.
    """
    z, _ = exp_point(-abs(m))
    decay = 1.0 / (1.0 + z)
    sigmoid = z * decay if m > 0.0 else decay
    slope = z * decay * decay
    growth, growth_error = exp_point(r)
    most = slope * (1.0 + 4.0 * EXP_ERROR) + _BELOW
    spread = most * (r * (growth + growth_error)) * INFLATE
    wide, narrow = 1.0, 0.25
    if spread < 1.0:
        wide = spread
    if spread < 0.25:
        narrow = spread
    return (
        sigmoid,
        (wide + 2.0 * EXP_ERROR * sigmoid) * INFLATE + TINY,
        slope,
        (narrow + 4.0 * EXP_ERROR * slope) * INFLATE + TINY,
    )
