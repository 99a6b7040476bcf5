"""Parameters that are declared once, as annotated fields of a frozen dataclass.

.. code-block:: python

    @dataclass(frozen=True, slots=True)
    class ToyProblem(Parameters):
        s: Annotated[float, above(0), Doc("target"), Ticks(0.5, 1, 2), Draw(0.1, 2)] = 1.0

From this line follow the check of a value and its sentence, the option of the command line and its
help, the key of a configuration file, the values of a slider, valid and invalid Hypothesis draws,
the constant that is reported and the option that reproduces a case. Relations between parameters
are checked by the method ``check``.
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
    words_of,
)
from dynamics.core.checks import finite, integer, require
from dynamics.core.errors import ParameterError


@dataclass(frozen=True)
class Parameter:
    """A name that a configuration, a grid, a search or an option may set.

    ``usual`` is the default, ``None`` where it depends on other parameters, which ``default`` then
    describes; ``ticks`` are the values of a slider and ``choices`` the allowed words.
    """

    name: str
    meaning: str
    kind: type = float  # int, float or str
    allowed: str = ""
    short: str = ""
    usual: Any = None
    ticks: tuple[float, ...] = ()
    choices: tuple[str, ...] = ()
    default: str = ""
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
        default = self.default or ("" if self.usual is None else as_text(self.usual))
        return f"{self.meaning} (default: {default})" if default else self.meaning

    @property
    def help(self) -> str:
        """Meaning, default and allowed values."""
        return f"{self.description}; {self.allowed}" if self.allowed else self.description

    def check_type(self, value: Any) -> None:
        """Raise ParameterError for a value of another type than number, integer or word."""
        if self.kind is str:
            require(isinstance(value, str), self.name, repr(value), self.allowed or "a word")
        elif self.kind is int:
            real = isinstance(value, numbers.Real) and not isinstance(value, bool)
            whole = real and finite(self.name, value).is_integer()
            shown = value if real else repr(value)
            require(whole, self.name, shown, self.allowed or "an integer")
        else:
            finite(self.name, value)

    def validate(self, value: Any) -> Any:
        """Return a value of the field as `int`, `float` or `str`.

        Raises
        ------
        ParameterError
            One sentence with the name, the value and what is allowed.
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
        number = (integer if self.kind is int else finite)(self.name, value)
        if not all(bound.holds(number) for bound in self.bounds):
            require(False, self.name, number, words_of(self.bounds, self.kind))
        return number

    def write(self, value: Any) -> Any:
        """Return what a user gives for a value of the field."""
        return value if self.text is None or value is None else self.text.write(value)

    def read(self, value: Any, other: Mapping[str, Any]) -> Any:
        """Return the value of the field from what a user gives; ``other`` are the other fields."""
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
            words = f"{words_of(own, float)}, so that {self.field} is {words_of(limits, float)}"
            require(all(bound.holds(number) for bound in own), self.name, number, words)
        number = self.to_field(number, other)
        for bound in limits:  # a closed bound that is missed by rounding alone
            if bound.sign in (">=", "<=") and not bound.holds(number):
                number = bound.limit
        return number


def _boolean(name: str, value: Any) -> None:
    require(isinstance(value, bool), name, repr(value), "True or False")


#: Truth values are the words yes and no on the command line and in configurations.
YES_OR_NO = Text({"yes": True, "no": False}.__getitem__, lambda x: "yes" if x else "no", _boolean)


def declared(cls: type) -> Mapping[str, Parameter]:
    """Return a mapping from name to parameter: fields of a class, each followed by its aliases."""
    return _declared(cls)


@cache
def _declared(cls: Any) -> Mapping[str, Parameter]:
    hints = get_type_hints(cls, include_extras=True)
    found: dict[str, Parameter] = {}
    for field in fields(cls):
        default = None if field.default is MISSING else field.default
        for parameter in _of_field(field.name, default, hints[field.name]):
            found[parameter.name] = parameter
    return MappingProxyType(found)


def _of_field(name: str, default: Any, hint: Any) -> list[Parameter]:
    """Return the parameters that an annotated field declares."""
    annotation, *markers = get_args(hint)
    types = [one for one in get_args(annotation) or (annotation,) if one is not type(None)]
    optional = type(None) in get_args(annotation)

    def marker(kind: type, other: Any = None) -> Any:
        return next((found for found in markers if isinstance(found, kind)), other)

    doc, choices = marker(Doc), marker(Choices, Choices()).words
    text, usual, kind = marker(Text), default, types[0]
    if kind is bool:
        text, choices, usual, kind = YES_OR_NO, ("yes", "no"), YES_OR_NO.write(default), str
    elif text is not None:
        kind = str
    bounds = tuple(found for found in markers if isinstance(found, Bound | Condition))
    aliases = [found for found in markers if isinstance(found, Alias)]
    constant = next((alias.name for alias in aliases if alias.constant), name)
    field = Parameter(
        name,
        doc.meaning,
        kind,
        allowed=doc.allowed or _allowed(bounds, choices, kind),
        short=marker(Flag, Flag("")).name,
        usual=usual,
        ticks=marker(Ticks, Ticks()).values,
        choices=choices,
        default=doc.default,
        field=name,
        optional=optional,
        bounds=bounds,
        draw=marker(Draw),
        constant="" if kind is str or marker(Unreported) else constant,
        text=text,
    )
    return [field, *(_alias(alias, field) for alias in aliases)]


def _alias(alias: Alias, field: Parameter) -> Parameter:
    """Return the parameter that an alias declares; without conversion it is like its field."""
    converted = alias.to_field is not None
    return replace(
        field,
        name=alias.name,
        meaning=alias.doc.meaning,
        kind=float if converted else field.kind,
        allowed=alias.doc.allowed or ("" if converted else field.allowed),
        short="",
        usual=None if converted else field.usual,
        ticks=alias.ticks.values,
        default=alias.doc.default,
        draw=alias.draw,
        constant="",
        to_field=alias.to_field,
        from_field=alias.from_field,
    )


def _allowed(bounds: tuple[Bound | Condition, ...], choices: tuple[str, ...], kind: type) -> str:
    """Return the allowed values for the help of an option."""
    if choices:
        return " or ".join(choices) if len(choices) == 2 else f"one of {', '.join(choices)}"
    words = words_of(bounds, kind)
    integers = kind is int and not any(isinstance(bound, Condition) for bound in bounds)
    return ", ".join(part for part in ("an integer" if integers else "", words) if part)


def _names(cls: type) -> dict[str, list[str]]:
    """Return the names of each field: its own and its aliases."""
    names: dict[str, list[str]] = {}
    for parameter in declared(cls).values():
        names.setdefault(parameter.field, []).append(parameter.name)
    return names


class Parameters:
    """Base class of frozen dataclasses whose fields are parameters: they are validated.

    Attributes
    ----------
    derived
        Properties that are reported as constants after the fields.
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
        cls, values: Mapping[str, Any], usual: Mapping[str, Any] = MappingProxyType({})
    ) -> Self:
        """Build from names of fields and aliases, as in a configuration file.

        ``usual`` are values of what is not given, where they differ from the defaults of the
        fields; names that are not of this class are ignored.

        Raises
        ------
        ParameterError
            One sentence, for two names of one field, or a value that is not allowed.
        """
        known = declared(cls)
        given = [one_of(names, values) for names in _names(cls).values()]
        chosen = {name: values[name] for name in given if name is not None}
        fields_given = {known[name].field for name in chosen}
        chosen |= {name: usual[name] for name in known
                   if name in usual and known[name].field not in fields_given}  # fmt: skip
        found: dict[str, Any] = {}
        defaults = {name: parameter.usual for name, parameter in known.items()}
        for name in sorted(chosen, key=lambda name: known[name].to_field is not None):
            found[known[name].field] = known[name].read(chosen[name], defaults | found)
        return cls(**found)

    def options(self) -> dict[str, Any]:
        """Return the values of the fields as the command line reads them."""
        known = declared(type(self))
        return {name: known[name].write(getattr(self, name)) for name in _names(type(self))}

    def constants(self) -> dict[str, float]:
        """Return the numerical fields (nan for None) and the derived constants."""
        found = {
            parameter.constant: getattr(self, parameter.field)
            for parameter in declared(type(self)).values()
            if parameter.constant
        }
        found |= {name: getattr(self, name) for name in (*found, *self.derived)
                  if hasattr(type(self), name)}  # fmt: skip
        return {name: math.nan if x is None else float(x) for name, x in found.items()}


def one_of(names: Iterable[str], given: Iterable[str]) -> str | None:
    """Return which of several names is given; refuse two of them."""
    both = [name for name in names if name in given]
    if len(both) > 1:
        raise ParameterError(
            f"{both[0]} and {both[1]} are not allowed together: they set the same thing"
        )
    return both[0] if both else None


def check_names(values: Mapping[str, Any], parameters: Iterable[Parameter]) -> None:
    """Refuse unknown names and values of a wrong type, each in one sentence."""
    known = {parameter.name: parameter for parameter in parameters}
    for name, value in values.items():
        if name not in known:
            raise ParameterError(
                f"{name} is not a parameter of this system: choose among {', '.join(known)}"
            )
        known[name].check_type(value)


def meanings_of_constants(cls: type[Parameters]) -> dict[str, str]:
    """Return the constants of a class and their meaning, that of a property from its docstring."""
    known = declared(cls)
    found = {one.constant: one.meaning for one in known.values() if one.constant}
    for name in cls.derived:
        found[name] = (getattr(cls, name).__doc__ or name).splitlines()[0].rstrip(".")
    return found
