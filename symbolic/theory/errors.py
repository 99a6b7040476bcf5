"""What a theory's file may get wrong: one sentence, with the file and the line it is about."""

import sys
from pathlib import Path
from typing import Any, NamedTuple

_PACKAGE = str(Path(__file__).parent)


class Where(NamedTuple):
    """A line of a user's file."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{Path(self.file).name}, line {self.line}"


def here() -> Where:
    """Return the innermost line that is running outside this package: the user's own."""
    frame = sys._getframe(1)
    while frame.f_back and frame.f_code.co_filename.startswith((_PACKAGE, "<")):
        frame = frame.f_back
    return Where(frame.f_code.co_filename, frame.f_lineno)


class TheoryError(ValueError):
    """A theory is not stated as it must be; the message is one sentence, its line in front.

    Parameters
    ----------
    sentence
        What is wrong, its value, and what is allowed.
    at
        The line it is about; ``None``: the one that is running.
    """

    def __init__(self, sentence: str, at: Where | None = None) -> None:
        self.sentence, self.where = printable(sentence), at or here()
        super().__init__(f"{printable(str(self.where))}: {self.sentence}")


def printable(text: str) -> str:
    """Return a text with control characters, line ends and surrogates as escapes."""
    return "".join(x if x.isprintable() else repr(x)[1:-1] for x in text)


def shown(value: Any) -> str:
    """Return a value as it appears in a sentence: short, and whatever its ``repr`` does."""
    try:
        text = repr(value)
    except Exception:  # of an object in a user's file; an integer of more than 4300 digits
        return f"<{type(value).__name__}>"
    return text if len(text) <= 100 else f"{text[:97]}..."


def require(condition: bool, sentence: str, at: Where | None = None) -> None:
    """Raise `TheoryError` unless the condition holds."""
    if not condition:
        raise TheoryError(sentence, at)
