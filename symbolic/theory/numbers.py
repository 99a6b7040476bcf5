"""Sizes and constants of a theory: symbols and the domains of their values."""

import keyword
import math
import operator
import re
import unicodedata
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import sympy as sp

from symbolic.theory.errors import TheoryError, calling_line, require, short_repr

#: Most characters of a name and of a text; largest value of a size and of an exponent.
LONGEST_NAME, LONGEST_TEXT, LARGEST_SIZE, LARGEST_EXPONENT = 60, 200, 10**9, 1000
#: Bound of numerators and denominators; every float as a fraction is below it.
_RANGE = 10**350
_NOT_FINITE = (sp.nan, sp.zoo, sp.oo, -sp.oo, sp.I, sp.AccumBounds)
#: A random start, with its standard deviation as argument; see `normal`.
RANDOM = sp.Function("normal", nargs=1)
_DOMAIN = re.compile(r"in ([\[(])\s*(\S+)\s*,\s*(\S+)\s*([\])])|([<>]=?)\s*(\S+)|real")


def check_name(name: Any) -> None:
    """Raise `TheoryError` unless ``name`` can name a size, constant, array or order parameter."""
    good = isinstance(name, str) and name.isidentifier() and not keyword.iskeyword(name)
    plain = good and unicodedata.normalize("NFKC", name) == name  # as Python reads it in code
    require(
        plain and not name.startswith("_") and len(name) <= LONGEST_NAME,
        f"name = {short_repr(name)} is not allowed: a name must be a Python identifier, no "
        f"keyword, and begin with a letter, of at most {LONGEST_NAME} characters",
    )


def check_text(parameter: str, text: Any) -> None:
    """Raise `TheoryError` unless ``text`` is a short printable string."""
    require(
        isinstance(text, str) and text.isprintable() and len(text) <= LONGEST_TEXT,
        f"{parameter} = {short_repr(text)} is not allowed: it must be printable text of at most "
        f"{LONGEST_TEXT} characters",
    )


class Scalar:
    """Base class of `Size` and `Constant`: a symbol with arithmetic operators."""

    def __init__(self, name: str) -> None:
        check_name(name)
        self.name, self.symbol, self.location = name, sp.Symbol(name), calling_line()

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
    """A symbolic positive integer, such as the number of elements of a set.

    Parameters
    ----------
    name
        The symbol, a Python identifier.
    meaning
        What it counts, in a few words.
    least, most
        Smallest and largest value allowed.
    divides
        Name of another size that it must divide.

    Raises
    ------
    TheoryError
        If an argument is not allowed.

    Examples
    --------
    >>> from symbolic.theory import Size
    >>> D = Size("D", "patches", least=2)
    >>> C = Size("C", "patches of an area", divides="D")
    >>> D / C
    D/C
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
        check_text(f"meaning of {name}", meaning)
        least, most = _integer(f"least of {name}", least), _integer(f"most of {name}", most)
        require(
            1 <= least <= most <= LARGEST_SIZE,
            f"least, most = {least}, {most} of {name} are not allowed: they must be in order, at "
            f"least 1 and at most 10^{math.log10(LARGEST_SIZE):g}",
        )
        if divides is not None:
            check_name(divides)
        self.meaning, self.least, self.most, self.divides = meaning, least, most, divides

    def checked(self, value: Any, sizes: Mapping[str, Any]) -> int:
        """Return a value as an integer.

        Parameters
        ----------
        value
            Value of this size.
        sizes
            Mapping from sizes to values; divisibility is checked if it contains ``divides``.

        Raises
        ------
        TheoryError
            If it is not an integer from ``least`` to ``most``, or does not divide.
        """
        not_allowed = f"{self.name} = {text_of(value)} is not allowed: {self.name} must"
        is_integer = not isinstance(value, bool) and is_number(value) and value == int(value)
        most = f"at most 10^{math.log10(self.most):g}"
        message = f"{not_allowed} be a whole number, at least {self.least} and {most}"
        require(is_integer and self.least <= value <= self.most, message, self.location)
        if self.divides is not None and self.divides in sizes:
            multiple = sizes[self.divides]
            require(
                is_number(multiple) and multiple % int(value) == 0,
                f"{not_allowed} divide {self.divides} = {multiple}",
                self.location,
            )
        return int(value)


class Constant(Scalar):
    """A symbolic real number that is not trained, such as a temperature; see `constants`.

    Parameters
    ----------
    name
        The symbol, a Python identifier.
    allowed
        Domain: ``"real"``, ``"> 0"``, ``">= 0"``, ``"in (0, 1]"`` or the like.

    Raises
    ------
    TheoryError
        If the name or the domain is not allowed.
    """

    def __init__(self, name: str, allowed: str = "real") -> None:
        super().__init__(name)
        self.allowed = allowed
        match = _DOMAIN.fullmatch(allowed) if isinstance(allowed, str) else None
        self.low, self.high, self._ends = -math.inf, math.inf, "()"
        try:
            if match is None:
                raise ValueError
            if match[1]:
                self.low, self.high = _bound(match[2]), _bound(match[3])
                self._ends = match[1] + match[4]
            elif match[5]:
                bound = _bound(match[6])
                low, open_end = match[5].startswith(">"), "=" not in match[5]
                self.low, self.high = (bound, math.inf) if low else (-math.inf, bound)
                self._ends = ("(" if open_end else "[") + ("]" if not open_end else ")")
            if not (self.low < self.high or (self.low == self.high and self._ends == "[]")):
                raise ValueError
        except (ValueError, ZeroDivisionError, OverflowError):
            raise TheoryError(
                f"{name} = {short_repr(allowed)} is not allowed: the domain of a constant must be "
                "'real', '> 0', '>= 0', 'in (0, 1]' or the like"
            ) from None

    @property
    def example(self) -> float:
        """A value in the domain: its lower end if that belongs to it."""
        if self._ends[0] == "[" and math.isfinite(self.low):
            return self.low
        if math.isfinite(self.low):
            return self.low + min(1.0, self.high - self.low) / 2.0
        return self.high - 1.0 if math.isfinite(self.high) else 0.75

    def another(self, number: int, of: int) -> float:
        """Return the value in the domain with a number from 0 to ``of - 1``; all are different."""
        first = self.example
        if math.isfinite(self.low) and self._ends[0] == "(":
            width = min(1.0, self.high - self.low)
            return first if of == 1 else self.low + width * (number + 1) / (of + 1)
        if math.isfinite(self.low):
            return first + min(1.0, self.high - self.low) * number / of
        return first - number if math.isfinite(self.high) else first * (number + 1)

    def checked(self, value: Any) -> float:
        """Return a value as a float, or raise `TheoryError` if it is outside the domain."""
        message = (
            f"{self.name} = {text_of(value)} is not allowed: {self.name} must be {self.allowed}"
        )
        require(is_number(value), message, self.location)
        above = self.low < value or (self.low == value and self._ends[0] == "[")
        below = value < self.high or (self.high == value and self._ends[1] == "]")
        require(above and below, message, self.location)
        return float(value)

    def allows(self, value: Any) -> bool:
        """Return whether a value is in the domain."""
        try:
            self.checked(value)
        except TheoryError:
            return False
        return True


def constants(**domains: str) -> tuple[Constant, ...]:
    """Return constants in the order of the arguments.

    Parameters
    ----------
    **domains
        Domain of each constant: ``"real"``, ``"> 0"``, ``">= 0"``, ``"in (0, 1]"`` or the like.

    Returns
    -------
    tuple of Constant

    Raises
    ------
    TheoryError
        If a name or a domain is not allowed.

    Examples
    --------
    >>> from symbolic.theory import constants
    >>> nu, q = constants(nu="> 0", q="in (0, 1]")
    >>> nu**2 * q
    nu**2*q
    """
    return tuple(Constant(name, allowed) for name, allowed in domains.items())


def normal(scale: Any) -> sp.Expr:
    """Return a random start of order parameters, for ``start`` of a `Tensor`.

    Each order parameter starts at an independent normal number of mean 0, which all entries of its
    orbit share. Independent entries would not be symmetric, so that the reduced model would not
    describe them.

    Parameters
    ----------
    scale
        Standard deviation: a positive number, or an expression in sizes and constants.

    Raises
    ------
    TheoryError
        If the scale is not allowed.

    Examples
    --------
    >>> from symbolic.theory import Size, Tensor, normal
    >>> D = Size("D")
    >>> Tensor("v", start=normal(1 / D)).start
    normal(1/D)
    """
    try:
        expression = exact(scale)
        if expression.is_number and not expression > 0:
            raise ValueError
    except (TypeError, ValueError, sp.SympifyError):
        raise TheoryError(
            f"normal({short_repr(scale)}) is not allowed: the standard deviation must be a "
            "positive number, or an expression in sizes and constants"
        ) from None
    return RANDOM(expression)


def exact(value: Any) -> sp.Expr:
    """Return a number, scalar or SymPy expression with its floats replaced by exact fractions.

    A float is read as its shortest decimal: 0.1 is 1/10.

    Raises
    ------
    TypeError
        If it is not a number or a commutative expression.
    ValueError
        If it is not finite and real (``nan``, ``1j``), or if a number in it is beyond the range of
        floats.
    """
    if isinstance(value, (bool, str, bytes)):
        raise TypeError
    expression = sp.sympify(value, strict=True)
    if not isinstance(expression, sp.Expr) or not expression.is_commutative:
        raise TypeError
    if expression.has(RANDOM):
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
    """Return a string unchanged, and the short ``repr`` of any other value."""
    return value if isinstance(value, str) else short_repr(value)


def _integer(parameter: str, value: Any) -> int:
    """Return an integer of Python, NumPy or SymPy as an int."""
    try:
        if isinstance(value, bool):
            raise TypeError
        return operator.index(value)
    except TypeError:
        raise TheoryError(
            f"{parameter} = {short_repr(value)} is not allowed: it must be a whole number"
        ) from None


def _bound(text: str) -> float:
    return math.inf if text in ("inf", "infinity") else float(Fraction(text))
