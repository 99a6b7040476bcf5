"""Sentences with numbers; bounds are rounded to the side on which the sentence stays true.

The conversion ``!u`` rounds up, for "at most", and ``!d`` rounds down, for "at least":
``"at most {error!u:.2g}"`` becomes ``"at most 0.066"`` for 0.0651.
"""

import decimal
import string
from dataclasses import dataclass
from typing import Any

_DIRECTIONS = {"u": decimal.ROUND_CEILING, "d": decimal.ROUND_FLOOR}


def sentence(template: str, /, **numbers: Any) -> str:
    """Return a format string with its numbers, see :mod:`simulations.reproduction.sentences`."""
    return _Formatter().vformat(template, (), numbers)


class _Formatter(string.Formatter):
    """Formatter with the conversions ``!u`` and ``!d``."""

    def convert_field(self, value: Any, conversion: Any) -> Any:
        """Convert a number; other conversions are those of `str.format`."""
        if conversion in _DIRECTIONS:
            return _Bound(float(value), _DIRECTIONS[conversion])
        return super().convert_field(value, conversion)


@dataclass(frozen=True)
class _Bound:
    """A number that is rounded in one direction; its shortest decimal counts as exact."""

    value: float
    rounding: str

    def __format__(self, spec: str) -> str:
        with decimal.localcontext(rounding=self.rounding):
            text = format(decimal.Decimal(repr(self.value)), spec)
        digits = text.replace(",", "")
        rounded = float(digits.removesuffix("%")) / (100.0 if digits.endswith("%") else 1.0)
        return format(rounded, spec)
