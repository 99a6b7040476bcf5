"""State of the page as text: address, parameters and slider values.

Input and addresses are never evaluated: parameters are parsed as on the command line.
"""

import argparse
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlencode

from dynamics.core.annotations import as_text as show
from dynamics.core.errors import ParameterError
from dynamics.core.parameters import Parameter
from simulations import theories
from simulations.case import Case
from simulations.commands.arguments import number
from simulations.system import System

#: Prefix of plot choices in an address; no parameter starts with it.
_CHOICE = "."
_SYSTEM = "system"
#: Largest number of characters of a value, and of values in an address.
LONGEST, MOST = 200, 100


@dataclass(frozen=True)
class View:
    """State of a page.

    Attributes
    ----------
    system
        Name of the theory.
    texts
        Parameters that are set, as typed.
    choices
        Choices of plots: ``x`` and ``y`` of the portrait, ``map``, ``curves``.
    """

    system: str
    texts: Mapping[str, str] = field(default_factory=dict)
    choices: Mapping[str, str] = field(default_factory=dict)


def read(address: str, default: str = theories.DEFAULT) -> View:
    """Return the view of an address.

    Parameters
    ----------
    address
        Query such as ``system=masked&P=1e9``.
    default
        Theory if the query names none.

    Raises
    ------
    ParameterError
        If there are too many values, or one is too long. Names of parameters are checked later.
    """
    try:
        pairs = parse_qsl(address.removeprefix("?"), max_num_fields=MOST)
    except ValueError:
        raise ParameterError(
            f"this address is not allowed: it must have at most {MOST} parameters"
        ) from None
    for name, text in pairs:
        if max(len(name), len(text)) > LONGEST:
            raise ParameterError(
                f"{name[:40]} is not allowed: it must have at most {LONGEST} characters"
            )
    system = next((text for name, text in pairs if name == _SYSTEM), default)
    choices = {name[1:]: text for name, text in pairs if name.startswith(_CHOICE)}
    texts = {
        name: text for name, text in pairs if name[:1] not in ("", _CHOICE) and name != _SYSTEM
    }
    return View(system, texts, choices)


def address(view: View) -> str:
    """Return the query of a view, the inverse of :func:`read`."""
    choices = {_CHOICE + name: text for name, text in view.choices.items() if text}
    given = {name: text for name, text in view.texts.items() if text}
    return "?" + urlencode({_SYSTEM: view.system, **given, **choices})


def values(theory: System, texts: Mapping[str, str]) -> dict[str, Any]:
    """Return parameter values from texts, parsed as on the command line; empty texts are omitted.

    Raises
    ------
    ParameterError
        If a name is not a parameter, or a text is not a number.
    """
    values: dict[str, Any] = {}
    for name, text in texts.items():
        parameter = theory.parameter(name)
        if parameter is None:
            known = ", ".join(parameter.name for parameter in theory.parameters)
            raise ParameterError(f"{name} is not a parameter of this system: choose among {known}")
        if not text.strip():
            continue
        try:
            values[name] = text.strip() if parameter.dtype is str else number(text.strip())
        except argparse.ArgumentTypeError as error:
            raise ParameterError(f"{name} = {error}") from None
    return values


def case(theory: System, texts: Mapping[str, str]) -> Case:
    """Return the case with these parameters; the default accuracy is that of `System.preview`.

    Raises
    ------
    ParameterError
        If a name or a value is not allowed.
    """
    given = values(theory, texts)
    try:
        return theory.build({**theory.preview, **given})
    except ParameterError:
        return theory.build(given)  # the preview sets options of the other solver


def texts_of(theory: System, given: Mapping[str, Any]) -> dict[str, str]:
    """Return parameter values as texts that reproduce them exactly."""
    return {name: show(value) for name, value in given.items() if theory.parameter(name)}


def default_text(theory: System, parameter: Parameter) -> str:
    """Return the default of a parameter as text, "" if it depends on other parameters."""
    value = theory.preview.get(parameter.name, parameter.default)
    return "" if value is None else show(value)


def ticks(parameter: Parameter) -> tuple[float, ...]:
    """Return the slider values of a parameter, including its default."""
    own = parameter.default
    extra = () if own is None or isinstance(own, str) else (own,)
    return tuple(sorted({*parameter.ticks, *extra})) if parameter.ticks else ()


def nearest(parameter: Parameter, text: str) -> int | None:
    """Return the index of the slider value nearest to a text; ``None`` if it is not a number."""
    slider_values = ticks(parameter)
    try:
        value = float(number(text.strip()))
    except (argparse.ArgumentTypeError, OverflowError):
        return None
    if not slider_values or not math.isfinite(value):
        return None
    if slider_values[0] > 0.0:  # a logarithmic scale
        value = math.log(max(value, slider_values[0]))
        distances = [abs(math.log(x) - value) for x in slider_values]
    else:
        distances = [abs(x - value) for x in slider_values]
    return distances.index(min(distances))


def query_of(arguments: Mapping[str, Iterable[bytes]]) -> str:
    """Return the query of the arguments of a Tornado request, which are lists of bytes."""
    pairs = [
        (name, value.decode("utf-8", "replace"))
        for name, values in arguments.items()
        for value in values
    ]
    return urlencode(pairs)
