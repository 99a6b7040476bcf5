"""Parameters declared as annotated fields of a frozen dataclass.

.. code-block:: python

    @dataclass(frozen=True, slots=True)
    class ToyProblem(Parameters):
        s: Annotated[float, above(0), Doc("target"), Ticks(0.5, 1, 2), Draw(0.1, 2)] = 1.0

This line defines the validation and its message, the command-line option and its help, the key of a
configuration file, the slider values, valid and invalid values for Hypothesis, the reported
constant, and the option that reproduces a case. Relations between parameters are checked by the
method ``check``.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, fields, replace
from functools import cache
from types import MappingProxyType
from typing import Any, ClassVar, Self, get_args, get_type_hints

from dynamics.core.annotations import (
    Alias,
    Bound,
    Choices,
    Condition,
    Doc,
    Draw,
    Flag,
    Text,
    Ticks,
    Unreported,
    as_text,
    bounds_text,
)
from dynamics.core.checks import finite, integer, require
from dynamics.core.errors import ParameterError


@dataclass(frozen=True)
class Parameter:
    """A parameter that a configuration, a grid, a search or an option may set.

    Attributes
    ----------
    name, meaning
        Name and description.
    dtype
        ``int``, ``float`` or ``str``.
    allowed
        Description of the allowed values for the help of the option.
    short
        Name of the option, where it differs from ``name``.
    default
        Default value; ``None`` where it depends on other parameters.
    ticks
        Values of a slider.
    choices
        Allowed strings; empty if the parameter is not a choice.
    default_text
        Description of a default that depends on other parameters.
    field
        Field of the dataclass that the parameter sets.
    optional
        Whether the field may be ``None``.
    bounds
        Limits and conditions of the field.
    draw
        Range of random values; ``None`` if there are none.
    constant
        Name of the reported constant; empty if the field is not reported.
    text
        Conversion of a field that is not a number from and to text.
    to_field, from_field
        Conversion of an alias to the field and back; ``None`` if they are equal.
    """

    name: str
    meaning: str
    dtype: type = float
    allowed: str = ""
    short: str = ""
    default: Any = None
    ticks: tuple[float, ...] = ()
    choices: tuple[str, ...] = ()
    default_text: str = ""
    field: str = ""
    optional: bool = False
    bounds: tuple[Bound | Condition, ...] = ()
    draw: Draw | None = None
    constant: str = ""
    text: Text | None = None
    to_field: Callable[[float, Mapping[str, Any]], float] | None = None
    from_field: Callable[[float, Mapping[str, Any]], float] | None = None

    @property
    def flag(self) -> str:
        """The option of `patchdyn run` that sets it."""
        return "--" + (self.short or self.name).replace("_", "-")

    @property
    def description(self) -> str:
        """Meaning and default."""
        text = self.default_text or ("" if self.default is None else as_text(self.default))
        return f"{self.meaning} (default: {text})" if text else self.meaning

    @property
    def help(self) -> str:
        """Meaning, default and allowed values."""
        return f"{self.description}; {self.allowed}" if self.allowed else self.description

    def check_type(self, value: Any) -> None:
        """Raise ParameterError if a value is not of the type ``dtype``."""
        if self.dtype is str:
            require(isinstance(value, str), self.name, repr(value), self.allowed or "a word")
        elif self.dtype is int:
            real = isinstance(value, numbers.Real) and not isinstance(value, bool)
            whole = real and finite(self.name, value).is_integer()
            require(whole, self.name, value if real else repr(value), self.allowed or "an integer")
        else:
            finite(self.name, value)

    def validate(self, value: Any) -> Any:
        """Return a value of the field as `int`, `float` or `str`.

        Raises
        ------
        ParameterError
            If the value is not allowed.
        """
        if value is None and self.optional:
            return None
        if self.text is not None:
            if self.text.check is not None:
                self.text.check(self.name, value)
            return value
        if self.choices:
            require(value in self.choices, self.name, repr(value), self.allowed)
            return value
        number = (integer if self.dtype is int else finite)(self.name, value)
        if not all(bound.holds(number) for bound in self.bounds):
            require(False, self.name, number, bounds_text(self.bounds, self.dtype))
        return number

    def write(self, value: Any) -> Any:
        """Return a value of the field in the form of the command line."""
        return value if self.text is None or value is None else self.text.write(value)

    def read(self, value: Any, other: Mapping[str, Any]) -> Any:
        """Return the value of the field from a user's value; ``other`` are the other fields."""
        if self.choices:
            require(value in self.choices, self.name, repr(value), self.allowed)
        if self.text is not None:
            return self.text.read(value)
        if self.to_field is None:
            return self.validate(value)
        number = finite(self.name, value)
        limits = tuple(bound for bound in self.bounds if isinstance(bound, Bound))
        if limits and self.from_field is not None:
            own = tuple(replace(x, limit=self.from_field(x.limit, other)) for x in limits)
            allowed = (
                f"{bounds_text(own, float)}, so that {self.field} is {bounds_text(limits, float)}"
            )
            require(all(bound.holds(number) for bound in own), self.name, number, allowed)
        number = self.to_field(number, other)
        for bound in limits:  # rounding may miss a closed bound
            if bound.sign in (">=", "<=") and not bound.holds(number):
                number = bound.limit
        return number


def _check_boolean(name: str, value: Any) -> None:
    """Raise ParameterError unless a value is True or False."""
    require(isinstance(value, bool), name, repr(value), "True or False")


#: Booleans are written as yes and no on the command line and in configurations.
YES_OR_NO = Text(
    {"yes": True, "no": False}.__getitem__, lambda x: "yes" if x else "no", _check_boolean
)


def declared(cls: type) -> Mapping[str, Parameter]:
    """Return the mapping from name to parameter: the fields of a class and their aliases."""
    return _declared(cls)


@cache
def _declared(cls: Any) -> Mapping[str, Parameter]:
    hints = get_type_hints(cls, include_extras=True)
    parameters: dict[str, Parameter] = {}
    for field in fields(cls):
        default = None if field.default is MISSING else field.default
        for parameter in _of_field(field.name, default, hints[field.name]):
            parameters[parameter.name] = parameter
    return MappingProxyType(parameters)


def _of_field(name: str, default: Any, hint: Any) -> list[Parameter]:
    """Return the parameters that an annotated field declares."""
    annotation, *markers = get_args(hint)
    arguments = get_args(annotation) or (annotation,)
    dtype = next(argument for argument in arguments if argument is not type(None))
    optional = type(None) in get_args(annotation)

    def marker(cls: type, other: Any = None) -> Any:
        return next((marker for marker in markers if isinstance(marker, cls)), other)

    doc, choices, text = marker(Doc), marker(Choices, Choices()).values, marker(Text)
    if dtype is bool:
        text, choices, default, dtype = YES_OR_NO, ("yes", "no"), YES_OR_NO.write(default), str
    elif text is not None:
        dtype = str
    bounds = tuple(marker for marker in markers if isinstance(marker, Bound | Condition))
    aliases = [marker for marker in markers if isinstance(marker, Alias)]
    constant = next((alias.name for alias in aliases if alias.constant), name)
    field = Parameter(
        name,
        doc.meaning,
        dtype,
        allowed=doc.allowed or _allowed(bounds, choices, dtype),
        short=marker(Flag, Flag("")).name,
        default=default,
        ticks=marker(Ticks, Ticks()).values,
        choices=choices,
        default_text=doc.default,
        field=name,
        optional=optional,
        bounds=bounds,
        draw=marker(Draw),
        constant="" if dtype is str or marker(Unreported) else constant,
        text=text,
    )
    return [field, *(_alias(alias, field) for alias in aliases)]


def _alias(alias: Alias, field: Parameter) -> Parameter:
    """Return the parameter that an alias declares; without conversion, a renamed field."""
    converted = alias.to_field is not None
    return replace(
        field,
        name=alias.name,
        meaning=alias.doc.meaning,
        dtype=float if converted else field.dtype,
        allowed=alias.doc.allowed or ("" if converted else field.allowed),
        short="",
        default=None if converted else field.default,
        ticks=alias.ticks.values,
        default_text=alias.doc.default,
        draw=alias.draw,
        constant="",
        to_field=alias.to_field,
        from_field=alias.from_field,
    )


def _allowed(bounds: tuple[Bound | Condition, ...], choices: tuple[str, ...], dtype: type) -> str:
    """Return the allowed values for the help of an option."""
    if choices:
        return " or ".join(choices) if len(choices) == 2 else f"one of {', '.join(choices)}"
    text = bounds_text(bounds, dtype)
    integers = dtype is int and not any(isinstance(bound, Condition) for bound in bounds)
    return ", ".join(part for part in ("an integer" if integers else "", text) if part)


def _names(cls: type) -> dict[str, list[str]]:
    """Return the mapping from field to its name and its aliases."""
    names: dict[str, list[str]] = {}
    for parameter in declared(cls).values():
        names.setdefault(parameter.field, []).append(parameter.name)
    return names


class Parameters:
    """Base class of frozen dataclasses whose fields are validated parameters.

    Attributes
    ----------
    derived
        Names of properties that are reported as constants after the fields.
    """

    __slots__ = ()
    derived: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        for name, parameter in declared(type(self)).items():
            if parameter.field == name:
                object.__setattr__(self, name, parameter.validate(getattr(self, name)))
        self.check()

    def check(self) -> None:
        """Check the relations between parameters; raise `ParameterError`."""

    @classmethod
    def from_values(
        cls, values: Mapping[str, Any], defaults: Mapping[str, Any] = MappingProxyType({})
    ) -> Self:
        """Build an instance from names of fields and aliases, as in a configuration file.

        Parameters
        ----------
        values
            Mapping from name to value. Names that are not of this class are ignored.
        defaults
            Values of fields that are not given, where they differ from the defaults of the class.

        Raises
        ------
        ParameterError
            If two names of the same field are given, or a value is not allowed.
        """
        known = declared(cls)
        given = [single_name(names, values) for names in _names(cls).values()]
        chosen = {name: values[name] for name in given if name is not None}
        fields_given = {known[name].field for name in chosen}
        for name in known:
            if name in defaults and known[name].field not in fields_given:
                chosen[name] = defaults[name]
        arguments: dict[str, Any] = {}
        own_defaults = {name: parameter.default for name, parameter in known.items()}
        for name in sorted(chosen, key=lambda name: known[name].to_field is not None):
            field_values = own_defaults | arguments
            arguments[known[name].field] = known[name].read(chosen[name], field_values)
        return cls(**arguments)

    def options(self) -> dict[str, Any]:
        """Return the mapping from option to value, in the form of the command line."""
        known = declared(type(self))
        return {name: known[name].write(getattr(self, name)) for name in _names(type(self))}

    def constants(self) -> dict[str, float]:
        """Return the numerical fields (nan for None) and the derived constants."""
        constants = {
            parameter.constant: getattr(self, parameter.field)
            for parameter in declared(type(self)).values()
            if parameter.constant
        }
        for name in (*constants, *self.derived):
            if hasattr(type(self), name):
                constants[name] = getattr(self, name)
        return {name: math.nan if x is None else float(x) for name, x in constants.items()}


def single_name(names: Iterable[str], given: Iterable[str]) -> str | None:
    """Return the name that is given, or None.

    Raises
    ------
    ParameterError
        If two of the names are given.
    """
    present = [name for name in names if name in given]
    if len(present) > 1:
        raise ParameterError(
            f"{present[0]} and {present[1]} are not allowed together: they set the same thing"
        )
    return present[0] if present else None


def check_names(values: Mapping[str, Any], parameters: Iterable[Parameter]) -> None:
    """Raise ParameterError for unknown names and for values of a wrong type."""
    known = {parameter.name: parameter for parameter in parameters}
    for name, value in values.items():
        if name not in known:
            raise ParameterError(
                f"{name} is not a parameter of this system: choose among {', '.join(known)}"
            )
        known[name].check_type(value)


def meanings_of_constants(cls: type[Parameters]) -> dict[str, str]:
    """Return the mapping from constant to meaning; properties are described by their docstring."""
    parameters = declared(cls).values()
    meanings = {
        parameter.constant: parameter.meaning for parameter in parameters if parameter.constant
    }
    for name in cls.derived:
        meanings[name] = (getattr(cls, name).__doc__ or name).splitlines()[0].rstrip(".")
    return meanings
