"""Functions of one normal variable as polynomials in generators that are closed under derivatives.

A monomial ``(i, a, b)`` is y^i f^a g^b, with f the function of the family at y, and for ``erf`` the
generator g = f' = 2 exp(-y^2) / sqrt(pi). The family "" consists of the powers of y. In the family
"step", f is 1 for y > 0 and 0 for y < 0, with a = 0 or 1, and b > 0 denotes not a power but the
derivative of order b of f, a distribution at 0. In the family "softmax", f = t exp(y) and
g = exp(-f), and the means are functions of t (`dynamics.overlaps.softmax`).
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from scipy.special import erf, expit

from dynamics.theory.data import Array

Monomial = tuple[int, int, int]
Polynomial = Mapping[Monomial, int]
#: 2 / sqrt(pi).
SLOPE = 2.0 / math.sqrt(math.pi)


class Generators(NamedTuple):
    """Bounds |f| and |g| on the strip |Im y| <= b of a family, and its numbers for the step.

    Attributes
    ----------
    half_width
        Half the width of the strip in which f is analytic; infinite for an entire function.
    growth
        The bounds increase as exp(growth b^2) in entire families, for products of four functions.
    """

    half_width: float
    growth: float


FAMILIES = {
    "": Generators(math.inf, 0.0),
    "erf": Generators(math.inf, 4.0),
    "sigmoid": Generators(math.pi, 0.0),
    "tanh": Generators(math.pi / 2.0, 0.0),
    "softmax": Generators(math.pi / 2.0, 0.0),
}


def derivative(family: str, polynomial: Polynomial) -> dict[Monomial, int]:
    """Return the derivative of a polynomial in the generators of a family."""
    result: dict[Monomial, int] = {}

    def add(monomial: Monomial, coefficient: int) -> None:
        if coefficient:
            result[monomial] = result.get(monomial, 0) + coefficient

    for (i, a, b), c in polynomial.items():
        add((i - 1, a, b), c * i)
        if family == "step":  # i = 0 where b > 0
            add((0, 0, b + 1), c * (b > 0 or (a and i == 0)))
        if family == "erf":
            add((i, a - 1, b + 1), c * a)
            add((i + 1, a, b), -2 * c * b)
        elif family == "sigmoid":  # f' = f - f^2
            add((i, a, b), c * a)
            add((i, a + 1, b), -c * a)
        elif family == "tanh":  # f' = 1 - f^2
            add((i, a - 1, b), c * a)
            add((i, a + 1, b), -c * a)
        elif family == "softmax":  # f' = f, g' = -f g
            add((i, a, b), c * a)
            add((i, a + 1, b), -c * b)
    return result


def values(family: str, monomial: Monomial, y: Array) -> Array:
    """Return a monomial at an array of points."""
    i, a, b = monomial
    result = np.ones_like(y) if i == 0 else y**i
    if a:
        function = {"erf": erf, "sigmoid": expit, "tanh": np.tanh}[family]
        result = result * function(y) ** a
    if b:
        result = result * (SLOPE**b * np.exp(-b * y**2))
    return result


def largest(family: str, monomial: Monomial, b: float) -> float:
    """Return a bound of |f|^a |g|^b on the strip |Im y| <= b; infinite if there is none."""
    _, a, powers = monomial
    if not (a or powers):
        return 1.0
    if b >= FAMILIES[family].half_width:
        return math.inf
    if family == "sigmoid":
        bound = 1.0 if b <= math.pi / 2 else 1.0 / math.sin(b)
    elif family == "tanh":
        bound = max(1.0, math.tan(b))
    else:
        if b * b > 300.0:
            return math.inf
        slope = SLOPE * math.exp(b * b)  # |erf(x + ib) - erf(x)| is an integral of the slope
        return (1.0 + b * slope) ** a * slope**powers
    return bound**a
