"""What is stored of a claim that was run: the shape that the report relies on."""

import re
from collections.abc import Callable
from typing import Any

from simulations.reproduction.claim import Verdict


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(entry, str) for entry in value)


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _mapping(value: Any) -> bool:
    return isinstance(value, dict)


def _measured(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(one, dict)
        and all(isinstance(one.get(word), str) for word in ("name", "label", "unit"))
        and isinstance(one.get("at"), dict)
        and isinstance(one.get("value", ()), int | float | str | None)
        for one in value
    )


def _figures(value: Any) -> bool:
    words = ("name", "title", "caption", "image", "data", "image sha256", "data sha256")
    return isinstance(value, list) and all(
        isinstance(figure, dict) and all(isinstance(figure.get(word), str) for word in words)
        for figure in value
    )


_ALWAYS: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("claim", "paper", "place", "statement", "method", "criterion", "date"), _text),
    "assumptions": _text,
    "quick_note": _text,
    "thorough_note": _text,
    "quick": lambda value: isinstance(value, bool),
    "seed": _number,
    "seconds": _number,
    "provenance": _mapping,
    "warnings": _texts,
    "figures": _figures,
}
_IF_RUN: dict[str, Callable[[Any], bool]] = {
    "verdict": lambda value: isinstance(value, str) and value in set(Verdict),
    "measured": _measured,
    "parameters": _mapping,
    "tolerance": lambda value: value is None or _number(value),
    "summary": _text,
}
#: What may be there: it was not when this layout was first written.
_ADDED: dict[str, Callable[[Any], bool]] = {
    "amended": _text,
    "finding": _text,
    "headline": lambda value: value is None or _mapping(value),
    "predicates": lambda value: isinstance(value, list),
    "tables": lambda value: isinstance(value, list),
}
_IF_FAILED: dict[str, Callable[[Any], bool]] = {"error": _text, "traceback": _text}


def is_record(value: Any) -> bool:
    """Tell whether parsed JSON has the shape of a stored record."""
    if not isinstance(value, dict):
        return False
    wanted = _ALWAYS | (_IF_FAILED if "error" in value else _IF_RUN)
    return all(name in value and fits(value[name]) for name, fits in wanted.items()) and all(
        name not in value or fits(value[name]) for name, fits in _ADDED.items()
    )


_FOLDERS = re.compile(r"(?<![\w.:/\\])(?:[A-Za-z]:)?[/\\](?:[^\s:'\"<>|,;()\[\]/\\]+[/\\])+")


def without_folders(text: str) -> str:
    """Return a text with the absolute paths in it cut to the names of their files.

    What goes into a report tells nothing about where its maker keeps things.
    """
    return _FOLDERS.sub("", text)
