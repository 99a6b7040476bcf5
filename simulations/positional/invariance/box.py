"""Boxes of parameters and states whose ends are exact: what a certificate is about.

A float is the binary number it is; a number that a user writes (``0.462``, ``2/64``, ``1e-3``) is
that rational number. Everything computed from the ends before ball arithmetic begins, such as
(beta - x)/tau, is computed with fractions: nothing is rounded, so no box loses a point of itself.
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

MOST_PATCHES = 300  # outside the signal set: beyond it a sum over all states takes seconds
_LEAST_EXPONENT = -330  # of a written number: below it no double is near
#: The parameters of a box that may lie between two bounds.
VARIED = ("alpha", "q", "x", "nu", "beta", "tau", "kappa")


class Cell(NamedTuple):
    """A box in the four numbers that matter; the ends may be any exact numbers, floats included."""

    amplitude: tuple[Number, Number]  # kappa alpha
    contrast: tuple[Number, Number]  # (beta - x)/tau
    nu: tuple[Number, Number]
    q: tuple[Number, Number]


@dataclass(frozen=True)
class Witness:
    """A point of the boundary gamma = rho = x, exactly."""

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
        """Return the point of a problem, its floats taken as the numbers they are."""
        fields = (problem.q, problem.nu, problem.beta, problem.tau, problem.kappa, alpha, x)
        return cls(problem.D, problem.C, problem.p, *map(Fraction, fields))

    @property
    def problem(self) -> Problem:
        """The problem in floats next to it."""
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
        """The state in floats next to it."""
        return State(float(self.alpha), float(self.x), float(self.x))

    @property
    def cell(self) -> Cell:
        """The point in the four numbers that matter."""
        numbers = self.kappa * self.alpha, (self.beta - self.x) / self.tau, self.nu, self.q
        return Cell(*((number, number) for number in numbers))

    def describe(self) -> dict[str, str]:
        """Return the varied numbers as exact text."""
        return {name: written(getattr(self, name)) for name in VARIED}


@dataclass(frozen=True)
class Box:
    """Parameters and states: D, C, p fixed, the others between two bounds (equal ones: fixed).

    ``x`` is the common value of gamma and rho. ``kappa`` is D unless given. The ends may be given
    as floats, integers or fractions and are kept as fractions, exactly.
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
        """Return the two ends of a parameter, exactly; those of kappa too where it is D."""
        if name == "kappa" and self.kappa is None:
            return Fraction(self.D), Fraction(self.D)
        low, high = getattr(self, name)
        return low, high

    def problem(self, **at: float) -> Problem:
        """Return the problem in floats at the upper bounds, or at the given values."""
        fields: dict[str, Any] = {
            "q": self.ends("q")[1],
            "nu": self.ends("nu")[1],
            "beta": self.ends("beta")[1],
            "temperature": self.ends("tau")[0],
            "output_scale": self.ends("kappa")[0],
        }
        fields |= at
        if fields["output_scale"] == self.D:
            del fields["output_scale"]
        floats: dict[str, Any] = {name: float(value) for name, value in fields.items()}
        return Problem(D=self.D, C=self.C, p=self.p, **floats)

    def contains(self, point: Witness) -> bool:
        """Return whether a point lies in the box, exactly."""
        inside = (
            low <= getattr(point, name) <= high
            for name in VARIED
            for low, high in [self.ends(name)]
        )
        return (point.D, point.C, point.p) == (self.D, self.C, self.p) and all(inside)

    def cells(self) -> Iterator[Cell]:
        """Yield the box in the four numbers, split where beta = x so that 1 - D r has one sign."""
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
        """Return the box as it is written on the command line; what is read back is equal."""
        parts = [f"D={self.D}", f"C={self.C}", f"p={self.p}"]
        for name in VARIED if self.kappa else VARIED[:-1]:
            low, high = self.ends(name)
            one = f"{name}={written(low)}"
            parts.append(one if low == high else f"{one}..{written(high)}")
        return ", ".join(parts)


def written(number: Fraction) -> str:
    """Return a fraction as short text that `exact` reads back as the same number."""
    decimal = f"{float(number):.15g}"
    return decimal if Fraction(decimal) == number else str(number)


def exact(text: str) -> Fraction:
    """Return the rational number that a text such as ``0.462``, ``1e-3`` or ``2/64`` writes.

    Raises
    ------
    argparse.ArgumentTypeError, ParameterError
        One sentence if it is no number, not finite, or too close to zero for a double.
    """
    from simulations.commands.arguments import number

    near = number(text)  # refuses what is no number
    require(math.isfinite(near), "the number", repr(text), "finite")
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
    """Return the box written as ``D=64, C=4, qD=0..2, alpha=0..0.3``; two dots mark an interval.

    The ends are the rational numbers that are written: 0.1 is 1/10.

    Raises
    ------
    ParameterError
        One sentence naming what cannot be read or is not allowed.
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
        require(name in given, "box", repr(text), f"complete: it does not say {name}")
    require(("q" in given) != ("qD" in given), "box", repr(text), "given either q or qD")
    sizes = {name: given.pop(name) for name in ("D", "C", "p") if name in given}
    whole: dict[str, Any] = {name: _whole(size) for name, size in sizes.items()}
    checked = Problem(q=1.0, **whole)
    if "qD" in given:
        low, high = (end / checked.D for end in given.pop("qD"))
        given["q"] = (low, high)
    return Box(D=checked.D, C=checked.C, p=checked.p, **given)


def _whole(size: Fraction) -> int | float:
    """Return an integer as one; anything else as a float, which `Problem` refuses by name."""
    return int(size) if size.denominator == 1 else float(size)
