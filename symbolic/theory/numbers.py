"""Sizes and constants of a theory: symbols, and what their values may be."""

import keyword
import math
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import sympy as sp

from symbolic.theory.errors import TheoryError, here, require

_DOMAIN = re.compile(r"in ([\[(])\s*(\S+)\s*,\s*(\S+)\s*([\])])|([<>]=?)\s*(\S+)|real")


def named(name: Any) -> None:
    """Refuse what is no name of a size, a constant, an array or an order parameter."""
    good = isinstance(name, str) and name.isidentifier() and not keyword.iskeyword(name)
    require(
        good and not name.startswith("_"),
        f"name = {name!r} is not allowed: a name must be a Python identifier, no keyword, and "
        "begin with a letter",
    )


class Scalar:
    """A symbol that computes with numbers, other scalars and expressions of the language."""

    def __init__(self, name: str) -> None:
        named(name)
        self.name, self.symbol, self.where = name, sp.Symbol(name), here()

    def _sympy_(self) -> sp.Symbol:
        return self.symbol

    def __add__(self, other: Any) -> Any:
        return self.symbol + other

    def __radd__(self, other: Any) -> Any:
        return other + self.symbol

    def __sub__(self, other: Any) -> Any:
        return self.symbol - other

    def __rsub__(self, other: Any) -> Any:
        return other - self.symbol

    def __mul__(self, other: Any) -> Any:
        return self.symbol * other

    def __rmul__(self, other: Any) -> Any:
        return other * self.symbol

    def __truediv__(self, other: Any) -> Any:
        return self.symbol / other

    def __rtruediv__(self, other: Any) -> Any:
        return other / self.symbol

    def __pow__(self, other: Any) -> Any:
        return self.symbol**other

    def __rpow__(self, other: Any) -> Any:
        return other**self.symbol

    def __neg__(self) -> Any:
        return -self.symbol


class Size(Scalar):
    """How many elements there are: a whole number that stays a symbol.

    Parameters
    ----------
    name, meaning
        The symbol, and what it counts.
    least, most
        Smallest and largest value.
    divides
        The name of a size of which it must be a divisor.
    """

    def __init__(
        self,
        name: str,
        meaning: str = "",
        *,
        least: int = 1,
        most: int = 10**9,
        divides: str | None = None,
    ) -> None:
        super().__init__(name)
        self.meaning, self.least, self.most, self.divides = meaning, least, most, divides

    def checked(self, value: Any, sizes: Mapping[str, Any]) -> int:
        """Return a value as a whole number, or raise `TheoryError`."""
        allowed = f"{self.name} = {value} is not allowed: {self.name} must"
        whole = not isinstance(value, bool) and _number(value) and value == int(value)
        most = f"at most 10^{math.log10(self.most):g}"
        between = f"{allowed} be a whole number, at least {self.least} and {most}"
        require(whole and self.least <= value <= self.most, between, self.where)
        if self.divides is not None:
            whole = sizes.get(self.divides, 0)
            require(
                whole % int(value) == 0, f"{allowed} divide {self.divides} = {whole}", self.where
            )
        return int(value)


class Constant(Scalar):
    """A number of the problem that is not trained, within a domain such as ``"in (0, 1]"``."""

    def __init__(self, name: str, allowed: str = "real") -> None:
        super().__init__(name)
        self.allowed = allowed
        found = _DOMAIN.fullmatch(allowed) if isinstance(allowed, str) else None
        self.low, self.high, self._ends = -math.inf, math.inf, "()"
        try:
            if found is None:
                raise ValueError
            if found[1]:
                self.low, self.high = _bound(found[2]), _bound(found[3])
                self._ends = found[1] + found[4]
            elif found[5]:
                bound = _bound(found[6])
                low, open_end = found[5].startswith(">"), "=" not in found[5]
                self.low, self.high = (bound, math.inf) if low else (-math.inf, bound)
                self._ends = ("(" if open_end else "[") + ("]" if not open_end else ")")
        except ValueError:
            raise TheoryError(
                f"{name} = {allowed!r} is not allowed: the domain of a constant must be 'real', "
                "'> 0', '>= 0', 'in (0, 1]' or the like"
            ) from None

    @property
    def example(self) -> float:
        """A value within the domain: its lower end if that belongs to it."""
        if self._ends[0] == "[" and math.isfinite(self.low):
            return self.low
        if math.isfinite(self.low):
            return self.low + min(1.0, self.high - self.low) / 2.0
        return self.high - 1.0 if math.isfinite(self.high) else 0.75

    def another(self, number: int, of: int) -> float:
        """Return a value within the domain, a different one for each ``number`` below ``of``."""
        first = self.example
        if math.isfinite(self.low) and self._ends[0] == "(":
            room = min(1.0, self.high - self.low)
            return first if of == 1 else self.low + room * (number + 1) / (of + 1)
        if math.isfinite(self.low):
            return first + min(1.0, self.high - self.low) * number / of
        return first - number if math.isfinite(self.high) else first * (number + 1)

    def checked(self, value: Any) -> float:
        """Return a value as a float within the domain, or raise `TheoryError`."""
        sentence = f"{self.name} = {value} is not allowed: {self.name} must be {self.allowed}"
        require(_number(value), sentence, self.where)
        above = self.low < value or (self.low == value and self._ends[0] == "[")
        below = value < self.high or (self.high == value and self._ends[1] == "]")
        require(above and below, sentence, self.where)
        return float(value)


def constants(**domains: str) -> tuple[Constant, ...]:
    """Return constants in the order of the arguments, ``name="in (0, 1]"`` and the like."""
    return tuple(Constant(name, allowed) for name, allowed in domains.items())


def exact(value: Any) -> sp.Expr:
    """Return a number, scalar or SymPy expression with its floats as exact fractions.

    A float is the decimal that it is written as: 0.1 is 1/10.
    """
    if isinstance(value, (bool, str, bytes)):
        raise TypeError
    expression = sp.sympify(value, strict=True)
    if not isinstance(expression, sp.Expr):
        raise TypeError
    floats = {x: sp.Rational(Fraction(repr(float(x)))) for x in expression.atoms(sp.Float)}
    return expression.xreplace(floats)


def _number(value: Any) -> bool:
    try:
        return not isinstance(value, (bool, str)) and math.isfinite(float(value))
    except (TypeError, ValueError, OverflowError):
        return False


def _bound(text: str) -> float:
    return math.inf if text in ("inf", "infinity") else float(Fraction(text))
