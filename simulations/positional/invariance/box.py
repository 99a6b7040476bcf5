"""Boxes of parameters and states with exact ends, the subject of certificates.

A float is an exact binary number. A number in a text (``0.462``, ``2/64``, ``1e-3``) is an exact
rational number. Quantities such as (beta - x)/tau are computed from the ends with fractions before
ball arithmetic begins: without rounding, a box contains all of its points.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

from dynamics import ParameterError, Problem, State
from dynamics.core.checks import require

Number = int | float | Fraction
Interval = tuple[Fraction, Fraction]

MOST_PATCHES = 300  # outside the signal set; for more the sum over all images takes seconds
_LEAST_EXPONENT = -330  # of a number in a text; smaller numbers underflow as doubles
#: Parameters of a box that may have two bounds.
VARIED = ("alpha", "q", "x", "nu", "beta", "tau", "kappa")


class Cell(NamedTuple):
    """A box in the four numbers on which the sign of the drift depends.

    Attributes
    ----------
    amplitude
        Ends of kappa alpha.
    contrast
        Ends of (beta - x)/tau.
    nu, q
        Ends of nu and q. All ends are exact numbers, including floats.
    """

    amplitude: tuple[Number, Number]
    contrast: tuple[Number, Number]
    nu: tuple[Number, Number]
    q: tuple[Number, Number]


@dataclass(frozen=True)
class Witness:
    """A point of the boundary gamma = rho = x, with exact coordinates."""

    D: int
    C: int
    p: int
    q: Fraction
    nu: Fraction
    beta: Fraction
    tau: Fraction
    kappa: Fraction
    alpha: Fraction
    x: Fraction

    @classmethod
    def at(cls, problem: Problem, alpha: float, x: float) -> Witness:
        """Return the point of a problem, whose floats are exact numbers."""
        fields = (problem.q, problem.nu, problem.beta, problem.tau, problem.kappa, alpha, x)
        return cls(problem.D, problem.C, problem.p, *map(Fraction, fields))

    @property
    def problem(self) -> Problem:
        """The problem, with constants rounded to floats."""
        scale = None if self.kappa == self.D else float(self.kappa)
        return Problem(
            D=self.D,
            C=self.C,
            q=float(self.q),
            p=self.p,
            nu=float(self.nu),
            beta=float(self.beta),
            temperature=float(self.tau),
            output_scale=scale,
        )

    @property
    def state(self) -> State:
        """The state, rounded to floats."""
        return State(float(self.alpha), float(self.x), float(self.x))

    @property
    def cell(self) -> Cell:
        """The point as a cell."""
        numbers = self.kappa * self.alpha, (self.beta - self.x) / self.tau, self.nu, self.q
        return Cell(*((number, number) for number in numbers))

    def describe(self) -> dict[str, str]:
        """Return the numbers `VARIED` as exact text."""
        return {name: written(getattr(self, name)) for name in VARIED}


@dataclass(frozen=True)
class Box:
    """A box of parameters and states on gamma = rho = x.

    Parameters
    ----------
    D, C, p
        Fixed constants.
    alpha, q, x, nu, beta, tau, kappa
        (low, high) of each parameter. Floats, integers and fractions are converted to exact
        fractions. ``kappa`` is D by default.

    Raises
    ------
    ParameterError
        If an end is not allowed.
    """

    D: int
    C: int
    alpha: tuple[Number, Number]
    q: tuple[Number, Number]
    x: tuple[Number, Number] = (0, 0)
    nu: tuple[Number, Number] = (Fraction(1, 100), Fraction(1, 100))
    beta: tuple[Number, Number] = (1, 1)
    tau: tuple[Number, Number] = (1, 1)
    kappa: tuple[Number, Number] | None = None
    p: int = 3

    def __post_init__(self) -> None:
        for name in VARIED:
            if getattr(self, name) is not None:
                low, high = map(Fraction, getattr(self, name))
                object.__setattr__(self, name, (low, high))
                require(
                    low <= high,
                    name,
                    f"{float(low):g}..{float(high):g}",
                    "an interval from low to high",
                )
        alpha, q, nu = self.ends("alpha"), self.ends("q"), self.ends("nu")
        require(alpha[0] >= 0, "alpha", float(alpha[0]), "at least 0")
        require(q[0] >= 0 and q[1] <= 1, "q", f"{float(q[0]):g}..{float(q[1]):g}", "within [0, 1]")
        require(nu[0] >= 0, "nu", float(nu[0]), "at least 0")
        self.problem()  # validates the rest
        require(self.D - self.C <= MOST_PATCHES, "D", self.D, f"at most C + {MOST_PATCHES}")

    def ends(self, name: str) -> Interval:
        """Return the exact ends of a parameter."""
        if name == "kappa" and self.kappa is None:
            return Fraction(self.D), Fraction(self.D)
        low, high = getattr(self, name)
        return low, high

    def problem(self, **values: float) -> Problem:
        """Return the problem at the given values, by default at a corner of the box, in floats."""
        fields: dict[str, Any] = {
            "q": self.ends("q")[1],
            "nu": self.ends("nu")[1],
            "beta": self.ends("beta")[1],
            "temperature": self.ends("tau")[0],
            "output_scale": self.ends("kappa")[0],
        }
        fields |= values
        if fields["output_scale"] == self.D:
            del fields["output_scale"]
        floats: dict[str, Any] = {name: float(value) for name, value in fields.items()}
        return Problem(D=self.D, C=self.C, p=self.p, **floats)

    def contains(self, point: Witness) -> bool:
        """Return whether a point is in the box, by exact comparison."""
        inside = (
            low <= getattr(point, name) <= high
            for name in VARIED
            for low, high in [self.ends(name)]
        )
        return (point.D, point.C, point.p) == (self.D, self.C, self.p) and all(inside)

    def cells(self) -> Iterator[Cell]:
        """Yield the cells of the box, split at beta = x so that 1 - D r has one sign in each."""
        beta, x, tau = self.ends("beta"), self.ends("x"), self.ends("tau")
        low = min((beta[0] - x[1]) / t for t in tau)
        high = max((beta[1] - x[0]) / t for t in tau)
        kappa, alpha = self.ends("kappa"), self.ends("alpha")
        amplitude = kappa[0] * alpha[0], kappa[1] * alpha[1]
        zero = Fraction(0)
        parts = [(low, zero), (zero, high)] if low < 0 < high else [(low, high)]
        for part in parts:
            yield Cell(amplitude, part, self.ends("nu"), self.ends("q"))

    def describe(self) -> str:
        """Return the box in the notation of `read_box`, which returns an equal box."""
        parts = [f"D={self.D}", f"C={self.C}", f"p={self.p}"]
        for name in VARIED if self.kappa else VARIED[:-1]:
            low, high = self.ends(name)
            ends = written(low) if low == high else f"{written(low)}..{written(high)}"
            parts.append(f"{name}={ends}")
        return ", ".join(parts)


def written(number: Fraction) -> str:
    """Return a fraction as short text from which `exact` returns the same number."""
    decimal = f"{float(number):.15g}"
    return decimal if Fraction(decimal) == number else str(number)


def exact(text: str) -> Fraction:
    """Return the rational number of a text such as ``0.462``, ``1e-3`` or ``2/64``.

    Raises
    ------
    argparse.ArgumentTypeError, ParameterError
        If the text is not a number, not finite, or too close to zero for a double.
    """
    from simulations.commands.arguments import number

    approximate = number(text)  # raises if the text is not a number
    require(math.isfinite(approximate), "the number", repr(text), "finite")
    if "/" not in text:
        decimal = Decimal(text)
        require(
            not decimal or decimal.adjusted() >= _LEAST_EXPONENT,
            "the number",
            repr(text),
            f"0 or at least 1e{_LEAST_EXPONENT}",
        )
    return Fraction(text)


def read_box(text: str) -> Box:
    """Return the box of a text such as ``D=64, C=4, qD=0..2, alpha=0..0.3``.

    Two dots denote an interval. Ends are exact rational numbers: 0.1 is 1/10.

    Raises
    ------
    ParameterError
        If a part cannot be read or is not allowed.
    """
    given: dict[str, Any] = {}
    known = ("D", "C", "p", "qD", *VARIED)
    for part in filter(None, (piece.strip() for piece in text.replace(";", ",").split(","))):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        require(
            bool(equals) and name in known and name not in given,
            "box",
            repr(part),
            f"NAME=VALUE or NAME=LOW..HIGH, each of {', '.join(known)} once",
        )
        try:
            ends = [exact(end.strip()) for end in value.split("..")]
        except Exception as failure:
            raise ParameterError(f"box = {part!r} is not allowed: {failure}") from None
        require(len(ends) <= 2, "box", repr(part), "NAME=LOW..HIGH")
        if name in ("D", "C", "p"):
            require(len(ends) == 1, name, repr(value), "one number")
            given[name] = ends[0]
        else:
            given[name] = (ends[0], ends[-1])
    for name in ("D", "C", "alpha"):
        require(name in given, "box", repr(text), f"complete: {name} is missing")
    require(("q" in given) != ("qD" in given), "box", repr(text), "given either q or qD")
    sizes = {name: given.pop(name) for name in ("D", "C", "p") if name in given}
    whole: dict[str, Any] = {name: _whole(size) for name, size in sizes.items()}
    checked = Problem(q=1.0, **whole)
    if "qD" in given:
        low, high = (end / checked.D for end in given.pop("qD"))
        given["q"] = (low, high)
    return Box(D=checked.D, C=checked.C, p=checked.p, **given)


def _whole(size: Fraction) -> int | float:
    """Return an integer as an int, other numbers as a float, which `Problem` rejects."""
    return int(size) if size.denominator == 1 else float(size)
