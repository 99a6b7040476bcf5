"""Polynomials on [-1, 1] with Arb coefficients, and enclosures of their derivatives."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from flint import arb

from dynamics.core.balls.scalars import INFLATE, TINY
from dynamics.core.balls.series import Series


def hull(coefficients: np.ndarray, order: int) -> Series:
    r"""Return a series with coefficients j that enclose :math:`P^{(j)}(u)/j!` for all u in [-1, 1].

    ``coefficients`` are floats of shape (degree + 1, lanes). A term x u^m lies in x [0, 1] for even
    m and in x [-1, 1] for odd m.
    """
    degree, lanes = len(coefficients) - 1, coefficients.shape[1]
    mid, rad = np.zeros((order + 1, lanes)), np.zeros((order + 1, lanes))
    for j in range(min(order, degree) + 1):
        size = np.abs(coefficients[j])
        mid[j] = coefficients[j]
        for k in range(j + 1, degree + 1):
            term = math.comb(k, j) * coefficients[k]
            half = 0.5 * term if (k - j) % 2 == 0 else 0.0 * term
            mid[j] += half
            rad[j] += np.abs(term) - np.abs(half)
            size = size + np.abs(term)
        rad[j] = (rad[j] + (degree + 3) * 2.0**-52 * size) * INFLATE + TINY
    return Series(mid, rad)


def around(coefficients: Sequence[Any], centre: arb) -> list[Any]:
    """Return the coefficients, numbers or matrices, in powers of u - centre."""
    shifted = list(coefficients)
    for j in range(len(shifted) - 1):
        for k in range(len(shifted) - 2, j - 1, -1):
            shifted[k] = shifted[k] + shifted[k + 1] * centre
    return shifted


def span(coefficients: Sequence[Any], width: arb) -> arb:
    """Return a ball that contains the values of a polynomial for |u| <= width."""
    reach = arb(0)
    for coefficient in reversed(coefficients[1:]):
        reach = (reach + abs(coefficient)) * width
    return coefficients[0] + arb(0, 1) * reach.upper()


def derivative(coefficients: Sequence[Any]) -> list[Any]:
    """Return the coefficients of the derivative."""
    return [k * c for k, c in enumerate(coefficients)][1:] or [arb(0)]
