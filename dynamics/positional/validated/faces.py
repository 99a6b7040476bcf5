r"""Upper bounds of velocities on boxes of states, for all nu and q of a box.

With :math:`e_\gamma=e^{(\gamma-\beta)/\tau}` and :math:`e_\rho` alike, a patch with coefficient s
in a set with sum n, in an image with sum T, has the attention output

.. math:: y=\frac{(1-e_\gamma)s+(e_\gamma-e_\rho)n+e_\rho T}{1+(C-1)e_\gamma+(D-C)e_\rho},

which is monotone in each of the two. With :math:`x=\kappa\alpha` and W the denominator,

.. math::
   F&=x^p\sum y^p+x\nu T,\\
   \alpha'&=\kappa\,\mathbb E\,s(-F)\Big[p\,x^{p-1}\sum y^p+\nu T\Big],\\
   \gamma'&=\frac{p\,x^pe_\gamma}{\tau D(C-1)W}\,
   \mathbb E\,s(-F)\sum y^{p-1}\big(n-s-(C-1)y\big),\\
   \rho'&=\frac{p\,x^pe_\rho}{\tau D(D-C)W}\,
   \mathbb E\,s(-F)\sum y^{p-1}\big(T-n-(D-C)y\big).

The range of each sum over a set is computed for a box. All images enter; with N = D - C, a mean is
the polynomial :math:`\sum_k\binom Nk q^k(1-q)^{N-k}b_k` in Bernstein form, at most the largest of
its coefficients on the interval of q. Bounds are floats, rounded outwards: `OUT` exceeds the
relative error of 16 operations.
"""

import math
from typing import NamedTuple

import numpy as np

from dynamics.core.balls.scalars import TINY, UNIT, exp_point
from dynamics.core.jit import kernel

OUT = 2.0**-48
#: The width of an interval of shares is relative to its upper end, at least to this one.
_SHARE = 0.2
_LARGE = 1e290  # W does not overflow below


class Constants(NamedTuple):
    """Constants of a problem, with the ends of nu and q."""

    D: int
    C: int
    p: int
    kappa: float
    tau: float
    beta: float
    nu: tuple[float, float]
    q: tuple[float, float]


@kernel
def exponential(x, constants, sign):
    """Return a bound of e^((x - beta)/tau), from below (sign -1) or from above (+1)."""
    z = (x - constants.beta) / constants.tau
    z += sign * OUT * (abs(x) + abs(constants.beta)) / constants.tau
    value, error = exp_point(z)
    return max(0.0, value + sign * (error + OUT * value))


@kernel
def corners(gamma, rho, constants):
    """Return ends of both exponentials and 1/W at the corners of a box, 4 rows (g, r, 1/W)."""
    rows = np.empty((4, 3))
    for i in range(4):
        g = exponential(gamma[i % 2], constants, 2 * (i % 2) - 1)
        r = exponential(rho[i // 2], constants, 2 * (i // 2) - 1)
        rows[i] = g, r, 1.0 / (1.0 + (constants.C - 1) * g + (constants.D - constants.C) * r)
    return rows


@kernel
def output_range(rows, s, n, T):
    """Return the range of y on a box: it is attained at corners."""
    low, high = math.inf, -math.inf
    for i in range(4):
        g, r, scale = rows[i]
        y = ((1.0 - g) * s + (g - r) * n + r * T) * scale
        size = ((1.0 + g) * abs(s) + (g + r) * abs(n) + r * abs(T)) * scale
        low, high = min(low, y - OUT * size), max(high, y + OUT * size)
    return low, high


@kernel
def slope_range(low, high, a, b, p):
    """Return the range of y^(p-1) (a - b y) on [low, high], for b > 0 and odd p."""
    least, most = math.inf, -math.inf
    peak = (p - 1) * a / (p * b)
    slack = OUT * (abs(low) + abs(high) + abs(peak))
    for y in (low, high, 0.0, peak):
        if low - slack <= y <= high + slack:
            power = y ** (p - 1)
            error = OUT * p * power * (abs(a) + b * abs(y))
            value = power * (a - b * y)
            least, most = min(least, value - error), max(most, value + error)
    return least, most


@kernel
def set_sums(rows, constants, plus, minus, is_rho):
    """Return ends of the sums over the patches of a set, for each T, (T, 2, 2).

    The sums are that of y^p, and that in rho' (``is_rho``) or in gamma'.
    """
    D, C, p = constants.D, constants.C, constants.p
    sums = np.zeros((2 * (D - C) + 1, 2, 2))
    n = plus - minus
    for t in range(sums.shape[0]):
        T = float(t + 2 * C - D)
        for s, number in ((1.0, plus), (-1.0, minus), (0.0, C - plus - minus)):
            if number == 0.0:
                continue
            low, high = output_range(rows, s, n, T)
            a, b = (T - n, float(D - C)) if is_rho else (n - s, float(C - 1))
            least, most = slope_range(low, high, a, b, p)
            sums[t, 0, 0] += number * (low**p - OUT * p * abs(low) ** p)
            sums[t, 0, 1] += number * (high**p + OUT * p * abs(high) ** p)
            sums[t, 1, 0] += number * least
            sums[t, 1, 1] += number * most
    return sums


@kernel
def tables(gamma, rho, constants, images, is_rho):
    """Return `set_sums` of each type, and of the signal set as last one, (types + 1, T, 2, 2).

    They are infinite if an exponential overflows.
    """
    types, rows = images.plus.size, corners(gamma, rho, constants)
    table = np.full((types + 1, 2 * (constants.D - constants.C) + 1, 2, 2), math.inf)
    if not np.max(rows) < _LARGE:
        return table
    for i in range(types):
        table[i] = set_sums(rows, constants, images.plus[i], images.minus[i], is_rho)
    table[types] = set_sums(rows, constants, float(constants.C), 0.0, is_rho)
    return table


@kernel
def total(table, images, i, t, quantity, end):
    """Return the bound of a sum over all patches of state i."""
    value = table[-1, t, quantity, end]
    size = abs(value)
    for j in range(images.start[i], images.start[i + 1]):
        term = images.copies[j] * table[images.type_index[j], t, quantity, end]
        value += term
        size += abs(term)
    return value + (2 * end - 1) * OUT * size


@kernel
def scaled(x, factor, sign):
    """Return the bound of c x for c between the ends of a nonnegative factor."""
    c = factor[1] if (x > 0.0) == (sign > 0) else factor[0]
    return c * x + sign * (OUT * abs(c * x) + TINY)


@kernel
def logistic(F, sign):
    """Return a bound of 1/(1 + e^F)."""
    z, error = exp_point(-abs(F))
    value = 1.0 / (1.0 + z)
    if F > 0.0:
        value *= z
    return value + sign * (2.0 * error + OUT * value)


@kernel
def power(x, n):
    """Return ends of x^n for the ends of a nonnegative x."""
    return x[0] ** n * (1.0 - OUT * n), x[1] ** n * (1.0 + OUT * n)


@kernel
def output(total_of_powers, T, x, constants, sign):
    """Return a bound of F, given that of the sum of y^p."""
    linear = x[0] * constants.nu[0] * (1.0 - OUT), x[1] * constants.nu[1] * (1.0 + OUT)
    first = scaled(total_of_powers, power(x, constants.p), sign)
    second = scaled(T, linear, sign)
    return first + second + sign * OUT * (abs(first) + abs(second))


@kernel
def most_on_interval(coefficients, low, high):
    """Return an upper bound of a polynomial in Bernstein form on [low, high]."""
    row, n = coefficients.copy(), coefficients.size
    left = np.empty(n)
    for k in range(n):  # the part on [0, high] (de Casteljau)
        left[k] = row[0]
        for j in range(n - 1 - k):
            row[j] = (1.0 - high) * row[j] + high * row[j + 1]
    largest, t = -math.inf, low / high
    for k in range(n):  # of this, the part on [low, high]
        largest = max(largest, left[n - 1 - k])
        for j in range(n - 1 - k):
            left[j] = (1.0 - t) * left[j] + t * left[j + 1]
    return largest + 32 * n * UNIT * np.max(np.abs(coefficients))


@kernel
def mean_bound(values, sizes, images, constants):
    """Return an upper bound of a mean, given values of all images, with errors of OUT x sizes."""
    N = constants.D - constants.C
    coefficients, magnitude = np.zeros(N + 1), np.zeros(N + 1)
    for i in range(values.size):
        k = images.features[i]
        coefficients[k] += images.weight[i] * values[i]
        magnitude[k] += images.weight[i] * (sizes[i] + abs(values[i]))
    error = OUT + 4.0 * UNIT * values.size
    return most_on_interval(coefficients + error * magnitude + TINY, constants.q[0], constants.q[1])


@kernel
def rho_bound(gamma, rho, alpha, constants, images):
    """Return an upper bound of rho' on a box, up to a positive factor; infinite after overflow.

    Parameters
    ----------
    gamma, rho, alpha
        Ends of the states; those of alpha are not negative.
    constants
        Constants.
    images
        All images.
    """
    table = tables(gamma, rho, constants, images, True)
    if not np.all(np.isfinite(table)):
        return math.inf
    x = constants.kappa * alpha[0] * (1.0 - OUT), constants.kappa * alpha[1] * (1.0 + OUT)
    values, sizes = np.empty(images.total.size), np.empty(images.total.size)
    for i in range(values.size):
        t = images.total[i] + constants.D - 2 * constants.C
        slope = total(table, images, i, t, 1, 1)
        sign = 1 if slope > 0.0 else -1  # of the bound of s(-F) = 1/(1 + e^F)
        F = output(
            total(table, images, i, t, 0, (1 - sign) // 2), images.total[i], x, constants, -sign
        )
        values[i], sizes[i] = slope * logistic(F, sign), abs(slope)
    return mean_bound(values, sizes, images, constants)


@kernel
def alpha_bound(gamma, rho, alpha, slopes, constants, images):
    """Return an upper bound of alpha' - A' gamma' on a box, for A' between two slopes <= 0."""
    D, C, p, kappa = constants.D, constants.C, constants.p, constants.kappa
    table = tables(gamma, rho, constants, images, False)
    if not np.all(np.isfinite(table)):
        return math.inf
    x = kappa * alpha[0] * (1.0 - OUT), kappa * alpha[1] * (1.0 + OUT)
    same = exponential(gamma[0], constants, -1), exponential(gamma[1], constants, 1)
    other = exponential(rho[0], constants, -1), exponential(rho[1], constants, 1)
    powers, scale = power(x, p), p / (constants.tau * D * (C - 1))
    low = same[0] / (1.0 + (C - 1) * same[0] + (D - C) * other[1]) * (1.0 - OUT)
    high = same[1] / (1.0 + (C - 1) * same[1] + (D - C) * other[0]) * (1.0 + OUT)
    weight = -slopes[1] * scale * powers[0] * low, -slopes[0] * scale * powers[1] * high
    growth = power(x, p - 1)
    growth = kappa * p * growth[0] * (1.0 - OUT), kappa * p * growth[1] * (1.0 + OUT)
    linear = kappa * constants.nu[0] * (1.0 - OUT), kappa * constants.nu[1] * (1.0 + OUT)
    values, sizes = np.empty(images.total.size), np.empty(images.total.size)
    for i in range(values.size):
        T = images.total[i]
        t = T + D - 2 * C
        most = total(table, images, i, t, 0, 1)
        first, second = scaled(most, growth, 1), scaled(T, linear, 1)
        third = scaled(total(table, images, i, t, 1, 1), weight, 1)
        slope, size = first + second + third, abs(first) + abs(second) + abs(third)
        if slope + OUT * size > 0.0:
            F = output(total(table, images, i, t, 0, 0), T, x, constants, -1)
            values[i] = (slope + OUT * size) * logistic(F, 1)
        else:
            F = output(most, T, x, constants, 1)
            values[i] = (slope + OUT * size) * logistic(F, -1)
        sizes[i] = size
    return mean_bound(values, sizes, images, constants)


@kernel
def loss_bound(alpha, constants, images):
    """Return an upper bound of the loss at gamma = rho = 0.

    It is at most E[log 2 - F/2 + min(F^2/8, |F|/2)].
    """
    table = tables((0.0, 0.0), (0.0, 0.0), constants, images, True)
    x = constants.kappa * alpha[0] * (1.0 - OUT), constants.kappa * alpha[1] * (1.0 + OUT)
    values, sizes = np.empty(images.total.size), np.empty(images.total.size)
    for i in range(values.size):
        T = images.total[i]
        t = T + constants.D - 2 * constants.C
        low = output(total(table, images, i, t, 0, 0), T, x, constants, -1)
        high = output(total(table, images, i, t, 0, 1), T, x, constants, 1)
        largest = max(abs(low), abs(high))
        values[i] = math.log(2.0) - 0.5 * low + min(0.125 * largest**2, 0.5 * largest)
        sizes[i] = 1.0 + largest + largest**2
    return mean_bound(values, sizes, images, constants)


@kernel
def boxes_of_face(is_rho, ends, heights, least_rho, width, most, constants, images):
    """Count the boxes that prove a velocity negative on a face, over one segment of alpha = A.

    Parameters
    ----------
    is_rho
        The face: rho = 0 with alpha from 0 to A(gamma), where rho' < 0; or alpha = A(gamma) with
        rho from ``least_rho`` to min(gamma, 0), where alpha' < A' gamma'.
    ends, heights
        gamma and A(gamma) at the ends of the segment; A is linear and does not increase.
    least_rho
        The smallest rho.
    width, most
        Smallest width and largest number of boxes.

    Returns
    -------
    int
        The number of boxes; 0 if the velocity is not proved negative on one of them.
    """
    slope = (heights[1] - heights[0]) / (ends[1] - ends[0])
    slopes = slope * (1.0 + OUT), slope * (1.0 - OUT)
    waiting = [(ends[0], ends[1], 0.0, 1.0) if is_rho else (ends[0], ends[1], least_rho, 0.0)]
    boxes = 0
    while len(waiting) > 0:
        low, high, first, last = waiting.pop()
        if not is_rho and first > high:  # gamma >= rho in the region
            continue
        boxes += 1
        A = (
            (heights[0] + slope * (high - ends[0])) * (1.0 - OUT),
            (heights[0] + slope * (low - ends[0])) * (1.0 + OUT),
        )
        gamma = low, high
        if is_rho:
            bound = rho_bound(gamma, (0.0, 0.0), (first * A[0], last * A[1]), constants, images)
            own = (last - first) / max(last, _SHARE)
        else:
            bound = alpha_bound(gamma, (first, last), A, slopes, constants, images)
            own = 0.5 * (last - first)
        if bound < 0.0:
            continue
        if boxes >= most or max(own, high - low) < width:
            return 0
        if high - low > own:
            middle = 0.5 * (low + high)
            waiting.append((low, middle, first, last))
            waiting.append((middle, high, first, last))
        else:
            middle = 0.5 * (first + last)
            waiting.append((low, high, first, middle))
            waiting.append((low, high, middle, last))
    return boxes
