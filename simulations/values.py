"""Reading the values of a case: kinds, defaults, and aliases of which one may be given."""

import numbers
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dynamics.core.checks import finite, require
from dynamics.core.errors import ParameterError
from simulations.system import Parameter


def check_names(values: Mapping[str, Any], parameters: Iterable[Parameter]) -> None:
    """Refuse names that are no parameters and values of another kind, each in one sentence."""
    known = {parameter.name: parameter for parameter in parameters}
    for name, value in values.items():
        if name not in known:
            raise ParameterError(
                f"{name} is not a parameter of this system: choose among {', '.join(known)}"
            )
        check_kind(known[name], value)


def check_kind(parameter: Parameter, value: Any) -> None:
    """Refuse a value that is not of the parameter's kind."""
    name, kind = parameter.name, parameter.kind
    if kind is str:
        require(isinstance(value, str), name, repr(value), parameter.allowed or "a word")
    elif kind is int:
        real = isinstance(value, numbers.Real) and not isinstance(value, bool)
        integer = real and finite(name, value).is_integer()
        require(integer, name, value if real else repr(value), parameter.allowed or "an integer")
    else:
        finite(name, value)


def one_of(values: Mapping[str, Any], names: Sequence[str], default: str) -> str:
    """Return which of several names for the same thing is given; refuse two of them."""
    given = [name for name in names if name in values]
    if len(given) > 1:
        raise ParameterError(
            f"{given[0]} and {given[1]} are not allowed together: they set the same thing"
        )
    return given[0] if given else default
