r"""Images of the independent checker: their enumeration, and means over them in ball arithmetic.

An image with label 1 has F = sum_a m_a c_a: integers m of the image times functions c of (alpha,
gamma, rho), see `checker_model`. The velocity and its Jacobian are means over the images of
products of s = 1/(1 + e^F), of F and of its derivatives, all of which are series in u. Here a
series is a vector over the images of balls in double precision. The error of a sum of n products,
in any order, is less than n u (1 + n u) times the sum of the moduli, u = 2^-53. The checker trusts
sums, products and quotients of NumPy, and Arb. It shares no code with the prover.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from flint import arb, arb_mat, arb_poly, arb_series, ctx, fmpq

from simulations.positional.validated.checker_multisets import Multisets

__all__ = ["Images", "arb", "arb_mat", "arb_poly", "arb_series", "convolved", "ctx", "fmpq"]
__all__ += ["logistic", "precision", "spread"]

BLOCK, U, UP, TINY = 32, 2.0**-53, 1.0 + 2.0**-30, 1e-290
FAR, STEPS = 700, 16  # |F| is clipped at FAR: s < 1e-300 is below TINY; 1/STEPS: grid of e^x


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Compute with a number of bits within a block, without warnings of NumPy."""
    with ctx.workprec(bits), np.errstate(all="ignore"):
        yield


class Balls(NamedTuple):
    """Vectors of balls |x - mid| <= rad, of any shape."""

    mid: Any
    rad: Any


def balls(numbers: list[arb]) -> Balls:
    """Return Arb balls as balls of floats."""
    mid = [float(x.mid()) for x in numbers]
    rad = [float((x - m).abs_upper()) for x, m in zip(numbers, mid)]
    return Balls(np.array(mid), np.array(rad) * UP + TINY)


def product(sums: str, a: Balls, b: Balls, n: int) -> Balls:
    """Return sums of n products of two vectors; ``sums`` is a formula of `numpy.einsum`."""
    size, high = np.einsum(sums, abs(a.mid), abs(b.mid)), abs(b.mid) + b.rad
    rad = np.einsum(sums, abs(a.mid), b.rad) + np.einsum(sums, a.rad, high)
    return Balls(np.einsum(sums, a.mid, b.mid), (rad + (n + 2) * U * size) * UP + TINY)


@cache
def powers_of_e() -> Any:
    """Return e^(k/16), rounded, for |k| <= 16 x 700."""
    return np.array([float((arb(k) / STEPS).exp()) for k in range(-FAR * STEPS, FAR * STEPS + 1)])


def exponential(x: Any) -> Any:
    """Return e^x for |x| <= 700, with a relative error below 2^-51."""
    # x - k/16 is exact (Sterbenz) and at most 1/32; the truncation error is below 1e-19
    k, total = np.rint(STEPS * x), 1.0
    r = x - k / STEPS
    for j in range(8, 0, -1):
        total = 1.0 + r / j * total
    return powers_of_e()[(k + FAR * STEPS).astype(int)] * total


def logistic(F: Balls) -> tuple[Balls, Balls]:
    """Return s = 1/(1 + e^F) and w = s (1 - s) of series: s' = -F' w, w = s - s^2."""
    radius = (F.rad[0] + 2 * U * abs(F.mid[0])) * UP  # fmax and fmin: NaN gives the whole range
    low = np.clip(np.fmax(F.mid[0] - radius, -FAR), -FAR, FAR)
    high = np.clip(np.fmin(F.mid[0] + radius, FAR), -FAR, FAR)
    least, most = 1.0 / (1.0 + exponential(high)), 1.0 / (1.0 + exponential(low))
    s, w = (Balls(np.empty_like(F.mid), np.empty_like(F.mid)) for _ in range(2))
    s.mid[0], s.rad[0] = m, r = (least + most) / 2, ((most - least) / 2 + 8 * U * most) * UP + TINY
    w.mid[0], w.rad[0] = m * (1 - m), (r * (abs(1 - 2 * m) + r) + 4 * U * m) * UP + TINY
    t = Balls(1 - 2 * s.mid[:1], 2 * s.rad[:1] + U)
    for k in range(1, len(F.mid)):
        rate = -np.arange(1, k + 1)[:, None] / k
        slope = Balls(F.mid[1 : k + 1] * rate, F.rad[1 : k + 1] * abs(rate) * UP)
        back = Balls(w.mid[k - 1 :: -1], w.rad[k - 1 :: -1])
        s.mid[k], s.rad[k] = product("kl,kl->l", slope, back, k + 2)
        first, last = (Balls(s.mid[i:j:d], s.rad[i:j:d]) for i, j, d in ((1, k, 1), (k - 1, 0, -1)))
        here = product("kl,kl->l", t, Balls(s.mid[k : k + 1], s.rad[k : k + 1]), 1)
        pairs = product("kl,kl->l", first, last, k)
        w.mid[k] = here.mid - pairs.mid
        w.rad[k] = (here.rad + pairs.rad + U * abs(w.mid[k])) * UP
    return s, w


def convolved(a: Balls, b: Balls) -> Balls:
    """Return the product of two series."""
    rows = [
        product("kl,kl->l", Balls(*(x[: k + 1] for x in a)), Balls(*(x[k::-1] for x in b)), k + 1)
        for k in range(len(a.mid))
    ]
    return Balls(*(np.stack(x) for x in zip(*rows)))


def spread(centre: Balls, slopes: list[Balls], radii: list[Any]) -> Balls:
    """Enclose a function on the box |e| <= radii, given its derivatives on the box."""
    sizes = [float(arb(r).abs_upper()) * UP for r in radii]
    rad = sum((abs(x.mid) + x.rad) * size for x, size in zip(slopes, sizes))
    return Balls(centre.mid, (centre.rad + rad) * UP)


class Images(Multisets):
    """All images with at most K features, as vectors.

    Attributes
    ----------
    integers
        Coefficients m of F, (multisets, powers + 1).
    """

    def __init__(self, D: int, C: int, p: int, q: arb, K: int) -> None:
        super().__init__(D, C, p, q, K)
        self.integers = self.monomials(self.images)
        self.m = self.integers.astype(float).T
        self.size = abs(self.m)
        self.fine = 2.0 ** (math.ceil(math.log2(self.size.sum(axis=0).max())) - 52)
        self.inexact = (self.integers.dtype == object) * 4 * U * len(self.m)  # above 2^53
        self.weight = balls(self.probability)

    def rows(self, count: int) -> list[list[int]]:
        """Return the integers of the first images."""
        return self.integers[:count].tolist()

    def monomials(self, images: list[Any]) -> Any:
        """Return sum over patches of s^i n^j T^k, and T, exactly; (images, powers + 1).

        A patch has feature s, its set the sum n, the image the sum T.
        """
        largest = max(abs(image[2]) for image in images) + self.C + 1
        dtype = np.int64 if self.D * largest**self.p < 2**53 else object
        T = np.array([image[2] for image in images], dtype)
        sets: dict[tuple[int, int], Any] = {(self.C, 0): T * 0 + 1, (0, 0): T * 0}
        for row, image in enumerate(images):
            sets[0, 0][row] = image[3]
            for a, b, m in image[4]:
                sets.setdefault((a, b), T * 0)[row] += m
        columns = [T * 0 for _ in self.powers()] + [T]
        for (a, b), count in sets.items():
            n = a - b
            for column, (i, j, k) in zip(columns, self.powers()):
                patches = ((1, a), (-1, b), (0, self.C - a - b))
                column += count * sum(number * s**i * n**j for s, number in patches) * T**k
        return np.stack(columns, axis=1)

    def series(self, c: list[arb_series], count: int) -> Balls:
        """Return the series sum_a m_a c_a of the first ``count`` images, (terms, images)."""
        flat = balls([y[k] for k in range(ctx.cap) for y in c])
        mid, rad = (x.reshape(ctx.cap, len(c)) for x in flat)
        m, size = self.m[:, :count], self.size[:, :count]
        # c = high + low with an exact product m high (if m is exact): the terms of F cancel, and
        # small F matter most
        largest = np.max(abs(mid), axis=1, keepdims=True)
        grid = 2.0 ** np.ceil(np.log2(largest + TINY)) * self.fine
        high = np.rint(mid / grid) * grid
        low, main = mid - high, high @ m
        rad = (rad + (len(c) + 2) * U * abs(low) + self.inexact * abs(mid)) @ size
        return Balls(main + low @ m, (rad + 2 * U * abs(main)) * UP + TINY)

    def means(self, x: Balls, factors: list[Balls]) -> list[arb_series]:
        """Return the series E[x y] for each y of ``factors``."""
        terms, count = x.mid.shape
        blocks = -(-count // BLOCK)
        shape, pad = (-1, blocks, BLOCK), ((0, 0), (0, blocks * BLOCK - count))
        weight = Balls(self.weight.mid[:count], self.weight.rad[:count])
        x = product("l,kl->kl", weight, x, 1)
        a = [np.pad(z, pad).reshape(shape).transpose(1, 0, 2) for z in x]
        b = [
            np.pad(np.concatenate(z), pad).reshape(shape).transpose(1, 2, 0) for z in zip(*factors)
        ]
        size = (abs(a[0]) @ abs(b[0])).sum(axis=0)
        rad = (abs(a[0]) @ b[1] + a[1] @ (abs(b[0]) + b[1])).sum(axis=0)
        mid = np.pad(a[0] @ b[0], ((0, (1 << (blocks - 1).bit_length()) - blocks), (0, 0), (0, 0)))
        while len(mid) > 1:
            mid = mid[::2] + mid[1::2]
        rad = ((rad + (BLOCK + blocks.bit_length()) * U * size) * UP + TINY).tolist()
        pairs = [[arb(*ball) for ball in zip(*row)] for row in zip(mid[0].tolist(), rad)]
        series = []
        for first in range(0, terms * len(factors), terms):
            coefficients = [
                sum((pairs[j][first + k - j] for j in range(k + 1)), arb(0)) for k in range(terms)
            ]
            series.append(arb_series(coefficients))
        return series
