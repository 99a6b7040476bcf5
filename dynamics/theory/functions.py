"""The functions that an emitted kernel calls, without overflow."""

import math

import numpy as np

from dynamics.core.jit import kernel


@kernel
def empty(rows: int, columns: int) -> np.ndarray:
    """Return a table that is still to be filled."""
    return np.empty((rows, columns))


@kernel
def sigmoid(x: float) -> float:
    """Return 1 / (1 + e^-x)."""
    small = math.exp(-abs(x))
    return (1.0 if x >= 0.0 else small) / (1.0 + small)


@kernel
def softplus(x: float) -> float:
    """Return log(1 + e^x)."""
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


@kernel
def raised(score: float, top: float) -> float:
    """Return e^(score - top), ``top`` the largest score of an element that there is; nan of nan.

    At most 1: a score that no element has may be larger, and is counted 0 times.
    """
    excess = score - top
    return math.exp(0.0 if excess > 0.0 else excess)


@kernel
def highest(number: float, score: float, others: float) -> float:
    """Return the larger of a score, if there are elements that have it, and of others."""
    return others if score <= others or not number > 0.0 else score


@kernel
def _general_power(x: float, exponent: float) -> float:
    whole = int(exponent)
    if whole != exponent or abs(whole) > 64:
        return math.pow(x, exponent)
    found, base, left = 1.0, x, abs(whole)
    while left:
        if left & 1:
            found *= base
        base *= base
        left >>= 1
    return found if whole >= 0 else 1.0 / found


@kernel
def power(x: float, exponent: float) -> float:
    """Return x^exponent, by multiplication where the exponent is a small whole number."""
    if exponent == 2.0:  # the usual ones first: inlined, and decided outside of loops
        return x * x
    if exponent == 3.0:
        return x * x * x
    if exponent == 4.0:
        return x * x * x * x
    if exponent == 5.0:
        return x * x * x * x * x
    return _general_power(x, exponent)
