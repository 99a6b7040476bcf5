"""Numbers with a first-order bound of their rounding error."""

from __future__ import annotations

from types import FunctionType

from dynamics.core.jit import plain_python
from dynamics.positional import _emitted
from dynamics.positional.population.fourier.errors import UNIT


class Rounded:
    """A float and its error, to which each operation adds UNIT times its result.

    Sums with 0 and products with 0, 1 or -1 are exact.
    """

    def __init__(self, value: float, error: float = 0.0) -> None:
        self.value, self.error = value, error

    @staticmethod
    def of(number: Rounded | float) -> Rounded:
        return number if isinstance(number, Rounded) else Rounded(float(number))

    def is_exactly(self, *values: float) -> bool:
        return self.error == 0.0 and self.value in values

    def __add__(self, other: Rounded | float) -> Rounded:
        other = self.of(other)
        if self.is_exactly(0.0) or other.is_exactly(0.0):
            return other if self.is_exactly(0.0) else self
        value = self.value + other.value
        return Rounded(value, self.error + other.error + UNIT * abs(value))

    def __mul__(self, other: Rounded | float) -> Rounded:
        other = self.of(other)
        value = self.value * other.value
        exact = self.is_exactly(0.0, 1.0, -1.0) or other.is_exactly(0.0, 1.0, -1.0)
        error = abs(self.value) * other.error + abs(other.value) * self.error
        error += self.error * other.error
        return Rounded(value, error + (0.0 if exact else UNIT * abs(value)))

    def __truediv__(self, other: Rounded | float) -> Rounded:
        other = self.of(other)
        value = self.value / other.value
        error = (self.error + abs(value) * other.error) / (abs(other.value) - other.error)
        return Rounded(value, error + UNIT * abs(value))

    def __neg__(self) -> Rounded:
        return Rounded(-self.value, self.error)

    def __sub__(self, other: Rounded | float) -> Rounded:
        return self + -self.of(other)

    def __rsub__(self, other: Rounded | float) -> Rounded:
        return -self + other

    __radd__, __rmul__ = __add__, __mul__


def plain_row_gradient() -> FunctionType:
    """Return ``row_gradient`` and its callees as plain Python, for Rounded numbers."""
    space: dict[str, FunctionType] = {}
    for name in ("power", "power_difference", "row_gradient"):
        space[name] = FunctionType(plain_python(getattr(_emitted, name)).__code__, space, name)
    return space["row_gradient"]
