"""Errors in a theory file, each one sentence with the file name and line number."""

import sys
from pathlib import Path
from typing import Any, NamedTuple

_PACKAGE = str(Path(__file__).parents[1])


class SourceLine(NamedTuple):
    """A line of a user's file.

    Attributes
    ----------
    file
        Path of the file.
    line
        Line number, starting at 1.
    """

    file: str
    line: int

    def __str__(self) -> str:
        return f"{Path(self.file).name}, line {self.line}"


def calling_line() -> SourceLine:
    """Return the innermost line of the call stack outside this package: the user's own."""
    frame = sys._getframe(1)
    while frame.f_back and frame.f_code.co_filename.startswith((_PACKAGE, "<")):
        frame = frame.f_back
    return SourceLine(frame.f_code.co_filename, frame.f_lineno)


class TheoryError(ValueError):
    """Raised if a theory file is invalid; the text is "FILE, line N: SENTENCE".

    Parameters
    ----------
    sentence
        What is wrong, its value, and what is allowed.
    location
        The offending line; by default the user's line that is running.
    """

    def __init__(self, sentence: str, location: SourceLine | None = None) -> None:
        self.sentence, self.location = printable(sentence), location or calling_line()
        super().__init__(f"{printable(str(self.location))}: {self.sentence}")


def printable(text: str) -> str:
    """Return a text with control characters, line ends and surrogates escaped."""
    return "".join(x if x.isprintable() else repr(x)[1:-1] for x in text)


def short_repr(value: Any) -> str:
    """Return ``repr(value)`` cut to 100 characters, or the type name if ``repr`` raises."""
    try:
        text = repr(value)
    except Exception:  # a user's object, or an integer of more than 4300 digits
        return f"<{type(value).__name__}>"
    return text if len(text) <= 100 else f"{text[:97]}..."


def require(condition: bool, sentence: str, location: SourceLine | None = None) -> None:
    """Raise `TheoryError` unless the condition holds."""
    if not condition:
        raise TheoryError(sentence, location)
