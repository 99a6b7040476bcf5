"""Functions called by emitted kernels, evaluated without overflow."""

import math

import numpy as np

from dynamics.core.jit import kernel


@kernel
def empty(rows: int, columns: int) -> np.ndarray:
    """Return an uninitialised table."""
    return np.empty((rows, columns))


@kernel
def clear(table: np.ndarray) -> None:
    """Set all entries of a table to 0."""
    table[:] = 0.0


@kernel
def multiplicity(element: int, blocks: int, size: int, others: tuple[int, ...]) -> float:
    """Return the number of elements of a set that one element of an array stands for.

    Elements below ``blocks`` stand for themselves. The others are representatives of the remaining
    elements, which are alike: those that other indices point to stand for themselves, and the first
    of the rest stands for all elements that are not in use.

    Parameters
    ----------
    element
        The element.
    blocks, size
        Number of elements that stand for themselves, and of all elements.
    others
        Elements that other indices point to; -1 points to none.
    """
    if element < blocks:
        return 1.0
    used, earlier = 0, 0
    for i in range(len(others)):
        if others[i] == element:
            return 1.0
        if others[i] >= blocks:
            first = True
            for j in range(i):
                if others[j] == others[i]:
                    first = False
            if first:
                used += 1
                if others[i] < element:
                    earlier += 1
    return float(size - blocks - used) if element - blocks == earlier else 0.0


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
def modulus(x: float) -> float:
    """Return |x|."""
    return abs(x)


@kernel
def relu(x: float) -> float:
    """Return max(x, 0); nan is preserved."""
    return 0.0 if x <= 0.0 else x


@kernel
def sign(x: float) -> float:
    """Return the derivative of |x|, 0 at 0; nan is preserved."""
    return 1.0 if x > 0.0 else -1.0 if x < 0.0 else x


@kernel
def step(x: float) -> float:
    """Return the derivative of max(x, 0), 0 at 0; nan is preserved."""
    return 1.0 if x > 0.0 else 0.0 if x <= 0.0 else x


@kernel
def shifted_log(norm: float, top: float) -> float:
    """Return top + log(norm), for a sum ``norm`` of exponentials relative to ``top``."""
    return top + math.log(norm)


@kernel
def raised(score: float, top: float) -> float:
    """Return e^(score - top), clipped at 1, with ``top`` the largest score of an existing element.

    The score of a class without elements may be larger; its multiplicity is 0. nan is preserved.
    """
    excess = score - top
    return math.exp(0.0 if excess > 0.0 else excess)


@kernel
def highest(number: float, score: float, others: float) -> float:
    """Return max(score, others) if ``number``, the elements with the score, is positive."""
    return others if score <= others or not number > 0.0 else score


@kernel
def _general_power(x: float, exponent: float) -> float:
    whole = int(exponent)
    if whole != exponent or abs(whole) > 64:
        return math.pow(x, exponent)
    result, base, left = 1.0, x, abs(whole)
    while left:
        if left & 1:
            result *= base
        base *= base
        left >>= 1
    return result if whole >= 0 else 1.0 / result


@kernel
def power(x: float, exponent: float) -> float:
    """Return x^exponent, by multiplication if the exponent is a small integer."""
    if exponent == 2.0:  # common cases are inlined and decided outside of loops
        return x * x
    if exponent == 3.0:
        return x * x * x
    if exponent == 4.0:
        return x * x * x * x
    if exponent == 5.0:
        return x * x * x * x * x
    return _general_power(x, exponent)
