"""Sizes and constants of a theory: symbols, and what their values may be."""

import keyword
import math
import operator
import re
import unicodedata
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import sympy as sp

from symbolic.theory.errors import TheoryError, here, require, shown

#: Characters of a name and of a text, at most; largest value of a size, and of an exponent.
LONGEST_NAME, LONGEST_TEXT, LARGEST_SIZE, LARGEST_EXPONENT = 60, 200, 10**9, 1000
#: Numerators and denominators are below this: floats are, written as fractions.
_RANGE = 10**350
_NOT_FINITE = (sp.nan, sp.zoo, sp.oo, -sp.oo, sp.I, sp.AccumBounds)
_DOMAIN = re.compile(r"in ([\[(])\s*(\S+)\s*,\s*(\S+)\s*([\])])|([<>]=?)\s*(\S+)|real")


def named(name: Any) -> None:
    """Refuse what is no name of a size, a constant, an array or an order parameter."""
    good = isinstance(name, str) and name.isidentifier() and not keyword.iskeyword(name)
    plain = good and unicodedata.normalize("NFKC", name) == name  # as Python reads it in code
    require(
        plain and not name.startswith("_") and len(name) <= LONGEST_NAME,
        f"name = {shown(name)} is not allowed: a name must be a Python identifier, no keyword, and "
        f"begin with a letter, of at most {LONGEST_NAME} characters",
    )


def described(what: str, text: Any) -> None:
    """Refuse what is no short printable text."""
    require(
        isinstance(text, str) and text.isprintable() and len(text) <= LONGEST_TEXT,
        f"{what} = {shown(text)} is not allowed: it must be printable text of at most "
        f"{LONGEST_TEXT} characters",
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
        most: int = LARGEST_SIZE,
        divides: str | None = None,
    ) -> None:
        super().__init__(name)
        described(f"meaning of {name}", meaning)
        least, most = _whole(f"least of {name}", least), _whole(f"most of {name}", most)
        require(
            1 <= least <= most <= LARGEST_SIZE,
            f"least, most = {least}, {most} of {name} are not allowed: they must be in order, at "
            f"least 1 and at most 10^{math.log10(LARGEST_SIZE):g}",
        )
        if divides is not None:
            named(divides)
        self.meaning, self.least, self.most, self.divides = meaning, least, most, divides

    def checked(self, value: Any, sizes: Mapping[str, Any]) -> int:
        """Return a value as a whole number, or raise `TheoryError`."""
        allowed = f"{self.name} = {text_of(value)} is not allowed: {self.name} must"
        whole = not isinstance(value, bool) and is_number(value) and value == int(value)
        most = f"at most 10^{math.log10(self.most):g}"
        between = f"{allowed} be a whole number, at least {self.least} and {most}"
        require(whole and self.least <= value <= self.most, between, self.where)
        if self.divides is not None and self.divides in sizes:
            whole = sizes[self.divides]
            require(
                is_number(whole) and whole % int(value) == 0,
                f"{allowed} divide {self.divides} = {whole}",
                self.where,
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
            if not (self.low < self.high or (self.low == self.high and self._ends == "[]")):
                raise ValueError
        except (ValueError, ZeroDivisionError, OverflowError):
            raise TheoryError(
                f"{name} = {shown(allowed)} is not allowed: the domain of a constant must be "
                "'real', '> 0', '>= 0', 'in (0, 1]' or the like"
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
        sentence = (
            f"{self.name} = {text_of(value)} is not allowed: {self.name} must be {self.allowed}"
        )
        require(is_number(value), sentence, self.where)
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

    Raises
    ------
    TypeError, ValueError
        If it is none, or is not finite and real for all sizes and constants (``nan``, ``1j``), or
        if a number in it is beyond the range of floats.
    """
    if isinstance(value, (bool, str, bytes)):
        raise TypeError
    expression = sp.sympify(value, strict=True)
    if not isinstance(expression, sp.Expr) or not expression.is_commutative:
        raise TypeError
    if expression.has(*_NOT_FINITE) or (expression.is_number and not expression.is_real):
        raise ValueError
    for power in expression.atoms(sp.Pow):
        if power.exp.is_number and not abs(power.exp) <= LARGEST_EXPONENT:
            raise ValueError
    if any(abs(x.p) >= _RANGE or x.q >= _RANGE for x in expression.atoms(sp.Rational)):
        raise ValueError
    floats = {x: sp.Rational(Fraction(repr(float(x)))) for x in expression.atoms(sp.Float)}
    return expression.xreplace(floats)


def is_number(value: Any) -> bool:
    """Return whether a value is a finite real number."""
    try:
        return not isinstance(value, (bool, str)) and math.isfinite(float(value))
    except (TypeError, ValueError, OverflowError):
        return False


def text_of(value: Any) -> str:
    """Return a value as it is written, a text without quotes."""
    return value if isinstance(value, str) else shown(value)


def _whole(what: str, value: Any) -> int:
    """Return a whole number of Python, NumPy or SymPy as an int."""
    try:
        if isinstance(value, bool):
            raise TypeError
        return operator.index(value)
    except TypeError:
        raise TheoryError(
            f"{what} = {shown(value)} is not allowed: it must be a whole number"
        ) from None


def _bound(text: str) -> float:
    return math.inf if text in ("inf", "infinity") else float(Fraction(text))
