"""Floats with a bound of their rounding error, as a reference for bounds derived by hand.

Every operation adds half a unit in the last place of its result, exp and expm1 a whole one, and
underflow the smallest float. Products and sums of integers are exact. The unmodified functions of
``dynamics`` are run on these numbers.
"""

import inspect
import math
from types import ModuleType, SimpleNamespace

import numpy as np

import dynamics.positional._emitted as emitted

UNIT, LEAST = 2.0**-53, 5e-324
_EXACT = 2.0**53


class Running:
    """A float and a bound of its distance from the exact result."""

    def __init__(self, value, error=0.0):
        self.value, self.error = float(value), error

    def _is_integer(self):
        return self.error == 0.0 and self.value.is_integer()

    def _result(self, other, value, error):
        """Return the rounded result of an operation with a propagated error."""
        if self._is_integer() and other._is_integer() and abs(value) < _EXACT:
            return Running(value, error)
        return Running(value, error + UNIT * abs(value))

    def __neg__(self):
        return Running(-self.value, self.error)

    def __abs__(self):
        return Running(abs(self.value), self.error)

    def __add__(self, other):
        other = _running(other)
        if 0.0 in (self.value, other.value):
            return Running(self.value + other.value, self.error + other.error)
        return self._result(other, self.value + other.value, self.error + other.error)

    __radd__ = __add__

    def __sub__(self, other):
        return self + -_running(other)

    def __rsub__(self, other):
        return _running(other) + -self

    def __mul__(self, other):
        if isinstance(other, np.ndarray):
            return NotImplemented  # entry by entry
        other = _running(other)
        a, b = abs(self.value), abs(other.value)
        error = a * other.error + b * self.error + self.error * other.error
        for factor, rest in ((self, other), (other, self)):
            if factor.error == 0.0 and factor.value in (0.0, 1.0, -1.0):
                return Running(factor.value * rest.value, error)
        error += LEAST if a * b < 1e-290 else 0.0
        return self._result(other, self.value * other.value, error)

    __rmul__ = __mul__

    def __truediv__(self, other):
        other = _running(other)
        value = self.value / other.value
        error = (self.error + abs(value) * other.error) / (abs(other.value) - other.error)
        return Running(value, error + UNIT * abs(value) + (LEAST if self.value else 0.0))

    def __gt__(self, other):
        return self.value > _running(other).value

    def __lt__(self, other):
        return self.value < _running(other).value


def _running(number):
    return number if isinstance(number, Running) else Running(number)


def _function(name):
    """Return exp or expm1 for these numbers; the derivative of both is exp."""

    def evaluated(x):
        value = getattr(math, name)(x.value)
        own = 2.0 * UNIT * abs(value) + LEAST if x.value else 0.0
        return Running(value, math.exp(x.value) * math.expm1(x.error) + own)

    return evaluated


def _copysign(x, y):
    return x if math.copysign(1.0, x.value) == math.copysign(1.0, y.value) else -x


def plain(*functions, **names):
    """Return a module of kernels, compiled from their source for these numbers."""
    module = ModuleType("plain")
    vars(module).update(
        kernel=lambda function: function,
        math=SimpleNamespace(exp=_function("exp"), expm1=_function("expm1"), copysign=_copysign),
        np=SimpleNamespace(empty=lambda shape: np.empty(shape, object)),
        **names,
    )
    for function in functions:
        source = inspect.getsource(function.py_func)
        exec(compile(source, inspect.getfile(function.py_func), "exec"), vars(module))
    return module


KERNELS = plain(
    emitted.power, emitted.power_difference, emitted.attention_weights, emitted.row_gradient
)
