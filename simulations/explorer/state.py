"""What a page shows, as text: its address and back, its parameters, the values of its sliders.

Nothing that is typed or linked is evaluated: parameters are read as the command line reads them.
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

#: Choices of what is drawn, apart from parameters by this letter, which no parameter begins with.
_DRAWN = "."
_SYSTEM = "system"
#: Characters of a value, and values of an address, that are read at most.
LONGEST, MOST = 200, 100


@dataclass(frozen=True)
class View:
    """What a page shows.

    Attributes
    ----------
    system
        Name of the theory.
    texts
        The parameters that are given, as they were typed.
    drawn
        Choices of what is drawn: ``x`` and ``y`` of the portrait, ``map``, ``curves``.
    """

    system: str
    texts: Mapping[str, str] = field(default_factory=dict)
    drawn: Mapping[str, str] = field(default_factory=dict)


def read(address: str, default: str = theories.DEFAULT) -> View:
    """Return the view that the query of an address describes, such as ``system=masked&P=1e9``.

    Raises
    ------
    ParameterError
        If there are too many values, or one is too long; names are refused where they are used.
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
    drawn = {name[1:]: text for name, text in pairs if name.startswith(_DRAWN)}
    texts = {name: text for name, text in pairs if name[:1] not in ("", _DRAWN) and name != _SYSTEM}
    return View(system, texts, drawn)


def address(view: View) -> str:
    """Return the query of the address that shows a view: :func:`read` gives the view again."""
    drawn = {_DRAWN + name: text for name, text in view.drawn.items() if text}
    given = {name: text for name, text in view.texts.items() if text}
    return "?" + urlencode({_SYSTEM: view.system, **given, **drawn})


def values(theory: System, texts: Mapping[str, str]) -> dict[str, Any]:
    """Return the values that texts stand for, as the command line reads them; empty: not given.

    Raises
    ------
    ParameterError
        With one sentence, for a name that is no parameter or a text that is no number.
    """
    found: dict[str, Any] = {}
    for name, text in texts.items():
        parameter = theory.parameter(name)
        if parameter is None:
            known = ", ".join(one.name for one in theory.parameters)
            raise ParameterError(f"{name} is not a parameter of this system: choose among {known}")
        if not text.strip():
            continue
        try:
            found[name] = text.strip() if parameter.kind is str else number(text.strip())
        except argparse.ArgumentTypeError as refusal:
            raise ParameterError(f"{name} = {refusal}") from None
    return found


def case(theory: System, texts: Mapping[str, str]) -> Case:
    """Return the run that texts ask for; accuracy is that of a sketch where it is not given.

    Raises
    ------
    ParameterError
        With one sentence, for a name or a value that is not allowed.
    """
    given = values(theory, texts)
    try:
        return theory.build({**theory.sketch, **given})
    except ParameterError:
        return theory.build(given)  # the sketch is of the other solver; else refused again


def texts_of(theory: System, given: Mapping[str, Any]) -> dict[str, str]:
    """Return values as texts that give them again, to the last bit."""
    return {name: show(value) for name, value in given.items() if theory.parameter(name)}


def usual(theory: System, parameter: Parameter) -> str:
    """Return what holds where the field of a parameter is empty; empty where that depends."""
    value = theory.sketch.get(parameter.name, parameter.usual)
    return "" if value is None else show(value)


def ticks(parameter: Parameter) -> tuple[float, ...]:
    """Return the slider values of a parameter, its usual value among them."""
    own = parameter.usual
    extra = () if own is None or isinstance(own, str) else (own,)
    return tuple(sorted({*parameter.ticks, *extra})) if parameter.ticks else ()


def nearest(parameter: Parameter, text: str) -> int | None:
    """Return the stop next to what a field holds; ``None`` if that is no number."""
    places = ticks(parameter)
    try:
        value = float(number(text.strip()))
    except (argparse.ArgumentTypeError, OverflowError):
        return None
    if not places or not math.isfinite(value):
        return None
    if places[0] > 0.0:  # these are logarithmic
        value = math.log(max(value, places[0]))
        distances = [abs(math.log(place) - value) for place in places]
    else:
        distances = [abs(place - value) for place in places]
    return distances.index(min(distances))


def query_of(arguments: Mapping[str, Iterable[bytes]]) -> str:
    """Return the query that a web server has taken apart into lists of bytes."""
    pairs = [(name, one.decode("utf-8", "replace")) for name, many in arguments.items()
             for one in many]  # fmt: skip
    return urlencode(pairs)
