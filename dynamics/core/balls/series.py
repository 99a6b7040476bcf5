r"""Vectorised Taylor arithmetic with ball coefficients.

Middles and radii are arrays of shape (order + 1, lanes). Each lane represents all series
:math:`\sum_k x_k u^k` with coefficients in the balls; loops vectorise over the lanes. Coefficient k
of a result depends on the coefficients of the operands up to k. Hence series that are exact up to
order n give n + 1 exact coefficients, and series whose j-th coefficients enclose
:math:`f^{(j)}(u)/j!` for *all* u in an interval give enclosures of the Taylor coefficients at all
these u (Moore).

The rounding error of a sum of k products is bounded by (k + 2) u times the sum of their moduli
(Higham, *Accuracy and Stability of Numerical Algorithms*, section 3.1), in addition to the
contribution of the radii of the factors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dynamics.core.balls.scalars import (
    INFLATE,
    TINY,
    UNIT,
    exp_ball,
    inverse_ball,
    logistic_ball,
)
from dynamics.core.checks import require
from dynamics.core.jit import kernel

#: Largest number of products in a coefficient for which `INFLATE` covers the rounding of radii.
LARGEST_ORDER = 60


@kernel
def add_product(a, ra, b, rb, out, rout, share):
    """Add the product of two coefficients (lanes,) to ``out``; ``share`` bounds its rounding."""
    for lane in range(out.size):
        product = a[lane] * b[lane]
        out[lane] += product
        rout[lane] += (
            abs(a[lane]) * rb[lane] + ra[lane] * (abs(b[lane]) + rb[lane]) + share * abs(product)
        )


@kernel
def settle(radius):
    """Enlarge radii by the rounding of their sums and by possible underflow."""
    for lane in range(radius.size):
        radius[lane] = radius[lane] * INFLATE + TINY


@kernel
def multiply(a, ra, b, rb, out, rout):
    """Write the product of two series to ``out``, which must be a different array."""
    for k in range(out.shape[0]):
        out[k] = 0.0
        rout[k] = 0.0
        for j in range(k + 1):
            add_product(a[j], ra[j], b[k - j], rb[k - j], out[k], rout[k], (k + 3) * UNIT)
        settle(rout[k])


@kernel
def differentiate(a, ra, out, rout):
    """Write the coefficients k a_k of u a'(u) to ``out``."""
    for k in range(a.shape[0]):
        for lane in range(a.shape[1]):
            out[k, lane] = k * a[k, lane]
            rout[k, lane] = (k * ra[k, lane] + UNIT * abs(out[k, lane])) * INFLATE + TINY


@kernel
def _divide(a, ra, k):
    """Divide a coefficient by an integer k."""
    for lane in range(a.size):
        a[lane] /= k
        ra[lane] = (ra[lane] / abs(k) + UNIT * abs(a[lane])) * INFLATE + TINY


@kernel
def exponentiate(a, ra, out, rout):
    """Write e^a to ``out``: k e_k = sum_j j a_j e_(k-j)."""
    slope, rslope = np.empty_like(a), np.empty_like(a)
    differentiate(a, ra, slope, rslope)
    for lane in range(a.shape[1]):
        out[0, lane], rout[0, lane] = exp_ball(a[0, lane], ra[0, lane])
    for k in range(1, a.shape[0]):
        out[k] = 0.0
        rout[k] = 0.0
        for j in range(1, k + 1):
            add_product(
                slope[j], rslope[j], out[k - j], rout[k - j], out[k], rout[k], (k + 3) * UNIT
            )
        settle(rout[k])
        _divide(out[k], rout[k], k)


@kernel
def invert(a, ra, out, rout):
    """Write 1/a to ``out``: z_k = -z_0 sum_j a_j z_(k-j)."""
    total, rtotal = np.empty(a.shape[1]), np.empty(a.shape[1])
    for lane in range(a.shape[1]):
        out[0, lane], rout[0, lane] = inverse_ball(a[0, lane], ra[0, lane])
    for k in range(1, a.shape[0]):
        total[:] = 0.0
        rtotal[:] = 0.0
        for j in range(1, k + 1):
            add_product(a[j], ra[j], out[k - j], rout[k - j], total, rtotal, (k + 3) * UNIT)
        settle(rtotal)
        out[k] = 0.0
        rout[k] = 0.0
        add_product(total, rtotal, -out[0], rout[0], out[k], rout[k], 3 * UNIT)
        settle(rout[k])


@kernel
def logistic(a, ra, s, rs, w, rw, slope, rslope):
    """Write s = 1/(1 + e^a) and w = s (1 - s) to arrays of the same shape; ``slope`` is scratch.

    The equation s' = -a' w gives k s_k = -sum_j j a_j w_(k-j). The form w_k = (1 - 2 s_0) s_k - sum
    s_j s_(k-j), summed over 0 < j < k, preserves the relative accuracy of a small w.
    """
    differentiate(a, ra, slope, rslope)
    for lane in range(a.shape[1]):
        s[0, lane], rs[0, lane], w[0, lane], rw[0, lane] = logistic_ball(a[0, lane], ra[0, lane])
    for k in range(1, a.shape[0]):
        s[k] = 0.0
        rs[k] = 0.0
        for j in range(1, k + 1):
            add_product(slope[j], rslope[j], w[k - j], rw[k - j], s[k], rs[k], (k + 3) * UNIT)
        settle(rs[k])
        _divide(s[k], rs[k], -k)
        w[k] = 0.0
        rw[k] = 0.0
        for j in range(1, k):
            add_product(s[j], rs[j], s[k - j], rs[k - j], w[k], rw[k], (k + 4) * UNIT)
        for lane in range(a.shape[1]):
            side = 1.0 - 2.0 * s[0, lane]
            unsure = 2.0 * rs[0, lane] + UNIT
            product = side * s[k, lane]
            total = product - w[k, lane]
            rw[k, lane] += (
                abs(side) * rs[k, lane]
                + unsure * (abs(s[k, lane]) + rs[k, lane])
                + 2.0 * UNIT * (abs(product) + abs(total))
            )
            w[k, lane] = total
        settle(rw[k])


@dataclass(frozen=True, eq=False)
class Series:
    """Taylor series with ball coefficients and arithmetic operators.

    Operands with one lane are broadcast.

    Attributes
    ----------
    mid, rad
        Middles and radii, shape (order + 1, lanes); the radii are at least 0.
    """

    mid: np.ndarray
    rad: np.ndarray

    def __post_init__(self) -> None:
        require(
            len(self.mid) - 1 <= LARGEST_ORDER,
            "order",
            len(self.mid) - 1,
            f"at most {LARGEST_ORDER}",
        )

    @classmethod
    def exact(cls, coefficients: np.ndarray) -> Series:
        """Return the series with exact coefficients (order + 1, lanes)."""
        mid = np.array(coefficients, float)
        return cls(mid, np.zeros_like(mid))

    @classmethod
    def constant(cls, mid: float, rad: float, order: int) -> Series:
        """Return a constant series with one lane: a ball."""
        middles, radii = np.zeros((order + 1, 1)), np.zeros((order + 1, 1))
        middles[0], radii[0] = mid, rad
        return cls(middles, radii)

    @property
    def order(self) -> int:
        """Highest power of u."""
        return len(self.mid) - 1

    def lane(self, chosen: slice | np.ndarray) -> Series:
        """Return the selected lanes."""
        return Series(self.mid[:, chosen], self.rad[:, chosen])

    def __add__(self, other: Series) -> Series:
        with np.errstate(all="ignore"):  # results that overflow are not finite: no bounds
            mid = self.mid + other.mid
            return Series(mid, (self.rad + other.rad + UNIT * np.abs(mid)) * INFLATE + TINY)

    def __neg__(self) -> Series:
        return Series(-self.mid, self.rad)

    def __sub__(self, other: Series) -> Series:
        return self + -other

    def plus(self, constant: float) -> Series:
        """Return the series plus a float."""
        return self + Series.constant(constant, 0.0, self.order)

    def times(self, factor: np.ndarray | float) -> Series:
        """Return the series times exact floats, one per lane."""
        with np.errstate(all="ignore"):
            mid = self.mid * factor
            return Series(mid, (self.rad * np.abs(factor) + UNIT * np.abs(mid)) * INFLATE + TINY)

    def __mul__(self, other: Series) -> Series:
        shape = np.broadcast_shapes(self.mid.shape, other.mid.shape)
        parts = (self.mid, self.rad, other.mid, other.rad)
        out, rout = np.empty(shape), np.empty(shape)
        multiply(*(np.ascontiguousarray(np.broadcast_to(part, shape)) for part in parts), out, rout)
        return Series(out, rout)

    def power(self, n: int) -> Series:
        """Return the series to an integer power n >= 1, by repeated squaring."""
        result, square = None, self
        while n > 0:
            if n & 1:
                result = square if result is None else result * square
            n >>= 1
            square = square * square if n else square
        assert result is not None
        return result

    def exp(self) -> Series:
        """Return the exponential."""
        return self._by(exponentiate)

    def inverse(self) -> Series:
        """Return the reciprocal; not finite where the first coefficient may be 0."""
        return self._by(invert)

    def _by(self, function: Callable[..., None]) -> Series:
        """Apply a kernel that writes its result to arrays of the same shape."""
        out, rout = np.empty(self.mid.shape), np.empty(self.mid.shape)
        function(np.ascontiguousarray(self.mid), np.ascontiguousarray(self.rad), out, rout)
        return Series(out, rout)

    @property
    def is_finite(self) -> bool:
        """Whether all middles and radii are finite; otherwise the series bounds nothing."""
        return bool(np.isfinite(self.mid).all() and np.isfinite(self.rad).all())
